"""The kind of record that a project has by the hundred thousand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import astuple, replace

if TYPE_CHECKING:
    from typing_extensions import Self


class Small(Struct, frozen=True, gc=False):
    """A frozen record, equal to one of its type with equal fields, and matched by them in their order.

    It takes a third less memory than a named tuple and is made in a quarter of the time (``python -m benchmarks.records``). The
    garbage collector does not look into it: nothing may be in it that leads back to it.
    """

    def _replace(self, **changes: Any) -> Self:
        """The record with other fields, as named tuples have it."""
        return replace(self, **changes)


def fields(of: Small) -> tuple[Any, ...]:
    """What is in a record, in its order."""
    return astuple(of)
