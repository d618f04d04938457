"""Arguments of a torch call, for transfer functions: a function and a method are read alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torchrepro_lint.dataflow.types.lattice import UNKNOWN, AbstractValue
from torchrepro_lint.syntax.nodes import Call, Expression

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import ProgramPoint
    from torchrepro_lint.dataflow.types.context import TypeInference

_BEHIND_STAR = object()


class TorchArguments(NamedTuple):
    """The arguments of a torch call; a method's ``receiver`` is the first argument."""

    inference: TypeInference
    call: Call
    point: ProgramPoint
    receiver: AbstractValue | None

    @property
    def input(self) -> AbstractValue:
        """The first argument."""
        found = self.value_of(0, "input")
        return UNKNOWN if found is None else found

    @property
    def tensor(self) -> AbstractValue:
        """The first argument, taken to be a tensor."""
        found = self.input
        if found.kind == "loaded":
            return AbstractValue("tensor", device=found.device, grad=False)
        return found if found.is_tensor else AbstractValue("tensor") if found.kind else found._replace(kind="tensor")

    def value_of(self, position: int, keyword: str = "") -> AbstractValue | None:
        """The abstract value of an argument; None if it is left out, unknown if a star may pass it."""
        if position == 0 and self.receiver is not None:
            return self.receiver
        found = self._expression(position, keyword)
        if found is _BEHIND_STAR:
            return UNKNOWN
        return None if found is None else self.inference.infer(found, self.point)  # type: ignore[arg-type]  # no other object

    def constant(self, position: int, keyword: str = "", default: object = None) -> object:
        """The constant value of an argument; ``default`` if it is left out, ``...`` if it is unknown."""
        found = self.value_of(position, keyword)
        if found is None:
            return default
        if found.kind == "none":
            return None
        return ... if found.value is None else found.value

    def integer(self, position: int, keyword: str = "", default: int | None = None) -> int | None:
        """The integer value of an argument; None if unknown."""
        found = self.constant(position, keyword, default)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def flag(self, position: int, keyword: str) -> bool | None:
        """The value of a boolean argument with default False; None if unknown."""
        found = self.constant(position, keyword, default=False)
        return bool(found) if isinstance(found, int) else None

    def integers(self, position: int, keyword: str = "") -> tuple[int | None, ...] | None:
        """Sizes or dimensions, as one sequence or as all arguments from ``position``; None if their number is unknown."""
        first = self.value_of(position, keyword)
        if first is None:
            return () if not self.has_stars else None
        if first.kind in ("list", "tuple"):
            return None if first.items is None else tuple(map(_number, first.items))
        if self.has_stars:
            return None
        rest = [self.value_of(at) for at in range(position, position + len(self.call.args))]
        found = [each for each in rest if each is not None]
        return tuple(map(_number, found)) if all(each.kind == "int" for each in found) else None

    @property
    def has_bottom(self) -> bool:
        """Whether an argument is bottom: then so is the result."""
        return any(self.inference.infer(arg.value, self.point).kind == "nothing" for arg in self.call.args)

    @property
    def has_stars(self) -> bool:
        """Whether a star passes unknown arguments."""
        return any(arg.star for arg in self.call.args)

    def operands(self) -> list[AbstractValue]:
        """All positional arguments, the receiver first."""
        plain = [self.inference.infer(arg.value, self.point) for arg in self.call.args if arg.keyword is None]
        return plain if self.receiver is None else [self.receiver, *plain]

    def _expression(self, position: int, keyword: str) -> Expression | object | None:
        at = position - (self.receiver is not None)
        for index, arg in enumerate(self.call.args):
            if arg.keyword is not None:
                if arg.keyword == keyword or (keyword == "dim" and arg.keyword == "axis"):
                    return arg.value
            elif arg.star:
                return (
                    _BEHIND_STAR if arg.star == "*" and index <= at else _keyword_or(self.call, keyword, _BEHIND_STAR)
                )
            elif index == at:
                return arg.value
        return None


def _keyword_or(call: Call, keyword: str, otherwise: object) -> Expression | object:
    return next((arg.value for arg in call.args if keyword and arg.keyword == keyword), otherwise)


def _number(what: AbstractValue) -> int | None:
    return what.value if isinstance(what.value, int) else None


# A transfer function: the result of an operation from its arguments.
TransferFunction: TypeAlias = Callable[[TorchArguments], AbstractValue]
