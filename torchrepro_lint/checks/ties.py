"""TRL406: indices that depend on the order of equal elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.types.inference import kinds_of
from torchrepro_lint.domain.operations.subjects import tensor, uses_part
from torchrepro_lint.domain.operations.verdicts import verdicts
from torchrepro_lint.domain.rng.effects import label
from torchrepro_lint.syntax.nodes import Attribute, Call, Ref, span
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.domain.operations.cases import Case
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.syntax.nodes import Expression


def check(context: Context) -> Iterator[Finding]:
    """Calls of ``topk`` and of a sort that is not stable, whose indices are used."""
    for code, case in verdicts(context, ties=True):
        if code != "TRL406" or _is_permutation(context, case):
            continue
        name = case.row.spelling.name
        alone = name.rpartition(".")[2] == "argsort"
        if uses_part(context.facts, case.site, None if alone else "indices"):
            cure = "torch.sort(..., stable=True) keeps it" if case.row.operation == "torch.topk" else "pass stable=True"
            message = f"{label(name)} leaves the order of equal elements open, and its indices are used; {cure}"
            yield Finding("TRL406", span(case.site.call), message)


def _is_permutation(context: Context, case: Case) -> bool:
    """Whether what is sorted is an order itself, ``order.argsort()``: it has no equal elements."""
    source = tensor(case.row.spelling, case.site.call, "input")
    if source is None:
        return False
    values = context.project.values(context.path, source)
    return (bool(values) and all(_is_order(each) for _, each in values)) or _is_second(context, source)


def _is_order(value: Expression) -> bool:
    match value:
        case Call(func=Ref(path=(*_, word)) | Attribute(name=word)):
            return word in ("argsort", "randperm")
        case Attribute(value=Call(func=func), name="indices"):
            return last_word(func) in _PAIRING
    return False


def _is_second(context: Context, source: Expression) -> bool:
    """Whether it is the indices that a sort has given beside the values."""
    match source:
        case Ref(start=start, roots=(root,), path=()):
            pairs = kinds_of(context.project).unpacked(context.path, start, root, 1)
            return bool(pairs) and all(isinstance(each, Call) and last_word(each.func) in _PAIRING for each in pairs)
    return False


_PAIRING = ("sort", "topk")
