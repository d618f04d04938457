"""What a function of the project does, when called, to objects that live longer than the call."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint.order.shapes import LISTING, SCALAR, Shape, held
from torchrepro_lint.order.taint import Step
from torchrepro_lint.syntax.nodes import Assign, Call, Constant, Expression, Function, Ref, Subscript, path_of
from torchrepro_lint.syntax.visitor import expressions, last_word, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.order.taint import TaintContext
    from torchrepro_lint.syntax.use_def import Spot

# A reference by what it says: its roots and its path.
_Plain: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


def outer_effects(
    orders: TaintContext, path: str, call: Call, names: tuple[str, ...], spot: Spot, is_outside: Callable[[Ref], bool]
) -> Iterator[Step]:
    """The reads of what a call adds, in the order of the calls, to its object, its arguments or the module's variables."""
    for name in names:
        file = path_of(name)
        for function in orders.names.functions(name) if ":" in name else ():
            for ref, shape in _grown(function):
                yield from _read(orders, path, file, call, function, ref, shape, spot, is_outside)


def _read(
    orders: TaintContext,
    path: str,
    file: str,
    call: Call,
    function: Function,
    ref: Ref,
    shape: Shape,
    spot: Spot,
    is_outside: Callable[[Ref], bool],
) -> Iterator[Step]:
    start = f"{function.name}.<locals>."
    params = [param.name for param in function.params]
    for root in ref.roots:
        word = root[len(start) :] if root.startswith(start) else ""
        if function.owner and params and word == params[0] and len(ref.path) == 1:
            receiver = call.func
            if isinstance(receiver, Ref) and is_outside(receiver):
                inside = orders.uses.spots(file).of(ref) or spot
                yield from orders.reads(file, ref, shape, inside, ref.end)
        elif word in params and not ref.path and not function.owner:
            position = params.index(word)
            given = call.args[position].value if position < len(call.args) else None
            if isinstance(given, Ref) and is_outside(given):
                yield from orders.reads(path, given, shape, spot, call.end)
        elif not word and root.startswith(":"):
            inside = orders.uses.spots(file).of(ref) or spot
            yield from orders.reads(file, ref, shape, inside, ref.end)


def _grown(function: Function) -> Iterator[tuple[Ref, Shape]]:
    """The references whose object a function makes longer, or numbers something in."""
    filled = {_plain(whole) for _, whole, _ in _filled(function)}
    numbers = set(_numbers(function, filled))
    for statement, whole, keys in _filled(function):
        said = [*within(statement.value), *keys] if statement.value is not None else []
        if any(_is_length(each, filled) or _plain(each) in numbers for each in said):
            yield whole, held(SCALAR)
    for body in statements(function.body):
        for expression in expressions(body):
            for each in within(expression):
                match each:
                    case Call(func=Ref(path=(*words, "append" | "extend" | "insert")) as func):
                        yield func._replace(path=tuple(words)), LISTING


def _filled(function: Function) -> Iterator[tuple[Assign, Ref, tuple[Expression, ...]]]:
    """The assignments ``whole[keys] = …`` of a function."""
    for each in statements(function.body):
        if isinstance(each, Assign):
            for target in each.targets:
                if isinstance(target, Subscript) and isinstance(target.value, Ref):
                    yield each, target.value, target.indices


def _numbers(function: Function, filled: Container[_Plain | None]) -> Iterator[_Plain]:
    """What a function counts by: ``number = len(self.ids)``, ``self.size += 1``."""
    for statement in statements(function.body):
        if isinstance(statement, Assign) and statement.value is not None:
            counts = statement.op == "+=" and isinstance(statement.value, Constant) and statement.value.value == 1
            if counts or (statement.op == "=" and _is_length(statement.value, filled)):
                yield from (found for target in statement.targets if (found := _plain(target)) is not None)


def _plain(expression: Expression) -> _Plain | None:
    return (expression.roots, expression.path) if isinstance(expression, Ref) else None


def _is_length(expression: Expression, filled: Container[_Plain | None]) -> bool:
    """``len(self.ids)`` of what the function fills, which is longer the next time."""
    if not isinstance(expression, Call) or last_word(expression.func) != "len":
        return False
    return any(_plain(arg.value) in filled for arg in expression.args if isinstance(arg.value, Ref))
