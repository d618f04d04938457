"""Lists made along a set and read by each element's place in it: ``rows[i]`` for ``i, name in enumerate(names)``.

A set that does not change gives its elements in one order however often it is gone along, so what is read there belongs to the
element, wherever that stands.

One step of a value of arbitrary order: from an expression to what is made of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.taint.context import Here, Order, Step, Taken
from torchrepro_lint.dataflow.taint.transfer import SCALAR, SET, Shape, held, is_asked, valued
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Do,
    Expression,
    Leave,
    Loop,
    Operation,
    Ref,
    Subscript,
    With,
)
from torchrepro_lint.syntax.use_def import bound
from torchrepro_lint.syntax.visitor import last_word, statements

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.taint.context import TaintContext
    from torchrepro_lint.dataflow.value_flow import ValueFlow
    from torchrepro_lint.syntax.use_def import Spot, Spots


_LOOKING = frozenset({"enumerate", "len", "sorted", "min", "max", "any", "all", "print"})
_ASKING = frozenset({"in", "not in", "==", "!=", "<", ">", "<=", ">=", "not"})


def is_aligned(project: ValueFlow, path: str, subscript: Subscript) -> bool:
    """Whether an item is that of the element of a set, at whose place it stands."""
    spots = project.uses.spots(path)
    spot = spots.of(subscript)
    match subscript:
        case Subscript(value=Ref(roots=(made,), path=()), indices=(Ref(roots=(index,), path=()),)) if spot is not None:
            loop = next((b.owner for b in reversed(spot.blocks) if _binds(spots, b.owner, index)), None)
            along = _numbered(loop) if isinstance(loop, Loop) else ""
            return (
                bool(along)
                and _is_constant(project, path, spots, along)
                and _is_made_along(project, path, spots, made, along)
            )
    return False


def _binds(spots: Spots, owner: object, root: str) -> bool:
    """Whether a loop gives a variable its values, and nothing in its body does."""
    if not isinstance(owner, Loop) or owner.target is None:
        return False
    written = [ref for ref in spots.reads(root) if owner.start <= ref.start < owner.end and _is_written(spots, ref)]
    return any(ref is each for ref in written for each in bound(owner.target)) and len(written) == 1


def _is_written(spots: Spots, ref: Ref) -> bool:
    spot = spots.of(ref)
    return spot is not None and spot.written


def _numbered(loop: Loop) -> str:
    """The variable that a loop goes along with the places of its elements."""
    match loop:
        case Loop(
            target=Collection(items=(Ref(path=()), _)),
            source=Call(func=Ref(roots=("builtins.enumerate",), path=()), args=(arg,)),
        ):
            return _variable(arg.value)
    return ""


def _variable(value: Expression) -> str:
    return value.roots[0] if isinstance(value, Ref) and not value.path and len(value.roots) == 1 else ""


def _is_constant(project: ValueFlow, path: str, spots: Spots, root: str) -> bool:
    """Whether a local variable is bound once, and what it holds is only gone along or looked at."""
    given = project.origins.assignments(path).get(root, ())
    passed = project.resolver.parameter(path + root) is not None
    if "<locals>" not in root or len(given) + passed != 1:
        return False
    for ref in spots.reads(root):
        spot = spots.of(ref)
        assert spot is not None
        match spot.parent:
            case None if isinstance(spot.statement, Loop) or _is_given(spot):
                continue
            case Comprehension(clauses=clauses) if any(clause.source is ref for clause in clauses):
                continue
            case Call(func=func) if not ref.path and last_word(func) in _LOOKING:
                continue
            case Operation(op=op) if op in _ASKING:
                continue
        return False
    return True


def _is_given(spot: Spot) -> bool:
    """Whether a target is given a value, and keeps nothing of the one before."""
    return spot.written and isinstance(spot.statement, Assign) and spot.statement.op in ("=", ":")


def _is_made_along(project: ValueFlow, path: str, spots: Spots, root: str, along: str) -> bool:
    """Whether a list gets one item for each element, and is only read by places then."""
    given = [each.value for each in project.origins.assignments(path).get(root, ())]
    match given:
        case [Comprehension(kind="list", clauses=(clause,))]:
            whole = not clause.tests and _variable(clause.source) == along
            return whole and not list(_grown(spots, root, along, None))
        case [Collection(kind="list", items=()) as empty] if (spot := spots.of(empty)) is not None:
            return list(_grown(spots, root, along, spot)) == [True]
    return False


def _grown(spots: Spots, root: str, along: str, made: Spot | None) -> Iterator[bool]:
    """For each use but reading at a place whether it appends one item in each round of a loop along a variable, beside where
    the list was made.
    """
    for ref in spots.reads(root):
        spot = spots.of(ref)
        assert spot is not None
        match spot.parent:
            case None if _is_given(spot):
                continue
            case Subscript(value=value) if value is ref and not ref.path:
                continue
            case Call(func=func) if func is ref and ref.path == ("append",) and isinstance(spot.statement, Do):
                *around, block = spot.blocks
                beside = made is not None and [each.key for each in around] == [each.key for each in made.blocks]
                whole = isinstance(block.owner, Loop) and block.number == 0 and _goes_along(block.owner, along)
                yield beside and whole and spot.statement.value is spot.parent
            case _:
                yield False


def _goes_along(loop: Loop, along: str) -> bool:
    """Whether a loop goes along all of a variable."""
    if any(isinstance(each, Leave) for each in statements(loop.body)):
        return False
    return _variable(loop.source) == along or _numbered(loop) == along


def steps(orders: TaintContext, here: Here) -> Iterator[Step]:
    """What becomes of a value."""
    if here.words:
        yield from orders.methods.steps(here)
        return
    spot = orders.uses.spots(here.path).of(here.node)
    if spot is None:
        return
    if spot.parent is None:
        yield from _in_statement(orders, here, spot)
    else:
        yield from _in_expression(orders, here, spot, spot.parent)


def _in_statement(orders: TaintContext, here: Here, spot: Spot) -> Iterator[Step]:
    match spot.statement:
        case Assign(op="=" | ":", targets=targets) if not spot.written:
            for target in targets:
                yield from bind(orders, here, target, spot, spot.statement.end)
        case Assign(op=op, targets=(target,)) if not spot.written:
            yield from _augment(orders, here, target, op, spot)
        case Loop(target=target) if target is not None and not spot.written:
            yield from orders.loops.steps(here, spot.statement, spot)
        case With(items=items) if not spot.written:
            for value, entered in items:
                if value is here.node and entered is not None:
                    yield from bind(orders, here, entered, spot, entered.end)
        case Leave(kind="return"):
            yield from orders.returns.steps(here, spot.function)


def bind(orders: TaintContext, here: Here, target: Expression, spot: Spot, after: int) -> Iterator[Step]:
    """Give a target a value: its parts where the target takes it apart."""
    match target:
        case Ref():
            yield from orders.reads(here.path, target, here.shape, spot, after)
        case Subscript(value=Ref() as whole, indices=(Operation(op=":"),)):
            yield from orders.reads(here.path, whole, here.shape, spot, after)
        case Subscript(value=Ref() as whole, indices=indices):
            named = len(indices) == 1 and isinstance(indices[0], Constant) and isinstance(indices[0].value, str)
            shape = valued(here.shape) if named else held(here.shape)
            yield from orders.reads(here.path, whole, shape, spot, after)
        case Collection(kind="tuple" | "list", items=items):
            yield from _unpack(orders, here, [item for item in items if item is not None], spot, after)


def _unpack(orders: TaintContext, here: Here, items: list[Expression], spot: Spot, after: int) -> Iterator[Step]:
    """An arbitrary order that is taken apart decides who gets what, unless there is one to get."""
    single = len(items) == 1 and not isinstance(items[0], Operation)
    then: list[Step] = []
    for index, item in enumerate(items):
        inner: Shape | None
        target: Expression = item
        if isinstance(item, Operation) and item.op == "*" and len(item.operands) == 1:
            target, inner = item.operands[0], here.shape.along()
        elif here.shape.kind == "table":
            inner = None  # its keys
        elif here.shape.kind == "plain":
            inner = here.shape.item(index)
        elif here.shape.kind == "scalar":
            inner = SCALAR
        else:
            inner = here.shape.item(None) or (None if single else SCALAR)
        if inner is not None:
            then += bind(orders, here._replace(shape=inner), target, spot, after)
    yield from ordered(here, here.node, then)


def ordered(here: Here, taker: Expression, then: Iterable[Step]) -> Iterator[Step]:
    """What becomes of an order that is taken."""
    if here.shape.is_arbitrary:
        yield Order(here.path, taker, here.node, tuple(flat(then)))
    else:
        yield from then


def flat(steps_: Iterable[Step]) -> Iterator[Here | Taken]:
    """Steps behind one that has taken the order already."""
    for step in steps_:
        if isinstance(step, Order):
            yield from step.then
        else:
            yield step


def _augment(orders: TaintContext, here: Here, target: Expression, op: str, spot: Spot) -> Iterator[Step]:
    """``x += listing`` makes x a listing; ``|=`` and the like are set algebra."""
    if op != "+=" or not isinstance(target, Ref):
        return
    then = orders.reads(
        here.path, target, here.shape.along() if here.shape.kind != "scalar" else SCALAR, spot, spot.statement.end
    )
    yield from ordered(here, here.node, then) if here.shape.kind != "scalar" else then


def _in_expression(orders: TaintContext, here: Here, spot: Spot, parent: Expression) -> Iterator[Step]:
    path, node, shape = here.path, here.node, here.shape
    match parent:
        case Call(func=func) if func is node:
            return
        case Call():
            yield from orders.arguments.steps(here, parent, spot)
        case Subscript(value=value) if value is node:
            yield from orders.methods.picked(here, parent)
        case Subscript():
            if spot.written or _is_stored(orders, path, parent):
                if shape.kind == "scalar":
                    yield Taken(path, parent, "stored")
            elif not is_aligned(orders.project, path, parent):
                yield Here(path, parent, shape.along() if shape.is_arbitrary else shape)
        case Collection():
            yield from _displayed(here, parent)
        case Operation():
            yield from _operated(orders, here, parent, spot)
        case Comprehension():
            yield from orders.loops.comprehended(here, parent)
        case Attribute(name=word):
            yield Here(path, parent, shape, (word,))


def _is_stored(orders: TaintContext, path: str, subscript: Subscript) -> bool:
    spot = orders.uses.spots(path).of(subscript)
    return spot is not None and spot.written


def _displayed(here: Here, parent: Collection) -> Iterator[Step]:
    if parent.kind == "set":
        return
    places = [index for index, item in enumerate(parent.items) if item is here.node]
    if parent.kind == "dict":
        if here.shape.kind == "scalar" or (places[0] % 2 and not _is_asked(parent.items[places[0] - 1])):
            yield Here(here.path, parent, valued(here.shape) if places[0] % 2 else held(here.shape))
    else:
        starred = any(isinstance(item, Operation) and item.op == "*" for item in parent.items)
        yield Here(here.path, parent, held(here.shape, None if starred else places[0]))


def _is_asked(key: Expression | None) -> bool:
    return isinstance(key, Constant) and isinstance(key.value, str) and is_asked(key.value)


def _operated(  # noqa: C901  a line or two per kind
    orders: TaintContext, here: Here, parent: Operation, spot: Spot
) -> Iterator[Step]:
    path, shape = here.path, here.shape
    match parent.op:
        case "*" if len(parent.operands) == 1:
            outer = orders.uses.spots(path).of(parent)
            if outer is not None and isinstance(outer.parent, Collection) and outer.parent.kind in ("list", "tuple"):
                yield from ordered(here, outer.parent, [Here(path, outer.parent, shape.along())])
        case "if":
            if parent.operands[0] is not here.node:
                yield Here(path, parent, shape)
        case "+" | "or" | "and" | "await":
            yield Here(path, parent, shape)
        case "-" | "|" | "&" | "^" if shape.kind == "set":
            yield Here(path, parent, SET)
        case "*" | "|" if shape.is_arbitrary or shape.kind in ("plain", "table"):
            yield Here(path, parent, shape)
        case "f" | "%":
            then = [Here(path, parent, SCALAR)]
            yield from ordered(here, parent, then)
        case "yield":
            yield from orders.returns.steps(here._replace(shape=held(shape)), spot.function)
        case "yield from":
            yield from ordered(here, parent, orders.returns.steps(here._replace(shape=shape.along()), spot.function))
        case ":=":
            yield from bind(orders, here, parent.operands[0], spot, parent.end)
            yield Here(path, parent, shape)
        case "-" | "*" | "/" | "//" | "**" | "<<" | ">>" | "@" | "&" | "|" | "^" | "~" if shape.kind == "scalar":
            yield Here(path, parent, SCALAR)


def first_constant(indices: tuple[Expression, ...]) -> int | None:
    """The literal index of a subscript."""
    match indices:
        case (Constant(value=int(index)),):
            return index
    return None
