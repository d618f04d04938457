"""What the uses of a variable show: indices and counts that torch is given are of integers, and so is what they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.infer.bindings import Binding, Env
from torchrepro_lint.syntax.nodes import Call, Expression, Operation, Ref, Subscript
from torchrepro_lint.syntax.visitor import expressions, last_word, within

if TYPE_CHECKING:
    from torchrepro_lint.infer.flow import Flow

# Functions of torch by which argument, counted from 0, they take integers; methods are called on the first.
_INDEXED = {
    **dict.fromkeys(
        ("index_select", "gather", "index_add", "index_add_", "index_copy", "index_copy_", "index_fill"), 2
    ),
    **dict.fromkeys(("scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_", "index_fill_"), 2),
    "repeat_interleave": 1,
}
# Arithmetic and methods that give integers for integers alone.
_ARITHMETIC = frozenset({"+", "-", "*", "//", "%"})
_KEEPING = frozenset(
    {"view", "reshape", "flatten", "unsqueeze", "squeeze", "clone", "contiguous", "expand", "t", "clamp"}
)


def shown_indices(flow: Flow) -> frozenset[Binding]:
    """The bindings of a function that are given as indices or counts, and those that they are worked out from."""
    shown: set[Binding] = set()
    waiting: list[Binding] = []
    for place in flow.places:
        for expression in expressions(place.statement):
            for each in within(expression):
                waiting += _of(_index(each), place.env) if isinstance(each, Call) else ()
    while waiting:
        binding = waiting.pop()
        if binding not in shown:
            shown.add(binding)
            waiting += _of(binding.value, binding.env) if binding.how == "=" else ()
    return frozenset(shown)


def _of(value: Expression | None, env: Env | None) -> Iterator[Binding]:
    """The variables that have to be of integers where a value is."""
    match value:
        case Ref(roots=(root,), path=()) if env is not None and root in env:
            yield env[root]
        case Operation(op=op, operands=operands) if op in _ARITHMETIC:
            for each in operands:
                yield from _of(each, env)
        case Subscript(value=inner):
            yield from _of(inner, env)
        case Call(func=Ref(start=start, roots=roots, path=(*before, word), base_end=end)) if word in _KEEPING:
            yield from _of(Ref(start, end, roots, tuple(before), end), env)


def _index(call: Call) -> Expression | None:
    """What a call is given for an index."""
    word = last_word(call.func)
    if word not in _INDEXED or any(arg.star for arg in call.args):
        return None
    named = next((arg.value for arg in call.args if arg.keyword in ("index", "repeats")), None)
    plain = [arg.value for arg in call.args if arg.keyword is None]
    at = _INDEXED[word] - (not (isinstance(call.func, Ref) and call.func.roots == ("torch",)))
    return named if named is not None else plain[at] if at < len(plain) else None
