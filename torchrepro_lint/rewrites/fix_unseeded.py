"""TRL101 to TRL103 and TRL110: seed what a run draws from, beside its other seeds or where it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.rewrites.entry_place import Place, entry_place, insertion
from torchrepro_lint.rewrites.seed_calls import beside, existing, fix_in, joined, names_of, seeding
from torchrepro_lint.text import Edit, Fix

if TYPE_CHECKING:
    from torchrepro_lint.effects import Draw
    from torchrepro_lint.partly import Partly
    from torchrepro_lint.project import Program, Project


def fix_program(project: Project, program: Program, draws: Sequence[tuple[str, Draw]]) -> Fix | None:
    """Seed all families that a program draws from and does not seed; ``draws`` are the first draw of each family."""
    families = [family for family, _ in draws]
    first = min((draw for _, draw in draws), key=lambda draw: draw.order)
    seed = existing(project, program.effects, first.happening, first.order)
    found = beside(project, seed, families) if seed else None
    if seed and found:
        title = f"seed {names_of(families)} beside {seed.label}"
        return fix_in(found[0], program.entry.path, title, found[1])
    place = entry_place(project, program, first.happening)
    if place is None:
        return None
    where = place.level.function.name[1:] if place.level.function else "the program"
    edits = _edits(project, program.entry.path, place, families)
    return Fix(f"seed {names_of(families)} at the start of {where}", edits, safe=False)


def fix_partly(project: Project, own: str, partly: Partly) -> Fix | None:
    """Seed the missing family beside the seed that a function has."""
    found = beside(project, partly.seed, (partly.family.key,))
    title = f"seed {names_of((partly.family.key,))} beside {partly.seed.label}"
    return fix_in(found[0], own, title, found[1]) if found else None


def _edits(project: Project, path: str, place: Place, families: Sequence[str]) -> tuple[Edit, ...]:
    facts, text = project.files[path], project.text(path)
    inside = place.level.function.name if place.level.function else ""
    lines, imports = seeding(facts, text, families, place.seed.text, inside)
    edit = insertion(text, place, lines)
    if place.level.function is None and any(each.span.start > edit.span.start for each in imports):
        # The draw is reached by an import that stands above the place for new ones.
        needed = "\n".join(each.text.strip() for each in imports)
        return (insertion(text, place, f"{needed}\n{lines}"),)
    return joined((*imports, edit))
