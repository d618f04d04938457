"""The picture of a terminal in the README: ``docs/images/terminal.svg``, drawn from what the tool prints on ``examples/``.

``python -m tools.docs.picture`` draws it anew. It has a background of its own, so it can be read on a light and on a dark page.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape

from tools.docs import console

PICTURE = console.TOP / "docs" / "images" / "terminal.svg"
COMMANDS = ("torchrepro-lint examples/ --select TRL102,TRL401,TRL402",)
TITLE = "Findings of torchrepro-lint in a terminal, and the fix of one of them"
_SGR = re.compile(r"\x1b\[([\d;]*)m")
_GLYPH, _LINE, _SIZE, _EDGE, _BAR = 8.4, 19, 14, 18, 34
_FONT = "ui-monospace, SFMono-Regular, 'SF Mono', Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', monospace"
_TEXT, _GROUND, _TOP, _PROMPT = "#e6edf3", "#10151c", "#1c232d", "#7ee787"
# Each has a contrast of at least 4.5 to the ground.
_COLOURS = ("#8b949e", "#ff8f87", "#7ee787", "#f2cc60", "#79c0ff", "#d2a8ff", "#76e3ea", "#e6edf3")


class Style(NamedTuple):
    """How a piece of text looks."""

    colour: str = _TEXT
    bold: bool = False
    dim: bool = False


class Piece(NamedTuple):
    """Text of one style in a line, from a column on."""

    column: int
    text: str
    style: Style


def main() -> None:
    """Draw the picture."""
    renew(write=True)


def renew(write: bool) -> list[str]:
    """The picture's name where it is not what the tool prints; it is then drawn anew."""
    after = drawn()
    if PICTURE.is_file() and PICTURE.read_text(encoding="utf-8") == after:
        return []
    if write:
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        PICTURE.write_text(after, encoding="utf-8")
    return [PICTURE.name]


def drawn() -> str:
    """The picture as it should be."""
    with console.scratch() as folder:
        outputs = [console.in_terminal(command, folder, NO_COLOR="") for command in COMMANDS]
    lines: list[list[Piece]] = []
    for command, output in zip(COMMANDS, outputs, strict=True):
        lines += [[Piece(0, "$", Style(_PROMPT, bold=True)), Piece(2, command, Style(bold=True))]]
        lines += [part for line in output.rstrip("\n").split("\n") for part in _wrapped(list(pieces(line)))]
        lines.append([])
    return _svg(lines[:-1])


def pieces(line: str) -> Iterator[Piece]:
    """The pieces of a line with its colours taken out."""
    style, column, start = Style(), 0, 0
    for match in _SGR.finditer(f"{line}\x1b[m"):
        text = line[start : match.start()]
        if text:
            yield Piece(column, text, style)
        column, start = column + _width(text), match.end()
        style = _styled(style, match[1])


def _styled(style: Style, codes: str) -> Style:
    for code in map(int, filter(None, (codes or "0").split(";"))):
        if code == 0:
            style = Style()
        elif code in {1, 2}:
            style = style._replace(bold=code == 1, dim=code == 2)
        elif code % 60 in range(30, 38) and code < 98:
            style = style._replace(colour=_COLOURS[code % 10])
    return style


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _wrapped(line: list[Piece]) -> Iterator[list[Piece]]:
    """A line as a terminal of limited width breaks it."""
    rows: list[list[Piece]] = [[]]
    for piece in line:
        column, text = piece.column, piece.text
        while text:
            row, place = divmod(column, console.COLUMNS)
            rows += [[] for _ in range(row + 1 - len(rows))]
            head, text = text[: console.COLUMNS - place], text[console.COLUMNS - place :]
            rows[row].append(Piece(place, head, piece.style))
            column += len(head)
    yield from rows


def _svg(lines: list[list[Piece]]) -> str:
    width = round(console.COLUMNS * _GLYPH + 2 * _EDGE)
    height = _BAR + len(lines) * _LINE + 2 * _EDGE
    body = "\n".join(
        _piece(piece, _BAR + _EDGE + row * _LINE + _SIZE) for row, line in enumerate(lines) for piece in line
    )
    dots = "".join(f'<circle cx="{20 + 18 * index}" cy="17" r="5.5"/>' for index in range(3))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-labelledby="title">
<title id="title">{TITLE}</title>
<rect width="{width}" height="{height}" rx="9" fill="{_GROUND}"/>
<path d="M0 9a9 9 0 0 1 9-9h{width - 18}a9 9 0 0 1 9 9v{_BAR - 9}H0z" fill="{_TOP}"/>
<g fill="#4b5563">{dots}</g>
<g font-family="{_FONT}" font-size="{_SIZE}">
{body}
</g>
</svg>
"""


def _piece(piece: Piece, baseline: int) -> str:
    """A text of fixed length, so that columns stay in line whichever font is found."""
    text = piece.text.strip(" ").replace(" ", "\N{NO-BREAK SPACE}")  # others are drawn as one
    if not text:
        return ""
    column = piece.column + len(piece.text) - len(piece.text.lstrip(" "))
    weight = ' font-weight="700"' if piece.style.bold else ""
    faint = ' opacity="0.75"' if piece.style.dim else ""
    return (
        f'<text x="{_EDGE + column * _GLYPH:.1f}" y="{baseline}" textLength="{_width(text) * _GLYPH:.1f}" '
        f'lengthAdjust="spacingAndGlyphs" fill="{piece.style.colour}"{weight}{faint}>{escape(text)}</text>'
    )


if __name__ == "__main__":
    main()
