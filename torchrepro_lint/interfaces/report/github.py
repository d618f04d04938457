"""The format ``github``: workflow commands of GitHub Actions, which show diagnostics as annotations of changed files."""

from __future__ import annotations

from collections.abc import Iterable

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.view import View, relative
from torchrepro_lint.source.errors import escape_control_characters, escape_surrogates

_COMMANDS = {"note": "notice", "warning": "warning", "error": "error"}


def render(diagnostics: Iterable[Diagnostic], view: View) -> str:
    """A workflow command for each diagnostic; the message repeats the place, since the log shows only the message.

    In a notebook the line is that of the JSON file, as GitHub counts; the message has cell and line.
    """
    return "".join(_annotation(one, view.base) for one in diagnostics)


def _annotation(one: Diagnostic, base: str) -> str:
    name = relative(one.filename, base)
    row = one.lines.file_row(one.span.start)
    properties = {"title": f"torchrepro-lint {one.code} ({one.name})", "file": name, "line": row}
    if not one.start.cell:
        # Columns are allowed only for a range within one line.
        properties["endLine"] = one.end.row
        if one.end.row == row:
            properties |= {"col": one.start.column, "endColumn": one.end.column}
    written = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{_COMMANDS[one.severity]} {written}::{_data(f'{name}:{one.start}: {one.code} {escape_surrogates(one.message)}')}\n"


def _data(text: str) -> str:
    return escape_control_characters(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
