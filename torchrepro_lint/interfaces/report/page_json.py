"""An overview as JSON, which ``report --compare`` and scripts read."""

from __future__ import annotations

from typing import Any

from torchrepro_lint.domain.timeline import Timeline
from torchrepro_lint.interfaces.overview.records import Overview
from torchrepro_lint.interfaces.report.json import dumps
from torchrepro_lint.interfaces.report.page_comparison import SCHEMA
from torchrepro_lint.interfaces.report.timeline_json import record as timeline_record


def render(overview: Overview) -> str:
    """One object, in ASCII: ``schema``, and the fields of ``Overview`` by their names."""
    return dumps({"schema": SCHEMA, **plain_values(overview)})


def plain_values(value: Any) -> Any:
    """Records as objects, tuples as lists."""
    if isinstance(value, Timeline):
        return timeline_record(value)
    if isinstance(value, tuple):
        names: tuple[str, ...] = getattr(value, "_fields", ())
        return (
            dict(zip(names, map(plain_values, value), strict=True)) if names else [plain_values(each) for each in value]
        )
    return value
