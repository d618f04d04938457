"""Spans, line index and edits of a text: offsets to rows and columns, which fixes fit together, and where an offset lies after them.

Also here: messages, which know the places that they name, so that each report can show those paths in its own way; and Python's own
parser without the warnings that it gives about the code it reads.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from torchrepro_lint.source.patterns import lazy_pattern

# The line ends of the Python tokenizer: a form feed or U+2028 does not end a line.
_NEWLINE = lazy_pattern(r"\r\n|\r|\n")


class Span(NamedTuple):
    """A half-open range of character offsets, counted in code points from the start of a file."""

    start: int
    end: int


class Position(NamedTuple):
    """A position for people: row and column start at 1, columns count code points.

    In a notebook the row is that of a ``cell``, which is its number among all cells, from 1; elsewhere it is 0.
    """

    row: int
    column: int
    cell: int = 0

    @property
    def line(self) -> str:
        """``12``, in a notebook ``cell 3:12``."""
        return f"cell {self.cell}:{self.row}" if self.cell else str(self.row)

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class Cell(NamedTuple):
    """A code cell of a notebook: its number among all cells, from 1, and its span in the program.

    ``rows`` are the rows of the file in which its lines begin; empty where they are not known, after a fix.
    """

    number: int
    start: int
    end: int
    rows: tuple[int, ...] = ()


class Edit(NamedTuple):
    """Replace the text of a span; an empty span inserts."""

    span: Span
    text: str


class Fix(NamedTuple):
    """Edits that belong together: all of them are applied, or none.

    ``edits`` are of the file of the finding, ``elsewhere`` those of other files, by path from the project's root.
    ``safe`` says that they keep the meaning of the program. A fix that ``takes_seed`` writes the seed of the program, and
    so waits for those that ``seeds`` a program.
    """

    title: str
    edits: tuple[Edit, ...]
    safe: bool
    elsewhere: tuple[tuple[str, tuple[Edit, ...]], ...] = ()
    seeds: bool = False
    takes_seed: bool = False


class NoFix(NamedTuple):
    """Why a finding has no fix: one plain sentence, which begins with a small letter and has no full stop."""

    reason: str


class Lines:
    """The line index of a text, built on demand: most files have nothing to report.

    ``cells`` are those of a notebook, in order, whose program the text is.
    """

    def __init__(self, text: str, cells: tuple[Cell, ...] = ()) -> None:
        self.text = text
        self.cells = cells

    @cached_property
    def longest(self) -> int:
        """The length of the longest line, in characters."""
        return max(map(len, self.text.splitlines()), default=0)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    def position(self, offset: int) -> Position:
        """The position of an offset in the program; the end of the text is a valid offset."""
        row = bisect_right(self._starts, offset)
        return Position(row, offset - self._starts[row - 1] + 1)

    def place(self, offset: int) -> Position:
        """The position of an offset for people: in a notebook, rows count from the start of the cell."""
        row, column, _ = self.position(offset)
        cell = self.cell(offset)
        return Position(row - self.position(cell.start).row + 1, column, cell.number) if cell else Position(row, column)

    def cell(self, offset: int) -> Cell | None:
        """The cell of a notebook that an offset lies in or before."""
        at = bisect_left(self.cells, offset, key=lambda cell: cell.end)
        return self.cells[min(at, len(self.cells) - 1)] if self.cells else None

    def file_row(self, offset: int) -> int:
        """The row in the file itself; 1 where a notebook's rows are unknown."""
        cell = self.cell(offset)
        if cell is None:
            return self.position(offset).row
        row = self.place(offset).row
        return cell.rows[row - 1] if 0 < row <= len(cell.rows) else 1

    def offset(self, row: int, column: int = 1) -> int:
        """The offset of a row and column; rows beyond the end give the end of the text."""
        if row > len(self._starts):
            return len(self.text)
        return min(self._starts[row - 1] + column - 1, len(self.text))

    def start_of_line(self, offset: int) -> int:
        """The offset at which the line of ``offset`` starts."""
        return self._starts[bisect_right(self._starts, offset) - 1]

    def line(self, row: int) -> str:
        """The text of a line (from 1) without its line end."""
        start = self._starts[row - 1]
        end = self._starts[row] if row < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def __len__(self) -> int:
        return len(self._starts)


@lru_cache(maxsize=2)
def lines_of(text: str) -> Lines:
    """The line index of a text that is no notebook, cached: the fixes of a file ask for it one after the other."""
    return Lines(text)


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made; they must not overlap."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits):
        parts += (text[at : edit.span.start], edit.text)
        at = edit.span.end
    parts.append(text[at:])
    return "".join(parts)


class Merged(NamedTuple):
    """The edits of compatible fixes, by path in order, and the indices of these fixes among the given ones."""

    edits: dict[str, tuple[Edit, ...]]
    taken: tuple[int, ...]


def merge(fixes: Iterable[tuple[str, Fix]]) -> Merged:
    """Merge fixes, each with the path of its finding, in the order of their first edits; skip those that overlap an earlier one.

    An edit that an earlier fix makes, too (an import that both need), is made once. A skipped fix is left for the next round.
    """
    given = list(fixes)
    edits: dict[str, dict[Edit, None]] = {}
    taken: list[int] = []
    for number in sorted(range(len(given)), key=lambda each: (_by_path(*given[each]), given[each][1].title)):
        wanted = _by_path(*given[number])
        fresh = [(path, edit) for path, own in wanted for edit in own if edit not in edits.get(path, ())]
        if any(_clash(edit.span, other.span) for path, edit in fresh for other in edits.get(path, ())):
            continue
        for path, edit in fresh:
            edits.setdefault(path, {})[edit] = None
        taken.append(number)
    return Merged({path: tuple(sorted(edits[path])) for path in sorted(edits)}, tuple(taken))


def changed_files(path: str, fix: Fix) -> tuple[str, ...]:
    """The files that a fix changes, in order; ``path`` is that of its finding."""
    return tuple(each for each, _ in _by_path(path, fix))


def join_insertions(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Sorted edits, with the insertions at one offset joined in their given order."""
    merged: dict[Span, str] = {}
    for edit in edits:
        merged[edit.span] = merged.get(edit.span, "") + edit.text
    return tuple(Edit(place, merged[place]) for place in sorted(merged))


def map_offset(offset: int, edits: Iterable[Edit]) -> tuple[int, int]:
    """An offset after edits: before and after what is inserted at that very offset."""
    before = behind = offset
    for edit in edits:
        growth = len(edit.text) - (edit.span.end - edit.span.start)
        if edit.span.end < offset:
            before, behind = before + growth, behind + growth
        elif edit.span.end == offset:
            behind += growth
            before += growth if edit.span.start < offset else 0
    return before, behind


def _by_path(path: str, fix: Fix) -> list[tuple[str, tuple[Edit, ...]]]:
    own: Mapping[str, tuple[Edit, ...]] = {path: fix.edits} if fix.edits else {}
    return sorted((each, tuple(sorted(edits))) for each, edits in {**dict(fix.elsewhere), **own}.items())


def _clash(one: Span, other: Span) -> bool:
    """Whether two edits touch: overlapping ranges, or two insertions at one place."""
    if one.start == one.end or other.start == other.end:
        return one.start <= other.end and other.start <= one.end
    return one.start < other.end and other.start < one.end


# For a syntax error; a NUL, a lone surrogate or an integer of too many digits; too deep nesting. (libcst is asked then.)
PARSER_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)


# The file name in warnings about parsed code. One filter on it stays in place: `warnings.catch_warnings` would change the
# whole process for a while, and lose warnings of other threads.
_NAME = "<torchrepro-lint reads>"


def parse(text: str, mode: str = "exec") -> Any:
    """The tree of a module, or of an expression with the mode ``eval``. Raises one of ``PARSER_ERRORS``."""
    import ast  # a recalled run parses nothing

    if not _is_filter_first():
        warnings.filterwarnings("ignore", module=_NAME)
    return ast.parse(text, _NAME, mode)


def literal(raw: str) -> Any:
    """The value of a literal; None where this Python refuses it (an integer of 10,000 digits, ``0777``)."""
    import ast

    try:
        return ast.literal_eval(parse(raw, "eval"))
    except PARSER_ERRORS:
        return None


def _is_filter_first() -> bool:
    """Whether the filter is in place, before all others: other code may reset the filters."""
    first = warnings.filters[0] if warnings.filters else None
    return first is not None and first[3] is not None and getattr(first[3], "pattern", "") == _NAME


class Reference(NamedTuple):
    """A line of a file: its path from the project's root, and ``12``, in a notebook ``cell 3:12``. No line stands for the file."""

    path: str
    line: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


class Message(str):
    """A text in parts, some of which are references. As a string it has their paths from the project's root.

    It is made of strings, references and other messages. An f-string of a message is a plain string: it lost the references.
    """

    __slots__ = ("parts",)
    parts: tuple[str | Reference, ...]

    def __new__(cls, *parts: str | Reference) -> Message:  # noqa: PYI034  typing has Self from Python 3.11 on
        flat = tuple(_flattened(parts))
        made = super().__new__(cls, "".join(map(str, flat)))
        made.parts = flat
        return made

    def __getnewargs__(self) -> tuple[str | Reference, ...]:  # type: ignore[override]  # what __new__ takes
        return self.parts


def with_paths(text: str, display: Callable[[str], str]) -> str:
    """A text as a report shows it: ``display`` gives the path to show for one from the project's root."""
    if not isinstance(text, Message):
        return text
    return "".join(
        str(part._replace(path=display(part.path))) if isinstance(part, Reference) else part for part in text.parts
    )


def _flattened(parts: Iterable[str | Reference]) -> Iterator[str | Reference]:
    for part in parts:
        if isinstance(part, Message):
            yield from part.parts
        elif part:
            yield part
