"""TRL105 and TRL106: seeds that change between runs, and generators without one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.rows import plain
from torchrepro_lint.checks.fixes.entropy import (
    fix_generator,
    fix_own_generator,
    fix_reseeding,
    fix_system_random,
    fix_value,
    seed_here,
)
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.feasibility import is_given
from torchrepro_lint.domain.rng.effects import label
from torchrepro_lint.domain.rng.seeders import (
    GENERATORS,
    changing_source,
    from_entropy,
    is_absent,
    seed_argument,
    seed_given,
)
from torchrepro_lint.syntax.nodes import Assign, Ref, span
from torchrepro_lint.syntax.visitor import is_none

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Seeder
    from torchrepro_lint.domain.project import Context, Project
    from torchrepro_lint.resolve.program_index import Site
    from torchrepro_lint.source.text import Fix
    from torchrepro_lint.syntax.nodes import Expression

# Methods of objects that take a seed.
_METHODS = ("torch.Generator().manual_seed", "numpy.random.RandomState().seed", "random.Random().seed")
_REDRAWS = ("torch.Generator().seed",)


def seed(context: Context) -> Iterator[Finding]:
    """TRL105."""
    for site in context.project.calls(context.path):
        found = _seeding(context, site)
        if found and not _of_worker(context.project, context.path, site):
            yield Finding("TRL105", span(site.call), *found)


def _of_worker(project: Project, path: str, site: Site) -> bool:
    """Whether a call seeds a worker, of which another rule tells."""
    return site.function in project.worker_functions or any(
        each.call is site.call for each in project.worker_seeds(path)
    )


def _seeding(context: Context, site: Site) -> tuple[str, Fix | None] | None:
    """What is wrong with a call that seeds, and its fix."""
    project, path = context.project, context.path
    for name in site.names:
        if name in _REDRAWS:
            message = f"{label(name)}() takes its seed from entropy; call manual_seed with a constant"
            return message, fix_own_generator(context.lines.text, site, seed_here(project, path, site.call.start))
        seeder = context.catalogue.seeder(plain(name)) if ":" not in name else None
        if seeder is not None:
            return _of_seeder(context, site, name, seeder) if seeder.families else None
        if name in _METHODS or name in GENERATORS:
            given = _seed(site)
            if given and (source := changing_source(project.resolver, path, given)):
                return _changes(name, source), fix_value(project, path, given, source)
        if ":" in name:
            return _handed_on(context, site, name)
    return None


def _of_seeder(context: Context, site: Site, name: str, seeder: Seeder) -> tuple[str, Fix | None] | None:
    names, path = context.project.resolver, context.path
    given = seed_given(seeder, site.call)
    values = [value for _, value in names.values(path, given)] if given is not None else []
    missing = bool(values) and all(map(is_none, values)) and not any(is_given(each, given) for each in site.guards)
    if from_entropy(seeder, site.call) or (missing and seeder.none == "entropy"):
        message = f"{label(name)}({'None' if given else ''}) takes its seed from entropy; pass a constant"
        return message, fix_reseeding(context.project, path, site, seeder.families)
    if given is None or (source := changing_source(names, path, given)) is None:
        return None
    return _changes(name, source), fix_value(context.project, path, given, source)


def _changes(name: str, source: str) -> str:
    return f"{label(name)} takes its seed from {source}, which changes between runs; pass a constant"


def _seed(site: Site) -> Expression | None:
    try:
        return seed_argument(site.call)
    except LookupError:
        return None


def _handed_on(context: Context, site: Site, name: str) -> tuple[str, Fix | None] | None:
    """A changing value that a function of the project hands on to a seeder."""
    for word, value in context.project.seeding_arguments(name, site.call):
        source = _written_out(context, value)
        if source:
            return _changes(word, source), fix_value(context.project, context.path, value, source)
    return None


def _written_out(context: Context, value: Expression) -> str | None:
    return changing_source(context.project.resolver, context.path, value)


def generator(context: Context) -> Iterator[Finding]:
    """TRL106."""
    sites = context.project.calls(context.path)
    seeded = frozenset(_seeded(sites))
    for site in sites:
        for name in site.names:
            if name == "random.SystemRandom":
                message = "random.SystemRandom cannot be seeded; use random.Random(seed)"
                fix = fix_system_random(context.project, context.path, site)
            elif name in GENERATORS and (_is_seeded_later(site, seeded) or _is_given(site)):
                continue
            elif name in GENERATORS and is_absent(context.project.resolver, context.path, site.call):
                message = f"{GENERATORS[name]}() without a seed draws fresh entropy on each run; pass a seed"
                fix = fix_generator(context.project, context.path, site)
            else:
                continue
            yield Finding("TRL106", span(site.call), message, fix)
            break


def _is_seeded_later(site: Site, seeded: frozenset[tuple[str, tuple[str, ...]]]) -> bool:
    """``rng = random.Random()`` followed by ``rng.seed(7)`` in the same function."""
    statement = site.statement
    targets = statement.targets if isinstance(statement, Assign) else ()
    return any((site.function, each.roots) in seeded for each in targets if isinstance(each, Ref))


def _is_given(site: Site) -> bool:
    """Whether a test around a generator rules out that its seed is None."""
    given = _seed(site)
    return given is not None and any(is_given(each, given) for each in site.guards)


def _seeded(sites: Iterable[Site]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The variables of which ``seed`` is called with something, each with the function that does."""
    for site in sites:
        func = site.call.func
        if isinstance(func, Ref) and func.path == ("seed",) and site.call.args:
            yield site.function, func.roots
