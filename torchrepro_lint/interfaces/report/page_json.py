"""An overview as JSON, which ``report --compare`` and scripts read."""

from __future__ import annotations

from torchrepro_lint.interfaces.overview.records import Overview
from torchrepro_lint.interfaces.report.json import dumps
from torchrepro_lint.interfaces.report.page_comparison import SCHEMA
from torchrepro_lint.interfaces.report.timeline_json import plain_values


def render(overview: Overview) -> str:
    """One object, in ASCII: ``schema``, and the fields of ``Overview`` by their names."""
    return dumps({"schema": SCHEMA, **plain_values(overview)})
