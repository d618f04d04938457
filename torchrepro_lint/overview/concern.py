"""Whether a finding about an operation concerns an entry point: by the device that it runs on, and its backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.domain.gradients.modes import has_backward
from torchrepro_lint.domain.operations.cases import cases
from torchrepro_lint.domain.operations.reached import device_of
from torchrepro_lint.syntax.nodes import span as span_of

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Row
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.source.text import Span

# The rules that speak of rows of the catalogue.
_OF_ROWS = ("TRL401", "TRL402", "TRL403", "TRL404", "TRL406")


def concerns(context: Context, program: Program, code: str, span: Span) -> bool:
    """Whether a run that reaches a finding of the context's file has the device and the phase that it is about."""
    rows = _rows(context).get(span, []) if code in _OF_ROWS else []
    if not rows:
        return True
    device = device_of(context, program)
    return any(
        ("any" in row.devices or device in row.devices) and (row.phase != "backward" or has_backward(program))
        for row in rows
    )


def _rows(context: Context) -> dict[Span, list[Row]]:
    """The rows that may hold for each call of a file, worked out once."""
    known: dict[str, dict[Span, list[Row]]] = context.project.kept.setdefault(__name__, {})
    if context.path not in known:
        found = known.setdefault(context.path, {})
        for case in cases(context):
            found.setdefault(span_of(case.site.call), []).append(case.row)
    return known[context.path]
