"""TRL108: a reinforcement-learning environment starts from entropy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint import limits
from torchrepro_lint.catalogue.conditions import argument_reader
from torchrepro_lint.checks.environment_draws import (
    is_base_environment,
    is_environment,
    makes_environment,
    may_draw,
    value_draws,
)
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.programs import Program, program_at, programs_in
from torchrepro_lint.domain.rng.seeders import families_of_call
from torchrepro_lint.query.database import query
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    ModuleSummary,
    Ref,
    Subscript,
    span,
)
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    in_project,
    is_instance,
    is_self,
    is_super,
    last_word,
    project_classes,
    simple_name,
    split_last,
    split_method,
)
from torchrepro_lint.syntax.scopes import control_flow_position, in_loop
from torchrepro_lint.syntax.use_def import receiver_or_container
from torchrepro_lint.syntax.visitor import is_none, last_identifier, receiver_of
from torchrepro_lint.trace.entry_points import Entry
from torchrepro_lint.trace.events import TraceEvent
from torchrepro_lint.trace.library_models import calls_method, rows_of
from torchrepro_lint.trace.traces import Context

_CODE = "TRL108"
# Prefilter: a file with a finding calls one of these, or names it as a value.
_WORDS = frozenset({"reset", "sample", "learn"})
_METHODS = frozenset({"reset", "seed"})
_RESEEDING = "set_random_seed"
# The attribute of a wrapper that is the environment itself.
_INNERMOST = ".unwrapped"
_CALLED = _WORDS | _METHODS | {_RESEEDING}
# Attributes and functions that look at a value's form alone, and functions that only convert it.
_INSPECTING = frozenset({"shape", "dtype", "ndim", "size", "nbytes"})
_INSPECTORS = frozenset({"len", "type", "zeros_like", "empty_like", "ones_like", "isinstance", "shape", "ndim"})
_CONVERTERS = frozenset({"array", "asarray", "tensor", "as_tensor", "from_numpy", "Tensor", "FloatTensor"})
_SPACES = frozenset({"action_space", "single_action_space", "observation_space", "single_observation_space"})


def check(context: Context) -> Iterator[Finding]:
    """The first reset of each environment in a trace, and the first sample of its spaces, without a seed before."""
    mentioned = {*context.tree.summary.calls, *context.tree.summary.values}
    for program in programs_in(context.project, context.path) if not mentioned.isdisjoint(_WORDS) else ():
        for trace_event, message in _found_in(context, program):
            if trace_event.path == context.path and trace_event.event.value is not None:
                yield Finding(_CODE, span(trace_event.event.value), message)


def _found_in(context: Context, program: Program) -> tuple[tuple[TraceEvent, str], ...]:
    """What is found in one program, in whichever file; asked once for all files."""
    return _found_from(context, program.entry)


@query()
def _found_from(context: Context, entry: Entry) -> tuple[tuple[TraceEvent, str], ...]:
    return tuple(_unseeded(context, program_at(context.project, entry)))


def _unseeded(context: Context, program: Program) -> Iterator[tuple[TraceEvent, str]]:
    seen: set[tuple[object, ...]] = set()
    files = {path for path in program.run.paths if _may_call(context.project.files[path].summary)}
    found = [
        (trace_event, trace_event.event.value)
        for trace_event in program.run.trace_events
        if trace_event.event.kind == "call"
        and trace_event.path in files
        and isinstance(trace_event.event.value, Call)
        and not _CALLED.isdisjoint(_words(trace_event, trace_event.event.value))
    ]
    ran = frozenset((each.path, each.event.value) for each in program.run.trace_events) if found else frozenset()
    # Vector environments create spaces late, and a copy keeps the seed: one seed anywhere counts.
    spaces_seeded = any(_seeds_space(trace_event) for trace_event, _ in found)
    for trace_event, call in found:
        match call.func:
            case Ref(path=(*_, "sample")) as func if _SPACES.intersection(func.path):
                if (
                    not spaces_seeded
                    and (_is_space(trace_event.names) or _is_space_of_project(context, trace_event.path, func))
                    and not _is_inspected(context, trace_event.path, call)
                ):
                    space = next(each for each in func.path if each in _SPACES)
                    yield (
                        trace_event,
                        f"{space}.sample() draws from its own unseeded generator; call {space}.seed(...) first",
                    )
                    spaces_seeded = True  # told once
            case _ if any(
                last_word(name) == _RESEEDING and is_instance(split_last(name)[0]) for name in trace_event.names
            ):
                seen.update(_made(context, trace_event.path, receiver_or_container(call.func)))
            # Where nothing seeds torch, either, TRL101 asks for the same argument.
            case _ if "torch" in program.effects.seeds and calls_method(trace_event.names, "reset"):
                if agents := {*_unseeded_agents(context, ran, seen, trace_event, call)}:
                    seen.update(made for made, _ in agents)
                    owners = " or ".join(sorted({owner for _, owner in agents}))
                    yield (
                        trace_event,
                        f"{owners} resets its environment without a seed, so that it starts from entropy; pass seed=... to {owners}",
                    )
            case _ if word := _called_method(context, trace_event, call):
                given, inside = _environment_keys(context, ran, trace_event, call)
                is_new = not (given <= seen or inside <= seen)
                if is_new and word == "reset" and _is_unseeded_reset(context, trace_event, call):
                    yield trace_event, _message(context, trace_event)
                seen |= given


def _may_call(summary: ModuleSummary) -> bool:
    """Whether a file mentions what resets, seeds or samples, under whatever name it calls it."""
    imported = map(last_word, summary.imports)
    return not (
        _CALLED.isdisjoint(summary.calls) and _CALLED.isdisjoint(summary.values) and _CALLED.isdisjoint(imported)
    )


def _words(trace_event: TraceEvent, call: Call) -> Iterator[str]:
    """The last words by which something is called: as it is written, and as it is resolved."""
    yield last_identifier(call.func)
    yield from map(last_word, trace_event.names)


def _seeds_space(trace_event: TraceEvent) -> bool:
    match trace_event.event.value:
        case Call(func=Ref(path=(*owners, "seed"))) if trace_event.event.kind == "call":
            return not _SPACES.isdisjoint(owners)
    return False


def _message(context: Context, trace_event: TraceEvent) -> str:
    if any(name.startswith("stable_baselines3.") for name in trace_event.names):
        return "the environments' first reset() starts from entropy; call seed(...) on them first"
    at = control_flow_position(context.project.files[trace_event.path], trace_event.event.statement.start)
    repeated = at is not None and in_loop(at)  # the same seed in each turn would start all episodes alike
    remedy = "call reset(seed=...) once before the loop" if repeated else "pass seed=..."
    if any(name.startswith("gym.") for name in trace_event.names):
        remedy = f"{remedy} (before gym 0.26 call seed(...) on it)"
    return f"the environment's first reset() has no seed and starts from entropy; {remedy}"


def _called_method(context: Context, trace_event: TraceEvent, call: Call) -> str:
    """``reset`` or ``seed``, called on what may be an environment or wrapper, of a library or of the project."""
    for name in trace_event.names:
        owner, word = split_last(name)
        owner = owner.removesuffix(_INNERMOST)
        made = class_of(owner) if word in _METHODS and not in_project(name) and is_instance(owner) else ""
        # What is only annotated as an environment may have been made and seeded elsewhere.
        if made and (makes_environment(made) or (word == "seed" and is_base_environment(made))):
            return word
        if word in _METHODS and any(
            is_environment(context.project, each) for each in _classes(context, trace_event, call)
        ):
            return word
    return ""


def _unseeded_agents(
    context: Context,
    ran: frozenset[tuple[object, ...]],
    seen: set[tuple[object, ...]],
    trace_event: TraceEvent,
    call: Call,
) -> Iterator[tuple[tuple[str, Expression], str]]:
    """The constructions, each with its class, of agents that a call lets train: those that get no seed, and an environment that draws
    and that nothing has seeded or reset.
    """
    for path, made in _made(context, trace_event.path, receiver_or_container(call.func)):
        if (path, made) in seen or not isinstance(made, Call) or _takes_seed(context, path, made):
            continue
        for name in context.project.names(path, made.func):
            seeder = None if in_project(name) else context.catalogue.seeder(name)
            if seeder is None or "environment" not in seeder.families or any(arg.star for arg in made.args):
                continue
            environment = argument_reader(seeder.signature, made)("env")
            behind = _made(context, path, environment)
            given = () if environment is None else context.project.values(path, environment)
            if seen.isdisjoint(ran.intersection([*behind, *given]) or behind) and _starts_from_entropy(context, behind):
                yield (path, made), simple_name(name)


def _made(context: Context, path: str, value: Expression | None) -> list[tuple[str, Expression]]:
    """The calls that make an environment."""
    return [] if value is None else _innermost(context, context.project.resolver.values_through_calls(path, value))


def _innermost(context: Context, found: Iterable[tuple[str, Expression]]) -> list[tuple[str, Expression]]:
    """The sources of environments, also of those that are taken out of their wrappers: ``gym.make(name).unwrapped``."""
    kept = list[tuple[str, Expression]]()
    for path, each in found:
        wrapper = receiver_of(each) if last_identifier(each) == _INNERMOST[1:] else None
        kept += [(path, each)] if wrapper is None else context.project.resolver.values_through_calls(path, wrapper)
    return kept


def _starts_from_entropy(context: Context, made: list[tuple[str, Expression]]) -> bool:
    """Whether an environment that is made there, or by its identifier, draws and is made without a seed."""
    known = all(
        isinstance(each, Call) or (isinstance(each, Constant) and isinstance(each.value, str)) for _, each in made
    )
    return bool(made) and known and not _is_made_with_seed(context, made) and value_draws(context.project, made)


def _classes(context: Context, trace_event: TraceEvent, call: Call) -> Iterator[str]:
    """The classes of the project that the receiver of a method may have; none for ``super()`` and for ``self``."""
    receiver = receiver_or_container(call.func)
    if isinstance(receiver, Ref) and not receiver.path and is_self(receiver.roots[0]):
        return
    names = context.project.names(trace_event.path, receiver) if receiver is not None else ()
    yield from (each for each in project_classes(names) if not is_super(each))


def _is_space(names: tuple[str, ...]) -> bool:
    parted = (split_method(name) for name in names if not in_project(name))
    return any(method and makes_environment(made) for made, method in parted)


def _is_space_of_project(context: Context, path: str, sample: Ref) -> bool:
    """Whether it is the space of an environment that a class of the project only wraps: ``env.action_space.sample``."""
    space, names = next(at for at, word in enumerate(sample.path) if word in _SPACES), context.project.resolver
    owners = project_classes(names.object_names(path, sample._replace(path=sample.path[:space])))
    wrappers = [each for each in owners if any(base.endswith("Wrapper") for base in names.ancestry(each))]
    own = any([*names.attribute_values(each, sample.path[space])] for each in wrappers)
    return any(is_environment(context.project, each) for each in wrappers) and not own


def _environment_keys(
    context: Context, ran: frozenset[tuple[object, ...]], trace_event: TraceEvent, call: Call
) -> tuple[frozenset[tuple[object, ...]], ...]:
    """The environments of a method call, by the calls that gave them, of those that ran, and by the calls inside these that made them:
    each call of a function of the project makes another one.
    """
    receiver = receiver_or_container(call.func)
    given = [] if receiver is None else _innermost(context, context.project.values(trace_event.path, receiver))
    ways = (given, _made(context, trace_event.path, receiver))
    return tuple(ran.intersection(each) or frozenset(each) or frozenset({trace_event.names}) for each in ways)


def _is_unseeded_reset(context: Context, trace_event: TraceEvent, call: Call) -> bool:
    """Whether a reset starts what the run uses from entropy: an environment that draws, and is more than looked at."""
    return not (
        _is_seeded_reset(context, trace_event, call)
        or _is_seeded_by_class(context, trace_event, call)
        or _may_have_seed(context, trace_event, call)
        or _is_inspected(context, trace_event.path, call)
        or not may_draw(context.project, trace_event.path, call, trace_event.names)
    )


def _is_seeded_by_class(context: Context, trace_event: TraceEvent, call: Call) -> bool:
    """Whether another method of the class seeds the environment that it holds: ``self.env.reset(seed=0)``."""
    owner = context.project.resolver.owner(trace_event.function)
    if not owner or not isinstance(call.func, Ref) or len(call.func.path) < 2:
        return False
    return any(
        isinstance(site.call.func, Ref)
        and site.call.func.path[:-1] == call.func.path[:-1]
        and site.call.args
        and context.project.resolver.owner(site.function) == owner
        and _is_given_seed(site.call)
        for site in context.project.calls_by(trace_event.path, frozenset({"reset", "seed"}))
    )


def _is_given_seed(call: Call) -> bool:
    is_method = isinstance(call.func, Ref) and call.func.path[-1] == "seed"
    return any((is_method or arg.keyword == "seed" or arg.star) and not is_none(arg.value) for arg in call.args)


def _is_inspected(context: Context, path: str, value: Expression) -> bool:
    """Whether only the shape, type or length of a value is read."""
    spots = context.project.uses.spots(path)
    here = spots.of(value)
    match here.parent if here is not None else None:
        case Attribute(name=name):
            return name in _INSPECTING
        case Subscript(value=inner) as item if inner == value:
            return _is_inspected(context, path, item)
        case Call(func=func) as outer if func != value:
            word = last_identifier(func)
            return word in _INSPECTORS or (word in _CONVERTERS and _is_inspected(context, path, outer))
    return False


def _is_seeded_reset(context: Context, trace_event: TraceEvent, call: Call) -> bool:
    """Whether a reset has a seed, or may have one; or the environment's construction has."""
    for arg in call.args:
        if arg.star or arg.keyword == "seed":
            return not is_none(arg.value)
    made = _made(context, trace_event.path, receiver_or_container(call.func))
    return _is_made_with_seed(context, made)


def _is_made_with_seed(context: Context, made: Iterable[tuple[str, Expression]]) -> bool:
    """Whether an environment, or one that it wraps, is made with a seed: by the catalogue, or by a ``seed`` argument of an unknown
    callee.
    """
    queue = list(made)
    seen: set[tuple[str, Expression]] = set()
    while queue and len(seen) < limits.MAX_ENVIRONMENT_WRAPPERS:
        path, call = queue.pop()
        if (path, call) in seen or not isinstance(call, Call):
            continue
        seen.add((path, call))
        if _takes_seed(context, path, call):
            return True
        if call.args:
            queue += context.project.resolver.values_through_calls(path, call.args[0].value)
    return False


def _takes_seed(context: Context, path: str, call: Call) -> bool:
    if any(_is_seed(context, path, arg) for arg in call.args):
        return True
    names = [name for name in context.project.names(path, call.func) if not in_project(name)]
    if any(row.makes and row.seeder is not None and row.draws for row in rows_of(names)):
        return True  # it draws a seed from a global generator, which TRL102 is about
    seeders = map(context.catalogue.seeder, names)
    return any(each is not None and "environment" in families_of_call(each, call) for each in seeders)


def _is_seed(context: Context, path: str, arg: Arg) -> bool:
    """Whether an argument is a seed, or a dictionary with one: ``task_kwargs={"random": 0}`` of dm_control."""
    if (arg.keyword or "").endswith("seed"):
        return True
    found = [value for _, value in context.project.values(path, arg.value)]
    return any(_is_seed_name(key) and not is_none(value) for each in found for key, value in _entries(each))


def _is_seed_name(key: str) -> bool:
    return key.endswith("seed") or key == "random"


def _entries(table: Expression) -> Iterator[tuple[str, Expression]]:
    """The entries of a dictionary that is written there, under texts."""
    match table:
        case Collection(kind="dict", items=items):
            for key, value in zip(items[::2], items[1::2], strict=True):
                if isinstance(key, Constant) and isinstance(key.value, str) and value is not None:
                    yield key.value, value
        case Call(func=Ref(roots=("builtins.dict",), path=()), args=args):
            yield from ((arg.keyword, arg.value) for arg in args if arg.keyword)


def _may_have_seed(context: Context, trace_event: TraceEvent, call: Call) -> bool:
    """Whether an environment that is not seen to be made, ``envs[i]``, may be of a class of the project that takes a seed."""
    made = _made(context, trace_event.path, receiver_or_container(call.func))
    if any(isinstance(value, Call) for _, value in made):
        return False
    resolver = context.project.resolver
    owners = {owner for name in trace_event.names if in_project(name) and (owner := resolver.owner(name))}
    makers = (
        each
        for owner in sorted(owners)
        for method in resolver.methods(owner, "__init__")
        for each in resolver.functions(method)
    )
    return any(param.name.endswith("seed") for each in makers for param in each.params)
