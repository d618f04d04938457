"""The timeline of a run: what touches which generator, flag, variable and device, in order, and what is missing.

Records only: they know nothing of how they are printed. ``moments`` makes them.

What is wrong with the moments of a run, and what is missing from it: the rules in a few words each.

From a program to its timeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.conditions import OPEN
from torchrepro_lint.catalogue.rows import FAMILIES, NOT_NEEDED_SINCE, VALUES, VARIABLE
from torchrepro_lint.dataflow.constants import spoken
from torchrepro_lint.domain.determinism_mode import enables, first_work, set_in
from torchrepro_lint.domain.flag_effects import ACCELERATOR, BACKWARD, VARIABLE_TOUCH
from torchrepro_lint.domain.flags import (
    CUDNN_BENCHMARK,
    CUDNN_DETERMINISTIC,
    DETERMINISTIC,
    FLAG_WORDS,
    MAX_AUTOTUNE,
    WARN,
    is_off,
)
from torchrepro_lint.domain.operations.reached import device_of, is_convolution, on_request, raising
from torchrepro_lint.source.files import release
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.control_flow import is_main_test
from torchrepro_lint.syntax.nodes import Call, Expression
from torchrepro_lint.trace.contexts import Step, entry_statement, steps_to
from torchrepro_lint.trace.trace import guards

if TYPE_CHECKING:
    from torchrepro_lint.domain.flag_effects import Touch
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.domain.rng.effects import Draw, Seed
    from torchrepro_lint.trace.trace import Happening


# The lanes, from left to right: the generators, then what decides how torch computes.
LANES = (
    ("torch", "torch's generators"),
    ("numpy", "NumPy's global generator"),
    ("python", "Python's global generator"),
    ("own", "generators of their own"),
    ("flags", "torch's flags"),
    ("variables", "environment variables"),
    ("device", "the device"),
)

# What may happen in a lane. A draw of many stands for those that the same statement of the entry file leads to.
KINDS = ("seed", "entropy", "draw", "set", "remove", "operation", "accelerator", "work", "backward")


class Trouble(NamedTuple):
    """What is wrong with a moment, or missing from the run, in a few words; ``code`` is the rule that speaks of it."""

    lane: str
    code: str
    text: str


class Moment(NamedTuple):
    """One thing that happens in a run.

    ``kind`` is one of ``KINDS``; ``what`` names the family, flag or variable, the operation for ``operation``. ``value``
    is what a flag or variable is set to, as text, None where it is removed or not a constant. ``conditions`` are the tests
    on the way, ``if args.seed is not None``. ``times`` is how many draws this one stands for. ``way`` leads from the entry
    point to the place, which it does not repeat.
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
    way: tuple[Step, ...]
    trouble: Trouble | None


class Lane(NamedTuple):
    """A lane and what came of it: ``untouched``, ``seeded``, ``late`` (drawn from first), ``unseeded``, ``entropy``,
    ``unknown`` (a call that is not followed may seed it); ``touched`` for what is no generator.
    """

    key: str
    title: str
    state: str


class Timeline(NamedTuple):
    """A run: where it starts (``function`` where that is a command and not the module), for which torch and device."""

    path: str
    function: str | None
    torch: str
    device: str
    lanes: tuple[Lane, ...]
    moments: tuple[Moment, ...]
    missing: tuple[Trouble, ...]


_CODES = {"torch": "TRL101", "numpy": "TRL102", "python": "TRL103"}
_OVERRULES_TIMING_SINCE = (2, 10)


class Troubles:
    """Asked of one program."""

    def __init__(self, context: Context, program: Program) -> None:
        self._context = context
        self._program = program
        project, self._effects = context.project, program.effects
        self._enabled = enables(project, program)
        self._cudnn = self._enabled or enables(project, program, CUDNN_DETERMINISTIC)
        self._torch = release(context.catalogue.version)
        self._work = first_work(project, program)
        self._on_cuda = device_of(context, program) == "cuda"

    def of(self, lane: str, kind: str, what: str, order: int, happening: Happening) -> Trouble | None:
        """What is wrong with something that happens; None where nothing is."""
        found = ("", "")
        if kind == "draw":
            found = self._draw(what, order)
        elif kind == "entropy":
            found = ("TRL105", "a new seed in each run")
        elif kind == "operation":
            found = self._operation(happening)
        elif kind == "set":
            found = self._set(what, order)
        return Trouble(lane, *found) if found[0] else None

    def state(self, family: str) -> str:
        """What became of a generator; see ``Lane``."""
        effects = self._effects
        draws, seeds = effects.draws.get(family, ()), effects.seeds.get(family, ())
        if family == "own":
            return "unseeded" if draws else "seeded"
        if not seeds and family in effects.entropic:
            return "entropy"
        if not seeds:
            return "unknown" if effects.unknown_seeder else "unseeded"
        return "late" if draws and draws[0].order < seeds[0].order else "seeded"

    def missing(self) -> Iterator[Trouble]:
        """What the run lacks as a whole."""
        for family in FAMILIES:
            if family.key in self._effects.draws and self.state(family.key) == "unseeded":
                yield Trouble(family.key, _CODES[family.key], f"nothing seeds {family.owner}: {family.seeder}")
        waiting = set() if self._enabled else set(self._waiting())
        if waiting:
            who = "1 operation waits" if len(waiting) == 1 else f"{len(waiting)} operations wait"
            yield Trouble("flags", "TRL203", f"{who} for torch.use_deterministic_algorithms(True)")
        if self._needs_workspace() and not any(self._workspaces()):
            yield Trouble("variables", "TRL205", f'os.environ["{VARIABLE}"] = ":4096:8" before work on CUDA')

    def _draw(self, family: str, order: int) -> tuple[str, str]:
        effects = self._effects
        if family not in _CODES or effects.unknown_seeder:
            return ("TRL106", "starts from entropy") if family == "own" else ("", "")
        seeds = effects.seeds.get(family, ())
        if not seeds:
            return ("", "") if family in effects.entropic else (_CODES[family], "never seeded")
        return ("TRL104", "before it is seeded") if order < seeds[0].order else ("", "")

    def _operation(self, happening: Happening) -> tuple[str, str]:
        rows = {id(each.happening): each.row for each in on_request(self._context, self._program)}
        row = rows.get(id(happening))
        if row is None:
            return (
                "TRL402",
                "deterministic mode would stop here" if not self._enabled else "deterministic mode stops here",
            )
        if self._enabled or (self._cudnn and is_convolution(row)):
            return "", ""
        return "TRL203", "nothing asks for it"

    def _set(self, what: str, order: int) -> tuple[str, str]:
        values = [each.value for each in set_in(self._context.project, self._program, what) if each.order == order]
        value = values[0] if values else OPEN
        if value is OPEN:
            return "", ""
        if what == CUDNN_BENCHMARK and not is_off(value):
            return "TRL201", "picks algorithms by timing them"
        if what == CUDNN_DETERMINISTIC and is_off(value) and not self._enabled:
            return "TRL202", "allows nondeterministic convolutions"
        if what == DETERMINISTIC and (is_off(value) or value == WARN):
            return "TRL204", "off" if is_off(value) else "only warns"
        if (
            what == MAX_AUTOTUNE
            and not is_off(value)
            and not (self._enabled and self._torch >= _OVERRULES_TIMING_SINCE)
        ):
            return "TRL206", "picks kernels by timing them"
        if what == VARIABLE and self._needs_workspace():
            if value not in VALUES:
                return "TRL205", "not a value that torch accepts"
            if self._work is not None and self._work[0] < order:
                return "TRL205", "after work on CUDA has begun"
        return "", ""

    def _needs_workspace(self) -> bool:
        return self._enabled and self._on_cuda and self._torch < NOT_NEEDED_SINCE

    def _workspaces(self) -> Iterator[bool]:
        for touch in set_in(self._context.project, self._program, VARIABLE):
            yield touch.value is not None

    def _waiting(self) -> Iterator[str]:
        for each in on_request(self._context, self._program):
            if not (self._cudnn and is_convolution(each.row)):
                yield each.row.operation


# Seeding the devices only stands in the lane of torch, too.
_LANE_OF = {"torch-cuda": "torch", "environment": "own"}
# What comes first where one call does several things.
_RANKS = ("set", "remove", "seed", "entropy", "accelerator", "operation", "draw", "work", "backward")


class _Raw(NamedTuple):
    """A moment before it is placed."""

    order: int
    lane: str
    kind: str
    what: str
    text: str
    value: str | None
    happening: Happening
    times: int = 1


def timeline(context: Context, program: Program) -> Timeline:
    """The timeline of a program; ``context`` is that of its file."""
    raw = sorted(_raw(context, program), key=lambda each: (each.order, _RANKS.index(each.kind), each.what))
    troubles = Troubles(context, program)
    moments = tuple(_moment(context, each, troubles) for each in raw)
    lanes = tuple(Lane(key, title, _state(troubles, key, moments)) for key, title in LANES)
    entry, device = program.entry, device_of(context, program)
    return Timeline(
        entry.path, entry.function, context.catalogue.version, device, lanes, moments, tuple(troubles.missing())
    )


def _raw(context: Context, program: Program) -> Iterator[_Raw]:
    effects = program.effects
    for family, seeds in sorted(effects.seeds.items()):
        yield from (_seed(family, "seed", each) for each in seeds)
    for family, seeds in sorted(effects.entropic.items()):
        yield from (_seed(family, "entropy", each) for each in seeds)
    for family, draws in sorted(effects.draws.items()):
        seeded = [each.order for each in effects.seeds.get(family, ())]
        yield from _draws(program, family, draws, seeded)
    seen: set[str] = set()
    for touch in context.project.switching(program):
        if touch.kind in (ACCELERATOR, BACKWARD):
            if touch.kind not in seen:
                seen.add(touch.kind)
                yield _Raw(touch.order, "device", touch.kind, "", _called(touch.happening), None, touch.happening)
        else:
            yield _set(touch)
    work = first_work(context.project, program)
    if work is not None:
        yield _Raw(work[0], "device", "work", "", _called(work[1]), None, work[1])
    yield from _operations(context, program)


def _seed(family: str, kind: str, seed: Seed) -> _Raw:
    return _Raw(
        seed.order,
        _LANE_OF.get(family, family),
        kind,
        family,
        _called(seed.happening, seed.label),
        None,
        seed.happening,
    )


def _draws(program: Program, family: str, draws: Iterable[Draw], seeded: list[int]) -> Iterator[_Raw]:
    """One for all draws that one statement of the entry file leads to, as long as nothing seeds between."""
    groups: dict[tuple[int, int], list[Draw]] = {}
    for draw in draws:
        statement = entry_statement(program.entry, draw.happening)
        groups.setdefault((id(statement), sum(order < draw.order for order in seeded)), []).append(draw)
    for first, *more in groups.values():
        lane = _LANE_OF.get(family, family)
        yield _Raw(first.order, lane, "draw", family, first.label, None, first.happening, 1 + len(more))


def _set(touch: Touch) -> _Raw:
    lane = "variables" if touch.kind == VARIABLE_TOUCH else "flags"
    name = FLAG_WORDS.get(touch.what, touch.what)
    if touch.value is None and lane == "variables":
        return _Raw(touch.order, lane, "remove", touch.what, f"{name} removed", None, touch.happening)
    value = None if touch.value is OPEN else str(touch.value)
    shown = spoken(touch.given) if value is None and touch.given is not None else value or "?"
    return _Raw(touch.order, lane, "set", touch.what, f"{name} = {shown}", value, touch.happening)


def _operations(context: Context, program: Program) -> Iterator[_Raw]:
    """The first of each operation that deterministic mode is about."""
    seen: set[str] = set()
    for each in (*on_request(context, program), *raising(context, program)):
        if each.row.operation not in seen:
            seen.add(each.row.operation)
            says = (
                "needs deterministic mode" if each.row.behaviour == "deterministic" else "has no deterministic kernel"
            )
            text = f"{each.label}: its {each.row.phase} {says}"
            yield _Raw(each.order, "flags", "operation", each.label, text, None, each.happening)


def _called(happening: Happening, label: str = "") -> str:
    """A call in a few words: what is called, and its first argument where that is short."""
    call = happening.event.value
    if not isinstance(call, Call):
        return label or "..."
    plain: list[Expression] = [arg.value for arg in call.args if not arg.star]
    inside = spoken(plain[0]) if len(call.args) == 1 and plain else "..." if call.args else ""
    return f"{label or spoken(call.func)}({inside})"


def _moment(context: Context, raw: _Raw, troubles: Troubles) -> Moment:
    happening = raw.happening
    at = happening.event.value if happening.event.value is not None else happening.event.statement
    place = context.project.position(happening.path, at.start)
    way = steps_to(context.project, happening, "")[:-1]
    trouble = troubles.of(raw.lane, raw.kind, raw.what, raw.order, happening)
    return Moment(
        raw.lane, raw.kind, raw.what, raw.text, raw.value, tuple(_conditions(happening)), happening.path, place,
        raw.times, way, trouble,
    )  # fmt: skip


def _conditions(happening: Happening) -> Iterator[str]:
    for guard in guards(happening):
        if guard.kind in ("if", "else") and not is_main_test(guard.value):
            yield f"{'if' if guard.kind == 'if' else 'unless'} {spoken(guard.value)}"


def _state(troubles: Troubles, key: str, moments: tuple[Moment, ...]) -> str:
    kinds = {moment.kind for moment in moments if moment.lane == key}
    if not kinds:
        return "untouched"
    return troubles.state(key) if key in ("torch", "numpy", "python", "own") else "touched"
