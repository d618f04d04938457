"""TRL101 to TRL103 and TRL110: seed what a run draws from, beside its other seeds or where it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.rewrites.drawn_seed import fix_drawn
from torchrepro_lint.rewrites.entry_place import Place, entry_place, insertion
from torchrepro_lint.rewrites.seed_calls import beside, existing, fix_in, names_of, seeding
from torchrepro_lint.source.text import Edit, Fix, joined
from torchrepro_lint.syntax.nodes import Facts, Import
from torchrepro_lint.syntax.visitor import statements

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.domain.rng.effects import Draw
    from torchrepro_lint.domain.rng.feasibility import Partly


def fix_program(project: Project, program: Program, draws: Sequence[tuple[str, Draw]]) -> Fix | None:
    """Seed all families that a program draws from and does not seed; ``draws`` are the first draw of each family.

    What is seeded from entropy has another fix, which may settle this, too.
    """
    draws = [(family, draw) for family, draw in draws if family not in program.effects.entropic]
    families = [family for family, _ in draws]
    first = min((draw for _, draw in draws), key=lambda draw: draw.order)
    if drawn := fix_drawn(project, program, first):
        return drawn
    seed = existing(project, program.effects, first.happening, first.order)
    found = beside(project, seed, families) if seed else None
    if seed and found:
        title = f"seed {names_of(families)} beside {seed.label}"
        return fix_in(found[0], program.entry.path, title, found[1])
    place = entry_place(project, program, first.happening)
    return fix_start(project, program.entry.path, place, families) if place else None


def fix_start(project: Project, path: str, place: Place, families: Sequence[str]) -> Fix:
    """Seed families where a program starts."""
    where = place.level.function.name[1:] if place.level.function else "the program"
    edits = _edits(project, path, place, families)
    return Fix(f"seed {names_of(families)} at the start of {where}", edits, safe=False)


def fix_partly(project: Project, own: str, partly: Partly) -> Fix | None:
    """Seed the missing family beside the seed that a function has."""
    found = beside(project, partly.seed, (partly.family.key,))
    title = f"seed {names_of((partly.family.key,))} beside {partly.seed.label}"
    return fix_in(found[0], own, title, found[1]) if found else None


def _edits(project: Project, path: str, place: Place, families: Sequence[str]) -> tuple[Edit, ...]:
    facts, text = project.files[path], project.text(path)
    function = place.level.function
    at = insertion(text, place, "").span.start
    found = seeding(facts, text, families, place.seed.text, function.name if function else "", at)
    edit = insertion(text, place, found.lines)
    fresh = max((each.span.start for each in found.imports), default=0)
    late = [each for each in found.words if not function and _bound(facts, *each, fresh) > edit.span.start]
    if late:
        # The draw is reached by an import that stands above those of the modules.
        needed = "".join(f"import {module}{f' as {word}' if word != module else ''}\n" for module, word in late)
        return (insertion(text, place, needed + found.lines),)
    return joined((*found.imports, edit))


def _bound(facts: Facts, module: str, word: str, fresh: int) -> int:
    """From where on a module is bound to a word: the first import of it, or ``fresh``, where one is written."""
    imports = [each for each in statements(facts.body) if isinstance(each, Import)]
    return min((each.end for each in imports if (word, module) in each.names), default=fresh)
