"""Programs and their effect summaries: what each entry point, and each function, does to generators, flags and devices.

A program is an entry point with its trace and its effect summary. Its summary by functions and files stays when its trace is
dropped. A program is computed once, and which programs reach a function is known without tracing the others again, if their summaries
are known. An effect that several entry points reach is attributed to one of them: to the other one where this one only launches it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchrepro_lint import limits
from torchrepro_lint.catalogue.rows import CUBLAS_VARIABLE
from torchrepro_lint.dataflow.training_steps import is_backward
from torchrepro_lint.domain.flag_effects import StateEffect, accelerates, effects_on_state, names_accelerator
from torchrepro_lint.domain.flags import CUDNN_BENCHMARK, CUDNN_DETERMINISTIC, DETERMINISTIC, WORKER_SEEDS
from torchrepro_lint.domain.rng.effects import Draw, RngEffects
from torchrepro_lint.domain.rng.feasibility import is_feasible, is_reachable
from torchrepro_lint.domain.rng.identifiers import without_identifier_draws
from torchrepro_lint.domain.rng.optional_seeds import shipped_seeds
from torchrepro_lint.domain.rng.seeders import runs_in_workers_alone
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.control_flow import event_key, uncertain_guards
from torchrepro_lint.syntax.nodes import Import, Record
from torchrepro_lint.syntax.qualified_names import is_module, path_of, top_package
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.call_paths import is_tested
from torchrepro_lint.trace.entry_points import Entry, is_seeded_by_runner
from torchrepro_lint.trace.events import TraceEvent, calls_in, guards, prefix_and_rest
from torchrepro_lint.trace.traces import Traces


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

    def is_seeded(self, names: Names, family: str, trace_event: TraceEvent, order: int) -> bool:
        """Whether the project's own code seeds a family before an event with this order, under no further condition, or in workers alone."""
        return any(
            seed.order < order
            and (
                set(uncertain_guards(guards(seed.trace_event))) <= set(guards(trace_event))
                or runs_in_workers_alone(names, seed.trace_event)
            )
            for seed in self.effects.reseeds.get(family, ())
        )

    def unseeded_draws(self) -> Iterator[Draw]:
        """The draws of the project's own code from global generators that it has not just seeded."""
        for draws in self.effects.draws.values():
            for draw in draws:
                if not any(seed.order < draw.order for seed in self.effects.reseeds.get(draw.family, ())):
                    yield draw


def program_summary(functions: Iterable[str], *, accelerated: bool) -> ProgramSummary:
    """The summary of a program that reaches these functions."""
    return ProgramSummary(frozenset(functions), frozenset(map(path_of, functions)), accelerated)


# The flags and variables that rules ask about.
_SWITCHES = frozenset({DETERMINISTIC, CUDNN_DETERMINISTIC, CUDNN_BENCHMARK, WORKER_SEEDS, CUBLAS_VARIABLE})
# The effects of so many single functions are held: each may be as long as a program.
_CACHED_OWN_EFFECTS = 32
# Before a path: the programs that run any code of the file.
_IN = "in "


class ProgramReference(Record, frozen=True):
    """A program by its file and its index there, and whether it may run on an accelerator."""

    path: str
    number: int
    accelerated: bool


# --- programs ---------------------------------------------------------------------------------------------------------


def all_programs(project: Traces) -> tuple[Program, ...]:
    """The programs of all entry points, sorted by path."""
    return tuple(program for entries in project.entries_by_file() for program in _programs_from(project, entries))


def programs_of(project: Traces, path: str) -> tuple[Program, ...]:
    """The programs of the entry points of a file."""
    entries = project.entry_points.of(path)
    return _programs_from(project, entries) if entries else ()


def program_at(project: Traces, entry: Entry) -> Program:
    """The program of an entry point, for queries about it: their key is the entry point, and they depend on what the trace does."""
    return next(each for each in programs_of(project, entry.path) if each.entry == entry)


@query()
def _programs_from(project: Traces, entries: tuple[Entry, ...]) -> tuple[Program, ...]:
    """The programs of the entry points of one file."""
    return tuple(
        Program(entry, run, _program_effects(project, entry, run)) for entry, run in project.traces_from(entries)
    )


def _program_effects(project: Traces, entry: Entry, run: Trace) -> RngEffects:
    """The effects of a program, without the seeders that literal arguments rule out."""
    effects = _effects(project, run)
    exposed = {each.function for path in run.paths for each in project.entry_points.of(path) if each.function}
    commands = exposed.union(entry.before)
    shipped = shipped_seeds(project, project.catalogue, commands, run, effects)
    for family, seeds in list(effects.seeds.items()) if shipped.ruled_out else ():
        effects.seeds[family] = [each for each in seeds if each not in shipped.ruled_out]
        if not effects.seeds[family]:
            del effects.seeds[family]
    effects.optional = shipped.optional
    # What runs a function of an experiment seeds, and leaves torch's flags alone.
    effects.may_set_flags = effects.unknown_seeder
    effects.unknown_seeder = effects.unknown_seeder or is_seeded_by_runner(project.resolver, entry)
    return effects


def programs_in(project: Traces, path: str) -> tuple[Program, ...]:
    """The programs that run any code of a file."""
    return _resolve_references(project, _references(project, f"{_IN}{path}"))


def programs_reaching(project: Traces, function: str) -> tuple[Program, ...]:
    """The programs that reach a function (``path:`` is a module's top level)."""
    return _resolve_references(project, _references(project, function))


def _resolve_references(project: Traces, places: tuple[ProgramReference, ...]) -> tuple[Program, ...]:
    return tuple(programs_of(project, each.path)[each.number] for each in places)


@query(cutoff=True)
def _references(project: Traces, what: str) -> tuple[ProgramReference, ...]:
    """The programs that reach a function, or a file (see ``_IN``); most edits leave them as they are."""
    path = what.removeprefix(_IN) if what.startswith(_IN) else None
    return tuple(
        ProgramReference(entries[0].path, number, each.accelerated)
        for entries in project.entries_by_file()
        for number, each in enumerate(program_summaries(project, entries))
        if (what in each.functions if path is None else path in each.paths)
    )


@query()
def program_summaries(project: Traces, entries: tuple[Entry, ...]) -> tuple[ProgramSummary, ...]:
    """The summary of each program of the entry points of one file, which outlives the program's trace."""
    return tuple(
        program_summary(each.run.functions, accelerated=on_accelerator(project, each))
        for each in programs_of(project, entries[0].path)
    )


def has_backward(program: Program) -> bool:
    """Whether a program reaches a backward pass, its own or that of a framework's trainer."""
    return any(prefix_and_rest(program.run, "has backward", _contains_backward))


def _contains_backward(_start: int, trace_events: Sequence[TraceEvent]) -> bool:
    return any(is_backward(call, resolved.names) for resolved, call in calls_in(trace_events))


# --- effects ----------------------------------------------------------------------------------------------------------


def _effects(project: Traces, run: Trace) -> RngEffects:
    table = project.database.table("callee effects")
    found = RngEffects(
        run, project.resolver, project.catalogue, dict(project.settings.seeders), table, project.libraries
    )
    return without_identifier_draws(project, found)


def worker_trace(project: Traces, functions: tuple[str, ...], receiver: str = "") -> WorkerTrace:
    """The trace and effects of functions that a loader's workers run, inherited methods on an object of the receiver's class."""
    above = project.resolver.ancestry(receiver)[1:] if receiver else ()
    inherited = any(project.resolver.owner(each) in above for each in functions)
    return _worker_trace(project, functions, receiver if inherited else "")


@query()
def _worker_trace(project: Traces, functions: tuple[str, ...], receiver: str) -> WorkerTrace:
    run = project.trace_in_worker(functions, receiver)
    return WorkerTrace(run, _effects(project, run))


@query(lru=_CACHED_OWN_EFFECTS)
def effects_in(project: Traces, function: str) -> RngEffects:
    """The effect summary of a function, or of a module's top level."""
    return _effects(project, project.trace_of(function))


def state_effects(project: Traces, program: Program) -> tuple[StateEffect, ...]:
    """The effects of a program on flags, environment variables and devices, in order, without the flags and variables that literal
    arguments keep it from setting.
    """
    return _state_effects(project, program.entry)


@query()
def _state_effects(project: Traces, entry: Entry) -> tuple[StateEffect, ...]:
    run = program_at(project, entry).run
    return tuple(
        each
        for each in effects_on_state(run, project.resolver, project.catalogue)
        if each.what not in _SWITCHES or _may_happen(project, run, each.trace_event)
    )


def _may_happen(project: Traces, run: Trace, trace_event: TraceEvent) -> bool:
    return not is_tested(project, trace_event) or is_feasible(project, run, trace_event, likely=False)


# --- devices ----------------------------------------------------------------------------------------------------------


def on_accelerator(project: Traces, program: Program) -> bool:
    """Whether a program may run on an accelerator: whether anything that it reaches names one.

    TPUs are none: CUDA's facts are not about them.
    """
    return _is_on_accelerator(project, program.entry)


@query()
def _is_on_accelerator(project: Traces, entry: Entry) -> bool:
    run = program_at(project, entry).run
    return not is_for_xla(project, entry.path) and (
        any(_names_accelerator(project, function) for function in sorted(run.functions))
        or any(prefix_and_rest(run, "accelerates", _contains_accelerator_call))
    )


def _contains_accelerator_call(_start: int, trace_events: Sequence[TraceEvent]) -> bool:
    return any(accelerates(resolved.names, call) for resolved, call in calls_in(trace_events))


def is_for_xla(project: Traces, path: str) -> bool:
    """Whether a script imports ``torch_xla``: then it runs on TPUs."""
    imports = (each for each in project.files[path].body if isinstance(each, Import))
    return any(top_package(name) == "torch_xla" for each in imports for name in each.modules)


@query()
def _names_accelerator(project: Traces, function: str) -> bool:
    return any(map(names_accelerator, project.bodies(function)))


def may_use_accelerator(project: Traces, function: str) -> bool:
    """Whether a call in a function may run on an accelerator, under the ``device`` setting.

    Under ``auto`` it may, unless programs reach the function and none of them names an accelerator.
    """
    if project.settings.device != "auto":
        return project.settings.device != "cpu"
    reached = _references(project, function)
    return not reached or any(each.accelerated for each in reached)


def may_stay_on_cpu(project: Traces, path: str) -> bool:
    """Whether some code of a file may run in programs without an accelerator alone, under the ``device`` setting."""
    if project.settings.device != "auto":
        return project.settings.device == "cpu"
    return any(not each.accelerated for each in _references(project, f"{_IN}{path}"))


def is_relevant(project: Traces, program: Program) -> bool:
    """Whether a run trains, measures or saves something, as far as literal arguments and defaults tell, and its own statements matter."""
    among = program.effects.results[: limits.MAX_COMPARED_RESULTS]
    return program.effects.acts and (
        len(program.effects.results) > len(among) or any(is_reachable(project, program.run, each) for each in among)
    )


def is_attributed_elsewhere(
    project: Traces, entry: Entry, trace_event: TraceEvent, family: str = "", among: Sequence[TraceEvent] = ()
) -> bool:
    """Whether an event belongs to another entry point, whose function this one only launches.

    Not where the other one seeds ``family``, does not come to the event (or to one ``among`` others) or draw there, as far as its
    arguments say, or is not a relevant run: then this one reports.
    """
    entered = {step.into for step in trace_event.call_path}
    return any(
        other.entry.path != entry.path
        and other.effects.results
        and other.effects.acts
        and family not in other.effects.seeds
        and any(
            path_of(name) == other.entry.path and name in other.run.functions and not is_module(name)
            for name in entered
        )
        and any(name == other.entry.function or name in other.run.started for name in entered)
        and (
            _draws_there(project, other, trace_event, family)
            if family
            else _comes_to(project, other, among or [trace_event])
        )
        for other in all_programs(project)
    )


def _draws_there(project: Traces, other: Program, trace_event: TraceEvent, family: str) -> bool:
    same = event_key(trace_event.path, trace_event.event)
    return any(
        event_key(draw.trace_event.path, draw.trace_event.event) == same
        and is_feasible(project, other.run, draw.trace_event, likely=False)
        for draw in other.effects.draws.get(family, ())
    )


def _comes_to(project: Traces, other: Program, among: Sequence[TraceEvent]) -> bool:
    functions = {each.function for each in among} & other.run.functions
    wanted = {event_key(each.path, each.event) for each in among}
    return any(
        each.function in functions
        and event_key(each.path, each.event) in wanted
        and is_reachable(project, other.run, each)
        for each in (other.run.trace_events if functions else ())
    )
