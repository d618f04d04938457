"""What a call of a seeder is given for a seed, and what that means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import Truth, arguments, evaluate
from torchrepro_lint.catalogue.rows import plain
from torchrepro_lint.syntax.nodes import Constant

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.catalogue.rows import Seeder
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.nodes import Call, Expression


def seed_given(seeder: Seeder, call: Call) -> Expression | None:
    """The seed that a call passes, None where it passes none; a name that nothing is known of where a star may."""
    return arguments(seeder.spelling, call)(seeder.seed) if seeder.seed else None


def from_entropy(seeder: Seeder, call: Call) -> bool:
    """Whether a call gets no seed, or None, where that means entropy."""
    return _meaning(seeder, call) == "entropy"


def families(seeder: Seeder, call: Call) -> tuple[str, ...]:
    """The families that a call seeds with a number that may be the same in each run."""
    if seeder.holds or _meaning(seeder, call) in ("entropy", "nothing"):
        return ()
    truth = evaluate(seeder.when, seeder.spelling, arguments(seeder.spelling, call))
    return () if truth is Truth.FAILS else seeder.families


def _meaning(seeder: Seeder, call: Call) -> str:
    seed = seed_given(seeder, call)
    if seed is None:
        return seeder.default
    return seeder.none if isinstance(seed, Constant) and seed.value is None else ""


def seeding_functions(project: ProgramIndex, catalogue: Catalogue, path: str, words: frozenset[str]) -> list[str]:
    """The functions of a file, and its body, that call a seeder themselves; ``words`` are those of all that may be one."""
    return sorted({site.function for site in project.calls_by(path, words) if _seeds(catalogue, site.names)})


def _seeds(catalogue: Catalogue, names: tuple[str, ...]) -> bool:
    """A cheap look before a function is followed."""
    seeders = (catalogue.seeder(plain(name)) for name in names)
    return any(seeder is not None and seeder.families for seeder in seeders)
