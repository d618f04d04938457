"""TRL301 and TRL302: DataLoaders whose workers or order depend on the global generator."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.feasibility import runs_always
from torchrepro_lint.domain.loaders.constructions import Loader, group_by_call, readable_loaders
from torchrepro_lint.domain.loaders.fetch_effects import unseeded_worker_draws
from torchrepro_lint.domain.programs import Program, programs_reaching
from torchrepro_lint.domain.rng.feasibility import is_reachable
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.files import release
from torchrepro_lint.source.text import Fix, NoFix
from torchrepro_lint.syntax.nodes import span
from torchrepro_lint.trace.traces import Context

_GENERATOR_ADVICE = "pass generator=torch.Generator().manual_seed(...)"
# From this release on, workers seed numpy too.
WORKERS_SEED_NUMPY = (1, 9)
# What workers may draw from that have the same state before.
_SHARED = frozenset({"numpy", "unknown"})


def worker_init(context: Context) -> Iterator[Finding]:
    """TRL301: workers that may draw numbers which none of the loader's arguments fixes."""
    before = release(context.catalogue.version) < WORKERS_SEED_NUMPY
    for each in group_by_call(readable_loaders(context.project, context.path)):
        found = next(
            (
                (loader, draws)
                for loader in each
                if (draws := unseeded_worker_draws(context.project, loader, before=before))
            ),
            None,
        )
        if found is not None:
            loader, draws = found
            severity = "note" if programs_seed_torch(context, loader.site) else ""
            owns, shared = "own" in draws, before and not draws.isdisjoint(_SHARED)
            message = _message(loader, before=shared, owns=owns)
            if severity and not (owns or shared):  # there the workers repeat one another, whatever is seeded before
                message += "; without it, the draws repeat only while every earlier draw stays the same"
            fix = _fix(context, loader, before=shared, owns=owns)
            yield Finding("TRL301", span(loader.site.call), message, fix, severity=severity)


def _fix(context: Context, loader: Loader, *, before: bool, owns: bool) -> Fix | NoFix:
    if owns or before:
        from torchrepro_lint.checks.fixes.worker_seeding import fix_workers

        return fix_workers(context.project, context.path, loader, owns=owns)
    from torchrepro_lint.checks.fixes.generators import fix_generator

    return fix_generator(context.project, context.path, loader.site.call)


def _message(loader: Loader, *, before: bool, owns: bool) -> str:
    if owns:
        cause = "the dataset has its own generator, and every worker gets a copy in the same state"
        return f"{loader.label}: {cause}; pass a worker_init_fn that seeds it from torch.initial_seed()"
    if before:
        cause = "workers share numpy's state, so each repeats the same draws"
        return f"{loader.label}: {cause}; pass a worker_init_fn that seeds numpy and random, and a seeded generator"
    return f"{loader.label} workers take their seeds from the global generator; {_GENERATOR_ADVICE} (or worker_init_fn)"


def generator(context: Context) -> Iterator[Finding]:
    """TRL302: a shuffled loader whose order comes from the global generator."""
    for each in group_by_call(readable_loaders(context.project, context.path)):
        loader = next((loader for loader in each if loader.shuffles and not loader.passes("generator")), None)
        if loader is None:
            continue
        from torchrepro_lint.checks.fixes.generators import fix_generator

        known = loader.constants("shuffle")
        certain = known is not None and all(known)
        call = f"{loader.label}(shuffle=True)" if certain else f"{loader.label} may shuffle, and then"
        message = f"{call} draws its order from the global generator; {_GENERATOR_ADVICE}"
        seeded = programs_seed_torch(context, loader.site)
        if seeded:
            message += "; without it, the order repeats only while every earlier draw stays the same"
        fix = fix_generator(context.project, context.path, loader.site.call)
        yield Finding("TRL302", span(loader.site.call), message, fix, severity="note" if seeded else "")


def programs_seed_torch(context: Context, site: CallSite) -> bool:
    """Whether all programs that reach a call seed torch."""
    programs = programs_reaching(context.project, site.function)
    seeding = [each for each in programs if "torch" in each.effects.seeds]
    others = (each for each in programs if each not in seeding)
    return bool(seeding) and not any(_may_run(context, each, site) for each in others)


def _may_run(context: Context, program: Program, site: CallSite) -> bool:
    """Whether a program that reaches the function of a call may run the call with the arguments that it passes."""
    project, path = context.project, context.path
    functions = project.resolver.functions(site.function)
    if all(runs_always(project.value_sources, path, each, site.call.start) for each in functions):
        return True
    events = [
        each for each in program.run.trace_events if each.function == site.function and each.event.value == site.call
    ]
    return not events or any(is_reachable(project, program.run, each) for each in events)
