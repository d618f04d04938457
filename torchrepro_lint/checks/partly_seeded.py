"""TRL110: a function seeds some generators and draws from another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.seeding import fix_partly
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.rng.feasibility import is_told, partly_seeded
from torchrepro_lint.syntax.nodes import parted, span
from torchrepro_lint.trace.contexts import steps_to

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.domain.rng.feasibility import Partly


def check(context: Context) -> Iterator[Finding]:
    """At the draws of this module, whichever function of the project seeds in part."""
    reported = set()
    for partly in partly_seeded(context.project, context.path):
        draw = partly.draw.happening
        assert draw.event.value is not None
        place = span(draw.event.value)
        if draw.path != context.path or (place, partly.family) in reported:
            continue
        if not is_told(context.project, partly):
            reported.add((place, partly.family))
            steps = steps_to(context.project, draw, f"{partly.draw.label} draws from {partly.family.owner}")
            fix = fix_partly(context.project, context.path, partly)
            yield Finding("TRL110", place, _message(context, partly), fix, steps=steps)


def _message(context: Context, partly: Partly) -> str:
    seed, draw = partly.seed, partly.draw
    at = context.project.position(seed.happening.path, seed.happening.event.statement.start)
    same = at.line if at.cell else f"line {at.row}"
    place = same if seed.happening.path == context.path else f"{seed.happening.path}:{at.line}"
    who = "this function" if not draw.happening.way else parted(partly.function)[2] or partly.function.rstrip(":")
    missing = f"{draw.label} draws from {partly.family.owner}, which {who} does not seed"
    return f"{missing} although it calls {seed.label} ({place}); call {partly.family.seeder} too"
