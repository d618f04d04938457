"""The trace builder: an entry point's events in order, through every function of the project that it reaches.

It is a depth-first worklist with a stack of its own, since call chains outgrow Python's. Each target is entered once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from itertools import islice

from torchrepro_lint.dataflow.feasibility import ruling_tests, test_of_flags
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.control_flow import Event
from torchrepro_lint.syntax.nodes import Call, Record
from torchrepro_lint.syntax.qualified_names import is_module, module_symbol, path_of
from torchrepro_lint.syntax.scopes import evaluation_start
from torchrepro_lint.trace.bodies import EnteringEvent, Step
from torchrepro_lint.trace.call_targets import Frame
from torchrepro_lint.trace.entry_points import Entry
from torchrepro_lint.trace.events import (
    CallEdge,
    CallFrame,
    DeferredCall,
    ResolvedEvent,
    SharedPrefix,
    Target,
    TraceEvent,
    TraceFragment,
    TraceMemoTables,
    strongly_connected_components,
)
from torchrepro_lint.trace.rapid_type_analysis import IMPORTED, NO_CLASSES, RapidTypeAnalysis, Recording


class ModuleTrace(Record, frozen=True):
    """The trace of a module's top level, and its events as the shared prefix of the traces of its commands."""

    run: Trace
    prefix: SharedPrefix


class _PendingImport(Record, frozen=True):
    """An import on the stack: the frame and event that import, and the file to run."""

    by: Frame
    event: Event
    file: str


_NO_FLAGS: Mapping[str, bool] = {}


class Trace(RapidTypeAnalysis):
    """A trace: all events that some functions reach, each function once, in evaluation order.

    ``starts`` are functions or modules (``path:``) that run one after the other; with ``main`` a module runs as ``__main__``.
    With ``mode`` they run in workers; ``after`` is a prefix to continue from.

    Entering a function a second time shows nothing earlier, so the first occurrence of each event is exact and recursion ends.
    """

    def __init__(
        self,
        names: Names,
        tables: TraceMemoTables,
        starts: Iterable[str],
        *,
        main: bool = False,
        mode: str = "",
        receiver: str = "",
        after: ModuleTrace | None = None,
        flags: Mapping[str, bool] = _NO_FLAGS,
    ) -> None:
        super().__init__(names, tables)
        self.flags = flags
        self._entered: list[CallEdge] = []
        self.trace_events: list[TraceEvent] = []
        self.prefix = after.prefix if after else SharedPrefix()
        self.starts = tuple(starts)
        if after:
            self._continue_from(after.run)
        for name in self.starts:
            self._execute(Target(name, mode, receiver), (), main=main and is_module(name))
        self._run_deferred()

    @classmethod
    def from_entry(
        cls,
        entry: Entry,
        names: Names,
        tables: TraceMemoTables,
        after: ModuleTrace | None = None,
        flags: Mapping[str, bool] = _NO_FLAGS,
    ) -> Trace:
        """The trace of an entry point; ``after`` is the trace of its module, which the commands of a file share."""
        starts = (module_symbol(entry.path), *entry.before, *([entry.function] if entry.function else []))
        main = entry.function is None
        return cls(names, tables, starts, main=main, after=after if not main else None, flags=flags)

    @classmethod
    def of_module(cls, path: str, names: Names, tables: TraceMemoTables) -> ModuleTrace:
        """The trace of a module's top level, where the traces of its commands begin; deferred calls are not run yet."""
        run = cls(names, tables, ())
        run.starts = (module_symbol(path),)
        run._execute(Target(module_symbol(path), ""), ())
        return ModuleTrace(run, SharedPrefix(run.trace_events))

    def _continue_from(self, other: Trace) -> None:
        """Begin with all that another trace has done."""
        self._seen |= other._seen
        self._entered += other._entered
        self.trace_events += other.trace_events
        self._postponed += other._postponed
        self._not_yet_passed |= {name: [*each] for name, each in other._not_yet_passed.items()}
        self._never_passed |= other._never_passed
        self._deferred |= {key: each._replace(targets=[*each.targets]) for key, each in other._deferred.items()}
        self._released |= other._released

    @cached_property
    def functions(self) -> frozenset[str]:
        """The functions of the project that the trace reaches; ``path:`` is a module's top level."""
        return frozenset(target.function for target in self._seen if target.receiver not in NO_CLASSES)

    @cached_property
    def paths(self) -> frozenset[str]:
        """The files of these functions."""
        return frozenset(map(path_of, self.functions))

    @cached_property
    def call_edges(self) -> dict[str, tuple[CallEdge, ...]]:
        """The call edges into each function; a deferred one is entered from where it was passed or stored."""
        found: dict[str, list[CallEdge]] = {}
        for each in self._entered:
            found.setdefault(each.function, []).append(each)
        return {key: tuple(each) for key, each in found.items()}

    @cached_property
    def cycles(self) -> dict[str, frozenset[str]]:
        """The functions that call themselves, directly or not, each with those of its cycle."""
        return strongly_connected_components(self.call_edges)

    @cached_property
    def started(self) -> frozenset[str]:
        """The names that the entry point itself calls, as ``main()`` under the guard."""
        return frozenset(
            name for trace_event in self.trace_events if not trace_event.call_path for name in trace_event.names
        )

    def _execute(self, start: Target, call_path: tuple[CallFrame, ...], *, main: bool = False) -> None:
        """Run a function and all that it enters."""
        if start in self._seen:
            return
        self._seen[start] = None
        stack: list[Frame | _PendingImport] = [self._frame(start, call_path, main=main)]
        while stack:
            top = stack[-1]
            if isinstance(top, _PendingImport):
                stack.pop()
                stack += self._import(top)
                continue
            step = top.rest.pop() if top.rest else None
            if step is None:
                stack.pop()
                if self._recording and self._recording[-1].frame is top:
                    self._finish_recording(self._recording.pop())
            elif isinstance(step, tuple):
                stack.extend(reversed(self._record_plain(top, step)))
            elif isinstance(step, EnteringEvent):
                event = step.resolved.event
                entered = [
                    frame for target in self._record_entering(top, step) for frame in self._enter(top, event, target)
                ]
                stack.extend(reversed(entered))
            else:
                files = self._names.modules.imported_files(top.path, step.modules)
                stack.extend(_PendingImport(top, step, file) for file in reversed(files))

    def _import(self, one: _PendingImport) -> list[Frame]:
        """Run a module where it is imported first, or replay the fragment of another trace that came to it in the same state."""
        imported = Target(one.file, one.by.target.mode, IMPORTED)
        if self._is_entered(imported):
            return []
        self._seen[imported] = None
        target = Target(module_symbol(one.file), one.by.target.mode)
        frames = self._enter(one.by, one.event, target)
        if frames and not self._deferred and not self.flags:
            if self._replay(target, frames[0].call_path):
                return []
            self._begin_recording(target, frames[0])
        return frames

    def _enter(self, by: Frame, event: Event, target: Target) -> list[Frame]:
        """The frame of a function that has not been entered before."""
        self._entered.append(CallEdge(target.function, by.target.function, event, target.mode))
        if self._is_entered(target):
            return []
        self._seen[target] = None
        return [self._frame(target, (*by.call_path, CallFrame(by.path, event, target.function)))]

    def _replay(self, target: Target, call_path: tuple[CallFrame, ...]) -> bool:
        """Replay the fragment of another trace from here, if this one would do the same."""
        fragment: TraceFragment | None = self._tables.fragments.find(target)
        if fragment is None or not fragment.fits(self._seen):
            return False
        self._tables.fragments.record(target)
        if self._recording:
            self._recording[-1].asked.update(fragment.asked)
        self.trace_events += fragment.events_after(call_path)
        self._entered += fragment.entered
        self._seen.update(dict.fromkeys(fragment.seen))
        self._deferred.update(fragment.deferred_after(call_path))
        return True

    def _begin_recording(self, target: Target, frame: Frame) -> None:
        reads = self._names.modules.reads
        marks = len(self.trace_events), len(self._entered), len(self._seen)
        self._recording.append(Recording(target, frame, reads.dependencies, len(reads.asked), marks, set()))
        reads.dependencies = 0
        self._bodies.of(self._names, target, main=False)  # what its body depends on is behind the fragment

    def _finish_recording(self, found: Recording) -> None:
        """Store the fragment that began where a module was entered."""
        reads = self._names.modules.reads
        events, entered, seen = found.marks
        if self._recording:
            self._recording[-1].asked.update(found.asked)
        new = tuple(islice(self._seen, seen, None))
        fragment = TraceFragment(
            frozenset(found.asked),
            frozenset(each for each in found.asked.difference(new) if each in self._seen),
            found.frame.call_path,
            tuple(self.trace_events[events:]),
            tuple(self._entered[entered:]),
            new,
            tuple(self._deferred.items()),
        )
        self._tables.fragments.put(found.target, fragment, reads.since(found.answers))
        reads.dependencies |= found.outer

    def _run_deferred(self) -> None:
        """Run at the end what was passed or stored and never seen to be called or iterated."""
        while True:
            while self._deferred:
                waiting = self._deferred.pop(next(iter(self._deferred)))
                if self._is_made_parallel(waiting):
                    continue
                maker = waiting.call_path[-1].into if waiting.call_path else self.starts[0]
                self._run_later(waiting.targets, waiting, maker)
            came = [each for each in self._postponed if self._is_there(each)]
            self._postponed = [each for each in self._postponed if each not in came]
            if not came and self._never_passed:
                came = [each for name in self._never_passed for each in self._not_yet_passed.pop(name, ())]
                self._never_passed.clear()
            elif not came:
                return
            for each in came:
                self._run_later([*self._enter_or_defer(*each[:5])], each.waiting, each.function)

    def _run_later(self, targets: Iterable[Target], waiting: DeferredCall, maker: str) -> None:
        for target in targets:
            self._entered.append(CallEdge(target.function, maker, waiting.step.event, target.mode))
            self._execute(target, (*waiting.call_path, waiting.step._replace(into=target.function)))

    def _frame(self, target: Target, call_path: tuple[CallFrame, ...], *, main: bool = False) -> Frame:
        steps = self._bodies.of(self._names, target, main=main)
        steps = _steps_in_mode(self._names, target.function, steps, self.flags)
        return Frame(target, main, path_of(target.function), [*reversed(steps)], call_path)

    def _record_plain(self, frame: Frame, events: tuple[ResolvedEvent, ...]) -> list[Frame]:
        """Record events that enter no function by themselves, as far as the first that releases a deferred call; what it enters."""
        entered: list[Frame] = []
        for follow, calls in self._uses(frame).items():
            if (number := len(events) - follow) < 1:
                continue  # it was recorded before
            event = events[number - 1].event
            released = self._release_deferred(event, calls)
            entered = [inner for target in released for inner in self._enter(frame, event, target)]
            if entered:
                frame.rest.append(events[number:])
                events = events[:number]
                break
        self.trace_events += [TraceEvent(each, frame.call_path) for each in events]
        return entered

    def _record_entering(self, frame: Frame, step: EnteringEvent) -> Iterator[Target]:
        """Record an event; yields the functions that it enters."""
        resolved, targets, receivers = step.resolved, step.targets, self._constructed(step.receivers)
        event, mode = resolved.event, resolved.mode
        self.trace_events.append(TraceEvent(resolved, frame.call_path))
        if event.kind == "read":
            yield from step.enters
            return
        waiting = DeferredCall(frame.call_path, CallFrame(frame.path, event, ""), [])
        for name in self._present_targets(frame.target.function, event.kind, mode, waiting, receivers, targets):
            yield from self._enter_or_defer(name, event.kind, mode, waiting, receivers)
        if event.kind == "call" and isinstance(event.value, Call):
            there = self._without_relatives([each.function for each in step.enters])
            yield from (each for each in step.enters if each.function in there)
            given = self._without_relatives(self._in_this_trace(targets.passed))
            for name in given:
                yield from self._note_passed(name)
            yield from self._higher_order_targets(frame.path, event.value, targets.found, given, mode, waiting)
        yield from self._release_deferred(event, self._uses(frame).get(0, ()))


def _steps_in_mode(names: Names, function: str, steps: tuple[Step, ...], flags: Mapping[str, bool]) -> tuple[Step, ...]:
    """The steps of a function's body that no test of these attributes keeps from running: ``if opt.is_train``."""
    bodies = names.bodies(function)
    if len(bodies) != 1 or not flags:
        return steps

    def runs(event: Event) -> bool:
        at = evaluation_start(event.value or event.statement)
        return next(ruling_tests(bodies[0], at, partial(test_of_flags, flags)), None) is None

    kept = (
        tuple(each for each in step if runs(each.event))
        if isinstance(step, tuple)
        else step
        if runs(step.resolved.event if isinstance(step, EnteringEvent) else step)
        else ()
        for step in steps
    )
    return tuple(step for step in kept if step)
