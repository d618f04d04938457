"""What the uses of a variable show: what is done to sparse tensors only is done to sparse ones, and what they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.infer.bindings import Binding, Env
from torchrepro_lint.syntax.nodes import Call, Expression, If, Operation, Ref, Statement
from torchrepro_lint.syntax.visitor import expressions, last_word, within

if TYPE_CHECKING:
    from torchrepro_lint.infer.flow import Flow

# Methods that a dense tensor refuses.
_SPARSE = frozenset({"coalesce", "is_coalesced", "_indices", "_values", "_nnz", "sparse_dim", "dense_dim"})
# Operations that give a sparse tensor for sparse ones alone.
_KEEPING = frozenset({"index_select", "sign", "neg", "abs", "clone", "detach", "to", "int", "float", "long", "bool"})


def shown_sparse(flow: Flow) -> frozenset[Binding]:
    """The bindings of a function whose uses show that they are of sparse tensors."""
    shown: set[Binding] = set()
    asked = [place.statement for place in flow.places if _asks(place.statement)]
    places = (
        place for place in flow.places if not any(each.start < place.statement.start < each.end for each in asked)
    )
    waiting = [each for place in places for each in _coalesced(place.statement, place.env)]
    while waiting:
        binding = waiting.pop()
        if binding not in shown:
            shown.add(binding)
            waiting += [] if binding.how != "=" else _made_of(binding.value, binding.env)
    return frozenset(shown)


def _asks(statement: Statement) -> bool:
    """``if grad.is_sparse:`` allows for what is not."""
    return isinstance(statement, If) and any("sparse" in last_word(each) for each in within(statement.test))


def _coalesced(statement: Statement, env: Env) -> Iterator[Binding]:
    for expression in expressions(statement):
        for each in within(expression):
            match each:
                case Call(func=Ref(roots=(root,), path=(word,))) if word in _SPARSE and root in env:
                    yield env[root]


def _made_of(value: Expression | None, env: Env | None) -> list[Binding]:
    """The variables that have to be sparse where a value is."""
    match value:
        case Ref(roots=(root,), path=()) if env is not None and root in env:
            return [env[root]]
        case Operation(op="+" | "-" | "*", operands=(left, right)):
            return [*_made_of(left, env), *_made_of(right, env)]
        case Call(func=Ref(roots=("torch",), path=(word,)), args=(first, *_)) if word in _KEEPING:
            return _made_of(first.value, env)
        case Call(func=Ref(start=start, roots=roots, path=(*before, _), base_end=end)) if (
            last_word(value.func) in _KEEPING
        ):
            return _made_of(Ref(start, end, roots, tuple(before), end), env)
    return []
