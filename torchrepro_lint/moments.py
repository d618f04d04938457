"""From a program to its timeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.catalogue.conditions import OPEN
from torchrepro_lint.dataflow.constants import spoken
from torchrepro_lint.flags import FLAG_WORDS
from torchrepro_lint.reached import device_of, on_request, raising
from torchrepro_lint.syntax.control_flow import is_main_test
from torchrepro_lint.syntax.nodes import Call, Expression
from torchrepro_lint.timeline import LANES, Lane, Moment, Timeline
from torchrepro_lint.touches import ACCELERATOR, BACKWARD, VARIABLE
from torchrepro_lint.trace.contexts import entry_statement, steps_to
from torchrepro_lint.trace.trace import guards
from torchrepro_lint.troubles import Troubles
from torchrepro_lint.work import first_work

if TYPE_CHECKING:
    from torchrepro_lint.context import Context
    from torchrepro_lint.effects import Draw, Seed
    from torchrepro_lint.programs import Program
    from torchrepro_lint.touches import Touch
    from torchrepro_lint.trace.trace import Happening

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
    lane = "variables" if touch.kind == VARIABLE else "flags"
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
