"""Trace events, the call path to each, and the memo tables that the traces of a project share.

Programs of one project import much the same modules. So a trace keeps a fragment for each import, which other traces replay, and the
commands of one file share the trace of its top level as a prefix. The memo tables also outlive an edit.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from torchrepro_lint.query.database import Database
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.syntax.control_flow import Event, Guard, is_main_test
from torchrepro_lint.syntax.nodes import Call, Expression, FrozenRecord, Record, Ref, fields
from torchrepro_lint.syntax.qualified_names import module_symbol
from torchrepro_lint.syntax.visitor import subexpressions


class CallFrame(FrozenRecord, frozen=True):
    """A frame of a call path: the event of a file that enters the function ``into``."""

    path: str
    event: Event
    into: str


class ResolvedEvent(FrozenRecord, frozen=True):
    """An event with the names that its call, iterated or indexed value may stand for (for a set item: its container's names).

    ``assumed``: the names are what the calls of the project pass for parameters, and may be incomplete. ``mode`` is ``worker`` in
    code that a loader's workers run, ``loaded`` in the construction of a model whose weights are all replaced later, else empty.
    ``function`` is the function that contains the event.
    """

    path: str
    function: str
    event: Event
    names: tuple[str, ...]
    assumed: bool
    mode: str


class TraceEvent(FrozenRecord, frozen=True):
    """A trace event: a resolved event, and the call path that leads to it.

    The resolved event is a flyweight, shared by all traces: they have millions of trace events, but few resolved events.
    """

    resolved: ResolvedEvent
    call_path: tuple[CallFrame, ...]

    @property
    def path(self) -> str:
        """The file that contains the event."""
        return self.resolved.path

    @property
    def function(self) -> str:
        """The function that contains the event."""
        return self.resolved.function

    @property
    def event(self) -> Event:
        """The event itself."""
        return self.resolved.event

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the event's value may stand for."""
        return self.resolved.names

    @property
    def assumed(self) -> bool:
        """Whether the names may be incomplete."""
        return self.resolved.assumed

    @property
    def mode(self) -> str:
        """The mode in which the event runs."""
        return self.resolved.mode


def guards(trace_event: TraceEvent) -> tuple[Guard, ...]:
    """All that surrounds a trace_event, from the entry point on."""
    return (*(guard for step in trace_event.call_path for guard in step.event.guards), *trace_event.event.guards)


def tested_references(guards: Iterable[Guard]) -> Iterator[Ref]:
    """The references that the tests among some guards read: ``args.seed`` of ``if args.seed is None``."""
    tests = (guard.value for guard in guards if guard.kind in ("if", "else"))
    return (each for test in tests for each in subexpressions(test) if isinstance(each, Ref))


def guard_values(trace_event: TraceEvent) -> Iterator[tuple[Guard, tuple[str, Expression]]]:
    """The same, each with its file and value, which identify it."""
    for step in trace_event.call_path:
        for guard in step.event.guards:
            yield guard, (step.path, guard.value)
    for guard in trace_event.event.guards:
        yield guard, (trace_event.path, guard.value)


def is_conditional(trace_event: TraceEvent, other: TraceEvent | None = None) -> bool:
    """Whether an event is under a test, one that does not guard ``other``; the test of ``__main__`` does not count."""
    shared = {key for _, key in guard_values(other)} if other else set()
    return any(
        guard.kind in ("if", "else") and not guard.certain and key not in shared and not is_main_test(guard.value)
        for guard, key in guard_values(trace_event)
    )


class Target(FrozenRecord, frozen=True):
    """A call target: a function, the mode it runs in, and the class of its receiver (empty: the class that defines it)."""

    function: str
    mode: str
    receiver: str = ""


@lru_cache(maxsize=1 << 12)
def module_targets(path: str) -> tuple[Target, ...]:
    """The top level of a file, in each mode; a hot path."""
    return tuple(Target(module_symbol(path), mode) for mode in ("", "worker", "loaded"))


class DeferredCall(Record, frozen=True):
    """Functions that were passed or stored and are entered later, with the call path to where that happened."""

    call_path: tuple[CallFrame, ...]
    step: CallFrame
    targets: list[Target]


# What a deferred call waits for: the use of a value, by its file and expression, or of a function or class, by its name.
DeferralKey: TypeAlias = tuple[str, Expression] | str


class CallEdge(FrozenRecord, frozen=True):
    """A call edge of a trace: a function, its caller, the event of the caller that enters it, and the mode it enters it in."""

    function: str
    caller: str
    event: Event
    mode: str


def strongly_connected_components(callers: Mapping[str, Sequence[CallEdge]]) -> dict[str, frozenset[str]]:
    """The strongly connected component of each function of a call graph that can reach itself.

    ``callers`` has the call edges into each function. This is Kosaraju's algorithm, in linear time and without recursion.
    """
    above = {function: dict.fromkeys(each.caller for each in edges) for function, edges in callers.items()}
    below: dict[str, list[str]] = {}
    for function, others in above.items():
        for each in others:
            below.setdefault(each, []).append(function)
    seen: set[str] = set()
    order = [each for start in above for each in _postorder(start, above, seen)]
    found: dict[str, frozenset[str]] = {}
    seen = set()
    for start in reversed(order):
        component = frozenset(_postorder(start, below, seen))
        if len(component) > 1 or start in above.get(start, ()):
            found.update(dict.fromkeys(component, component))
    return found


def _postorder(start: str, graph: Mapping[str, Iterable[str]], seen: set[str]) -> list[str]:
    """What is reached from a node and not yet ``seen``, each after what it reaches first."""
    found: list[str] = []
    work = [] if start in seen else [(start, iter(graph.get(start, ())))]
    seen.add(start)
    while work:
        node, left = work[-1]
        following = next((each for each in left if each not in seen), None)
        if following is None:
            work.pop()
            found.append(node)
        else:
            seen.add(following)
            work.append((following, iter(graph.get(following, ()))))
    return found


class TraceFragment(Record, frozen=True):
    """A trace fragment: what an import does, for replay in other traces; no call is deferred where it begins.

    ``asked`` are the targets that the fragment comes to, ``known`` those of them that had been entered before. Another trace in which
    the same targets have been entered would do the same. ``call_path`` leads to its start; ``seen`` are the targets that it enters.
    """

    asked: frozenset[Target]
    known: frozenset[Target]
    call_path: tuple[CallFrame, ...]
    trace_events: tuple[TraceEvent, ...]
    entered: tuple[CallEdge, ...]
    seen: tuple[Target, ...]
    waiting: tuple[tuple[DeferralKey, DeferredCall], ...]

    def fits(self, seen: Collection[Target]) -> bool:
        """Whether a trace that has entered these targets would do the same."""
        return all((each in seen) is (each in self.known) for each in self.asked)

    def events_after(self, call_path: tuple[CallFrame, ...]) -> Iterator[TraceEvent]:
        """Its trace events, where another call path leads to its start."""
        start = len(self.call_path)
        # The last call path of each length, which the next events share: the trace goes depth first.
        ways: dict[int, tuple[tuple[CallFrame, ...], tuple[CallFrame, ...]]] = {}
        for each in self.trace_events:
            old = each.call_path
            known = ways.get(len(old))
            if known is None or known[0] is not old:
                known = ways[len(old)] = old, (*call_path, *old[start:])
            yield TraceEvent(each.resolved, known[1])

    def deferred_after(self, call_path: tuple[CallFrame, ...]) -> Iterator[tuple[DeferralKey, DeferredCall]]:
        """The calls that it leaves deferred, where another call path leads to its start."""
        for key, each in self.waiting:
            yield key, each._replace(call_path=(*call_path, *each.call_path[len(self.call_path) :]))


_Answer = TypeVar("_Answer")


class SharedPrefix:
    """The shared prefix of several traces: its events, and answers that were computed from them."""

    def __init__(self, trace_events: Sequence[TraceEvent] = ()) -> None:
        self.trace_events = tuple(trace_events)
        self.known: dict[str, Any] = {}


class PrefixedTrace(Protocol):
    """A trace with a prefix that other traces share."""

    @property
    def prefix(self) -> SharedPrefix:
        """The shared prefix."""
        ...

    @property
    def trace_events(self) -> Sequence[TraceEvent]:
        """All its events, those of the prefix first."""
        ...


# The answers about shared prefixes that are held: the programs of one file are asked one after the other.
_CACHED_PREFIXES = 64


def prefix_and_rest(
    run: PrefixedTrace,
    name: str,
    compute: Callable[[int, Sequence[TraceEvent]], _Answer],
    database: Database | None = None,
) -> tuple[_Answer, ...]:
    """The results of ``compute(index of the first event, events)`` for a trace's shared prefix and for the rest of its events.

    The prefix's result is remembered by ``name``. A trace may outlive changes of files that it does not reach, so a ``compute`` that
    reads more than the events is remembered in the ``database``, with what it reads.
    """
    shared = run.prefix
    if not shared.trace_events:
        return (compute(0, run.trace_events),)
    known: _Answer
    if database is not None:
        table = database.table("shared prefixes", _CACHED_PREFIXES)
        known = table.of((name, shared), lambda: compute(0, shared.trace_events))
    else:
        if name not in shared.known:
            shared.known[name] = compute(0, shared.trace_events)
        known = shared.known[name]
    start = len(shared.trace_events)
    return known, compute(start, run.trace_events[start:])


def calls_in(trace_events: Iterable[TraceEvent]) -> Iterator[tuple[ResolvedEvent, Call]]:
    """The calls among trace events. Each trace is searched several times, so no property is read."""
    for each in trace_events:
        resolved = each.resolved
        value = resolved.event.value
        if type(value) is Call and resolved.event.kind == "call":
            yield resolved, value


class CallsOfTrace:
    """The calls of a trace, by their spans in sorted arrays: a set of calls would take several times the memory."""

    def __init__(self, run: PrefixedTrace) -> None:
        self._spans = prefix_and_rest(run, "calls", _call_spans)

    def __contains__(self, place: tuple[str, Expression]) -> bool:
        """Whether the trace runs a call of a file. No two calls of a file have the same span."""
        path, call = place
        span = _packed_span(call)
        for spans in (part[path] for part in self._spans if path in part):
            at = bisect_left(spans, span)
            if at < len(spans) and spans[at] == span:
                return True
        return False


def _call_spans(_start: int, trace_events: Sequence[TraceEvent]) -> dict[str, array[int]]:
    """The spans of the calls of each file, sorted."""
    found: dict[str, set[int]] = {}
    for resolved, call in calls_in(trace_events):
        found.setdefault(resolved.path, set()).add(_packed_span(call))
    return {path: array("Q", sorted(spans)) for path, spans in found.items()}


def _packed_span(value: Expression) -> int:
    return value.start << 32 | value.end


class EventTargets(FrozenRecord, frozen=True):
    """The targets of an event: the names called, whether they are ``assumed`` (see ``ResolvedEvent``), whether the event enters
    no function of the project in any trace, and the functions and objects of the project that it passes.
    """

    found: tuple[str, ...]
    assumed: bool
    enters_nothing: bool
    passed: tuple[str, ...]


class EventKey(FrozenRecord, frozen=True):
    """The memo key of an event's targets: its file, its kind, and the type and offsets of its value."""

    path: str
    kind: str
    value: str
    start: int
    end: int

    @classmethod
    def of(cls, path: str, event: Event) -> EventKey:
        """The key of an event of a file."""
        assert event.value is not None
        return cls(path, event.kind, type(event.value).__name__, event.value.start, event.value.end)


class EventTargetTable:
    """The targets of events as a durable memo table, which the query store writes and restores."""

    def __init__(self, table: MemoTable[EventKey, EventTargets]) -> None:
        self._table = table

    def entries(self) -> list[tuple[str, EventTargets, int]]:
        """The entries: keys as text, targets, and dependencies."""
        return [("\n".join(map(str, fields(key))), outcome, seen) for key, outcome, seen in self._table.entries()]

    def restore(self, key: str, outcome: EventTargets, seen: int) -> None:
        """Take over what ``known`` gave of a project in the same state."""
        path, kind, value, start, end = key.rsplit("\n", 4)
        self._table.restore(EventKey(path, kind, value, int(start), int(end)), outcome, seen)


class TraceMemoTables:
    """The memo tables that the traces of a project share."""

    def __init__(self, database: Database) -> None:
        # The functions that an event of a kind on a name enters, by the classes of its receivers; each with the class of its object,
        # and whether its entry is deferred until its result is used.
        self.entered: MemoTable[tuple[str, str, tuple[str, ...]], tuple[tuple[str, str, bool], ...]] = database.table(
            "entered", compare=False
        )

        # What an import of a module does.
        self.fragments: MemoTable[Target, TraceFragment] = database.table("fragments", compare=False)


class PostponedEntry(NamedTuple):
    """A value that is not entered yet, since no object of its class has been made, the function that would enter it, and all values
    that the event may be on.
    """

    name: str
    kind: str
    mode: str
    waiting: DeferredCall
    receivers: tuple[str, ...]
    function: str
    others: tuple[str, ...]
