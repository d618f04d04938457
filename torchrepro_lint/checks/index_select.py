"""TRL401: ``index_select``, whose gradient is summed in no fixed order on CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.types.tensor_facts import TensorFacts
from torchrepro_lint.domain.determinism_mode import deterministic_mode_enabled
from torchrepro_lint.domain.gradients.liveness import call_without_gradient, called_without_gradient, is_gradient_dead
from torchrepro_lint.domain.gradients.modes import in_evaluation_mode
from torchrepro_lint.domain.operations.distinct_indices import has_distinct_indices
from torchrepro_lint.domain.programs import may_use_accelerator
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.syntax.nodes import Constant, Expression, Ref, span
from torchrepro_lint.syntax.visitor import is_none, last_identifier
from torchrepro_lint.trace.traces import Context

if TYPE_CHECKING:
    from torchrepro_lint.checks.fixes.index_select_call import IndexSelectCall

CODE = "TRL401"
_WORD = "index_select"


def check(context: Context) -> Iterator[Finding]:
    """Each call on an input that may need a gradient, in a program without deterministic mode."""
    sites = tuple(site for site in _without_repeats(context.project.calls(context.path)) if _is_called_so(site))
    if not sites:
        return
    from torchrepro_lint.checks.fixes.index_select import IndexSelectFixes
    from torchrepro_lint.checks.fixes.index_select_call import parse_index_select

    fixes: IndexSelectFixes | None = None
    for site in sites:
        parts = parse_index_select(context.project, context.path, site)
        if parts is None or not _is_reported(context, site, parts):
            continue
        fixes = fixes or IndexSelectFixes(context)
        yield Finding(CODE, span(site.call), _message(context, parts), fixes.remedy(site, parts))


def _without_repeats(sites: tuple[CallSite, ...]) -> Iterator[CallSite]:
    """The middle of a chained comparison belongs to two comparisons and occurs twice."""
    for site, before in zip(sites, (None, *sites), strict=False):
        if before is None or before.call != site.call:
            yield site


def _is_called_so(site: CallSite) -> bool:
    """Whether a call names the operation, or what it calls is named so elsewhere."""
    return last_identifier(site.call.func) == _WORD or any(name.endswith(_WORD) for name in site.names)


def _is_reported(context: Context, site: CallSite, parts: IndexSelectCall) -> bool:
    project, tensors = context.project, TensorFacts(context.project, context.path)
    if parts.out is not None or context.settings.device == "mps" or not may_use_accelerator(project, site.function):
        return False  # torch refuses out= where anything needs a gradient
    if call_without_gradient(project, site) or tensors.without_gradient(parts.source):
        return False
    if _is_passed_without_gradient(context, parts.source):
        return False
    if in_evaluation_mode(project, site.function, site.call.start, site.guards):
        return False
    if tensors.value(parts.source).layout == "sparse":
        return False  # it has no backward at all
    if called_without_gradient(project, site.function):
        return False
    if _has_deterministic_version(context) and (
        has_distinct_indices(project, context.path, parts.by.value)
        or deterministic_mode_enabled(project, site.function)
    ):
        return False
    return not is_gradient_dead(project, context.path, site.call)


def _is_passed_without_gradient(context: Context, source: Expression) -> bool:
    """Whether the input is a parameter for which all calls of the project pass what needs no gradient, such as buffers."""
    project = context.project
    if not isinstance(source, Ref) or source.path:
        return False
    passed = [(file, value) for file, value in project.values(context.path, source) if not is_none(value)]
    return (
        bool(passed)
        and (context.path, source) not in passed
        and all(TensorFacts(project, file).without_gradient(value) for file, value in passed)
    )


def _has_deterministic_version(context: Context) -> bool:
    rows = context.catalogue.operation("torch.index_select")
    return any(row.behaviour == "deterministic" for row in rows)


def _message(context: Context, parts: IndexSelectCall) -> str:
    cause = "index_select sums its gradient in no fixed order on CUDA"
    if not _has_deterministic_version(context):
        if has_distinct_indices(context.project, context.path, parts.by.value):
            version = context.catalogue.version
            return f"the backward of index_select raises an error under deterministic algorithms in torch {version}; {_cure(parts)}"
        cause += f", and torch {context.catalogue.version} has no deterministic version"
    return f"{cause}; {_cure(parts)}"


def _cure(parts: IndexSelectCall) -> str:
    match parts.dim.value:
        case Constant(value=int(dim)) if dim in _INDEXING_FORMS and not isinstance(dim, bool):
            return f"index instead: {_INDEXING_FORMS[dim]}"
    return "index instead, or call torch.use_deterministic_algorithms(True)"


_INDEXING_FORMS = {0: "x[index]", 1: "x[:, index]", 2: "x[:, :, index]", -1: "x[..., index]", -2: "x[..., index, :]"}
