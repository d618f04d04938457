"""TRL111, its part about data: uninitialised memory that is read before anything fills it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint.checks.uninitialised_tensors import EMPTY_WORDS, FirstUses, Use, returns_empty
from torchrepro_lint.dataflow.training_steps import is_backward, names_optimizer
from torchrepro_lint.domain.determinism_mode import (
    deterministic_mode_enabled,
    flag_writes_in,
    programs_reaching_or_importing,
)
from torchrepro_lint.domain.flags import is_off
from torchrepro_lint.domain.programs import Program, programs_in
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.files import release
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Message, Reference
from torchrepro_lint.syntax.definitions import attribute_stores
from torchrepro_lint.syntax.nodes import Assign, Call, Expression, Ref
from torchrepro_lint.syntax.qualified_names import in_project, is_self, passes_call, path_of
from torchrepro_lint.syntax.use_def import receiver_or_container
from torchrepro_lint.syntax.visitor import last_identifier, without_subscripts
from torchrepro_lint.trace.traces import Context, Traces

# Calls by which a model gets weights from elsewhere, or that make it without memory of its own.
LOADING = frozenset(
    {"load_state_dict", "from_pretrained", "load_model", "load_checkpoint", "load_weights", "load_from_checkpoint"}
    | {"init_empty_weights", "to_empty", "skip_init", "load_checkpoint_and_dispatch", "deferred_init"}
)
_NO_MODEL = lazy_pattern(r"(?i)sched|scaler|lr")


def reads_of_empty(context: Context) -> Iterator[tuple[CallSite, str]]:
    """The calls whose result is read while it is uninitialised, each with the message."""
    uses: FirstUses | None = None
    for site in context.project.calls_by(context.path, EMPTY_WORDS):
        if returns_empty(context.project, context.path, site):
            uses = uses or FirstUses(context.project, context.path)
            use, place = uses.of(site.call)
            word = _own_attribute(site)
            if use is Use.READS:
                yield site, _message(context, site, context.path, place)
            elif word and (read := _read_attribute(context, site, word)) is not None:
                yield site, _message(context, site, *read)


# Whether torch itself fills such memory, since this release.
FILLS_SINCE = (2, 2)
_FILL_FLAG = "fill-uninitialized-memory"


def fills_memory(context: Context, function: str) -> bool:
    """Whether torch fills the memory that a function gets: under deterministic algorithms, unless a flag is turned off."""
    project = context.project
    if release(context.catalogue.version) < FILLS_SINCE or not deterministic_mode_enabled(project, function):
        return False
    return not any(keeps_memory(project, each) for each in programs_reaching_or_importing(project, function))


def keeps_memory(project: Traces, program: Program) -> bool:
    """Whether a program turns the filling of such memory off."""
    return any(is_off(effect.value) for effect in flag_writes_in(project, program, _FILL_FLAG))


def may_load_weights(context: Context, owner: str) -> bool:
    """Whether the programs that construct a module may load its weights before they train; without such that do either, whether any
    code of the project loads weights.
    """
    programs = [each for each in programs_in(context.project, context.path) if _constructs(each, owner)]
    loads = [each for each in map(_loads_first, programs) if each is not None]
    if loads:
        return all(loads)
    loading = context.project.mentioning(LOADING)
    return any(
        _loads_model(site.names, site.call)
        for path in loading.paths
        for site in context.project.calls_by(path, LOADING)
    )


def _constructs(program: Program, owner: str) -> bool:
    return any(owner in event.names for event in program.run.trace_events if event.event.kind == "call")


def _loads_first(program: Program) -> bool | None:
    """Whether a program loads weights before its first backward pass; None for one that does neither."""
    for event in program.run.trace_events:
        call = event.event.value
        if event.event.kind == "call" and isinstance(call, Call):
            if is_backward(call, event.names):
                return False
            if last_identifier(call.func) in LOADING and _loads_model(event.names, call):
                return True
    return None


def _loads_model(names: Iterable[str], call: Call) -> bool:
    """Whether a call loads more than the state of an optimizer, a schedule or a scaler, or the vectors of one embedding."""
    receiver = receiver_or_container(call.func)
    word = "" if receiver is None else last_identifier(without_subscripts(receiver))
    others = names_optimizer(word) or _NO_MODEL.search(word) is not None
    return not others and not any(name.startswith("torch.nn.Embedding") for name in names)


def _message(context: Context, site: CallSite, path: str, place: Expression) -> str:
    line = context.project.position(path, place.start).line
    where = Reference(path, line)
    name = written_name(site.names, site.call)
    fill = f"np.{_zeros(name)}" if name.startswith("np.") else f"torch.{_zeros(name)}"
    return Message(
        f"{name} returns arbitrary memory, which is read (", where, f") before anything fills it; use {fill}"
    )


def written_name(names: tuple[str, ...], call: Call) -> str:
    """``torch.empty``, ``np.empty_like``; for a method of a tensor its last word."""
    word = last_identifier(call.func)
    known = next((name for name in names if not passes_call(name)), "")
    return known.replace("numpy.", "np.") if known else f"Tensor.{word}"


def _zeros(name: str) -> str:
    return "zeros_like" if name.endswith("_like") else "zeros"


# --- attributes ------------------------------------------------------------------------------------------------------


def _own_attribute(site: CallSite) -> str:
    """The attribute of ``self`` to which a call is assigned as it is."""
    match site.statement:
        case Assign(targets=(Ref(roots=(root,), path=(word,)),), value=value, op="=" | ":") if (
            value == site.call and is_self(root)
        ):
            return word
    return ""


def _read_attribute(context: Context, site: CallSite, word: str) -> tuple[str, Expression] | None:
    """A read of the attribute, where nothing in the project may fill it, or give it another value."""
    project, owner = context.project, context.project.resolver.owner(site.function)
    family = {owner, *project.resolver.subclasses(owner)} if owner else set()
    family.update(filter(in_project, project.resolver.ancestry(owner)))
    assigned = [each for name in sorted(family) for each in project.resolver.instance_attributes(name).get(word, ())]
    if not owner or len([how for how, _, _ in assigned if how == "="]) != 1:
        return None
    added = [(path_of(method), value) for how, method, value in assigned if how not in ("=", "[]", "?")]
    read = _first_read(context, word) if len(added) + 1 == len(assigned) else None
    if read is None or _is_set_from_outside(context, word):
        return None
    return next(iter([*read, *added]), None)


def _first_read(context: Context, word: str) -> list[tuple[str, Expression]] | None:
    """The reads of an attribute in this file; None where something in the project may fill it."""
    found: list[tuple[str, Expression]] = []
    for path, expression, at in context.project.uses.attributes.having(word):
        if not isinstance(expression, Ref):
            return None
        use, place = FirstUses(context.project, path).of_reference(expression, expression.path[at + 1 :])
        if use is Use.FILLS:
            return None
        if use is Use.READS and path == context.path and at == 0 and is_self(expression.roots[0]):
            found.append((path, place))
    return found


def _is_set_from_outside(context: Context, word: str) -> bool:
    """Whether a file assigns an attribute of this name of another object than ``self``, or a part of it."""
    files = context.project.files
    return any(word in target.path for path in sorted(files) for target, _ in attribute_stores(files[path]))
