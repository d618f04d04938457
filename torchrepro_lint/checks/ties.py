"""TRL406: indices that depend on the order of equal elements (ties)."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.constants import display_name
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.domain.operations.cases import Case
from torchrepro_lint.domain.operations.condition_variables import tensor_argument, uses_component
from torchrepro_lint.domain.operations.verdicts import verdicts
from torchrepro_lint.syntax.nodes import Attribute, Call, Expression, Ref, span
from torchrepro_lint.syntax.qualified_names import simple_name
from torchrepro_lint.syntax.visitor import last_identifier
from torchrepro_lint.trace.traces import Context


def check(context: Context) -> Iterator[Finding]:
    """Calls of ``topk`` and of a sort that is not stable, whose indices are used."""
    for code, case in verdicts(context, ties=True):
        if code != "TRL406" or _is_permutation(context, case):
            continue
        name = case.row.signature.name
        alone = simple_name(name) == "argsort"
        part = None if alone else "indices"
        if uses_component(context.project.uses, context.path, case.site.call, part):
            cure = (
                "use torch.sort(..., stable=True), which does"
                if case.row.operation == "torch.topk"
                else "pass stable=True"
            )
            message = f"{display_name(name)} does not fix the order of equal elements, and its indices are used; {cure}"
            yield Finding("TRL406", span(case.site.call), message)


def _is_permutation(context: Context, case: Case) -> bool:
    """Whether what is sorted is a permutation, ``order.argsort()``: it has no equal elements."""
    source = tensor_argument(case.row.signature, case.site.call, "input")
    if source is None:
        return False
    values = context.project.values(context.path, source)
    return (bool(values) and all(_is_order(each) for _, each in values)) or _is_sort_indices(context, source)


def _is_order(value: Expression) -> bool:
    match value:
        case Call(func=Ref(path=(*_, word)) | Attribute(name=word)):
            return word in ("argsort", "randperm")
        case Attribute(value=Call(func=func), name="indices"):
            return last_identifier(func) in _PAIR_RESULTS
    return False


def _is_sort_indices(context: Context, source: Expression) -> bool:
    """Whether it is the indices that a sort returned beside the values."""
    match source:
        case Ref(start=start, roots=(root,), path=()):
            pairs = type_inference(context.project).unpacked(context.path, start, root, 1)
            return bool(pairs) and all(
                isinstance(each, Call) and last_identifier(each.func) in _PAIR_RESULTS for each in pairs
            )
    return False


_PAIR_RESULTS = ("sort", "topk")
