"""The format ``gitlab``: code quality report, https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.fingerprints import fingerprints
from torchrepro_lint.interfaces.report.json import dumps
from torchrepro_lint.interfaces.report.view import View, relative

_SEVERITIES = {"note": "info", "warning": "minor", "error": "major"}


def render(diagnostics: Sequence[Diagnostic], view: View) -> str:
    """A list of objects; paths are relative to the root of the repository, as GitLab requires."""
    names = fingerprints(diagnostics, view.base)
    return dumps([_issue(one, name, view.base) for one, name in zip(diagnostics, names, strict=True)])


def _issue(one: Diagnostic, fingerprint: str, base: str) -> dict[str, Any]:
    begin, end = (one.lines.file_row(offset) for offset in one.span)
    place = f"{one.start}: " if one.start.cell else ""
    return {
        "check_name": f"{one.code} {one.name}",
        "description": f"{one.code} {place}{one.message}",
        "fingerprint": fingerprint,
        "location": {"path": relative(one.filename, base), "lines": {"begin": begin, "end": max(begin, end)}},
        "severity": _SEVERITIES[one.severity],
    }
