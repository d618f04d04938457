"""How much may be looked into for one question, however many others it asks on the way."""

from __future__ import annotations


class Allowance:
    """Counts down from ``most`` while a question is open; the outermost one begins anew, so no answer depends on earlier ones."""

    __slots__ = ("_left", "_most", "_open")

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = 0
        self._open = 0

    def begin(self) -> None:
        """A question, which itself takes nothing; ``leave`` ends it."""
        if not self._open:
            self._left = self._most
        self._open += 1

    def enter(self) -> bool:
        """Take one, until ``leave``. Returns false, and there is nothing to leave, where none is left."""
        if self._open and self._left <= 0:
            return False
        self.begin()
        self._left -= 1
        return True

    def leave(self) -> None:
        """What was begun or entered last is done."""
        self._open -= 1
