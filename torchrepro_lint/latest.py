"""What is worked out of one record at a time: the fixes of a file ask the same of it one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_Record = TypeVar("_Record")
_Answer = TypeVar("_Answer")


class Latest(Generic[_Record, _Answer]):
    """An answer about the record that was asked for last, known by its identity; of nothing but that record."""

    def __init__(self, compute: Callable[[_Record], _Answer]) -> None:
        self._compute = compute
        self._known: tuple[_Record, _Answer] | None = None

    def of(self, record: _Record) -> _Answer:
        """The answer, worked out where another record was asked for before."""
        known = self._known
        if known is None or known[0] is not record:
            known = self._known = (record, self._compute(record))
        return known[1]
