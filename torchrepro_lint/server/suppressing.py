"""The comment that hides a finding at its place."""

from __future__ import annotations

import re

from torchrepro_lint.engine.reading import Reading
from torchrepro_lint.source.suppressions import joined_rows, suppressions
from torchrepro_lint.source.text import Edit, Lines, Span, apply_edits

_CODES = re.compile(r"# noqa:\s?(?:[A-Z]+[0-9]+[,\s]+)*[A-Z]+[0-9]+", re.IGNORECASE)


def suppressing(reading: Reading, offset: int, code: str) -> Edit | None:
    """``# noqa`` with the code behind what starts at an offset, or the code in the comment there; None where neither hides
    it, as in a magic of a notebook.
    """
    lines = reading.lines
    row = lines.position(offset).row
    first, last = joined_rows(lines)[row]
    start, end = lines.offset(first), lines.offset(last) + len(lines.line(last))
    known = _CODES.search(lines.text, start, end)
    if known:
        edit = Edit(Span(known.end(), known.end()), f",{code}")
    else:
        trailing = len(lines.text[start:end]) - len(lines.text[start:end].rstrip())
        edit = Edit(Span(end - trailing, end), f"  # noqa: {code}")
    written = reading.written.text
    if written[start:end] != lines.text[start:end]:
        return None
    after = Lines(apply_edits(lines.text, [edit]))
    return edit if any(one.covers(row, code, "") for one in suppressions(after) if one.span.start >= start) else None
