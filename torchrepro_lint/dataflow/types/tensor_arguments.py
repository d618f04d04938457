"""The arguments of a call of a function or method of torch, both read as the function's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torchrepro_lint.dataflow.types.lattice import UNKNOWN, What
from torchrepro_lint.syntax.nodes import Call, Expression

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.dataflow.types.targets import Spot

_HIDDEN = object()


class Given(NamedTuple):
    """A call; ``receiver`` is what a method is called on, which is the function's first argument."""

    kinds: TypeInference
    call: Call
    spot: Spot
    receiver: What | None

    @property
    def input(self) -> What:
        """The first tensor, or what is given in its place."""
        found = self.what(0, "input")
        return UNKNOWN if found is None else found

    @property
    def tensor(self) -> What:
        """The first argument as the tensor that it has to be."""
        found = self.input
        if found.kind == "loaded":
            return What("tensor", device=found.device, grad=False)
        return found if found.is_tensor else What("tensor") if found.kind else found._replace(kind="tensor")

    def what(self, position: int, keyword: str = "") -> What | None:
        """What is given for a parameter; None where it is left out, unknown where a star may give it."""
        if position == 0 and self.receiver is not None:
            return self.receiver
        found = self._expression(position, keyword)
        if found is _HIDDEN:
            return UNKNOWN
        return None if found is None else self.kinds.what(found, self.spot)  # type: ignore[arg-type]  # no other object

    def value(self, position: int, keyword: str = "", default: object = None) -> object:
        """The constant that is given for a parameter, ``default`` where it is left out, ``...`` where it is not known."""
        found = self.what(position, keyword)
        if found is None:
            return default
        if found.kind == "none":
            return None
        return ... if found.value is None else found.value

    def number(self, position: int, keyword: str = "", default: int | None = None) -> int | None:
        """An integer that is given; None where it is not known."""
        found = self.value(position, keyword, default)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def switch(self, position: int, keyword: str) -> bool | None:
        """A boolean whose default is False; None where it is not known."""
        found = self.value(position, keyword, default=False)
        return bool(found) if isinstance(found, int) else None

    def numbers(self, position: int, keyword: str = "") -> tuple[int | None, ...] | None:
        """Sizes or dimensions: one sequence, or all that follow ``position``; None where their count is not known."""
        first = self.what(position, keyword)
        if first is None:
            return () if not self.stars else None
        if first.kind in ("list", "tuple"):
            return None if first.items is None else tuple(map(_number, first.items))
        if self.stars:
            return None
        rest = [self.what(at) for at in range(position, position + len(self.call.args))]
        found = [each for each in rest if each is not None]
        return tuple(map(_number, found)) if all(each.kind == "int" for each in found) else None

    @property
    def waits(self) -> bool:
        """Whether some argument has no value yet: then the call has none either."""
        return any(self.kinds.what(arg.value, self.spot).kind == "nothing" for arg in self.call.args)

    @property
    def stars(self) -> bool:
        """Whether a star gives arguments that are not seen."""
        return any(arg.star for arg in self.call.args)

    def operands(self) -> list[What]:
        """All positional arguments, the receiver first."""
        plain = [self.kinds.what(arg.value, self.spot) for arg in self.call.args if arg.keyword is None]
        return plain if self.receiver is None else [self.receiver, *plain]

    def _expression(self, position: int, keyword: str) -> Expression | object | None:
        at = position - (self.receiver is not None)
        for index, arg in enumerate(self.call.args):
            if arg.keyword is not None:
                if arg.keyword == keyword or (keyword == "dim" and arg.keyword == "axis"):
                    return arg.value
            elif arg.star:
                return _HIDDEN if arg.star == "*" and index <= at else _named(self.call, keyword, _HIDDEN)
            elif index == at:
                return arg.value
        return None


def _named(call: Call, keyword: str, otherwise: object) -> Expression | object:
    return next((arg.value for arg in call.args if keyword and arg.keyword == keyword), otherwise)


def _number(what: What) -> int | None:
    return what.value if isinstance(what.value, int) else None


# What an operation gives, by how it is called.
Rule: TypeAlias = Callable[[Given], What]
