"""What is known of a value whose order, or whose place in an order, is arbitrary."""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """A value that holds an arbitrary order, or is decided by one.

    ``kind`` is ``set``, ``sequence`` (anything that is gone along: a list, an iterator), ``completion`` (the same, where
    even a sum depends on the order), ``walk`` (of ``os.walk``: the first element is certain), ``mapping`` (a dict in such an order), ``scalar`` (a value that such an order has picked, or
    a position in it), ``plain`` (a container that is in order itself), ``table`` (a dict that is, and whose values are known: who goes
    along it gets its keys). ``inner`` are the shapes of what it holds, by
    position, None for any.
    """

    kind: str
    inner: tuple[tuple[int | None, Shape], ...] = ()

    @property
    def is_arbitrary(self) -> bool:
        """Whether going along it is in no certain order."""
        return self.kind in _ARBITRARY

    @property
    def is_decided(self) -> bool:
        """Whether an order was taken for it, there or in what it holds; who gets a set may still sort it."""
        return self.kind not in ("set", "plain", "table") or any(inner.is_decided for _, inner in self.inner)

    def item(self, index: int | None) -> Shape | None:
        """The shape of the element at a position; None as the position means any element."""
        found = [shape for at, shape in self.inner if at is None or index is None or at == index]
        return found[0] if found else None

    def element(self) -> Shape | None:
        """The shape of any element that it gives to who goes along it."""
        return None if self.kind == "table" else self.item(None)

    def holding(self) -> Shape | None:
        """The same in a certain order."""
        return Shape("plain", self.inner) if self.inner and self.kind != "table" else None

    def along(self) -> Shape:
        """The list of its elements in the order in which it gives them."""
        if self.kind == "table":
            return Shape("plain")
        return self if self.kind in ("plain", "completion") else Shape("sequence", self.inner)


_ARBITRARY = frozenset({"set", "sequence", "completion", "walk", "mapping"})

SET = Shape("set")
LISTING = Shape("sequence")
COMPLETION = Shape("completion")
MAPPING = Shape("mapping")
SCALAR = Shape("scalar")
WALK = Shape("walk", ((None, Shape("plain", ((1, LISTING), (2, LISTING)))),))


def held(shape: Shape, at: int | None = None) -> Shape:
    """A container that holds a value of that shape, at a position or anywhere."""
    return Shape("plain", ((at, shape),))


def valued(shape: Shape) -> Shape:
    """A dict that holds a value of that shape under some key."""
    return Shape("table", ((None, shape),))


def depth(shape: Shape) -> int:
    """How many containers are around the innermost shape."""
    return 1 + max((depth(inner) for _, inner in shape.inner), default=0)
