"""TRL502: the order of a set, which differs from run to run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.facts import span
from torchrepro_lint.order.sets import set_orders
from torchrepro_lint.order.wording import decided
from torchrepro_lint.rule import Finding

if TYPE_CHECKING:
    from torchrepro_lint.rule import Context

_OF = {"str": "of strings ", "bytes": "of bytes ", "path": "of paths "}


def check(context: Context) -> Iterator[Finding]:
    """Each expression that takes the order of a set, where that decides something."""
    if context.path not in context.project.torch_modules:
        return
    for found in set_orders(context.project, context.path):
        of = _OF.get(found.elements.kind, "")
        message = f"a set {of}has another order in each run, and {decided(context, found.order.taker, found.taken)}"
        yield Finding("TRL502", span(found.order.taker), f"{message}; write sorted(...)")
