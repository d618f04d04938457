"""Which functions of a project seed, with what, and which of them seed only in part.

A partly seeded function seeds some generators and draws from others that nothing on the way seeds. A function also seeds with an
argument that it passes to a seeder, itself or through another function: its parameter becomes a seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from torchrepro_lint import limits
from torchrepro_lint.catalogue.catalogue import seeding_identifiers
from torchrepro_lint.catalogue.rows import FAMILIES, Family
from torchrepro_lint.domain.programs import effects_in, programs_reaching
from torchrepro_lint.domain.rng.effects import Draw, RngEffects, Seed
from torchrepro_lint.domain.rng.optional_seeds import SCALAR_DRAWS
from torchrepro_lint.domain.rng.seeders import families_seeded, passed_seed
from torchrepro_lint.query.database import query
from torchrepro_lint.query.tabling import SetEquations
from torchrepro_lint.resolve.call_sites import CallCandidates, call_candidates
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.syntax.binding import parameter_argument, takes_receiver
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Constant,
    Expression,
    ExpressionStatement,
    If,
    Operation,
    Record,
    Ref,
    Statement,
)
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    local_symbol,
    path_of,
    simple_name,
    split_call,
    without_calls,
)
from torchrepro_lint.syntax.scopes import control_flow_position
from torchrepro_lint.syntax.visitor import blocks, last_identifier, statements, subexpressions
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.entry_points import is_program
from torchrepro_lint.trace.events import TraceEvent
from torchrepro_lint.trace.traces import Traces


def only_seeds(project: Traces, path: str, call: Call) -> bool:
    """Whether a call seeds generators, itself or through a function of the project, and draws from none."""
    for name in project.names(path, call.func):
        if in_project(name) and project.resolver.functions(name):
            effects = effects_in(project, name)
            if effects.seeds and not effects.draws and not effects.results:
                return True
        elif families_seeded(project.catalogue, dict(project.settings.seeders), without_calls(name), call):
            return True
    return False


_BACKEND_FLAGS = "torch.backends."


def last_seeding_statement(project: Traces, path: str, seeding: Statement, *, flags: bool = True) -> Statement:
    """The last of the statements after a seeding one that also only seed, or set torch's ``flags``."""
    position = control_flow_position(project.files[path], seeding.start)
    if position is None:
        return seeding
    block_position, last = position.spots[-1], seeding
    for statement in block_position.block[block_position.at + 1 :]:
        if not is_seeding_statement(project, path, statement) or (isinstance(statement, Assign) and not flags):
            break
        last = statement
    return last


def is_seeding_statement(project: Traces, path: str, statement: Statement) -> bool:
    """Whether a statement only seeds or sets torch's flags, in a branch or not."""
    match statement:
        case ExpressionStatement(value=Call() as call):
            return only_seeds(project, path, call)
        case Assign(targets=targets, value=Constant() | Ref()):
            return all(
                any(name.startswith(_BACKEND_FLAGS) for name in project.names(path, target)) for target in targets
            )
        case If(orelse=()):
            return any(
                only_seeds(project, path, each.value)
                for each in statements((statement,))
                if isinstance(each, ExpressionStatement) and isinstance(each.value, Call)
            ) and all(is_seeding_statement(project, path, each) for block in blocks(statement) for each in block)
    return False


# --- functions with a call of a seeder --------------------------------------------------------------------------------


@query()
def seeding_words(project: Traces) -> frozenset[str]:
    """The last words of the seeders of the packages that the project mentions."""
    return seeding_identifiers(project.resolver.modules.mentions)


@query()
def seeding_files(project: Traces) -> CallCandidates:
    """The files that may call a seeder, and the words by which they do."""
    return call_candidates(project.resolver, seeding_words(project))


@query()
def seeding_functions(project: Traces, path: str) -> tuple[str, ...]:
    """The functions of a file, and its body, with a direct call of a seeder."""
    found = seeding_files(project)
    if path not in found.paths:
        return ()
    sites = project.calls_by(path, found.words)
    return tuple(sorted({site.function for site in sites if _may_seed(project, site.names)}))


def _may_seed(project: Traces, names: tuple[str, ...]) -> bool:
    """A cheap test before a function is followed."""
    seeders = (project.catalogue.seeder(without_calls(name)) for name in names)
    return any(seeder is not None and seeder.families for seeder in seeders)


def seeding_functions_behind(project: Traces, path: str) -> Iterator[str]:
    """The functions and module bodies with a call of a seeder, in a file and in those that import it, directly or not."""
    for each in seeding_files(project).paths:
        if project.resolver.imports(each, path):
            yield from seeding_functions(project, each)


def may_seed_unseen(project: Traces, run: Trace) -> bool:
    """Whether a call that is not resolved may run a function of the project that seeds: a method by its name, or one that
    ``getattr(plugin, f"on_{event}")`` looks up. The functions of other programs are none of this run's.
    """
    loaded = project.resolver.may_load(path_of(run.starts[0])) if run.starts else frozenset(project.files)
    there = (path for path in project.files if path in loaded or not is_program(project.resolver, path))
    seeding = [name for path in there for name in seeding_functions(project, path)]
    words = {simple_name(name) for name in seeding if name not in run.functions}
    words = {word for word in words if word and not word.startswith("__")}
    return bool(words) and any(_may_call(words, each) for each in run.trace_events)


def _may_call(words: AbstractSet[str], trace_event: TraceEvent) -> bool:
    """Whether an event may call a function with one of these names: an unresolved method, or a method under a computed name."""
    call = trace_event.event.value
    if trace_event.event.kind != "call" or not isinstance(call, Call):
        return False
    if trace_event.names == ("builtins.getattr",) and len(call.args) > 1:
        key = call.args[1].value
        parts = key.operands if isinstance(key, Operation) and key.op in ("f", "+") else ()
        known = [each.value if isinstance(each, Constant) else None for each in parts]
        if not any(known):
            return False
        pattern = re.compile("".join(re.escape(str(each)) if each else r"\w*" for each in known))
        return any(map(pattern.fullmatch, words))
    return not trace_event.names and last_identifier(call.func) in words


# --- arguments that become seeds --------------------------------------------------------------------------------------


def seed_of_event(project: Traces, trace_event: TraceEvent) -> Expression | None:
    """The expression that a seeding call passes as its seed; None where it passes none, or where that is not known."""
    call = trace_event.event.value
    if not isinstance(call, Call):
        return None
    for name in trace_event.names:
        if (seeder := project.catalogue.seeder(without_calls(name))) is not None:
            return passed_seed(seeder, call) if seeder.seed else _held_seed(project, trace_event.path, call)
    return call.args[0].value if len(call.args) == 1 and not call.args[0].star else None


def _held_seed(project: Traces, path: str, call: Call) -> Expression | None:
    """The seed in the settings that a call gets, ``Trainer(args=TrainingArguments(seed=7))``, where they are made in the same file."""
    for arg in call.args:
        for file, made in project.values(path, arg.value) if not arg.star else ():
            for name in project.names(file, made.func) if isinstance(made, Call) and file == path else ():
                seeder = project.catalogue.seeder(name)
                if seeder is not None and seeder.holds and isinstance(made, Call):
                    return passed_seed(seeder, made)
    return None


def seeding_arguments(project: Traces, name: str, call: Call) -> Iterator[tuple[str, Expression]]:
    """The arguments of a call of a project function that become seeds, each with the function's last word."""
    for word in seeding_parameters(project, name):
        for function in project.resolver.functions(name):
            position = [param.name for param in function.params].index(word)
            arg = parameter_argument(call, function, position, bound=takes_receiver(function))
            if arg is not None and not arg.star:
                yield simple_name(name), arg.value


# Functions pass seeds to one another.
_SEEDS = SetEquations()


@query(cutoff=True, cycle=_SEEDS)
def seeding_parameters(project: Traces, name: str) -> Iterator[str]:
    """The parameters of a function that it passes to a seeder, itself or through another function."""
    path = path_of(name)
    for function in project.resolver.functions(name):
        own = {local_symbol(function.name, param.name): param.name for param in function.params}
        for event in project.resolver.events.of(name) if own else ():
            if event.kind != "call" or not isinstance(event.value, Call) or not event.value.args:
                continue
            for target in project.names(path, event.value.func):
                if in_project(target):
                    values = [value for _, value in seeding_arguments(project, target, event.value)]
                elif seeder := project.catalogue.seeder(without_calls(target)):
                    seed = passed_seed(seeder, event.value)
                    values = [] if seed is None else [seed]
                else:
                    continue
                for each in (inner for value in values for inner in subexpressions(value)):
                    if isinstance(each, Ref):
                        yield from (own[root] for root in each.roots if root in own)


# --- partly seeded functions ------------------------------------------------------------------------------------------


class PartlySeeded(Record, frozen=True):
    """A function, its first own seeder, and the first draw from a family that it leaves out."""

    function: str
    seed: Seed
    draw: Draw
    family: Family


def partly_seeded_functions(project: Traces, path: str) -> Iterator[PartlySeeded]:
    """The partly seeded functions and module bodies that may draw in a file: in the file or in one that imports it.

    Those that a program settles may be included (see ``is_settled_by_program``). Of many functions that call one another in a
    cycle only the first is: each of them reaches the same draws and seeds, and a trace for each would take minutes.
    """
    events = project.part(_traced_events)
    together: set[str] = set()
    for function in seeding_functions_behind(project, path):
        if function in together:
            continue
        if function not in events and sum(events.values()) > _MANY_EVENTS and _are_all_settled(project, function):
            continue
        searched = _search(project, function)
        events[function] = searched.events
        yield from searched.found
        together |= searched.cycle


def _traced_events(_: ProgramIndex) -> dict[str, int]:
    """The lengths of the traces of the functions that were searched."""
    return {}


# After so many events of traces, each of one function, it is worth to trace all programs first.
_MANY_EVENTS = 100_000


class _Searched(Record, frozen=True):
    """What is known of a seeding function: what it leaves unseeded, the large cycle that it is in, and how many events its trace has."""

    found: tuple[PartlySeeded, ...]
    cycle: frozenset[str]
    events: int


@query()
def _search(project: Traces, function: str) -> _Searched:
    effects = effects_in(project, function)
    most = limits.MAX_FUNCTIONS_IN_CYCLE
    cycle = effects.run.cycles.get(function, frozenset()) if effects.end > most else frozenset()
    found = tuple(_partly_seeded(project, function, effects))
    return _Searched(found, cycle if len(cycle) > most else frozenset(), effects.end)


def _are_all_settled(project: Traces, function: str) -> bool:
    """Whether programs settle all families for a function, whatever it draws."""
    effects = [each.effects for each in programs_reaching(project, function)]
    return all(any(_settles(each, family) for each in effects) for family in FAMILIES)


def _partly_seeded(project: Traces, function: str, effects: RngEffects) -> Iterator[PartlySeeded]:
    own = [seed for seeds in effects.seeds.values() for seed in seeds if not seed.trace_event.call_path]
    if not own or effects.unknown_seeder:
        return
    first = min(own, key=lambda seed: seed.order)
    for family in FAMILIES:
        # A loader or sampler that is only constructed there draws where it is iterated.
        draws = [each for each in effects.draws.get(family.key, ()) if effects.iterates or each.order < effects.end]
        if draws and family.key not in effects.seeds and not any(_is_from(project, family, seed) for seed in own):
            yield PartlySeeded(function, first, draws[0], family)


def _is_from(project: Traces, family: Family, seed: Seed) -> bool:
    """Whether a seed is drawn from a family, which then is seeded elsewhere: ``np.random.seed(torch.initial_seed() % 2**32)``."""
    call, path = seed.trace_event.event.value, seed.trace_event.path
    given = [arg.value for arg in call.args] if isinstance(call, Call) else []
    behind = [pair for value in given for part in subexpressions(value) for pair in project.resolver.values(path, part)]
    return any(
        SCALAR_DRAWS[family.key].fullmatch(split_call(name)[0])
        for file, value in behind
        for each in subexpressions(value)
        if isinstance(each, Call)
        for name in project.names(file, each.func)
    )


def is_settled_by_program(project: Traces, partly: PartlySeeded) -> bool:
    """Whether a program that reaches the function seeds the family, or is reported by TRL101 to TRL103.

    This needs all programs, so ask it last.
    """
    return any(_settles(each.effects, partly.family) for each in programs_reaching(project, partly.function))


def _settles(effects: RngEffects, family: Family) -> bool:
    """Whether a program seeds the family, or is itself reported."""
    reported = effects.results and effects.acts and family.key in effects.draws
    return bool(reported) or family.key in effects.seeds or effects.unknown_seeder
