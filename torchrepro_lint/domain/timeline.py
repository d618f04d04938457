"""The timeline of a program: its trace as labelled events in lanes, each with a diagnostic where something is wrong.

Diagnostics repeat in a few words what the rules report; a lane may also lack something as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE
from torchrepro_lint.catalogue.rows import CUBLAS_NOT_NEEDED_SINCE, CUBLAS_VALUES, CUBLAS_VARIABLE, FAMILIES
from torchrepro_lint.dataflow.constants import describe
from torchrepro_lint.domain.determinism_mode import first_accelerator_computation, flag_writes_in, sets_flag
from torchrepro_lint.domain.flag_effects import ACCELERATOR, BACKWARD, VARIABLE_EFFECT, StateEffect
from torchrepro_lint.domain.flags import (
    CUDNN_BENCHMARK,
    CUDNN_DETERMINISTIC,
    DETERMINISTIC,
    FLAG_WORDS,
    MAX_AUTOTUNE,
    WARN,
    is_off,
)
from torchrepro_lint.domain.operations.program_gaps import causes_of_gaps, explained
from torchrepro_lint.domain.operations.reached_operations import (
    device_of,
    is_convolution,
    operations_needing_mode,
    operations_raising,
)
from torchrepro_lint.domain.programs import Program, state_effects
from torchrepro_lint.domain.rng.effects import Draw, Seed
from torchrepro_lint.source.files import release
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.control_flow import is_main_test
from torchrepro_lint.syntax.nodes import Call, Expression, Record, Statement
from torchrepro_lint.trace.call_paths import CallPathStep, call_path, entry_statement
from torchrepro_lint.trace.events import TraceEvent, guards
from torchrepro_lint.trace.traces import Context

# The lanes, from left to right: the generators, then the settings of torch.
LANES = (
    ("torch", "torch's generators"),
    ("numpy", "NumPy's global generator"),
    ("python", "Python's global generator"),
    ("own", "generators of their own"),
    ("flags", "torch's flags"),
    ("variables", "environment variables"),
    ("device", "the device"),
)

# The kinds of events. One draw stands for all that the same statement of the entry file leads to.
KINDS = ("seed", "entropy", "draw", "set", "remove", "operation", "accelerator", "work", "backward")


class TimelineDiagnostic(Record, frozen=True):
    """What is wrong with an event, or missing from a lane, in a few words; ``code`` is the rule that reports it."""

    lane: str
    code: str
    text: str


class TimelineEvent(Record, frozen=True):
    """One labelled event of a program.

    ``kind`` is one of ``KINDS``; ``what`` names the family, flag, variable or operation. ``value`` is the text of what
    a flag or variable is set to, None where it is removed or not constant. ``conditions`` are the tests on the call
    path, ``if args.seed is not None``. ``times`` is the number of draws that it stands for. ``way`` is the call path
    from the entry point, without the place itself.
    """

    lane: str
    kind: str
    what: str
    text: str
    value: str | None
    conditions: tuple[str, ...]
    path: str
    place: Position
    times: int
    way: tuple[CallPathStep, ...]
    trouble: TimelineDiagnostic | None


class Lane(Record, frozen=True):
    """A lane and its state: ``untouched``, ``seeded``, ``late`` (drawn from first), ``unseeded``, ``entropy``,
    ``unknown`` (an unresolved call may seed it); ``touched`` for a lane that is no generator.
    """

    key: str
    title: str
    state: str


class TimelineGap(Record, frozen=True):
    """A call that leads a program into code that is not followed: the kind of the reason (see ``callee_origins``), both as a
    sentence, the place, and the call path from the entry point, without the place itself.
    """

    reason: str
    text: str
    path: str
    place: Position
    way: tuple[CallPathStep, ...]


class Timeline(Record, frozen=True):
    """The timeline of one entry point (``function`` for a command, None for the module), for one torch and device, and its gaps:
    what lies behind them is not in the timeline.
    """

    path: str
    function: str | None
    torch: str
    device: str
    lanes: tuple[Lane, ...]
    moments: tuple[TimelineEvent, ...]
    missing: tuple[TimelineDiagnostic, ...]
    gaps: tuple[TimelineGap, ...] = ()


_CODES = {"torch": "TRL101", "numpy": "TRL102", "python": "TRL103"}
_OVERRIDES_TIMING_SINCE = (2, 10)


class TimelineDiagnostics:
    """The diagnostics of one program."""

    def __init__(self, context: Context, program: Program) -> None:
        self._context = context
        self._program = program
        project, self._effects = context.project, program.effects
        self._mode_enabled = sets_flag(project, program)
        self._cudnn = self._mode_enabled or sets_flag(project, program, CUDNN_DETERMINISTIC)
        self._torch = release(context.catalogue.version)
        self._first_computation = first_accelerator_computation(project, program)
        self._on_cuda = device_of(context, program) == "cuda"

    def of(self, lane: str, kind: str, what: str, order: int) -> TimelineDiagnostic | None:
        """The diagnostic of an event; None where nothing is wrong."""
        found = ("", "")
        if kind == "draw":
            found = self._draw(what, order)
        elif kind == "entropy":
            found = ("TRL105", "a new seed in each run")
        elif kind == "operation":
            found = self._operation(order)
        elif kind == "set":
            found = self._set(what, order)
        return TimelineDiagnostic(lane, *found) if found[0] else None

    def state(self, family: str) -> str:
        """The state of a generator; see ``Lane``."""
        effects = self._effects
        draws, seeds = effects.draws.get(family, ()), effects.seeds.get(family, ())
        if family == "own":
            return "unseeded" if draws else "seeded"
        if not seeds and family in effects.entropic:
            return "entropy"
        if not seeds:
            return "unknown" if effects.unknown_seeder else "unseeded"
        return "late" if draws and draws[0].order < seeds[0].order else "seeded"

    def missing(self) -> Iterator[TimelineDiagnostic]:
        """What a lane lacks as a whole."""
        for family in FAMILIES:
            if family.key in self._effects.draws and self.state(family.key) == "unseeded":
                yield TimelineDiagnostic(
                    family.key, _CODES[family.key], f"nothing seeds {family.owner}: {family.seeder}"
                )
        waiting = set() if self._mode_enabled else set(self._operations_needing_mode())
        if waiting:
            who = "1 operation needs" if len(waiting) == 1 else f"{len(waiting)} operations need"
            yield TimelineDiagnostic("flags", "TRL203", f"{who} torch.use_deterministic_algorithms(True)")
        if self._needs_workspace() and not any(self._workspaces()):
            yield TimelineDiagnostic(
                "variables", "TRL205", f'os.environ["{CUBLAS_VARIABLE}"] = ":4096:8" before work on CUDA'
            )

    def _draw(self, family: str, order: int) -> tuple[str, str]:
        effects = self._effects
        if family not in _CODES or effects.unknown_seeder:
            return ("TRL106", "starts from entropy") if family == "own" else ("", "")
        seeds = effects.seeds.get(family, ())
        if not seeds:
            return ("", "") if family in effects.entropic else (_CODES[family], "never seeded")
        return ("TRL104", "before it is seeded") if order < seeds[0].order else ("", "")

    def _operation(self, order: int) -> tuple[str, str]:
        rows = {each.order: each.row for each in operations_needing_mode(self._context, self._program)}
        row = rows.get(order)
        if row is None:
            return (
                "TRL402",
                "deterministic algorithms would raise an error here"
                if not self._mode_enabled
                else "raises an error: deterministic algorithms are on",
            )
        if self._mode_enabled or (self._cudnn and is_convolution(row)):
            return "", ""
        return "TRL203", "nothing turns deterministic algorithms on"

    def _set(self, what: str, order: int) -> tuple[str, str]:
        values = [
            each.value for each in flag_writes_in(self._context.project, self._program, what) if each.order == order
        ]
        value = values[0] if values else UNKNOWN_VALUE
        if value is UNKNOWN_VALUE:
            return "", ""
        if what == CUDNN_BENCHMARK and not is_off(value):
            return "TRL201", "chooses algorithms by timing them"
        if what == CUDNN_DETERMINISTIC and is_off(value) and not self._mode_enabled:
            return "TRL202", "allows nondeterministic convolutions"
        if what == DETERMINISTIC and (is_off(value) or value == WARN):
            return "TRL204", "off" if is_off(value) else "only warns"
        if (
            what == MAX_AUTOTUNE
            and not is_off(value)
            and not (self._mode_enabled and self._torch >= _OVERRIDES_TIMING_SINCE)
        ):
            return "TRL206", "chooses kernels by timing them"
        if what == CUBLAS_VARIABLE and self._needs_workspace():
            if value not in CUBLAS_VALUES:
                return "TRL205", "not a value that torch accepts"
            if self._first_computation is not None and self._first_computation[0] < order:
                return "TRL205", "after work on CUDA has begun"
        return "", ""

    def _needs_workspace(self) -> bool:
        return self._mode_enabled and self._on_cuda and self._torch < CUBLAS_NOT_NEEDED_SINCE

    def _workspaces(self) -> Iterator[bool]:
        for effect in flag_writes_in(self._context.project, self._program, CUBLAS_VARIABLE):
            yield effect.value is not None

    def _operations_needing_mode(self) -> Iterator[str]:
        for each in operations_needing_mode(self._context, self._program):
            if not (self._cudnn and is_convolution(each.row)):
                yield each.row.operation


# Seeds of the devices alone are in the lane of torch, too.
_LANE_OF = {"torch-cuda": "torch", "environment": "own"}
# The order of several effects of one call.
_KIND_ORDER = ("set", "remove", "seed", "entropy", "accelerator", "operation", "draw", "work", "backward")


class _UnplacedEvent(Record, frozen=True):
    """A timeline event before its position, conditions and diagnostic are known."""

    order: int
    lane: str
    kind: str
    what: str
    text: str
    value: str | None
    trace_event: TraceEvent
    times: int = 1


def timeline(context: Context, program: Program) -> Timeline:
    """The timeline of a program; ``context`` is that of its file."""
    raw = sorted(
        _unplaced_events(context, program), key=lambda each: (each.order, _KIND_ORDER.index(each.kind), each.what)
    )
    diagnostics = TimelineDiagnostics(context, program)
    moments = tuple(_timeline_event(context, each, diagnostics) for each in raw)
    lanes = tuple(Lane(key, title, _lane_state(diagnostics, key, moments)) for key, title in LANES)
    entry, device = program.entry, device_of(context, program)
    missing, gaps = tuple(diagnostics.missing()), tuple(_gaps(context, program))
    return Timeline(entry.path, entry.function, context.catalogue.version, device, lanes, moments, missing, gaps)


def _gaps(context: Context, program: Program) -> Iterator[TimelineGap]:
    for gap in causes_of_gaps(context.project, program):
        (*way, last) = call_path(context.project, gap.trace_event, "") or (_own_step(context, gap.trace_event),)
        text = explained(context.project, gap)
        yield TimelineGap(gap.reason.kind, text, last.path, last.place, tuple(way))


def _own_step(context: Context, trace_event: TraceEvent) -> CallPathStep:
    """The place of an event of the entry's top level."""
    at = trace_event.event.value or trace_event.event.statement
    return CallPathStep(trace_event.path, context.project.position(trace_event.path, at.start), "")


def _unplaced_events(context: Context, program: Program) -> Iterator[_UnplacedEvent]:
    effects = program.effects
    for family, seeds in sorted(effects.seeds.items()):
        yield from (_seed_event(family, "seed", each) for each in seeds)
    for family, seeds in sorted(effects.entropic.items()):
        yield from (_seed_event(family, "entropy", each) for each in seeds)
    for family, draws in sorted(effects.draws.items()):
        seeded = [each.order for each in effects.seeds.get(family, ())]
        yield from _draw_events(program, family, draws, seeded)
    seen: set[str] = set()
    for effect in state_effects(context.project, program):
        if effect.kind in (ACCELERATOR, BACKWARD):
            if effect.kind not in seen:
                seen.add(effect.kind)
                yield _UnplacedEvent(
                    effect.order, "device", effect.kind, "", _call_text(effect.trace_event), None, effect.trace_event
                )
        else:
            yield _flag_event(effect)
    work = first_accelerator_computation(context.project, program)
    if work is not None:
        yield _UnplacedEvent(work[0], "device", "work", "", _call_text(work[1]), None, work[1])
    yield from _operation_events(context, program)


def _seed_event(family: str, kind: str, seed: Seed) -> _UnplacedEvent:
    return _UnplacedEvent(
        seed.order,
        _LANE_OF.get(family, family),
        kind,
        family,
        _call_text(seed.trace_event, seed.label),
        None,
        seed.trace_event,
    )


def _draw_events(program: Program, family: str, draws: Iterable[Draw], seeded: list[int]) -> Iterator[_UnplacedEvent]:
    """One event for all draws that one statement of the entry file leads to, up to the next seed."""
    groups: dict[tuple[Statement, int], list[Draw]] = {}
    for draw in draws:
        statement = entry_statement(program.entry, draw.trace_event)
        groups.setdefault((statement, sum(order < draw.order for order in seeded)), []).append(draw)
    for first, *more in groups.values():
        lane = _LANE_OF.get(family, family)
        yield _UnplacedEvent(first.order, lane, "draw", family, first.label, None, first.trace_event, 1 + len(more))


def _flag_event(effect: StateEffect) -> _UnplacedEvent:
    lane = "variables" if effect.kind == VARIABLE_EFFECT else "flags"
    name = FLAG_WORDS.get(effect.what, effect.what)
    if effect.value is None and lane == "variables":
        return _UnplacedEvent(effect.order, lane, "remove", effect.what, f"{name} removed", None, effect.trace_event)
    value = None if effect.value is UNKNOWN_VALUE else str(effect.value)
    shown = describe(effect.expression) if value is None and effect.expression is not None else value or "?"
    return _UnplacedEvent(effect.order, lane, "set", effect.what, f"{name} = {shown}", value, effect.trace_event)


def _operation_events(context: Context, program: Program) -> Iterator[_UnplacedEvent]:
    """The first event of each operation that deterministic mode affects."""
    seen: set[str] = set()
    for each in (*operations_needing_mode(context, program), *operations_raising(context, program)):
        if each.row.operation not in seen:
            seen.add(each.row.operation)
            says = (
                "needs deterministic algorithms"
                if each.row.behaviour == "deterministic"
                else "has no deterministic kernel"
            )
            text = f"{each.label}: the {each.row.phase} {says}"
            yield _UnplacedEvent(each.order, "flags", "operation", each.label, text, None, each.trace_event)


def _call_text(trace_event: TraceEvent, label: str = "") -> str:
    """A call in a few words: the callee, and its only argument if that is short."""
    call = trace_event.event.value
    if not isinstance(call, Call):
        return label or "..."
    plain: list[Expression] = [arg.value for arg in call.args if not arg.star]
    inside = describe(plain[0]) if len(call.args) == 1 and plain else "..." if call.args else ""
    return f"{label or describe(call.func)}({inside})"


def _timeline_event(context: Context, raw: _UnplacedEvent, diagnostics: TimelineDiagnostics) -> TimelineEvent:
    trace_event = raw.trace_event
    at = trace_event.event.value if trace_event.event.value is not None else trace_event.event.statement
    place = context.project.position(trace_event.path, at.start)
    way = call_path(context.project, trace_event, "")[:-1]
    trouble = diagnostics.of(raw.lane, raw.kind, raw.what, raw.order)
    return TimelineEvent(
        raw.lane, raw.kind, raw.what, raw.text, raw.value, tuple(_conditions(trace_event)), trace_event.path, place,
        raw.times, way, trouble,
    )  # fmt: skip


def _conditions(trace_event: TraceEvent) -> Iterator[str]:
    for guard in guards(trace_event):
        if guard.kind in ("if", "else") and not is_main_test(guard.value):
            yield f"{'if' if guard.kind == 'if' else 'unless'} {describe(guard.value)}"


def _lane_state(diagnostics: TimelineDiagnostics, key: str, moments: tuple[TimelineEvent, ...]) -> str:
    kinds = {moment.kind for moment in moments if moment.lane == key}
    if not kinds:
        return "untouched"
    return diagnostics.state(key) if key in ("torch", "numpy", "python", "own") else "touched"
