"""Tests of a type that keep a listing or a set from where a variable is read: ``x if isinstance(x, list) else [x]``."""

from __future__ import annotations

from functools import partial

from torchrepro_lint.order.shapes import Shape
from torchrepro_lint.syntax.nodes import Call, Collection, Expression, If, Leave, Operation, Ref, Statement
from torchrepro_lint.syntax.use_def import Spot, Spots
from torchrepro_lint.syntax.visitor import last_word

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
