"""The objects of ``json``, one on each line, for readers that take them as they come."""

from __future__ import annotations

import json
from collections.abc import Iterable

from torchrepro_lint.diagnostic import Diagnostic
from torchrepro_lint.report.json import records
from torchrepro_lint.report.view import View


def render(diagnostics: Iterable[Diagnostic], _view: View) -> str:
    """A line of JSON for each finding."""
    return "".join(json.dumps(record, sort_keys=True) + "\n" for record in records(diagnostics))
