"""The format ``json-lines``: the objects of ``json``, one on each line, for streaming readers."""

from __future__ import annotations

from collections.abc import Iterable

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.json import dumps, records
from torchrepro_lint.interfaces.report.view import View


def render(diagnostics: Iterable[Diagnostic], _view: View) -> str:
    """A line of JSON for each diagnostic."""
    return "".join(dumps(record, indent=None) for record in records(diagnostics))
