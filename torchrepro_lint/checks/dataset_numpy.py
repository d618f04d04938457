"""TRL304: datasets that draw from numpy's global generator, which workers did not seed before torch 1.9."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.dataloader import WORKERS_SEED_NUMPY
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.loaders.fetch_effects import numpy_worker_draws
from torchrepro_lint.source.files import release
from torchrepro_lint.syntax.nodes import Call, span
from torchrepro_lint.trace.traces import Context

CODE = "TRL304"


def check(context: Context) -> Iterator[Finding]:
    """Each draw that a dataset of the project reaches, unless all its loaders seed their workers or have none."""
    if release(context.catalogue.version) >= WORKERS_SEED_NUMPY:
        return
    for draw in numpy_worker_draws(context.project):
        call = draw.trace_event.event.value
        if draw.trace_event.path == context.path and isinstance(call, Call):
            message = (
                f"{draw.label} in {draw.owner} draws from numpy's global generator, which all workers copy in torch "
                f"{context.catalogue.version}, so that each repeats the same numbers; draw from torch, or seed numpy in worker_init_fn"
            )
            yield Finding(CODE, span(call), message)
