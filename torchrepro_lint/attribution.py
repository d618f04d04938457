"""Attribution of trace events: which of the entry points that reach an event has to answer for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.syntax.events import mark

if TYPE_CHECKING:
    from torchrepro_lint.program_effects import ProgramEffects
    from torchrepro_lint.trace.entry_points import Entry
    from torchrepro_lint.trace.trace import Happening


def belongs_elsewhere(project: ProgramEffects, entry: Entry, happening: Happening, family: str = "") -> bool:
    """Whether something lies behind another entry point's function, so that this one only launches it.

    Where the other one seeds ``family``, does not draw from it there, or is no run that matters, it has nothing to say,
    and this one has.
    """
    entered = {step.into for step in happening.way}
    return any(
        other.entry.path != entry.path
        and other.effects.matters
        and other.effects.acts
        and family not in other.effects.seeds
        and any(
            name.startswith(f"{other.entry.path}:") and name in other.run.functions and not name.endswith(":")
            for name in entered
        )
        and any(name == other.entry.function or name in other.run.started for name in entered)
        and (
            not family
            or any(mark(draw.happening.event) == mark(happening.event) for draw in other.effects.draws.get(family, ()))
        )
        for other in project.programs
    )
