"""Optional seeds: whether the seeders of a run seed in a run without options, which default keeps them from it, and which
seeders literal arguments rule out. A process that is a new interpreter has none of the seeds of the one that starts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchrepro_lint import limits
from torchrepro_lint.catalogue.catalogue import Catalogue
from torchrepro_lint.catalogue.rows import FAMILIES
from torchrepro_lint.dataflow.constants import ENTROPY, Declaration, Ruling
from torchrepro_lint.dataflow.default_values import DefaultValues
from torchrepro_lint.dataflow.environment import Closure, Environment
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.domain.rng.effects import Draw, RngEffects, Seed
from torchrepro_lint.domain.rng.feasibility import PathFeasibility
from torchrepro_lint.domain.rng.seeders import RESTORING, OptionalSeed, is_nondeterministic_name, passed_seed
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.control_flow import Event, EventIdentity, event_key, is_main_test, leaves
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Constant,
    Expression,
    ExpressionStatement,
    If,
    Record,
    SimpleStatement,
    Statement,
)
from torchrepro_lint.syntax.qualified_names import in_project, path_of, split_call, without_calls
from torchrepro_lint.syntax.scopes import function_at
from torchrepro_lint.syntax.visitor import is_none, last_identifier, statements
from torchrepro_lint.trace.bodies import COMMAND_LINES
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.call_paths import fresh_start, is_tested, process_starts
from torchrepro_lint.trace.events import CallFrame, TraceEvent

# Scalar draws, by the family whose generator they draw from.
SCALAR_DRAWS = {
    "python": lazy_pattern(r"random\.(randint|randrange|getrandbits|random|choice|uniform|sample)"),
    "numpy": lazy_pattern(r"numpy\.random\.(randint|choice|random|rand|uniform|random_integers)"),
    "torch": lazy_pattern(r"torch\.(randint|rand|randperm|initial_seed)"),
}


class Shipped(Record, frozen=True):
    """What a run without options seeds: the families that it does not, and the seeds that literal arguments rule out."""

    optional: tuple[OptionalSeed, ...]
    ruled_out: tuple[Seed, ...]


def shipped_seeds(
    project: ValueFlow, catalogue: Catalogue, commands: Iterable[str], run: Trace, effects: RngEffects
) -> Shipped:
    """What the seeders of a program do in a run without options; ``commands`` are functions that a command line calls."""
    optional: list[OptionalSeed] = []
    ruled_out: list[Seed] = []
    looking: _Shipping | None = None
    for family in FAMILIES:
        seeds = effects.seeds.get(family.key, ())
        if family.key not in effects.draws or all(map(_restores, seeds)) or not all(map(_may_be_off, seeds)):
            continue
        looking = looking or _Shipping(project, catalogue, commands, run, effects)
        causes = looking.causes(seeds)
        if any(isinstance(each, _Cause) for each in causes):
            causes = looking.causes_where_drawn(family.key, seeds, causes)
        ruled_out += (seed for seed, cause in zip(seeds, causes, strict=False) if cause == _RULED_OUT)
        # Restoring a state is no option of its own: what keeps the others from seeding is to blame.
        found = [
            ("." not in cause.declared.text, len(seed.trace_event.call_path), cause)
            for seed, cause in zip(seeds, causes, strict=False)
            if isinstance(cause, _Cause) and not _restores(seed)
        ]
        if found:
            # The program's own option, rather than the parameter of a method that also seeds.
            first = min(found, key=lambda each: each[:2])[2]
            draws = frozenset(draw for *_, each in found for draw in each.draws)
            optional.append(OptionalSeed(family.key, first.declared, first.test, first.changes, draws))
    return Shipped(tuple(optional), tuple(ruled_out))


def seed_draws(optional: Iterable[OptionalSeed]) -> frozenset[tuple[str, Expression | None]]:
    """The draws, by file and call, that only make a seed where no option gives one."""
    return frozenset(draw for each in optional for draw in each.draws)


def without_seed_draws(draws: Iterable[Draw], optional: Iterable[OptionalSeed]) -> Iterator[Draw]:
    """The draws but those that only make a seed where no option gives one."""
    made = seed_draws(optional)
    return (each for each in draws if (each.trace_event.path, each.trace_event.event.value) not in made)


_RULED_OUT = "ruled out"


class _Cause(Record, frozen=True):
    declared: Declaration
    test: Ruling | None
    changes: bool
    draws: frozenset[tuple[str, Call]]


def _may_be_off(seed: Seed) -> bool:
    """A cheap test: a seed that is no literal, or one in a function or under a test."""
    call = seed.trace_event.event.value
    literal = isinstance(call, Call) and all(isinstance(arg.value, Constant) for arg in call.args)
    return not literal or bool(seed.trace_event.call_path) or bool(seed.trace_event.event.guards)


def _restores(seed: Seed) -> bool:
    """Whether a seeder only restores the state of a generator, as a resumed run does."""
    call = seed.trace_event.event.value
    return isinstance(call, Call) and last_identifier(call.func) in RESTORING


class _Shipping:
    """The question of what one program seeds without options."""

    def __init__(
        self, project: ValueFlow, catalogue: Catalogue, commands: Iterable[str], run: Trace, effects: RngEffects
    ) -> None:
        self._project, self._catalogue, self._run, self._effects = project, catalogue, run, effects
        found = {*commands}
        for function, edges in run.call_edges.items():
            if any(_is_command_line(project, each.caller, each.event) for each in edges if function not in found):
                found.add(function)
        self._draws: set[tuple[str, Call]] = set()
        self._values = DefaultValues(project, found, run.paths, self._changes)
        # Every seeder of a function is reached in the same way.
        self._known: dict[tuple[EventIdentity, frozenset[Declaration]], _Cause | str | None] = {}

    def causes(self, seeds: Iterable[Seed], ignored: frozenset[Declaration] = frozenset()) -> list[_Cause | str]:
        """What keeps each seeder from seeding without options, defaults that are ``ignored`` aside; nothing if one seeds."""
        found: list[_Cause | str] = []
        for seed in seeds:
            key = event_key(seed.trace_event.path, seed.trace_event.event), ignored
            if key not in self._known:
                self._known[key] = self._find_cause(seed.trace_event, ignored)
            cause = self._known[key]
            if cause is None:
                return []
            found.append(cause)
        return found

    def _find_cause(self, trace_event: TraceEvent, ignored: frozenset[Declaration]) -> _Cause | str | None:
        function, event = trace_event.function, trace_event.event
        tested = is_tested(self._project, trace_event)
        for arguments in (False, True) if tested else (False,):
            looking = self._looking(ignored, arguments=arguments)
            if not looking.is_feasible(function, event, 0):
                if looking.causes:
                    draws = frozenset(self._draws)
                    found = self._decisive(looking.causes, trace_event, ignored, arguments=arguments)
                    return found._replace(draws=draws)
                break
        else:
            return None
        by_arguments = PathFeasibility(
            self._project, self._run, "", likely=False, calls=limits.MAX_OPTIONAL_CALLS, depth=limits.MAX_OPTIONAL_DEPTH
        )
        return None if by_arguments.is_feasible(function, event, 0) else _RULED_OUT

    def _decisive(
        self, causes: list[_Cause], trace_event: TraceEvent, ignored: frozenset[Declaration], *, arguments: bool
    ) -> _Cause:
        """The first of the defaults that keeps a seeder from seeding on every path to it, or else the first."""
        declared = frozenset(each.declared for each in causes)
        for each in causes if len(declared) > 1 else ():
            looking = self._looking(ignored | (declared - {each.declared}), arguments=arguments)
            if not looking.is_feasible(trace_event.function, trace_event.event, 0):
                return each
        return causes[0]

    def causes_where_drawn(self, family: str, seeds: Sequence[Seed], causes: list[_Cause | str]) -> list[_Cause | str]:
        """The causes without options, if the run draws then; else those where the defaults that keep a draw from happening are
        changed, for the first draw that no seeder comes with.
        """
        # Of each function the first: the tests on the way to it are the same for the others.
        draws = {each.trace_event.function: each.trace_event for each in reversed(self._effects.draws.get(family, ()))}
        if len(draws) > limits.MAX_OPTIONAL_DRAWS:
            return causes
        changed: dict[frozenset[Declaration], None] = {}
        for each in draws.values():
            looking = self._looking(frozenset(), arguments=False)
            if looking.is_feasible(each.function, each.event, 0):
                return causes
            defaults = frozenset(cause.declared for cause in looking.causes)
            if self._looking(defaults, arguments=True).is_feasible(each.function, each.event, 0):
                changed[defaults] = None
        return next((found for each in changed if (found := self.causes(seeds, each))), [])

    def _looking(self, ignored: frozenset[Declaration], *, arguments: bool) -> _DefaultFeasibility:
        self._draws = set()
        self._values.forget()
        return _DefaultFeasibility(
            self._project, self._run, self._values, self._catalogue, ignored, arguments=arguments
        )

    def _changes(self, path: str, call: Call) -> bool:
        for name in self._project.names(path, call.func):
            plain = split_call(name)[0]
            if not in_project(name) and is_nondeterministic_name(name):
                return True
            for family, pattern in SCALAR_DRAWS.items():
                if pattern.fullmatch(plain) and not self._is_seeded_before(family, path, call):
                    self._draws.add((path, _drawing(call)))
                    return True
        return False

    def _is_seeded_before(self, family: str, path: str, call: Call) -> bool:
        """Whether the family is seeded when a call draws from it."""
        seeds = self._effects.seeds.get(family) or []
        place, draws = (path, _drawing(call)), self._effects.draws.get(family, ())
        orders = [each.order for each in draws if (each.trace_event.path, each.trace_event.event.value) == place]
        return bool(seeds) and not any(order <= seeds[0].order for order in orders)


def _drawing(call: Call) -> Call:
    """``torch.randint(...)`` of ``torch.randint(...).item()``."""
    while isinstance(call.func, Attribute) and isinstance(call.func.value, Call):
        call = call.func.value
    return call


def _is_command_line(project: ValueFlow, caller: str, event: Event) -> bool:
    call = event.value
    return isinstance(call, Call) and not COMMAND_LINES.isdisjoint(project.names(path_of(caller), call.func))


class _DefaultFeasibility(PathFeasibility):
    """Path feasibility in a run without options; it collects the defaults that rule a path out.

    Defaults that are ``ignored`` rule nothing out. With ``arguments`` also literal arguments rule a path out, which takes longer.
    """

    def __init__(
        self,
        project: ValueFlow,
        run: Trace,
        values: DefaultValues,
        catalogue: Catalogue,
        ignored: frozenset[Declaration],
        *,
        arguments: bool,
    ) -> None:
        super().__init__(
            project, run, "", likely=False, calls=limits.MAX_OPTIONAL_CALLS, depth=limits.MAX_OPTIONAL_DEPTH
        )
        self._values, self._catalogue, self._ignored, self._arguments = values, catalogue, ignored, arguments
        self.causes: list[_Cause] = []

    def _runs(self, function: str, event: Event, environment: Environment) -> bool:
        path = path_of(function)
        place = event.value if event.value is not None else event.statement
        for body in self._project.bodies(function):
            rulings = self._values.ruled_out(path, body, place.start, environment)
            rulings = [
                each for each in rulings if each.value.declared not in self._ignored and not _is_refused(body, each)
            ]
            for ruling in rulings:
                if ruling.value.declared is not None:
                    self.causes.append(_Cause(ruling.value.declared, ruling, changes=False, draws=frozenset()))
            if rulings:
                return False
        return not self._arguments or super()._runs(function, event, environment)

    def _may_draw(self, path: str, event: Event, environment: Environment) -> bool:
        """Whether the seeder gets a seed that is the same in each run."""
        call = event.value
        if not isinstance(call, Call):
            return True
        for name in self._project.names(path, call.func):
            seeder = self._catalogue.seeder(without_calls(name)) if not in_project(name) else None
            given = passed_seed(seeder, call) if seeder is not None else None
            known = self._values.of(Closure(path, given, environment)) if given is not None else None
            if seeder is None or given is None or known is None or known.declared is None:
                continue
            if known.declared in self._ignored:
                continue
            if known.value is ENTROPY:
                self.causes.append(_Cause(known.declared, None, changes=True, draws=frozenset()))
                return False
            if known.value is None and seeder.none in ("entropy", "nothing") and not self._is_always_none(path, given):
                changes = seeder.none == "entropy"
                self.causes.append(_Cause(known.declared, None, changes=changes, draws=frozenset()))
                return False
        return True

    def _is_always_none(self, path: str, given: Expression) -> bool:
        """Whether every call passes None, which TRL105 reports."""
        return all(is_none(value) for _, value in self._project.resolver.values(path, given))


def _is_refused(body: tuple[Statement, ...], ruling: Ruling) -> bool:
    """Whether a program stops with an error under a default, so that no run has it: ``if args.data == "": raise ValueError``."""
    for statement in statements(body):
        if isinstance(statement, If) and statement.test == ruling.test:
            taken = statement.body if ruling.value.value else statement.orelse
            match taken[-1:]:
                case (SimpleStatement(kind="raise"),):
                    return True
                case (ExpressionStatement() as last,):
                    return leaves((last,))
    return False


def draws_without_inherited_seeds(
    project: ProgramIndex, run: Trace, draws: Iterable[Draw], seeds: Sequence[Seed]
) -> Iterator[Draw]:
    """The draws in processes that have none of the seeds: in new interpreters that set none themselves, and in the first process of a
    program that only seeds processes which it starts.

    A new interpreter imports the modules again, so that it has the seeds which they set when they are imported.
    """
    elsewhere = bool(seeds) and all(is_set_elsewhere(project, run, seed.trace_event) for seed in seeds)
    for draw in draws:
        start = fresh_start(project, draw.trace_event)
        if start is not None:
            if not any(_holds_in(project, run, seed.trace_event, start) for seed in seeds):
                yield draw
        elif elsewhere and not process_starts(project, draw.trace_event):
            yield draw


def is_set_elsewhere(project: ProgramIndex, run: Trace, seed: TraceEvent) -> bool:
    """Whether a seed is set in processes alone that the program starts, whose generators are not its own."""
    starts = [start.event for start in process_starts(project, seed)]
    seen, waiting = {seed.function}, [seed.function] if starts else []
    while waiting:
        callers = run.call_edges.get(waiting.pop(), ())
        if not callers:
            return False
        for edge in callers:
            if edge.event not in starts and edge.caller not in seen:
                seen.add(edge.caller)
                waiting.append(edge.caller)
    return bool(starts)


def _holds_in(project: ProgramIndex, run: Trace, seed: TraceEvent, start: CallFrame) -> bool:
    """Whether a seed is set in the process that a frame starts."""
    return start in seed.call_path or _is_set_on_import(project, seed) or _calls(run, start.into, seed.function)


def _is_set_on_import(project: ProgramIndex, seed: TraceEvent) -> bool:
    """Whether an event happens whenever the entry file is imported: not under its ``__main__`` guard, and in no function of it."""
    first = seed.call_path[0].event if seed.call_path else seed.event
    path = seed.call_path[0].path if seed.call_path else seed.path
    return function_at(project.files[path], first.statement.start) is None and not any(
        is_main_test(guard.value) for guard in first.guards
    )


def _calls(run: Trace, caller: str, function: str) -> bool:
    """Whether a function calls another one, directly or not: a function that was entered before is not entered again."""
    seen, waiting = {function}, [function]
    while waiting:
        for edge in run.call_edges.get(waiting.pop(), ()):
            if edge.caller not in seen:
                seen.add(edge.caller)
                waiting.append(edge.caller)
    return caller in seen
