"""What a fix may not do to a file: break it, touch what is outside its edits, or lose a byte of a notebook."""

from __future__ import annotations

import json
import tokenize
from collections.abc import Iterable, Iterator, Mapping

from benchmarks.untouched import compare
from torchrepro_lint.engine.parsed_file import parse_bytes
from torchrepro_lint.engine.writing import FileChange
from torchrepro_lint.source.text import Edit, apply_edits


def wrong_changes(change: FileChange, rounds: Iterable[Mapping[str, tuple[Edit, ...]]], data: bytes) -> Iterator[str]:
    """A line on each thing that is wrong with the change of a file, which was ``data``."""
    path = change.given.display
    try:
        after = change.encoded(data)
    except UnicodeEncodeError:
        return  # is refused when it comes to writing
    notebook = change.before.notebook is not None
    reading = parse_bytes(after, notebook)
    if reading.problems:
        yield f"cannot be read any more: {reading.problems[0].message}"
        return
    if reading.source is None or reading.source.text != change.after.text:
        yield "is read otherwise than it was written"
    if notebook:
        if _frame(data) != _frame(after):
            yield "more than the text of cells has changed"
        return
    text = change.before.text
    for edits in (each[path] for each in rounds if path in each):
        try:
            lost = compare(text, edits).lost
        except (tokenize.TokenError, SyntaxError):
            lost = ()  # Python's tokenizer is stricter than its parser about a few texts
        yield from (f"the token {each.string!r} is lost" for each in lost)
        text = apply_edits(text, edits)
    if text != change.after.text:
        yield "is not what the edits make of it"


def _frame(data: bytes) -> str:
    """A notebook without the texts of its cells."""
    book = json.loads(data.decode("utf-8-sig"))
    sheets = book["worksheets"] if "cells" not in book else [book]
    for sheet in sheets:
        for cell in sheet["cells"]:
            if isinstance(cell, dict):
                cell.pop("source" if "source" in cell else "input", None)
    return json.dumps(book)
