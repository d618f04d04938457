"""TRL112: training is resumed without the state of any generator."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.training_steps import is_backward, names_optimizer
from torchrepro_lint.domain.programs import Program, programs_in
from torchrepro_lint.domain.rng.seeders import RESTORING, puts_back
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import Attribute, Call, Constant, Expression, Record, Ref, Subscript, span
from torchrepro_lint.syntax.qualified_names import path_of, top_package
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.use_def import receiver_or_container
from torchrepro_lint.syntax.visitor import last_identifier, subexpressions, without_subscripts
from torchrepro_lint.trace.library_models import rows_of
from torchrepro_lint.trace.traces import Context

_LOADS = "load_state_dict"
# What has a generator's state in its own, by name.
_HOLDERS = lazy_pattern(r"(?i)loader|sampler|data_?set|data_?module|rng|generator|random")
_READERS = lazy_pattern(r"(?i)_?(load|restore|resume|read)\w*")
# The packages with such calls in the catalogue, and the last words of those.
_FRAMEWORKS = frozenset(
    {"lightning", "pytorch_lightning", "transformers", "trl", "sentence_transformers", "accelerate"}
)
_STEPS = frozenset({"fit", "train", "load_state"})
# The last words of the calls that a trace is searched for, and the functions that are imported by name.
_TRAINING = frozenset({"backward", "grad", "fit", "train", "run", "learn", "fit_one_cycle", "training_step"})
_WORDS = RESTORING | _STEPS | {_LOADS}
_FUNCTIONS = frozenset(
    {"torch.set_rng_state", "torch.random.set_rng_state", "torch.cuda.set_rng_state", "torch.cuda.set_rng_state_all"}
    | {"random.setstate", "numpy.random.set_state", "torch.autograd.grad", "torch.autograd.backward"}
)
_MESSAGE = (
    "restores the optimizer but no generator, so a resumed run draws other numbers than an uninterrupted one; "
    "save torch.get_rng_state() too, and restore it"
)


def check(context: Context) -> Iterator[Finding]:
    """The first such place of each program that resumes, wherever in its files that is."""
    own = _loads(context, context.path).calls
    reported: set[int] = set()
    for program in programs_in(context.project, context.path) if own else ():
        call = _resuming(context, program) if "torch" in program.effects.seeds else None
        if call is not None and any(call == each for each in own) and call.start not in reported:
            reported.add(call.start)
            yield Finding("TRL112", span(call), _MESSAGE)


class _Loads(Record, frozen=True):
    """The calls of a file that restore an optimizer's state from a file, and whether another restores a generator's."""

    calls: tuple[Call, ...]
    restores: bool


@query()
def _loads(context: Context, path: str) -> _Loads:
    if not has_word(context.project.files[path].summary.calls, _LOADS):
        return _Loads((), False)
    sites = [*context.project.calls_by(path, frozenset({_LOADS}))]
    calls = (
        each.call
        for each in sites
        if _is_optimizer(context, path, each.names, each.call) and _is_from_file(context, path, each.call)
    )
    return _Loads(tuple(calls), any(_is_holder(each.call, each.names) for each in sites))


def _is_holder(call: Call, names: tuple[str, ...]) -> bool:
    """Whether a call restores an object that is named like one with a generator; a network is none, as the ``generator`` of a GAN."""
    is_network = any(name.startswith("torch.nn.") for name in names)
    return not is_network and _HOLDERS.search(_receiver_word(call)) is not None


def _resuming(context: Context, program: Program) -> Call | None:
    """The call that restores an optimizer's state, where a program then trains and restores no generator."""
    files = sorted({path_of(function) for function in program.run.functions})
    calls: dict[tuple[str, Expression | None], Call]
    calls = {(path, call): call for path in files for call in _loads(context, path).calls}
    order, found = _first_of(program, calls)
    if found is None or any(seed.order > order for seed in program.effects.seeds["torch"]):
        return None
    trains = any(is_backward(call, names) for _, call, names in _calls_of(program, order + 1, _TRAINING))
    if not trains or (
        _may_restore(context, files) and any(_restores(context, *each) for each in _calls_of(program, 0, _WORDS))
    ):
        return None
    return found


def _first_of(program: Program, calls: dict[tuple[str, Expression | None], Call]) -> tuple[int, Call | None]:
    """The first of these calls in a trace, with its order."""
    for order, each in enumerate(program.run.trace_events):
        event = each.resolved.event
        if event.kind == "call" and (found := calls.get((each.path, event.value))) is not None:
            return order, found
    return 0, None


def _calls_of(program: Program, start: int, words: frozenset[str]) -> list[tuple[str, Call, tuple[str, ...]]]:
    """The calls of methods with these names from an event on, by file. No function is called for each event: traces are long."""
    found: list[tuple[str, Call, tuple[str, ...]]] = []
    for each in program.run.trace_events[start:]:
        resolved = each.resolved
        value = resolved.event.value
        if resolved.event.kind != "call" or type(value) is not Call:
            continue
        func = value.func
        if type(func) is Ref:
            if func.path[-1] in words if func.path else func.roots[0] in _FUNCTIONS:
                found.append((each.path, value, resolved.names))
        elif type(func) is Attribute and func.name in words:
            found.append((each.path, value, resolved.names))
    return found


def _may_restore(context: Context, files: list[str]) -> bool:
    """Whether a file of a program may restore a generator: a test before its events are read."""
    summaries = [context.project.resolver.modules.summary(path) for path in files]
    return any(_loads(context, path).restores for path in files) or any(
        not RESTORING.isdisjoint(each.calls) or any(top_package(name) in _FRAMEWORKS for name in each.imports)
        for each in summaries
    )


def _restores(context: Context, path: str, call: Call, names: tuple[str, ...]) -> bool:
    word = last_identifier(call.func)
    if word in RESTORING:
        return not puts_back(context.project.resolver, path, call)
    by_framework = word in _STEPS and any(row.restores for row in rows_of(names))
    return by_framework or (word == _LOADS and _is_holder(call, names))


def _is_optimizer(context: Context, path: str, names: tuple[str, ...], call: Call) -> bool:
    if any(name.startswith("torch.optim.lr_scheduler.") for name in names):
        return False
    receiver = receiver_or_container(call.func)
    objects = context.project.resolver.object_names(path, receiver) if receiver is not None and not names else ()
    if any(name.startswith("torch.optim.") for name in (*names, *objects)) or names_optimizer(_receiver_word(call)):
        return True
    return any(map(names_optimizer, _loop_keys(context, path, call)))


def _loop_keys(context: Context, path: str, call: Call) -> Iterator[str]:
    """The keys under which a loop gets the receiver: those of a dictionary, and the keywords of the calls that pass it by ``**``."""
    names, receiver = context.project.resolver, receiver_or_container(call.func)
    for root in receiver.roots if isinstance(receiver, Ref) and not receiver.path else ():
        for how, source in names.assigned(path + root):
            held = receiver_or_container(source.func) if how == "[]" and isinstance(source, Call) else None
            if (
                isinstance(held, Ref)
                and isinstance(source, Call)
                and last_identifier(source.func) in ("items", "values")
            ):
                for _, display in names.displays(path, held):
                    keys = display.items[::2] if display.kind == "dict" else ()
                    yield from (str(key.value) for key in keys if isinstance(key, Constant))
                for parameter in filter(None, (names.parameter(path + each) for each in held.roots)):
                    function = parameter.function
                    calls = names.call_graph.of(path + function.name, function) if parameter.param.kind == "**" else ()
                    yield from (arg.keyword for _, one in calls for arg in one.args if arg.keyword)


def _receiver_word(call: Call) -> str:
    """The last word of a method's receiver: ``optimizers`` of ``self.optimizers["d"].load_state_dict``."""
    receiver = receiver_or_container(call.func)
    return "" if receiver is None else last_identifier(without_subscripts(receiver))


def _is_from_file(context: Context, path: str, call: Call) -> bool:
    """Whether the state is read from a file: an entry that is named after an optimizer, or what a reader returns."""
    given = call.args[0].value if call.args else None
    if given is None or any(_is_own_state(each) for each in subexpressions(given)):
        return False
    if any(isinstance(each, Constant) and "optim" in str(each.value) for each in subexpressions(given)):
        return True
    return any(
        isinstance(each, Call) and _READERS.fullmatch(last_identifier(each.func))
        for value in _values_behind(context.project.resolver, path, _base(given))
        for each in subexpressions(value)
    )


def _values_behind(names: Names, path: str, value: Expression) -> Iterator[Expression]:
    """The expressions that a value comes from, through calls; of what is taken apart, ``state, epoch = read(path)``, that part."""
    yield from (each for _, each in names.values_through_calls(path, value))
    for root in value.roots if isinstance(value, Ref) and not value.path else ():
        for how, whole in names.assigned(path + root):
            keys = names.unpacking(path, root, whole) if how == "[]" else None
            parts = (names.elements(path, whole, keys) or [(path, whole)]) if keys else []
            for file, part in parts:
                yield from (each for _, each in names.values_through_calls(file, _base(part)))


def _is_own_state(value: Expression) -> bool:
    """``other.state_dict()``."""
    return isinstance(value, Call) and last_identifier(value.func) == "state_dict"


def _base(value: Expression) -> Expression:
    """The value that is looked into: ``saved`` of ``saved["a"]["b"]`` and of ``saved.get("a")``."""
    match value:
        case Subscript(value=inner) | Attribute(value=inner):
            return _base(inner)
        case Call(func=Ref(path=(*before, "get" | "pop")) as func):
            return func._replace(path=tuple(before))
    return value
