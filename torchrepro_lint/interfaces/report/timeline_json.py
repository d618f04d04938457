"""Timelines as JSON, with stable keys for scripts and pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import asdict

from torchrepro_lint.domain.timeline import Timeline
from torchrepro_lint.interfaces.report.json import dumps
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.qualified_names import split_name

# Raised when a field changes its meaning or is removed, not for new fields.
FORMAT = 1


def render(timelines: Iterable[Timeline]) -> str:
    """A list of objects, one for each entry point of the file."""
    return dumps([plain_values(one) for one in timelines], ordered=False)


def plain_values(value: Any) -> Any:
    """Records as objects by the names of their fields, tuples as lists."""
    if isinstance(value, Timeline):
        function = value.function and split_name(value.function)[2]
        found = {"format": FORMAT, "entry": {"path": value.path, "function": function}, **_fields(value)}
        return {name: each for name, each in found.items() if name not in ("path", "function")}
    if isinstance(value, Record):
        return _fields(value)
    if isinstance(value, tuple):
        return _fields(value) if hasattr(value, "_fields") else [plain_values(each) for each in value]
    return value


def _fields(record: Any) -> dict[str, Any]:
    """The fields of a record; a position is told by its row and column (from 1), and in a notebook by its cell."""
    found: dict[str, Any] = {}
    for name, each in (asdict(record) if isinstance(record, Record) else record._asdict()).items():
        if isinstance(each, Position):
            found |= {key: number for key, number in each._asdict().items() if key != "cell" or number}
        else:
            found[name] = plain_values(each)
    return found
