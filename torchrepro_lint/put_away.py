"""Facts in little room, until they are asked for: of a project's parts one is looked into at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from zlib import compress, decompress

from torchrepro_lint.syntax.serialization import packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchrepro_lint.syntax.nodes import Facts

_FIELDS = ("body", "functions", "classes", "assigned", "imports_end")


def put_away(facts: Facts) -> Facts:
    """The same facts, of which all but the summary is read back when it is asked for; themselves where they are nested too
    deeply to be written down.
    """
    try:
        data = packed([getattr(facts, each) for each in _FIELDS])
    except RecursionError:
        return facts
    return cast("Facts", PutAwayFacts(facts.summary, compress(data, 1)))


def stay(facts: object) -> None:
    """If facts were put away, read them back for good."""
    if isinstance(facts, PutAwayFacts):
        facts.keep()


def let_go(facts: object) -> None:
    """Of facts that can be had again, let go of what was read back since."""
    if isinstance(facts, ReadBack):
        facts.let_go()


class ReadBack:
    """Facts that lie elsewhere, and are read when they are asked for."""

    def let_go(self) -> None:
        """Forget what was read: the next time it is made anew, of other records."""


class PutAwayFacts(ReadBack):
    """``Facts`` that were put away."""

    def __init__(self, summary: Any, data: bytes) -> None:
        self.summary = summary
        self._data: bytes | None = data

    @property
    def exports(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """As ``Summary`` has them."""
        return cast("Facts", self).summary.exports

    def calling(self, _word: str) -> Sequence[int | None]:
        """See ``Facts``."""
        return (None,)

    def __getattr__(self, name: str) -> Any:
        if name not in _FIELDS or self._data is None:
            raise AttributeError(name)
        self.read()
        return vars(self)[name]

    def read(self) -> None:
        """Read all of it back."""
        if self._data is not None and "body" not in vars(self):
            vars(self).update(zip(_FIELDS, unpacked(decompress(self._data)), strict=True))

    def keep(self) -> None:
        """Read it back for good."""
        self.read()
        self._data = None

    def let_go(self) -> None:
        if self._data is not None:
            for each in _FIELDS:
                vars(self).pop(each, None)
