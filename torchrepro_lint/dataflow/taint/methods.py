"""Methods and elements of a value of arbitrary order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.taint.context import Here, Order, Step
from torchrepro_lint.dataflow.taint.propagation import first_constant, is_aligned, ordered
from torchrepro_lint.dataflow.taint.transfer import LISTING, SCALAR, SET, Shape, gives_a_set, held
from torchrepro_lint.syntax.nodes import Call, Operation, Ref, Subscript
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.taint.context import TaintContext

# What one reads of any element to learn what all of them are like.
_TRAITS = frozenset(
    {"shape", "dtype", "device", "ndim", "size", "dim", "suffix", "is_cuda", "requires_grad", "layout", "__class__"}
)
# What is called of a sequence and does nothing with its order.
QUIET = frozenset(
    {
        "sort",
        "sort_values",
        "sort_index",
        "append",
        "remove",
        "clear",
        "count",
        "reverse",
        "extend",
        "insert",
        "unique",
        "sum",
        "mean",
        "min",
        "max",
    }
    | {"any", "all", "nunique", "isin", "close", "__len__", "__contains__", "union", "shutdown", "empty", "qsize"}
)

# Methods and attributes of tensors and arrays that give all that is in them once more, in another form.
_WHOLE = frozenset(
    {"transpose", "permute", "t", "view", "reshape", "flatten", "ravel", "unsqueeze", "squeeze", "expand", "repeat"}
    | {"contiguous", "clone", "detach", "requires_grad_", "to", "cuda", "cpu", "numpy", "tolist", "type", "astype"}
    | {"float", "long", "int", "half", "double", "bool", "byte", "pin_memory", "T", "mT", "data", "tobytes"}
)


class Methods:
    """Steps through attributes, methods and subscripts."""

    def __init__(self, orders: TaintContext) -> None:
        self._orders = orders

    def steps(self, here: Here) -> Iterator[Step]:
        """A value of which ``here.words`` are read, and perhaps called."""
        spot = self._orders.uses.spots(here.path).of(here.node)
        word, rest = here.words[0], here.words[1:]
        if spot is None:
            return
        if not rest and isinstance(spot.parent, Call) and spot.parent.func is here.node:
            yield from self._called(here, word, spot.parent)
        elif spot.written:
            return
        elif here.shape.kind == "sequence":
            yield Here(here.path, here.node, here.shape, ())
        elif (
            word in _WHOLE
            if here.shape.kind in ("plain", "table")
            else here.shape.kind == "scalar" and word not in _TRAITS
        ):
            yield Here(here.path, here.node, SCALAR, ())

    def _called(self, here: Here, word: str, call: Call) -> Iterator[Step]:
        path, shape = here.path, here.shape
        match shape.kind:
            case "set":
                if word == "pop":
                    yield Order(path, call, here.node, (Here(path, call, SCALAR),))
                elif gives_a_set(word):
                    yield Here(path, call, SET)
            case "mapping":
                yield from self._mapping(here, word, call)
            case "plain" | "table":
                if (inner := SCALAR if word in _WHOLE else _taken_out(shape, word)) is not None:
                    yield Here(path, call, inner)
            case "scalar":
                yield from () if word in _TRAITS else (Here(path, call, SCALAR),)
            case _ if word in ("pop", "index", "popleft"):
                yield Here(path, call, SCALAR)
            case _ if word not in QUIET:
                yield Here(path, call, shape)

    def _mapping(self, here: Here, word: str, call: Call) -> Iterator[Step]:
        inner = here.shape.item(None)
        if word in ("keys", "values", "copy"):
            yield Here(here.path, call, here.shape)
        elif word == "items":
            yield Here(here.path, call, Shape("mapping", ((None, held(inner, 1)),)) if inner else here.shape)
        elif word in ("get", "pop", "setdefault") and inner:
            yield Here(here.path, call, inner)
        elif word == "popitem":
            yield Order(here.path, call, here.node, (Here(here.path, call, SCALAR),))

    def picked(self, here: Here, subscript: Subscript) -> Iterator[Step]:
        """``value[index]``, read; what is written into it goes elsewhere."""
        outer = self._orders.uses.spots(here.path).of(subscript)
        if outer is None or outer.written:
            return
        shape, path = here.shape, here.path
        index = first_constant(subscript.indices)
        sliced = any(isinstance(each, Operation) and each.op == ":" for each in subscript.indices)
        if shape.kind in ("plain", "table", "mapping"):
            inner = shape.item(index)
            whole = Here(path, subscript, shape) if sliced and shape.kind == "plain" else None
            if whole or inner:
                yield whole or Here(path, subscript, inner)  # type: ignore[arg-type]  # one of them is there
        elif shape.kind == "scalar":
            yield Here(path, subscript, SCALAR)
        elif shape.kind == "walk" and index == 0 and (inner := shape.item(None)):
            yield Here(path, subscript, inner)
        elif shape.kind != "set" and not self.is_single(here) and not is_aligned(self._orders.project, path, subscript):
            result = LISTING if _is_whole(subscript) else SCALAR
            yield from ordered(here, subscript, [Here(path, subscript, result)])

    def is_single(self, here: Here) -> bool:
        """Whether the program makes sure that there is one element, or asks how many there are."""
        node = here.node
        while isinstance(node, Call) and node.args and last_word(node.func) in ("iter", "list", "tuple"):
            node = node.args[0].value
        return isinstance(node, Ref) and self._orders.uses.single(here.path, node)


def _taken_out(shape: Shape, word: str) -> Shape | None:
    """What a method of a container in order gives of what it holds."""
    if word in ("values", "copy"):
        return Shape("plain", shape.inner) if word == "values" else shape
    inner = shape.item(None)
    if inner is not None and word == "items":
        return held(held(inner, 1))
    return inner if word in ("get", "pop", "setdefault", "popleft") else None


def _is_whole(subscript: Subscript) -> bool:
    """``x[:]`` and ``x[::-1]``: all elements."""
    match subscript.indices:
        case (Operation(op=":", operands=(low, high, _)),):
            return all(getattr(each, "value", ...) is None for each in (low, high))
    return False
