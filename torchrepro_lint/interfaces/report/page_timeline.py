"""HTML page, timelines as SVG drawings: a lane for each generator and flag, and a mark for each event."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.domain.timeline import TimelineEvent
from torchrepro_lint.interfaces.overview.controls import STATES, DrawnLane, lanes
from torchrepro_lint.interfaces.overview.records import EntryRecord, Location
from torchrepro_lint.interfaces.report.html_document import counted, html_text

_HEIGHT = 36
_LEFT = 30
# The width of the drawing on a desktop screen, and the least and greatest distance of marks.
_ROOM = 1000
_NEAREST, _FARTHEST = 30, 120
# The greatest width of a character in the small font.
_LETTER = 6.4
_MOST_LETTERS = 34
_SHAPES = {
    "seed": '<circle r="7"/>',
    "entropy": '<circle r="7" class="dashed"/>',
    "draw": '<circle r="6.5" class="hollow"/>',
    "set": '<rect x="-6.5" y="-6.5" width="13" height="13" rx="1.5"/>',
    "remove": '<rect x="-6.5" y="-6.5" width="13" height="13" rx="1.5" class="hollow"/>',
    "operation": '<path d="M0-8 8 6H-8Z"/>',
    "accelerator": '<path d="M-5-7 7 0-5 7Z" class="hollow"/>',
    "work": '<path d="M-5-7 7 0-5 7Z"/>',
    "backward": '<path d="M5-7-7 0 5 7Z"/>',
}
LEGEND = (
    ("seed", "seeds"),
    ("entropy", "seeds anew in each run"),
    ("draw", "draws"),
    ("set", "sets a flag or variable"),
    ("operation", "operation that deterministic mode is about"),
    ("accelerator", "first use of the device"),
    ("work", "first computation on it"),
    ("backward", "first backward pass"),
)
_CROSS = '<path d="M-4-4 4 4M4-4-4 4" class="x"/>'


def timeline(entry: EntryRecord) -> str:
    """The drawing with the names of the lanes beside it; the list below has the same content."""
    drawn = lanes(entry)
    count = len(entry.timeline.moments)
    step = max(_NEAREST, min(_FARTHEST, _ROOM // max(count, 1)))
    width, height = _LEFT * 2 + step * max(count, 4), _HEIGHT * len(drawn)
    names = "".join(map(_name, drawn))
    lines = "".join(_lane(lane, row, step, width) for row, lane in enumerate(drawn))
    title, about = f"{entry.id}-title", f"{entry.id}-about"
    return f"""<div class="timeline">
<div class="lanes">{names}</div>
<div class="scroll" role="region" tabindex="0" aria-label="Timeline of {html_text(entry.name)}">
<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-labelledby="{title} {about}">
<title id="{title}">Timeline of {html_text(entry.name)}</title>
<desc id="{about}">{html_text(_described(entry, drawn))}</desc>
{lines}</svg>
</div>
</div>
"""


def legend() -> str:
    """The legend of the marks."""
    items = "".join(
        f'<li><svg viewBox="-9 -9 18 18" width="18" height="18" aria-hidden="true"><g class="mark">{_SHAPES[kind]}</g></svg> {said}</li>'
        for kind, said in LEGEND
    )
    wrong = f'<li><svg viewBox="-9 -9 18 18" width="18" height="18" aria-hidden="true"><g class="mark wrong">{_CROSS}</g></svg> wrong or missing</li>'
    only = '<li><svg viewBox="-9 -9 18 18" width="18" height="18" aria-hidden="true"><g class="mark only"><rect x="-6.5" y="-6.5" width="13" height="13"/></g></svg> dashed: under a condition</li>'
    return f'<ul class="marks" aria-label="Marks of the timelines">{items}{only}{wrong}</ul>\n'


def _described(entry: EntryRecord, drawn: tuple[DrawnLane, ...]) -> str:
    """The description of the drawing; the list has the details."""
    said = [f"{lane.title}: {lane.says}" for lane in drawn if lane.says]
    missing = [each.text for each in entry.timeline.missing]
    lacks = f" Missing: {'; '.join(missing)}." if missing else ""
    return f"{counted(len(entry.timeline.moments), 'event')} in order. {'. '.join(said)}.{lacks}"


def _name(lane: DrawnLane) -> str:
    state = STATES.get(lane.state)
    sign = f'<span class="m" aria-hidden="true">{state.mark}</span>' if state else ""
    says = f'<small class="t {lane.state}">{sign} {html_text(lane.says)}</small>' if state else ""
    return f"<div><b>{lane.title}</b>{says}</div>"


def _lane(lane: DrawnLane, row: int, step: int, width: int) -> str:
    middle = row * _HEIGHT + _HEIGHT // 2
    lines = "".join(_lines(lane, step, width))
    ghost = ""
    if lane.missing:
        title = f"<title>Missing: {html_text(lane.missing)}</title>"
        ghost = f'<g class="mark wrong" transform="translate({_LEFT // 2} 0)">{title}<circle r="8" class="dashed"/>{_CROSS}</g>'
    marks = "".join(_marks(lane, step, width))
    # Left of the drawing: visible in print only, where the drawing shrinks and the names beside it would not.
    name = f'<text class="name" x="-12" y="5">{lane.title}</text>'
    return f'<g transform="translate(0 {middle})">{name}{lines}{ghost}{marks}</g>\n'


def _lines(lane: DrawnLane, step: int, width: int) -> Iterator[str]:
    """The line of a lane: plain up to the event that seeds or sets it, coloured from there."""
    kinds = ("seed", "set") if lane.state else ()
    settled = [number for number, each in lane.moments if each.kind in kinds and not each.trouble]
    drawn = any(each.kind == "draw" for _, each in lane.moments)
    if not settled:
        kind = " wrong" if lane.missing or (lane.generates and drawn and lane.state == "bad") else ""
        yield f'<path class="line{kind}" d="M0 0H{width}"/>'
        return
    at = _x(settled[0], step)
    yield f'<path class="line" d="M0 0H{at}"/><path class="line fixed" d="M{at} 0H{width}"/>'


def _marks(lane: DrawnLane, step: int, width: int) -> Iterator[str]:
    places = [_x(number, step) for number, _ in lane.moments] + [width]
    for index, (number, moment) in enumerate(lane.moments):
        wrong = " wrong" if moment.trouble else ""
        only = " only" if moment.conditions else ""
        ghost = " also" if lane.key == "cuda" and moment.what == "torch" else ""
        title = f"<title>{html_text(_told(number, lane, moment))}</title>"
        cross = f'<g transform="translate(9 -9)">{_CROSS}</g>' if moment.trouble else ""
        label = _label(moment, places[index + 1] - places[index] - 18) if not ghost else ""
        yield (
            f'<g class="mark {moment.kind}{wrong}{only}{ghost}" data-m="{number + 1}" transform="translate({places[index]} 0)">'
            f"{title}{_SHAPES[moment.kind]}{cross}{label}</g>"
        )


def _x(number: int, step: int) -> int:
    return _LEFT + number * step + step // 2


def _label(moment: TimelineEvent, room: float) -> str:
    """The text of an event, cut to the room before the next mark."""
    times = f" \u00d7{moment.times}" if moment.times > 1 else ""
    most = min(int((room - 14) / _LETTER), _MOST_LETTERS)
    if most < 6:
        return ""
    text = moment.text + times
    if len(text) > most:
        text = _last_name(moment.text) + times
    return f'<text x="{19 if moment.trouble else 11}" y="-6">{html_text(text if len(text) <= most else text[: most - 1] + "…")}</text>'


def _last_name(text: str) -> str:
    """``manual_seed(0)`` of ``torch.manual_seed(0)``."""
    name, bracket, rest = text.partition("(")
    return name.rpartition(".")[2] + bracket + rest


def _told(number: int, lane: DrawnLane, moment: TimelineEvent) -> str:
    place = Location(moment.path, *moment.place)
    wrong = f": {moment.trouble.text} ({moment.trouble.code})" if moment.trouble else ""
    only = f", {' and '.join(dict.fromkeys(moment.conditions))}" if moment.conditions else ""
    return f"{number + 1}. {lane.title}: {moment.text}{only} ({place}){wrong}"
