"""TRL402: operations that raise under deterministic algorithms in the target torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from torchrepro_lint.effects import label
from torchrepro_lint.facts import span
from torchrepro_lint.operations import Case, cases
from torchrepro_lint.rule import Finding

if TYPE_CHECKING:
    from torchrepro_lint.rule import Context

# What to write instead, where something is known to have a deterministic version.
_INSTEAD: Mapping[str, str] = {
    "torch.nn.AdaptiveAvgPool2d": "AvgPool2d with a fixed kernel has a deterministic backward",
    "torch.nn.AdaptiveMaxPool2d": "MaxPool2d with a fixed kernel has a deterministic backward",
    "torch.nn.FractionalMaxPool2d": "MaxPool2d has a deterministic backward",
    "torch.nn.ReflectionPad1d": 'padding mode "replicate" has a deterministic backward',
    "torch.nn.ReflectionPad3d": 'padding mode "replicate" has a deterministic backward',
    "torch.nn.EmbeddingBag": 'mode="sum" and mode="mean" are deterministic',
    "torch.Tensor.put_": "x.view(-1)[index] = source is deterministic with the flag on",
    "torch.bincount": "torch.zeros(n).index_add_(0, input, weights) is deterministic with the flag on",
    "torch.histc": "torch.bucketize followed by torch.bincount is deterministic",
    "torch.median": "torch.sort gives the median and its index deterministically",
}


def check(context: Context) -> Iterator[Finding]:
    """Calls, and constructors whose arguments decide alone."""
    for case in cases(context):
        if case.row.behaviour == "raises" and case.row.listed and case.row.operation != "torch.index_select":
            yield Finding("TRL402", span(case.site.call), _message(context, case))


def _message(context: Context, case: Case) -> str:
    names = context.catalogue.errors(case.row)
    error = f" ({names[0]})" if names else ""
    device = "CUDA " if "cuda" in case.row.devices else ""
    what = f"has no deterministic {device}{case.row.phase} in torch {context.catalogue.version}{error}"
    cure = _INSTEAD.get(case.row.operation, "no setting makes it repeatable")
    return f"{label(case.row.spelling.name)} {what}; {cure}"
