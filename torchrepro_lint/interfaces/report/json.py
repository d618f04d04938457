"""The format ``json``: a list of objects with the keys of Ruff's ``--output-format json``, for tools that read Ruff's."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from torchrepro_lint.checks.pages import url
from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.view import View
from torchrepro_lint.source.suppressions import joined_rows
from torchrepro_lint.source.text import Edit, Fix, Lines, Position


def render(diagnostics: Iterable[Diagnostic], _view: View) -> str:
    """JSON in ASCII, which keeps paths that are not UTF-8 (as lone surrogates)."""
    return dumps(records(diagnostics))


def records(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """An object for each diagnostic."""
    rows: dict[Lines, dict[int, tuple[int, int]]] = {}
    objects = []
    for one in diagnostics:
        joined = rows.get(one.lines) or rows.setdefault(one.lines, joined_rows(one.lines))
        row = one.lines.position(one.span.start).row
        objects.append(_finding(one, one.start.row + joined[row][1] - row))
    return objects


def dumps(value: object, *, ordered: bool = True, indent: int | None = 2) -> str:
    """Serialise any JSON that the tool prints: in ASCII, and without workflow commands of GitHub."""
    return json.dumps(value, indent=indent, sort_keys=ordered).replace("##[", "#\\u0023[") + "\n"


def _finding(one: Diagnostic, noqa_row: int) -> dict[str, Any]:
    """A diagnostic with Ruff's keys, and two that Ruff does not have, each only where there is something to say:
    ``steps``, the call path, and ``unfixed``, why there is no fix.
    """
    finding: dict[str, Any] = {
        "cell": one.start.cell or None,
        "code": one.code,
        "end_location": _place(one.end),
        "filename": one.filename,
        "fix": _fix(one, one.fix) if one.fix else None,
        "location": _place(one.start),
        "message": one.message,
        "name": one.name,
        "noqa_row": noqa_row,
        "severity": one.severity,
        "url": url(one.code, one.name),
    }
    if one.unfixed:
        finding["unfixed"] = one.unfixed
    if one.steps:
        finding["steps"] = [
            {"filename": step.path, "location": _place(step.place), "message": step.text, **_cell(step.place)}
            for step in one.steps
        ]
    return finding


def _fix(one: Diagnostic, fix: Fix) -> dict[str, Any]:
    """A fix with Ruff's keys; an edit of another file has that file's ``filename``."""
    edits = [
        {**_edit(edit, file.lines), **({"filename": file.filename} if file.path else {})}
        for file in one.edits()
        for edit in file.edits
    ]
    return {"applicability": "safe" if fix.safe else "unsafe", "edits": edits, "message": fix.title}


def _edit(edit: Edit, lines: Lines) -> dict[str, Any]:
    end, start = lines.place(edit.span.end), lines.place(edit.span.start)
    return {"content": edit.text, "end_location": _place(end), "location": _place(start), **_cell(start)}


def _place(position: Position) -> dict[str, int]:
    return {"column": position.column, "row": position.row}


def _cell(position: Position) -> dict[str, int]:
    return {"cell": position.cell} if position.cell else {}
