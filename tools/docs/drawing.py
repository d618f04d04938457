"""Drawings of Mermaid as SVG, for the site: Mermaid itself is a script from elsewhere.

Only what ``tools.architecture`` writes is understood: boxes ``a["title<br><small>text</small>"]`` and arrows ``a --> b``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

_FENCE = re.compile(r"^```mermaid\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_BOX = re.compile(r'^ *(\w+)\["(.+?)<br><small>(.+?)</small>"\]$', re.MULTILINE)
_ARROW = re.compile(r"^ *(\w+) --> (\w+)$", re.MULTILINE)
_WIDTH, _HEIGHT, _GAP = 240, 50, 26


def drawn(page: str) -> str:
    """The page with its drawings as SVG."""
    return _FENCE.sub(lambda match: _svg(match["text"]), page)


def _svg(text: str) -> str:
    boxes = {name: (title, small) for name, title, small in _BOX.findall(text)}
    arrows = _ARROW.findall(text)
    names = dict.fromkeys([*boxes, *(name for arrow in arrows for name in arrow)])
    places = _places(list(names), arrows)
    width = max(x for x, _ in places.values()) + _WIDTH + 2
    height = max(y for _, y in places.values()) + _HEIGHT + 2
    lines = "".join(_arrow(places[first], places[second]) for first, second in arrows)
    cells = "".join(_box(places[name], *boxes.get(name, (name, ""))) for name in names)
    told = "; ".join(f"{first} imports {second}" for first, second in arrows)
    return (
        f'<svg class="drawing" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(told)}"><defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        f'markerHeight="8" orient="auto"><path d="M0 0l8 4-8 4z"/></marker></defs>{lines}{cells}</svg>'
    )


def _places(names: list[str], arrows: list[tuple[str, str]]) -> Mapping[str, tuple[int, int]]:
    """The corner of each box: its row is the longest way to it."""
    rows = dict.fromkeys(names, 0)
    for _ in names:
        for first, second in arrows:
            rows[second] = max(rows[second], rows[first] + 1)
    columns = {name: [each for each in names if rows[each] == rows[name]].index(name) for name in names}
    return {name: (1 + columns[name] * (_WIDTH + _GAP), 1 + rows[name] * (_HEIGHT + _GAP)) for name in names}


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    middle = _WIDTH // 2
    return f'<path d="M{start[0] + middle} {start[1] + _HEIGHT}L{end[0] + middle} {end[1]}" marker-end="url(#tip)"/>'


def _box(place: tuple[int, int], title: str, small: str) -> str:
    x, y = place
    middle = x + _WIDTH // 2
    below = f'<text class="small" x="{middle}" y="{y + 39}">{escape(small)}</text>' if small else ""
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5"/>'
        f'<text x="{middle}" y="{y + (22 if small else 30)}">{escape(title)}</text>{below}'
    )
