"""Taint of arbitrary orders over a linked project: the uppermost layer of data flow, above the types that it asks for."""

from __future__ import annotations

from functools import cached_property

from torchrepro_lint.order.context import Orders
from torchrepro_lint.value_flow import ValueFlow


class OrderFlow(ValueFlow):
    """A project of whose values it is known what becomes of them where their order is arbitrary."""

    @cached_property
    def orders(self) -> Orders:
        """What becomes of values whose order is arbitrary."""
        return Orders(self)
