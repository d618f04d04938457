"""Timelines as text: a column of marks for each lane, and beside it the call path of each event as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint.domain.timeline import Lane, Timeline, TimelineEvent
from torchrepro_lint.interfaces.overview.records import with_shown_texts
from torchrepro_lint.source.errors import escaped_line, escaped_message, escaped_path
from torchrepro_lint.syntax.qualified_names import split_name
from torchrepro_lint.trace.call_paths import CallPathStep

if TYPE_CHECKING:
    _Paint: TypeAlias = Callable[[str, str], str]

_HEADS = {
    "torch": "T",
    "numpy": "N",
    "python": "P",
    "own": "O",
    "flags": "F",
    "variables": "V",
    "device": "D",
}
_MARKS = {
    "seed": "●",
    "entropy": "◌",
    "draw": "○",
    "set": "■",
    "remove": "□",
    "operation": "△",
    "accelerator": "▸",
    "work": "▶",
    "backward": "◀",
}
_LEGEND = (
    ("● seeds", "◌ seeds from entropy", "○ draws", "■ sets", "□ removes", "△ deterministic on request only"),
    ("▸ first use of the device", "▶ first computation on it", "◀ first backward pass", "✗ trouble"),
)
_STATES = {
    "seeded": "seeded",
    "late": "✗ drawn from before seeding",
    "unseeded": "✗ never seeded",
    "entropy": "✗ seeded anew in each run",
    "unknown": "perhaps seeded by a call that is not followed",
    "touched": "touched",
}
_KEPT = "\0"
_LEAST = 24
_RED, _GREEN, _DIM, _BOLD, _PLAIN = "\033[31m", "\033[32m", "\033[2m", "\033[1m", "\033[0m"


def render(timelines: Iterable[Timeline], width: int, colour: bool) -> str:
    """All timelines, no line longer than ``width`` unless a location is."""
    paint = _paint if colour else _leave
    return "\n".join(
        "\n".join(line.rstrip() for line in _lines(one, width, paint)) + "\n"
        for one in (with_shown_texts(each, escaped_path, escaped_message) for each in timelines)
    )


def _paint(text: str, style: str) -> str:
    return f"{style}{text}{_PLAIN}" if text.strip() else text


def _leave(text: str, _style: str) -> str:
    return text


def _lines(timeline: Timeline, width: int, paint: _Paint) -> Iterator[str]:
    lanes = [lane for lane in timeline.lanes if lane.state != "untouched"]
    function = f", {split_name(timeline.function)[2]}" if timeline.function else ""
    yield paint(f"{timeline.path}{function}", _BOLD) + f"  torch {timeline.torch} on {timeline.device.upper()}"
    yield ""
    for lane in lanes:
        state = _STATES[lane.state] if lane.state != "touched" else ""
        style = _RED if state.startswith("✗") else _GREEN
        yield f"{_HEADS[lane.key]} {lane.title}{': ' if state else ''}{paint(state, style)}"
    if not timeline.moments:
        known = "what is followed of this run" if timeline.gaps else "this run"
        yield f"nothing in {known} touches a generator, a flag, a variable or a device"
        yield from _gaps(timeline, width, paint)
        return
    yield ""
    yield from _table(timeline.moments, lanes, width, paint)
    yield ""
    yield from _missing(timeline, width, paint)
    yield from _gaps(timeline, width, paint)
    for row in _LEGEND:
        # A mark stays beside its words.
        text = "  ".join(each.replace(" ", _KEPT) for each in row)
        yield from (paint(line.replace(_KEPT, " "), _DIM) for line in wrap(text, width))


def _table(moments: Sequence[TimelineEvent], lanes: Sequence[Lane], width: int, paint: _Paint) -> Iterator[str]:
    places = [f"{path}:{line}" for moment in moments for path, line in _places(moment)]
    room = min(max(map(len, places)), max(width // 3, 12))
    gutter = " ".join("·" for _ in lanes)
    yield f"{' '.join(_HEADS[lane.key] for lane in lanes)}"
    before: tuple[CallPathStep, ...] = ()
    for moment in moments:
        shared = sum(1 for _ in _shared(before, moment.way))
        for depth, step in enumerate(moment.way[shared:], shared):
            place = f"{step.path}:{step.place.line}"
            yield from _row(
                paint(gutter, _DIM), len(gutter), place, depth, paint(step.text, _DIM), step.text, room, width
            )
        before = moment.way
        yield from _moment(moment, lanes, room, width, paint)


def _places(moment: TimelineEvent) -> Iterator[tuple[str, str]]:
    yield moment.path, moment.place.line
    yield from ((step.path, step.place.line) for step in moment.way)


def _shared(one: Sequence[CallPathStep], other: Sequence[CallPathStep]) -> Iterator[CallPathStep]:
    for left, right in zip(one, other, strict=False):
        if left != right:
            return
        yield left


def _moment(moment: TimelineEvent, lanes: Sequence[Lane], room: int, width: int, paint: _Paint) -> Iterator[str]:
    marks = [_MARKS[moment.kind] if lane.key == moment.lane else "·" for lane in lanes]
    style = _RED if moment.trouble else _GREEN if moment.kind in ("seed", "set") else ""
    gutter = " ".join(paint(mark, style) if mark != "·" and style else paint(mark, _DIM) for mark in marks)
    text = moment.text
    if moment.kind == "draw":
        text += " draws" + (f", and {moment.times - 1} more" if moment.times > 1 else "")
    if moment.conditions:
        text += f"  [{', '.join(dict.fromkeys(moment.conditions[-2:]))}]"
    shown = text
    if moment.trouble:
        trouble = f"  ✗ {moment.trouble.text} ({moment.trouble.code})"
        text, shown = text + trouble, shown + paint(trouble, _RED)
    place = f"{moment.path}:{moment.place.line}"
    yield from _row(gutter, 2 * len(lanes) - 1, place, len(moment.way), shown, text, room, width)


def _row(
    gutter: str, gutter_width: int, place: str, depth: int, shown: str, text: str, room: int, width: int
) -> Iterator[str]:
    """Marks, location, and text indented by depth; text that does not fit is wrapped, without colour."""
    if len(place) > room:
        place = f"…{place[-(room - 1) :]}"
    indent = "  " * min(depth, 8)
    left = gutter_width + 2 + room + 2 + len(indent)
    start = f"{gutter}  {place.rjust(room)}  {indent}"
    if left + len(text) <= width:
        yield start + shown
        return
    room = max(width - left, _LEAST)
    first, *rest = wrap(text, room, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    yield start + first
    yield from (" " * left + escaped_line(line) for line in rest)


def _missing(timeline: Timeline, width: int, paint: _Paint) -> Iterator[str]:
    for trouble in timeline.missing:
        lines = wrap(f"✗ missing: {trouble.text} ({trouble.code})", width, subsequent_indent="  ")
        yield from (paint(escaped_line(line), _RED) for line in lines)
    if timeline.missing:
        yield ""


def _gaps(timeline: Timeline, width: int, paint: _Paint) -> Iterator[str]:
    """The places that lead into code that is not followed, with the line of the entry point's file that leads there."""
    for gap in timeline.gaps:
        start = [step for step in gap.way if step.path == timeline.path][-1:]
        by = f"; {start[0].path}:{start[0].place.line} leads there" if start else ""
        for line in wrap(f"? not followed: {gap.text}{by}", width, subsequent_indent="  ", break_long_words=False):
            yield paint(line, _DIM)
