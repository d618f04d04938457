"""Programs and their effect summaries: what each entry point, and each function, does to generators, flags and devices.

A program is an entry point with its trace and its effect summary. The database of memo tables outlives the project: when a file
changes, it drops the answers that depend on that file and keeps the others. A program's summary by functions and files stays
when its trace is dropped. An effect that several entry points reach is attributed to one of them: to the other one where this one
only launches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.catalogue import seeding_identifiers
from torchrepro_lint.dataflow.training_steps import is_backward
from torchrepro_lint.domain.devices import names_accelerator
from torchrepro_lint.domain.flag_effects import FlagWrite, StateEffect, flag_writes, state_effects
from torchrepro_lint.domain.rng.effects import RngEffects, families_seeded
from torchrepro_lint.domain.rng.identifiers import without_identifier_draws
from torchrepro_lint.domain.rng.seeders import seeding_functions
from torchrepro_lint.query.memo_tables import MemoTable, NamedMemoTable, union
from torchrepro_lint.resolve.call_sites import CallCandidates, call_candidates
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.control_flow import event_key
from torchrepro_lint.syntax.nodes import Call, Import, Statement
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    is_module,
    path_of,
    top_package,
    unbound_method,
    without_calls,
)
from torchrepro_lint.trace.events import prefix_and_rest
from torchrepro_lint.trace.library_models import accelerates
from torchrepro_lint.trace.traces import Traces, TraceTables

if TYPE_CHECKING:
    from typing_extensions import Self

    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.catalogue.loaders import LibraryVersions
    from torchrepro_lint.config.settings import Settings
    from torchrepro_lint.domain.rng.effects import CalleeEffectTable
    from torchrepro_lint.resolve.program_index import Table
    from torchrepro_lint.syntax.nodes import SyntaxTree
    from torchrepro_lint.trace.builder import Trace
    from torchrepro_lint.trace.entry_points import Entry
    from torchrepro_lint.trace.events import TraceEvent


class Program(NamedTuple):
    """An entry point with its trace and effect summary."""

    entry: Entry
    run: Trace
    effects: RngEffects


class ProgramSummary(NamedTuple):
    """What stays of a program without its trace: the functions that it reaches, their files, and whether it may run on
    an accelerator.
    """

    functions: frozenset[str]
    paths: frozenset[str]
    accelerated: bool


class WorkerTrace(NamedTuple):
    """The trace of functions that a loader's workers run, and its effect summary."""

    run: Trace
    effects: RngEffects


def program_summary(functions: Iterable[str], *, accelerated: bool) -> ProgramSummary:
    """The summary of a program that reaches these functions."""
    return ProgramSummary(frozenset(functions), frozenset(map(path_of, functions)), accelerated)


class Database(TraceTables):
    """The memo tables of a project: its names, and its answers by file or by entry points."""

    def __init__(
        self,
        files: Mapping[str, SyntaxTree],
        tree: ModuleTree,
        torch: str,
        *,
        incremental: bool = False,
        early_cutoff: bool = False,
    ) -> None:
        super().__init__(files, tree, torch, incremental=incremental, early_cutoff=early_cutoff)
        reads = self.names.modules.reads
        self.seeding: MemoTable[tuple[str, frozenset[str]], tuple[str, ...]] = MemoTable(reads)
        self.programs: MemoTable[tuple[Entry, ...], tuple[Program, ...]] = MemoTable(reads)
        self.callee_effects: CalleeEffectTable = MemoTable(reads)
        self.own_effects: MemoTable[str, RngEffects] = MemoTable(reads, _CACHED_OWN_EFFECTS)
        self.worker_traces: MemoTable[tuple[str, ...], WorkerTrace] = MemoTable(reads)
        # The summary of each program of such entry points, which outlives the program's trace.
        self.reached: MemoTable[tuple[Entry, ...], tuple[ProgramSummary, ...]] = MemoTable(reads)
        # The programs that reach a function, or any function of a file, with the dependencies of the answer; and those of the
        # revision before, until they are compared.
        self.reaching: dict[str, tuple[tuple[ProgramReference, ...], int]] = {}
        self.uncompared: dict[str, tuple[tuple[ProgramReference, ...], int]] = {}
        # Whether what depends on which programs reach something is compared after a change. It needs all programs at once,
        # which pays where all files are checked after a change.
        self.compares_programs = False
        # The findings of each file that was checked, by group of rules.
        self.findings = NamedMemoTable(reads)

    def replace(self, path: str, facts: SyntaxTree) -> bool:
        """Replace the tree of a changed file; see ``IndexTables``."""
        if self.compares_programs:
            self.uncompared.update(self.reaching)
        self.reaching.clear()
        return super().replace(path, facts)

    def invalidate(self, changed: int, words: AbstractSet[str] = frozenset()) -> None:
        """Drop the results that depend on anything that has changed; see ``IndexTables``."""
        super().invalidate(changed, words)
        self.findings.invalidate(changed, words)

    def _tables(self) -> Iterator[Table]:
        yield from super()._tables()
        yield from (self.seeding, self.programs, self.reached, self.callee_effects)
        yield from (self.own_effects, self.worker_traces)


def has_backward(program: Program) -> bool:
    """Whether a program reaches a backward pass, its own or that of a framework's trainer."""
    return any(prefix_and_rest(program.run, "has backward", _contains_backward))


def _contains_backward(_start: int, trace_events: Sequence[TraceEvent]) -> bool:
    return any(
        is_backward(trace_event.event.value, trace_event.names)
        for trace_event in trace_events
        if trace_event.event.kind == "call" and isinstance(trace_event.event.value, Call)
    )


def _contains_accelerator_call(_start: int, trace_events: Sequence[TraceEvent]) -> bool:
    return any(
        accelerates(trace_event.names, trace_event.event.value)
        for trace_event in trace_events
        if trace_event.event.kind == "call" and isinstance(trace_event.event.value, Call)
    )


# The effects of so many single functions are held: each may be as long as a program.
_CACHED_OWN_EFFECTS = 32
# Before a path: the programs that run any code of the file.
_IN = "in "
_REACHING = "reaching"


class ProgramReference(NamedTuple):
    """A program by its file and its index there, and whether it may run on an accelerator."""

    path: str
    number: int
    accelerated: bool


class ProgramEffects(Traces):
    """A project with its programs, their traces and effect summaries, and the effects of single functions.

    A program is computed once. Which programs reach a function is known without tracing the others again, if the
    database has their summaries.

    ``tree`` holds all modules, ``files`` those that are linked; ``scripts`` are the targets of ``[project.scripts]``,
    ``libraries`` the requirements; ``position`` locates an offset for messages (row 0 without texts); ``text`` is a
    file's text, for fixes. ``database`` is that of an earlier project, after the changes of files.
    """

    database: Database

    def __init__(
        self,
        files: Mapping[str, SyntaxTree],
        settings: Settings,
        catalogue: Catalogue,
        tree: ModuleTree | None = None,
        scripts: Sequence[str] = (),
        position: Callable[[str, int], Position] = lambda _path, _offset: Position(0, 0),
        text: Callable[[str], str] = lambda _path: "",
        libraries: LibraryVersions = (),
        link: Database | None = None,
    ) -> None:
        super().__init__(
            link or Database(files, tree or ModuleTree(files, (".",)), catalogue.version),
            scripts,
            settings.entry_points,
            position,
            text,
            libraries,
        )
        self._settings = settings
        self._catalogue = catalogue
        self._state_effects_by_run: dict[int, tuple[StateEffect, ...]] = {}

    def with_tracking(self) -> Self:
        """A project on the same database without answers of its own, so that all dependencies of an answer are
        recorded.

        Without dependency tracking, the project itself.
        """
        if not self.resolver.modules.reads.incremental:
            return self
        return type(self)(
            self.files,
            self._settings,
            self._catalogue,
            None,
            self._scripts,
            self.position,
            self.text,
            self.libraries,
            self.database,
        )

    # --- programs ----------------------------------------------------------------------------------------------------

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The programs of all entry points, sorted by path."""
        return tuple(program for path in sorted(self.files) for program in self.programs_of(path))

    def programs_of(self, path: str) -> tuple[Program, ...]:
        """The programs of the entry points of a file."""
        entries = self.entry_points.of(path)
        return self.database.programs.of(entries, lambda: tuple(self._find_programs(entries))) if entries else ()

    def _find_programs(self, entries: Sequence[Entry]) -> Iterator[Program]:
        for entry, run in self.traces_from(entries):
            yield Program(entry, run, self._program_effects(entry, run))

    def _program_effects(self, _entry: Entry, run: Trace) -> RngEffects:
        """The effects of a program."""
        return self._effects(run)

    def programs_in(self, path: str) -> tuple[Program, ...]:
        """The programs that run any code of a file."""
        return self._resolve_references(self._programs_reaching(f"{_IN}{path}"))

    def reaching(self, function: str) -> tuple[Program, ...]:
        """The programs that reach a function (``path:`` is a module's top level)."""
        return self._resolve_references(self._programs_reaching(function))

    def _resolve_references(self, places: tuple[ProgramReference, ...]) -> tuple[Program, ...]:
        return tuple(self.programs_of(each.path)[each.number] for each in places)

    def _programs_reaching(self, what: str) -> tuple[ProgramReference, ...]:
        """The programs that reach a function, or a file (see ``_IN``); programs of other entry points are not traced for it.

        The answer may be under early cutoff (see ``compare_reaching``): most edits leave it as it is.
        """
        if self.database.uncompared:
            self.compare_reaching()
        reads, known = self.resolver.modules.reads, self.database.reaching
        if what not in known:
            outer, reads.dependencies = reads.dependencies, 0
            found = tuple(self._apart.find_reaching(what))
            bit = reads.answer((_REACHING, what)) if self.database.compares_programs else reads.dependencies
            known[what] = found, bit
            reads.dependencies = outer
        reads.dependencies |= known[what][1]
        return known[what][0]

    @cached_property
    def _apart(self) -> Self:
        """The project that finds answers under early cutoff: what it asks for them would be no dependency of what asks this one next."""
        return self.with_tracking() if self.database.compares_programs else self

    def find_reaching(self, what: str) -> Iterator[ProgramReference]:
        """The programs that reach a function or a file, found anew."""
        path = what.removeprefix(_IN) if what.startswith(_IN) else None
        for entries in self.entries_by_file:
            for number, each in enumerate(self._program_summaries(entries)):
                if what in each.functions if path is None else path in each.paths:
                    yield ProgramReference(entries[0].path, number, each.accelerated)

    def compare_reaching(self) -> None:
        """After a change: drop what depends on which programs reach something, where that has changed."""
        left, self.database.uncompared = self.database.uncompared, {}
        try:
            with self.resolver.modules.reads.untracked():
                for what, (old, _) in [*left.items()]:
                    if tuple(self._apart.find_reaching(what)) == old:
                        self.database.reaching[what] = left.pop(what)
        finally:
            if left:
                self.database.invalidate(union(bit for _, bit in left.values()))

    def _program_summaries(self, entries: tuple[Entry, ...]) -> tuple[ProgramSummary, ...]:
        return self.database.reached.of(entries, lambda: tuple(map(self._summarise, self.programs_of(entries[0].path))))

    def _summarise(self, program: Program) -> ProgramSummary:
        return program_summary(program.run.functions, accelerated=self.on_accelerator(program))

    # --- effects -----------------------------------------------------------------------------------------------------

    def _effects(self, run: Trace) -> RngEffects:
        found = RngEffects(
            run, self.resolver, self._catalogue, dict(self._settings.seeders), self.database.callee_effects
        )
        return without_identifier_draws(self, found)

    def worker_trace(self, functions: Sequence[str]) -> WorkerTrace:
        """The trace and effects of functions that a loader's workers run."""
        key = tuple(functions)
        return self.database.worker_traces.of(key, lambda: self._find_worker_trace(key))

    def _find_worker_trace(self, functions: tuple[str, ...]) -> WorkerTrace:
        run = self.trace_in_worker(functions)
        return WorkerTrace(run, self._effects(run))

    def effects_in(self, function: str) -> RngEffects:
        """The effect summary of a function, or of a module's top level."""
        return self.database.own_effects.of(function, lambda: self._effects(self.trace_of(function)))

    def flag_writes(self, path: str) -> tuple[FlagWrite, ...]:
        """The flag writes of a module, function by function, without branches that constant tests rule out."""
        return self.memoised("flag writes", path, lambda: tuple(flag_writes(self.resolver, self._catalogue, path)))

    def state_effects(self, program: Program) -> tuple[StateEffect, ...]:
        """The effects of a program on flags, environment variables and devices, in order."""
        known = self._state_effects_by_run.get(id(program.run))
        if known is None:
            known = self._state_effects_by_run[id(program.run)] = tuple(
                state_effects(program.run, self.resolver, self._catalogue, self.revision_cache)
            )
        return known

    # --- seeds -------------------------------------------------------------------------------------------------------

    def seeds(self, name: str) -> bool:
        """Whether an external function seeds a generator."""
        return not in_project(name) and self._catalogue.seeder(unbound_method(name)) is not None

    def only_seeds(self, path: str, call: Call) -> bool:
        """Whether a call seeds generators, itself or through a function of the project, and draws from none."""
        for name in self.names(path, call.func):
            if in_project(name) and self.resolver.functions(name):
                effects = self.effects_in(name)
                if effects.seeds and not effects.draws and not effects.matters:
                    return True
            elif families_seeded(self._catalogue, dict(self._settings.seeders), without_calls(name), call):
                return True
        return False

    @property
    def seeding_words(self) -> frozenset[str]:
        """The last words of the seeders of the packages that the project mentions."""
        return self.of_all("seeding words", lambda: seeding_identifiers(self.resolver.modules.mentions))

    def seeding_functions(self, behind: str) -> Iterator[str]:
        """The functions and module bodies with a call of a seeder, in a file and in those that import it, directly or
        not.
        """
        found = self._seeding_files
        for path in found.paths:
            if self.resolver.imports(path, behind):
                yield from self._seeding_in(path, found.words)

    def own_seeding_functions(self, path: str) -> tuple[str, ...]:
        """The functions of a file, and its body, with a call of a seeder."""
        found = self._seeding_files
        return self._seeding_in(path, found.words) if path in found.paths else ()

    @property
    def _seeding_files(self) -> CallCandidates:
        return self.of_all("seeding", lambda: call_candidates(self.resolver, self.seeding_words))

    def _seeding_in(self, path: str, words: frozenset[str]) -> tuple[str, ...]:
        key = path, words
        return self.database.seeding.of(key, lambda: tuple(seeding_functions(self, self._catalogue, path, words)))

    # --- devices -----------------------------------------------------------------------------------------------------

    def on_accelerator(self, program: Program) -> bool:
        """Whether a program may run on an accelerator: whether anything that it reaches names one.

        TPUs are none: CUDA's facts are not about them.
        """
        return self.memoised("runs on accelerator", program.entry, lambda: self._may_run_on_accelerator(program))

    def _may_run_on_accelerator(self, program: Program) -> bool:
        self.programs_of(program.entry.path)  # so that the answer depends on what the trace does
        return not self.is_for_xla(program.entry.path) and (
            any(self._names_accelerator(function) for function in sorted(program.run.functions))
            or any(prefix_and_rest(program.run, "accelerates", _contains_accelerator_call))
        )

    def is_for_xla(self, path: str) -> bool:
        """Whether a script imports ``torch_xla``: then it runs on TPUs."""
        imports = (each for each in self.files[path].body if isinstance(each, Import))
        return any(top_package(name) == "torch_xla" for each in imports for name in each.modules)

    def _names_accelerator(self, function: str) -> bool:
        return self.memoised(
            "names an accelerator", function, lambda: any(map(names_accelerator, self._bodies(function)))
        )

    def _bodies(self, function: str) -> list[tuple[Statement, ...]]:
        if is_module(function):
            return [self.files[path_of(function)].body]
        return [each.body for each in self.resolver.functions(function)]

    def may_use_accelerator(self, function: str) -> bool:
        """Whether a call in a function may run on an accelerator, under the ``device`` setting.

        Under ``auto`` it may, unless programs reach the function and none of them names an accelerator.
        """
        if self._settings.device != "auto":
            return self._settings.device != "cpu"
        reached = self._programs_reaching(function)
        return not reached or any(each.accelerated for each in reached)

    def may_stay_on_cpu(self, path: str) -> bool:
        """Whether some code of a file may run in programs without an accelerator alone, under the ``device`` setting."""
        if self._settings.device != "auto":
            return self._settings.device == "cpu"
        return any(not each.accelerated for each in self._programs_reaching(f"{_IN}{path}"))


def is_attributed_elsewhere(project: ProgramEffects, entry: Entry, trace_event: TraceEvent, family: str = "") -> bool:
    """Whether an event belongs to another entry point, whose function this one only launches.

    Not where the other one seeds ``family``, does not draw from it there, or is not a relevant run: then this one
    reports.
    """
    entered = {step.into for step in trace_event.call_path}
    return any(
        other.entry.path != entry.path
        and other.effects.matters
        and other.effects.acts
        and family not in other.effects.seeds
        and any(
            path_of(name) == other.entry.path and name in other.run.functions and not is_module(name)
            for name in entered
        )
        and any(name == other.entry.function or name in other.run.started for name in entered)
        and (
            not family
            or any(
                event_key(draw.trace_event.path, draw.trace_event.event)
                == event_key(trace_event.path, trace_event.event)
                for draw in other.effects.draws.get(family, ())
            )
        )
        for other in project.programs
    )
