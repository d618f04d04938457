"""TRL303: random splits and samplers that draw from the global generator."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.dataloader import programs_seed_torch
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.loaders.constructions import splits_without_generator, takes_generator
from torchrepro_lint.source.text import NoFix
from torchrepro_lint.syntax.nodes import span
from torchrepro_lint.trace.traces import Context

CODE = "TRL303"


def check(context: Context) -> Iterator[Finding]:
    """Each call whose arguments can be read and that gets no generator of its own."""
    for site, word in splits_without_generator(context.project, context.path):
        from torchrepro_lint.checks.fixes.generators import fix_generator

        seeded = programs_seed_torch(context, site)
        what = "split" if word == "random_split" else "order"
        message = (
            f"{word} draws its {what} from the global generator; pass generator=torch.Generator().manual_seed(...)"
        )
        if seeded:
            message += f"; without it, the {what} repeats only while every earlier draw stays the same"
        fix = (
            fix_generator(context.project, context.path, site.call)
            if takes_generator(site)
            else NoFix("this sampler takes no generator")
        )
        yield Finding(CODE, span(site.call), message, fix, severity="note" if seeded else "")
