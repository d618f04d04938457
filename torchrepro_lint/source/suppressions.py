"""Suppression comments: flake8's ``# noqa`` and our own ``# torchrepro: ignore[...]``."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchrepro_lint.source.files import MAX_ANALYSED_CHARACTERS
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Lines, Span

_ANY = lazy_pattern(r"# noqa|#\s*flake8[:=]\s*noqa|#\s*torchrepro:", re.IGNORECASE)
# What flake8 7 searches for in a line: one space, any case, codes after a colon and at most one space. It does not ask
# whether the match stands in a comment, so neither do we.
_NOQA = lazy_pattern(r"# noqa(?::\s?(?P<codes>(?:[A-Z]+[0-9]+(?:[,\s]+)?)+))?", re.IGNORECASE)
_NOQA_FILE = lazy_pattern(
    r"^[^\S\n]*# flake8[:=]\s*noqa(?::\s?(?P<codes>(?:[A-Z]+[0-9]+(?:[, \t]+)?)+))?", re.IGNORECASE | re.MULTILINE
)
_IGNORE = lazy_pattern(r"#\s*torchrepro:\s*ignore(?P<file>-file)?(?![\w-])")
_CODE = lazy_pattern(r"[A-Z]+[0-9]*")
_EVERYWHERE = (0, 1 << 60)
_NOWHERE = (1, 0)
# What stands between the codes of a list, and the codes.
_SEPARATORS = ", \t\r\n\f\v"
CODES = lazy_pattern(r"[^,\s]+")
_LAYOUT = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.NEWLINE})


class Suppression(NamedTuple):
    """A comment that hides findings which start in its rows (both ends included).

    ``codes`` are codes, prefixes of codes or names of rules; ``None`` hides everything. ``span`` is that of its words,
    ``listed`` that of the list of codes. ``comment`` is the whole comment that it stands in: None where flake8 reads
    ``# noqa`` in a string. ``own`` says that it is ours and not flake8's.
    """

    rows: tuple[int, int]
    codes: tuple[str, ...] | None
    span: Span
    listed: Span | None = None
    comment: Span | None = None
    own: bool = False

    @property
    def is_for_file(self) -> bool:
        """Whether it hides findings anywhere in the file."""
        return self.rows == _EVERYWHERE

    @property
    def misplaced(self) -> bool:
        """Whether it is for the whole file but stands behind code, where it hides nothing."""
        return self.rows == _NOWHERE

    def covers(self, row: int, code: str, name: str) -> bool:
        """Whether a finding that starts in ``row`` is hidden."""
        if not self.rows[0] <= row <= self.rows[1]:
            return False
        if self.codes is None:
            return True
        return any(name == item or (_CODE.fullmatch(item) and code.startswith(item)) for item in self.codes)


# The same with codes, behind which a further one can be written.
_LISTED = lazy_pattern(r"# noqa:\s?(?:[A-Z]+[0-9]+[,\s]*)+", re.IGNORECASE)


def noqa_edit(lines: Lines, row: int, codes: Iterable[str]) -> Edit:
    """The edit that adds codes to a ``# noqa`` comment that lists some, else writes one at the end of the row.

    flake8 expects the comment at the end of the logical line: in the last of the ``joined_rows``.
    """
    line, start = lines.line(row), lines.offset(row)
    listed = _LISTED.search(line)
    if listed is not None:
        end = start + len(line[: listed.end()].rstrip(", \t"))
        return Edit(Span(end, end), f",{','.join(codes)}")
    return Edit(Span(start + len(line.rstrip()), start + len(line)), f"  # noqa: {','.join(codes)}")


class _Ignore(NamedTuple):
    """Where in a comment it is said that findings are hidden, in the file or the line, and which."""

    start: int
    stop: int
    file: bool
    codes: str | None
    listed: int


def suppressions(lines: Lines, noqa: bool = True) -> tuple[Suppression, ...]:
    """All suppressions of a file, in the order of their comments; without ``noqa`` those of our own kind. A text that is
    too large to be analysed has none.
    """
    if len(lines.text) > MAX_ANALYSED_CHARACTERS or not _ANY.search(lines.text):
        return ()
    tokens = tuple(_tokens(lines.text))
    ranges = joined_rows(lines, tokens)
    comments = _comments(lines, tokens)
    found = {*(_noqa(lines, ranges, comments) if noqa else ()), *_ignore(tokens, ranges, comments)}
    return tuple(sorted(found, key=lambda one: (one.span, one.rows)))


def _comments(lines: Lines, tokens: Iterable[tokenize.TokenInfo]) -> dict[int, Span]:
    """The comment in each row; it ends where the row does."""
    starts = {token.start[0]: token.start[1] for token in tokens if token.type == tokenize.COMMENT}
    return {
        row: Span(lines.offset(row, column + 1), lines.offset(row) + len(lines.line(row)))
        for row, column in starts.items()
    }


def joined_rows(lines: Lines, tokens: Iterable[tokenize.TokenInfo] | None = None) -> dict[int, tuple[int, int]]:
    """For each row the first and the last row that flake8 reads as one line with it when it looks for ``# noqa``.

    Rows are joined where a string or a backslash continues over them, not where a bracket does. Of a text that is too large
    to be analysed each row is one line.
    """
    found = {row: (row, row) for row in range(1, len(lines) + 1)}
    if len(lines.text) > MAX_ANALYSED_CHARACTERS:
        return found
    first, last = len(lines) + 1, 0
    for token in _tokens(lines.text) if tokens is None else tokens:
        if token.type in (tokenize.ENDMARKER, tokenize.DEDENT):
            continue
        first, last = min(first, token.start[0]), max(last, token.end[0])
        if token.type in (tokenize.NL, tokenize.NEWLINE):
            found.update(dict.fromkeys(range(first, last + 1), (first, last)))
            first, last = len(lines) + 1, 0
    return found


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a text, up to where it stops being Python."""
    plain = re.sub(r"\r\n?", "\n", text)
    try:
        yield from tokenize.generate_tokens(io.StringIO(plain).readline)
    except (
        tokenize.TokenError,
        SyntaxError,
        UnicodeEncodeError,
    ):  # the last from Python 3.12 on: half of a surrogate pair
        return


def _noqa(lines: Lines, ranges: dict[int, tuple[int, int]], comments: dict[int, Span]) -> Iterator[Suppression]:
    for match in _NOQA_FILE.finditer(lines.text):
        yield _flake8s(lines, match, _EVERYWHERE, comments)
    for rows in sorted(set(ranges.values())):
        start = lines.offset(rows[0])
        if found := _NOQA.search(lines.text, start, lines.offset(rows[1] + 1)):
            yield _flake8s(lines, found, rows, comments)


def _flake8s(lines: Lines, match: re.Match[str], rows: tuple[int, int], comments: dict[int, Span]) -> Suppression:
    """A suppression as flake8 writes it; the blanks and commas behind its codes do not belong to it."""
    codes = match["codes"]
    start = match.start() + len(match[0]) - len(match[0].lstrip())
    listed = (
        None if codes is None else Span(match.start("codes"), match.start("codes") + len(codes.rstrip(_SEPARATORS)))
    )
    around = comments.get(lines.position(start).row)
    inside = around is not None and around.start <= start
    end = match.end() if listed is None else listed.end
    return Suppression(rows, _split(codes), Span(start, end), listed, around if inside else None)


def _ignore(
    tokens: tuple[tokenize.TokenInfo, ...], ranges: dict[int, tuple[int, int]], comments: dict[int, Span]
) -> Iterator[Suppression]:
    heading = True
    for token in tokens:
        heading = heading and token.type in _LAYOUT
        if token.type != tokenize.COMMENT:
            continue
        comment = comments[token.start[0]]
        for each in _ignores(token.string):
            rows = ranges[token.start[0]] if not each.file else _EVERYWHERE if heading else _NOWHERE
            place = Span(comment.start + each.start, comment.start + each.stop)
            listed = None if each.codes is None else Span(comment.start + each.listed, place.end - 1)
            yield Suppression(rows, _split(each.codes), place, listed, comment, own=True)


def _ignores(comment: str) -> Iterator[_Ignore]:
    """What our own kind says in a comment. A bracket that is not closed is none; all of them are looked for at once."""
    closed, at = comment.rfind("]"), 0
    while match := _IGNORE.search(comment, at):
        at, codes = match.end(), None
        listed = at + 1
        if at < closed and comment[at] == "[":
            end = comment.index("]", at)
            at, codes = end + 1, comment[listed:end]
        yield _Ignore(match.start(), at, match["file"] is not None, codes, listed)


def _split(codes: str | None) -> tuple[str, ...] | None:
    return None if codes is None else tuple(CODES.findall(codes))
