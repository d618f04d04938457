"""What the variables of a file are assigned, in little room: a project has a hundred thousand of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchrepro_lint.facts import Expression, Values


class Assigned(Mapping[str, "Values"]):
    """The values of each variable, by its name; sorted.

    Most variables are assigned one value as it is: of these, only the value is held. Of others the row of ways and values
    is, without a tuple for each pair.
    """

    __slots__ = ("_held", "_names")

    def __init__(self, values: Mapping[str, Sequence[tuple[str, Expression]]]) -> None:
        self._names = tuple(sorted(values))
        self._held = tuple([_held(values[name]) for name in self._names])

    def __getitem__(self, name: str) -> Values:
        found: Values | None = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """As a dictionary's: most names that are asked for are no variables, so no error is raised on the way."""
        at = bisect_left(self._names, name)
        if at == len(self._names) or self._names[at] != name:
            return default
        held = self._held[at]
        return tuple(zip(held[::2], held[1::2], strict=True)) if type(held) is tuple else (("=", held),)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"


def _held(values: Sequence[tuple[str, Expression]]) -> Any:
    match values:
        case [("=", value)]:
            return value
    return tuple([each for pair in values for each in pair])
