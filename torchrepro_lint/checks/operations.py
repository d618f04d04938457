"""TRL402: operations that raise under deterministic algorithms in the target torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.alternatives import instead
from torchrepro_lint.conditions import Truth
from torchrepro_lint.effects import label
from torchrepro_lint.facts import span
from torchrepro_lint.operations import Case, cases
from torchrepro_lint.rule import Finding
from torchrepro_lint.text import Span

if TYPE_CHECKING:
    from torchrepro_lint.rule import Context


def check(context: Context) -> Iterator[Finding]:
    """Calls, and constructors whose arguments decide alone; of several cases of one call the likeliest."""
    reported: set[Span] = set()
    for case in cases(context):
        place = span(case.site.call)
        if case.row.behaviour == "raises" and case.row.listed and case.row.operation != "torch.index_select":
            if place not in reported:
                reported.add(place)
                yield Finding("TRL402", place, _message(context, case))


def _message(context: Context, case: Case) -> str:
    names = context.catalogue.errors(case.row)
    error = f" ({names[0]})" if names else ""
    device = "CUDA " if "cuda" in case.row.devices else ""
    supposed = f" for {_supposed(case)}" if case.truth is Truth.UNKNOWN and _supposed(case) else ""
    what = f"has no deterministic {device}{case.row.phase} in torch {context.catalogue.version}{supposed}{error}"
    cure = next(iter(instead(case.row, context.catalogue.version)), "no setting makes it repeatable")
    return f"{label(case.row.spelling.name)} {what}; {cure}"


def _supposed(case: Case) -> str:
    """What the row says of arguments, where it is not known to hold: ``mode="linear"``."""
    parts = []
    for condition in case.row.when:
        if "." not in condition.of and condition.test == "one_of":
            values = " or ".join(repr(value).replace("'", '"') for value in condition.values)
            parts.append(f"{condition.of}={values}")
    return ", ".join(dict.fromkeys(parts))
