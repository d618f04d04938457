"""TRL002: the fix that removes a suppression comment, or some codes of its list.

Other parts of the comment stay (``# type: ignore  # noqa: TRL201``), and codes of other tools; a reason goes with its comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.suppressions import CODES, Suppression
from torchrepro_lint.source.text import Edit, Fix, Lines, NoFix, Span, apply_edits

# Where a further part of a comment begins, as "# type: ignore" may behind a reason; "see issue #12" has none.
_PART = lazy_pattern(r"(?<=[ \t])#[ \t]*[A-Za-z!]")
_NOQA = lazy_pattern("# noqa", re.IGNORECASE)
_BLANKS = " \t"


def removal(lines: Lines, comment: Span, wanted: Sequence[tuple[Suppression, frozenset[int] | None]]) -> Fix | NoFix:
    """The fix that takes suppressions out of a comment: some items of their lists, by number, or all of it (None)."""
    row = lines.position(comment.start).row
    text = lines.text[slice(*comment)]
    if row <= 2 and "coding" in text:
        return NoFix("the comment may declare the encoding of the file, too")
    whole = [one.span.end - comment.start for one, items in wanted if items is None and not one.own]
    if any(_NOQA.search(text, end) for end in whole):
        return NoFix("flake8 reads the first # noqa of a line, and the next one would begin to count")
    edits = [edit for one, items in wanted for edit in _cuts(text, comment, one, items)]
    left = apply_edits(text, edits).rstrip(_BLANKS)
    words = " and ".join(dict.fromkeys(_title(lines, one, items) for one, items in wanted))
    return Fix(f"remove {words}", (_edit(lines, comment, left.strip(f"{_BLANKS}#") and left),), safe=True)


def _title(lines: Lines, one: Suppression, items: frozenset[int] | None) -> str:
    if items is None or one.codes is None:
        return lines.text[slice(*one.span)]
    return ", ".join(one.codes[number] for number in sorted(items)) + " from the comment"


def _cuts(text: str, comment: Span, one: Suppression, items: frozenset[int] | None) -> Iterator[Edit]:
    """The edits of a comment's text that remove a suppression, or items of its list with the comma before or behind each."""
    if items is None or one.listed is None:
        start, end = one.span.start - comment.start, one.span.end - comment.start
        further = _PART.search(text, end)
        yield Edit(Span(start, further.start() if further else len(text)), "")
        return
    at = one.listed.start - comment.start
    found = [match.span() for match in CODES.finditer(text, at, one.listed.end - comment.start)]
    left = [number for number in range(len(found)) if number not in items]
    for number in sorted(items):
        start, end = found[number]
        if number < left[0]:
            yield Edit(Span(start, found[number + 1][0]), "")
        else:
            yield Edit(Span(found[number - 1][1], end), "")


def _edit(lines: Lines, comment: Span, left: str) -> Edit:
    """The edit that leaves so much of a comment; where that is nothing, blanks before it go too, and a line of its own."""
    if left:
        return Edit(comment, left)
    row = lines.position(comment.start).row
    start = lines.offset(row)
    code = lines.text[start : comment.start].rstrip(_BLANKS)
    if code:
        return Edit(Span(start + len(code), comment.end), "")
    # A line of PEP 263 counts among the first two: none may come up there.
    keeps_line = row <= 2 and len(lines) > 2 and "coding" in lines.line(3)
    return Edit(Span(start, comment.end if keeps_line else lines.offset(row + 1)), "")
