"""TRL401: ``index_select``, whose gradient is summed up in no fixed order on CUDA."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.fixes.index_select import Fixes
from torchrepro_lint.checks.fixes.index_select_forms import Selecting, selecting
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.types.tensors import Tensors
from torchrepro_lint.domain.determinism_mode import enabled
from torchrepro_lint.domain.gradients.liveness import cut_off, forward_only, without_gradient
from torchrepro_lint.domain.gradients.modes import in_evaluation
from torchrepro_lint.domain.operations.order_free import distinct
from torchrepro_lint.domain.project import Context
from torchrepro_lint.resolve.program_index import Site
from torchrepro_lint.syntax.nodes import Constant, span

CODE = "TRL401"


def check(context: Context) -> Iterator[Finding]:
    """Each call on an input that may need a gradient, in a program that does not ask for the deterministic version."""
    fixes: Fixes | None = None
    for site in _once(context.project.calls(context.path)):
        parts = selecting(context.project, context.path, site)
        if parts is None or not _counts(context, site, parts):
            continue
        fixes = fixes or Fixes(context)
        yield Finding(CODE, span(site.call), _message(context, parts), fixes.fix(site, parts))


def _once(sites: tuple[Site, ...]) -> Iterator[Site]:
    """The middle of a chained comparison belongs to two comparisons, and is there twice."""
    for site, before in zip(sites, (None, *sites), strict=False):
        if before is None or before.call is not site.call:
            yield site


def _counts(context: Context, site: Site, parts: Selecting) -> bool:
    project, tensors = context.project, Tensors(context.project, context.path)
    if parts.out is not None or context.settings.device == "mps" or not project.may_use_accelerator(site.function):
        return False  # torch refuses out= where anything needs a gradient
    if without_gradient(project, site) or tensors.without_gradient(parts.source):
        return False
    if in_evaluation(project, site.function, site.call.start, site.guards):
        return False
    if tensors.what(parts.source).layout == "sparse":
        return False  # it has no backward at all
    if distinct(project, context.path, parts.by.value) or forward_only(project, site.function):
        return False
    if _has_deterministic_version(context) and enabled(project, site.function):
        return False
    return not cut_off(project, context.path, site.call)


def _has_deterministic_version(context: Context) -> bool:
    rows = context.catalogue.operation("torch.index_select")
    return any(row.behaviour == "deterministic" for row in rows)


def _message(context: Context, parts: Selecting) -> str:
    cause = "index_select sums up its gradient in no fixed order on CUDA"
    if not _has_deterministic_version(context):
        cause += f", and torch {context.catalogue.version} has no deterministic version"
    return f"{cause}; {_cure(parts)}"


def _cure(parts: Selecting) -> str:
    match parts.dim.value:
        case Constant(value=int(dim)) if dim in _WRITTEN and not isinstance(dim, bool):
            return f"index instead: {_WRITTEN[dim]}"
    return "index instead, or call torch.use_deterministic_algorithms(True)"


_WRITTEN = {0: "x[index]", 1: "x[:, index]", 2: "x[:, :, index]", -1: "x[..., index]", -2: "x[..., index, :]"}
