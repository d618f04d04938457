"""Programs and their effect summaries: what each entry point, and each function, does to generators, flags and devices.

A program is an entry point with its trace and its effect summary. Its summary by functions and files stays when its trace is
dropped. An effect that several entry points reach is attributed to one of them: to the other one where this one
only launches it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.catalogue import seeding_identifiers
from torchrepro_lint.dataflow.taint.analysis import TaintFlow
from torchrepro_lint.dataflow.training_steps import is_backward
from torchrepro_lint.domain.flag_effects import FlagWrite, StateEffect, flag_writes, names_accelerator, state_effects
from torchrepro_lint.domain.rng.effects import RngEffects, families_seeded
from torchrepro_lint.domain.rng.identifiers import without_identifier_draws
from torchrepro_lint.domain.rng.seeders import seeding_functions
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.call_sites import CallCandidates, call_candidates
from torchrepro_lint.resolve.program_index import link
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.control_flow import event_key
from torchrepro_lint.syntax.nodes import Call, Import, Record, Statement
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    is_module,
    path_of,
    top_package,
    unbound_method,
    without_calls,
)
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.entry_points import Entry, EntryPoints
from torchrepro_lint.trace.events import TraceMemoTables, calls_in, prefix_and_rest
from torchrepro_lint.trace.library_models import accelerates

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.catalogue.libraries import LibraryVersions
    from torchrepro_lint.config.settings import Settings
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.syntax.nodes import SyntaxTree
    from torchrepro_lint.trace.events import TraceEvent


class Program(Record, frozen=True):
    """An entry point with its trace and effect summary."""

    entry: Entry
    run: Trace
    effects: RngEffects


class ProgramSummary(Record, frozen=True):
    """What stays of a program without its trace: the functions that it reaches, their files, and whether it may run on
    an accelerator.
    """

    functions: frozenset[str]
    paths: frozenset[str]
    accelerated: bool


class WorkerTrace(Record, frozen=True):
    """The trace of functions that a loader's workers run, and its effect summary."""

    run: Trace
    effects: RngEffects


def program_summary(functions: Iterable[str], *, accelerated: bool) -> ProgramSummary:
    """The summary of a program that reaches these functions."""
    return ProgramSummary(frozenset(functions), frozenset(map(path_of, functions)), accelerated)


def has_backward(program: Program) -> bool:
    """Whether a program reaches a backward pass, its own or that of a framework's trainer."""
    return any(prefix_and_rest(program.run, "has backward", _contains_backward))


def _contains_backward(_start: int, trace_events: Sequence[TraceEvent]) -> bool:
    return any(is_backward(call, resolved.names) for resolved, call in calls_in(trace_events))


def _contains_accelerator_call(_start: int, trace_events: Sequence[TraceEvent]) -> bool:
    return any(accelerates(resolved.names, call) for resolved, call in calls_in(trace_events))


# The effects of so many single functions are held: each may be as long as a program.
_CACHED_OWN_EFFECTS = 32
# Before a path: the programs that run any code of the file.
_IN = "in "


class ProgramReference(Record, frozen=True):
    """A program by its file and its index there, and whether it may run on an accelerator."""

    path: str
    number: int
    accelerated: bool


class ProgramEffects(TaintFlow):
    """A project with its programs, their traces and effect summaries, and the effects of single functions.

    A program is computed once. Which programs reach a function is known without tracing the others again, if their summaries
    are known.

    ``tree`` holds all modules, ``files`` those that are linked; ``scripts`` are the targets of ``[project.scripts]``,
    ``libraries`` the requirements; ``position`` locates an offset for messages (row 0 without texts); ``text`` is a
    file's text, for fixes. ``names`` are those of an earlier project, after the changes of files.
    """

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
        names: Names | None = None,
    ) -> None:
        names = names or link(files, tree or ModuleTree(files, (".",)), catalogue.version)
        super().__init__(names, position, text, libraries)
        self._tables = names.database.part(TraceMemoTables)
        self._scripts = scripts
        self._settings = settings
        self._catalogue = catalogue

    # --- entry points and traces -------------------------------------------------------------------------------------

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entry points, sorted by path."""
        return self.entry_points.all()

    @cached_property
    def entry_points(self) -> EntryPoints:
        """The entry points, file by file."""
        return EntryPoints(self.resolver, self._scripts, self._settings.entry_points)

    @query(cutoff=True)
    def entries_by_file(self) -> tuple[tuple[Entry, ...], ...]:
        """The entry points of each file that has any."""
        return tuple(entries for path in sorted(self.files) if (entries := self.entry_points.of(path)))

    def traces_from(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Trace]]:
        """The traces of the entry points of a file, without those that are part of another."""
        names, tables, commands = self.resolver, self._tables, [each for each in entries if each.function]
        paths = {each.path for each in commands}
        begun = Trace.of_module(paths.pop(), names, tables) if len(commands) > 1 and len(paths) == 1 else None
        runs = [(entry, Trace.from_entry(entry, names, tables, begun)) for entry in entries]
        started = next((run.functions for entry, run in runs if entry.function is None), frozenset())
        for entry, run in runs:
            # A command that the module's own __main__ block calls is part of that trace.
            if entry.function is None or entry.function not in started:
                yield entry, run

    def trace_in_worker(self, functions: tuple[str, ...]) -> Trace:
        """The trace of functions that a loader's worker calls."""
        return Trace(self.resolver, self._tables, functions, mode="worker")

    def trace_of(self, function: str) -> Trace:
        """The trace of one function, or of a module's top level (``path:``)."""
        return Trace(self.resolver, self._tables, (function,), main=is_module(function))

    # --- programs ----------------------------------------------------------------------------------------------------

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs of all entry points, sorted by path."""
        return tuple(program for entries in self.entries_by_file() for program in self.programs_from(entries))

    def programs_of(self, path: str) -> tuple[Program, ...]:
        """The programs of the entry points of a file."""
        entries = self.entry_points.of(path)
        return self.programs_from(entries) if entries else ()

    def program(self, entry: Entry) -> Program:
        """The program of an entry point, for queries about it: their key is the entry point, and they depend on what the trace does."""
        return next(each for each in self.programs_of(entry.path) if each.entry == entry)

    @query()
    def programs_from(self, entries: tuple[Entry, ...]) -> tuple[Program, ...]:
        """The programs of the entry points of one file."""
        return tuple(Program(entry, run, self._program_effects(entry, run)) for entry, run in self.traces_from(entries))

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

    @query(cutoff=True)
    def _programs_reaching(self, what: str) -> tuple[ProgramReference, ...]:
        """The programs that reach a function, or a file (see ``_IN``); most edits leave them as they are."""
        path = what.removeprefix(_IN) if what.startswith(_IN) else None
        return tuple(
            ProgramReference(entries[0].path, number, each.accelerated)
            for entries in self.entries_by_file()
            for number, each in enumerate(self.program_summaries(entries))
            if (what in each.functions if path is None else path in each.paths)
        )

    @query()
    def program_summaries(self, entries: tuple[Entry, ...]) -> tuple[ProgramSummary, ...]:
        """The summary of each program of the entry points of one file, which outlives the program's trace."""
        return tuple(map(self._summarise, self.programs_of(entries[0].path)))

    def _summarise(self, program: Program) -> ProgramSummary:
        return program_summary(program.run.functions, accelerated=self.on_accelerator(program))

    # --- effects -----------------------------------------------------------------------------------------------------

    def _effects(self, run: Trace) -> RngEffects:
        found = RngEffects(
            run, self.resolver, self._catalogue, dict(self._settings.seeders), self.database.table("callee effects")
        )
        return without_identifier_draws(self, found)

    @query()
    def worker_trace(self, functions: tuple[str, ...]) -> WorkerTrace:
        """The trace and effects of functions that a loader's workers run."""
        run = self.trace_in_worker(functions)
        return WorkerTrace(run, self._effects(run))

    @query(lru=_CACHED_OWN_EFFECTS)
    def effects_in(self, function: str) -> RngEffects:
        """The effect summary of a function, or of a module's top level."""
        return self._effects(self.trace_of(function))

    @query()
    def flag_writes(self, path: str) -> tuple[FlagWrite, ...]:
        """The flag writes of a module, function by function, without branches that constant tests rule out."""
        return tuple(flag_writes(self.resolver, self._catalogue, path))

    def state_effects(self, program: Program) -> tuple[StateEffect, ...]:
        """The effects of a program on flags, environment variables and devices, in order."""
        return self._state_effects(program.entry)

    @query()
    def _state_effects(self, entry: Entry) -> tuple[StateEffect, ...]:
        return tuple(state_effects(self.program(entry).run, self.resolver, self._catalogue))

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

    @query()
    def seeding_words(self) -> frozenset[str]:
        """The last words of the seeders of the packages that the project mentions."""
        return seeding_identifiers(self.resolver.modules.mentions)

    def seeding_functions(self, behind: str) -> Iterator[str]:
        """The functions and module bodies with a call of a seeder, in a file and in those that import it, directly or
        not.
        """
        found = self.seeding_files()
        for path in found.paths:
            if self.resolver.imports(path, behind):
                yield from self._seeding_in(path, found.words)

    def own_seeding_functions(self, path: str) -> tuple[str, ...]:
        """The functions of a file, and its body, with a call of a seeder."""
        found = self.seeding_files()
        return self._seeding_in(path, found.words) if path in found.paths else ()

    @query()
    def seeding_files(self) -> CallCandidates:
        """The files that may call a seeder, and the words by which they do."""
        return call_candidates(self.resolver, self.seeding_words())

    @query()
    def _seeding_in(self, path: str, words: frozenset[str]) -> tuple[str, ...]:
        return tuple(seeding_functions(self, self._catalogue, path, words))

    # --- devices -----------------------------------------------------------------------------------------------------

    def on_accelerator(self, program: Program) -> bool:
        """Whether a program may run on an accelerator: whether anything that it reaches names one.

        TPUs are none: CUDA's facts are not about them.
        """
        return self._is_on_accelerator(program.entry)

    @query()
    def _is_on_accelerator(self, entry: Entry) -> bool:
        program = self.program(entry)
        return not self.is_for_xla(program.entry.path) and (
            any(self._names_accelerator(function) for function in sorted(program.run.functions))
            or any(prefix_and_rest(program.run, "accelerates", _contains_accelerator_call))
        )

    def is_for_xla(self, path: str) -> bool:
        """Whether a script imports ``torch_xla``: then it runs on TPUs."""
        imports = (each for each in self.files[path].body if isinstance(each, Import))
        return any(top_package(name) == "torch_xla" for each in imports for name in each.modules)

    @query()
    def _names_accelerator(self, function: str) -> bool:
        return any(map(names_accelerator, self._bodies(function)))

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
