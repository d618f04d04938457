"""Tests of a type that keep a listing or a set from where a variable is read: ``x if isinstance(x, list) else [x]``.

A value of arbitrary order as an argument of a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.taint.context import Here, Step, Taken
from torchrepro_lint.dataflow.taint.propagation import ordered
from torchrepro_lint.dataflow.taint.transfer import (
    LISTING,
    MAPPING,
    SCALAR,
    SET,
    Shape,
    effect,
    held,
    is_asked,
    is_pattern,
    valued,
)
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Collection,
    Comprehension,
    Expression,
    Function,
    If,
    Leave,
    Operation,
    Ref,
    Statement,
    path_of,
    takes_object,
)
from torchrepro_lint.syntax.use_def import Spot, Spots
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.taint.context import TaintContext


_LISTS = frozenset({"list", "tuple", "Sequence", "MutableSequence"})
_SETS = frozenset({"set", "frozenset", "Set", "AbstractSet", "MutableSet"})
_ANY = frozenset({"Iterable", "Collection", "Sized", "Container", "object"})
_NEITHER = frozenset(
    {"str", "bytes", "int", "float", "bool", "dict", "Mapping", "Path", "PurePath", "PosixPath", "PathLike", "Number"}
    | {"Tensor", "ndarray", "Module", "Dataset", "DataFrame", "Series"}
)


def is_kept_from(spots: Spots, read: Ref, shape: Shape) -> bool:
    """Whether no value of that shape arrives where a variable is read; False for a shape that may be of any type."""
    here = spots.of(read)
    if here is None or read.path or shape.kind not in ("sequence", "set"):
        return False
    if _in_other_operand(spots, read, here, shape):
        return True
    return any(_diverts(tested, around, here, read, shape) for tested, around in _tests(spots, read))


def _tests(spots: Spots, read: Ref) -> list[tuple[If, Spot]]:
    """The ``if`` statements of the function that ask of which type the variable is."""
    found: list[tuple[If, Spot]] = []
    for root in read.roots:
        for each in spots.reads_that(root, "tested", partial(_is_tested, spots)):
            spot = spots.of(each)
            if spot is not None and isinstance(spot.statement, If):
                found.append((spot.statement, spot))
    return found


def _is_tested(spots: Spots, read: Ref) -> bool:
    spot = spots.of(read)
    return spot is not None and isinstance(spot.statement, If) and _asks(spot.parent, read)


def _diverts(tested: If, around: Spot, here: Spot, read: Ref, shape: Shape) -> bool:
    """Whether the branch that such a value takes is another than that of the read, or does not come to it."""
    answer = _truth(tested.test, read, shape)
    if answer is None or around.function != here.function:
        return False
    if any(block.owner is tested and block.number == int(answer) for block in here.blocks):
        return True
    behind = read.start > tested.end and {each.key for each in around.blocks} <= {each.key for each in here.blocks}
    return behind and _leaves(tested.body if answer else tested.orelse)


def _in_other_operand(spots: Spots, read: Ref, here: Spot, shape: Shape) -> bool:
    node: Expression = read
    spot: Spot | None = here
    while spot is not None and spot.parent is not None:
        match spot.parent:
            case Operation(op="if", operands=(test, one, other)):
                answer = _truth(test, read, shape)
                if (answer is True and node is other) or (answer is False and node is one):
                    return True
        node, spot = spot.parent, spots.of(spot.parent)
    return False


def _truth(test: Expression, read: Ref, shape: Shape) -> bool | None:
    """What a test gives for such a value; None where that is not known."""
    match test:
        case Operation(op="not", operands=(inner,)):
            answer = _truth(inner, read, shape)
            return None if answer is None else not answer
        case Operation(op=("and" | "or") as op, operands=operands):
            answers = [_truth(each, read, shape) for each in operands]
            decisive = op == "or"
            return decisive if decisive in answers else None if None in answers else not decisive
        case Call(args=(first, second)) if _asks(test, first.value) and _same(first.value, read):
            return _fits(second.value, shape)
    return None


def _fits(types: Expression, shape: Shape) -> bool | None:
    items = [each for each in types.items if each] if isinstance(types, Collection) else [types]
    words = {last_word(each) for each in items}
    own, other = (_SETS, _LISTS) if shape.kind == "set" else (_LISTS, _SETS)
    if words & (own | _ANY):
        return True
    return False if words <= other | _NEITHER else None


def _asks(call: Expression | None, value: Expression) -> bool:
    return (
        isinstance(call, Call)
        and isinstance(call.func, Ref)
        and call.func.roots == ("builtins.isinstance",)
        and len(call.args) == 2
        and call.args[0].value is value
    )


def _same(one: Expression, other: Ref) -> bool:
    return isinstance(one, Ref) and one.path == other.path and not set(one.roots).isdisjoint(other.roots)


def _leaves(body: tuple[Statement, ...]) -> bool:
    return bool(body) and isinstance(body[-1], Leave) and body[-1].kind in ("raise", "return", "continue", "break")


# What takes the items of a plain dictionary sorted by their keys (torch/nn/modules/container.py, 1.7 to 2.13).
_SORTING = frozenset({"torch.nn.ParameterDict", "torch.nn.modules.container.ParameterDict"})
# A value is remembered to have come through so many calls.
_MOST_CALLS = 3


class Arguments:
    """Steps through calls."""

    def __init__(self, orders: TaintContext) -> None:
        self._orders = orders

    def steps(self, here: Here, call: Call, spot: Spot) -> Iterator[Step]:
        """What a call does with an argument."""
        star = next((arg.star for arg in call.args if arg.value is here.node), "")
        if star:
            yield from self.starred(here, call) if star == "*" else ()
            return
        names = self._orders.names.names(here.path, call.func)
        if _SORTING.intersection(names) and _is_display(here.node):
            return
        word = last_word(call.func)
        what = effect(names, word, _receiver(call.func) is not None)
        if what == "project":
            yield from self._passed(here, call, names)
        else:
            yield from self._known(here, call, spot, what)

    def _known(self, here: Here, call: Call, spot: Spot, what: str) -> Iterator[Step]:
        path, shape = here.path, here.shape
        match what:
            case "same":
                yield Here(path, call, shape)
            case "sorted":
                if inner := shape.holding():
                    yield Here(path, call, inner)
            case "free":
                yield from _freed(here, call)
            case "enumerate" | "zip" | "mapping" | "keep":
                yield from self._along(here, call, what)
            case "collate":
                yield from self._collated(here, call)
            case "next":
                yield from self._next(here, call)
            case "text" if not is_pattern(self._orders.names.names(path, call.func), _position(here, call)):
                yield from ordered(here, call, [Here(path, call, SCALAR)])
            case "draw":
                yield Taken(path, call, "drawn from")
            case "extend" | "append":
                yield from self._received(here, call, spot, what)
            case "unknown" if shape.is_decided and not is_asked(_keyword(call, here.node)):
                yield Taken(path, call, "passed on")

    def _along(self, here: Here, call: Call, what: str) -> Iterator[Step]:
        path, shape = here.path, here.shape
        position = _position(here, call)
        if shape.kind == "scalar":
            yield Here(path, call, held(SCALAR))
            return
        if what == "mapping" and not _is_first(call, here.node):
            if not is_asked(_keyword(call, here.node)):
                yield Here(path, call, valued(shape))
            return
        if shape.kind == "table" and (what == "mapping" or self._makes_columns(here.path, call)):
            yield Here(path, call, shape)
            return
        element = shape.element()
        inner: Shape
        if what == "mapping":
            inner = MAPPING if shape.is_arbitrary else shape
        elif what == "enumerate":
            pair = ((0, SCALAR),) if shape.is_arbitrary else ()
            inner = shape.along()._replace(
                inner=((None, Shape("plain", (*pair, *(((1, element),) if element else ())))),)
            )
        elif what == "zip":
            inner = shape.along()._replace(inner=((None, held(element, position)),) if element else ())
        elif last_word(call.func) in ("map", "imap", "starmap"):
            inner = shape.along()._replace(inner=())
        else:
            inner = shape if shape.kind == "walk" else shape.along()
        if inner.kind == "plain" and not inner.inner:
            return
        yield from ordered(here, call, [Here(path, call, inner)])

    def _makes_columns(self, path: str, call: Call) -> bool:
        """Whether a call takes a dictionary for its values, as ``pandas.DataFrame(columns)`` does."""
        return any(name.startswith("pandas.") for name in self._orders.names.names(path, call.func))

    def _collated(self, here: Here, call: Call) -> Iterator[Step]:
        """A batch of dictionaries is one dictionary, in the order of theirs."""
        inner = here.shape.item(None) if here.shape.kind == "plain" else None
        if inner is not None and inner.kind == "mapping":
            yield Here(here.path, call, inner)
        else:
            yield from self._along(here, call, "keep")

    def _next(self, here: Here, call: Call) -> Iterator[Step]:
        shape = here.shape
        if call.args[0].value is not here.node:
            return  # what is given where there is no more
        if shape.kind in ("walk", "plain", "table"):
            if inner := shape.element():
                yield Here(here.path, call, inner)
        elif shape.kind == "scalar" or not self._orders.methods.is_single(here):
            yield from ordered(here, call, [Here(here.path, call, SCALAR)])

    def _received(self, here: Here, call: Call, spot: Spot, what: str) -> Iterator[Step]:
        """``items.extend(listing)``: what the receiver holds from now on."""
        receiver = _receiver(call.func)
        shape = here.shape.along() if what == "extend" and here.shape.kind != "scalar" else held(here.shape)
        if isinstance(receiver, Ref):
            then = self._orders.reads(here.path, receiver, shape, spot, call.end)
            yield from ordered(here, here.node, then) if what == "extend" else then
        elif here.shape.is_decided:
            yield Taken(here.path, call, "passed on")

    def starred(self, here: Here, call: Call) -> Iterator[Step]:
        """``f(*listing)``."""
        names = self._orders.names.names(here.path, call.func)
        what = effect(names, last_word(call.func), _receiver(call.func) is not None)
        if what in ("free", "sorted", "same") or here.shape.kind == "table":
            return
        if what in ("keep", "zip", "text"):
            result = SCALAR if what == "text" else LISTING
            yield from ordered(here, call, [Here(here.path, call, result)])
        else:
            yield from ordered(here, call, [Taken(here.path, call, "passed on")])

    def _passed(self, here: Here, call: Call, names: tuple[str, ...]) -> Iterator[Step]:
        """To a function of the project: what that does with its parameter."""
        for name in names:
            if self._wraps(name):
                yield from self._along(here, call, "keep")
                continue
            target = self._constructor(name)
            path = path_of(target)
            for function in self._orders.names.functions(target):
                word = _parameter(function, call, here.node)
                if word is not None and function.body:
                    came = (*(here.came or ())[-_MOST_CALLS:], (target, here.path, call))
                    shape = valued(here.shape) if word.startswith("**") else here.shape
                    shape = held(shape) if word.startswith("*") and not word.startswith("**") else shape
                    for file, ref, words in self._orders.uses.of_parameter(path, function, word.lstrip("*")):
                        if not is_kept_from(self._orders.uses.spots(file), ref, shape):
                            yield Here(file, ref, shape, words, came)
            if ":" in name and self._orders.names.classes(name) and not self._orders.names.functions(target):
                yield from self._to_outside(here, call)

    def _wraps(self, name: str) -> bool:
        """Whether an object of the class goes along what its constructor is given, as a progress bar does."""
        found = self._orders.names.methods(name, "__iter__") if self._orders.names.classes(name) else ()
        return any(self._orders.names.is_generator(each) for each in found) and not self._orders.names.methods(
            name, "__getitem__"
        )

    def _constructor(self, name: str) -> str:
        if self._orders.names.classes(name):
            return next(iter(self._orders.names.methods(name, "__init__")), name)
        if name.endswith("()"):
            return next(iter(self._orders.names.call_methods(name)), name)
        return name

    def _to_outside(self, here: Here, call: Call) -> Iterator[Step]:
        if here.shape.is_decided and not last_word(call.func).endswith(("Error", "Warning", "Exception")):
            yield Taken(here.path, call, "passed on")


def _freed(here: Here, call: Call) -> Iterator[Step]:
    """What goes on where the order is lost: a sum of lists, the union with a set, the greatest of what was decided."""
    word, shape = last_word(call.func), here.shape
    if word == "sum" and len(call.args) > 1:
        yield from ordered(here, call, [Here(here.path, call, shape.along())])
    elif shape.kind == "set" and word in ("union", "symmetric_difference", "intersection"):
        yield Here(here.path, call, SET)
    elif shape.kind == "scalar" and word in ("min", "max", "sum", "set", "sorted"):
        yield Here(here.path, call, SCALAR)


def _position(here: Here, call: Call) -> int:
    return next((index for index, arg in enumerate(call.args) if arg.value is here.node), 0)


def _is_first(call: Call, node: Expression) -> bool:
    """Whether a mapping is made of it, ``dict(pairs)`` and ``dict.fromkeys(keys)``, and does not only hold it."""
    return call.args[0].value is node and call.args[0].keyword is None


def _keyword(call: Call, node: Expression) -> str | None:
    return next((arg.keyword for arg in call.args if arg.value is node), None)


def _is_display(node: Expression) -> bool:
    """Whether a plain dictionary is written out here."""
    return isinstance(node, (Collection, Comprehension)) and node.kind == "dict"


def _receiver(func: Expression) -> Expression | None:
    match func:
        case Attribute(value=value):
            return value
        case Ref(path=(*words, _)):
            return func._replace(path=tuple(words))
    return None


def _parameter(function: Function, call: Call, node: Expression) -> str | None:
    """The parameter for which a call passes an expression; with its stars where that is one of many."""
    shift = int(takes_object(function))
    plain = [param.name for param in function.params if param.kind in ("", "/")]
    more = {param.kind: param.kind + param.name for param in function.params if param.kind in ("*", "**")}
    position = 0
    for arg in call.args:
        if arg.value is node:
            if arg.keyword is not None:
                known = any(param.name == arg.keyword for param in function.params)
                return arg.keyword if known else more.get("**")
            index = position + shift
            return plain[index] if index < len(plain) else more.get("*")
        position += arg.keyword is None
    return None
