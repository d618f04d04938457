"""Types by use: what the uses of a variable imply, if nothing else is known of it.

A variable is a tensor if something is done to it that only tensors can do, integral if torch takes it as an index
or a count, and sparse if only a sparse tensor has the method. The same follows for what it is computed from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.tensor_operations import tensor_operations
from torchrepro_lint.dataflow.types.bindings import Binding, ProgramPoint, TypeEnvironment
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.nodes import Attribute, Call, Expression, If, Operation, Ref, Statement, Subscript
from torchrepro_lint.syntax.qualified_names import class_of, in_project, is_instance, last_word, split_last
from torchrepro_lint.syntax.visitor import expressions_within, last_identifier, subexpressions

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.dataflow.types.flow import BodyFlow


# A test like these means that the value may have several types.
_TESTS = frozenset({"isinstance", "hasattr", "getattr", "type", "callable", "is_tensor", "issubclass"})
_ATTRIBUTES = frozenset({"requires_grad", "is_cuda", "grad_fn", "is_leaf", "is_sparse"})
_WITH_DIM = frozenset(
    {"sum", "mean", "max", "min", "softmax", "argmax", "argmin", "std", "var", "cumsum", "squeeze", "norm", "topk"}
)
# Layers that also take other values: anything, or packed sequences.
_OPEN_LAYERS = frozenset({"Identity", "LSTM", "GRU", "RNN"})


def tensors_by_use(inference: TypeInference, path: str, flow: BodyFlow) -> frozenset[Binding]:
    """The bindings whose uses imply a tensor, unless their type is tested somewhere."""
    shown: set[Binding] = set()
    asked: set[Binding] = set()
    for place in flow.points:
        for each in expressions_within(place.statement):
            if isinstance(each, Call):
                _use_in_call(inference, each, ProgramPoint(path, place.env, 0), shown, asked)
            elif isinstance(each, Ref) and each.path and each.path[0] in _ATTRIBUTES:
                shown.update(_bindings(each, place.env))
    return frozenset(shown - _with_aliases(asked))


def _with_aliases(asked: set[Binding]) -> set[Binding]:
    """The bindings, and those that they are aliases of."""
    waiting, found = list(asked), set(asked)
    while waiting:
        binding = waiting.pop()
        if (
            binding.kind == "="
            and isinstance(binding.value, Ref)
            and not binding.value.path
            and binding.env is not None
        ):
            more = _bindings(binding.value, binding.env) - found
            found |= more
            waiting += more
    return found


def _use_in_call(
    inference: TypeInference, call: Call, point: ProgramPoint, shown: set[Binding], asked: set[Binding]
) -> None:
    first = call.args[0].value if call.args and not call.args[0].star else None
    match call.func:
        case Ref(roots=roots, path=()) if first is not None and last_word(roots[0]) in _TESTS:
            asked.update(_bindings(first, point.env))
        case Ref(path=(word,)) if _is_tensor_only(word, call):
            shown.update(_bindings(call.func, point.env))
    if (
        isinstance(first, Ref)
        and not first.path
        and (found := _bindings(first, point.env))
        and _takes_tensor(inference, call, point)
    ):
        shown.update(found)


def _is_tensor_only(word: str, call: Call) -> bool:
    """Whether only a tensor has a method of this name."""
    if word in tensor_operations().tensor_only or (
        word in ("size", "dim", "ndimension") and (word != "size" or call.args)
    ):
        return True
    return word in _WITH_DIM and any(arg.keyword == "dim" for arg in call.args)


def _takes_tensor(inference: TypeInference, call: Call, point: ProgramPoint) -> bool:
    """Whether the first argument of a call must be a tensor: of torch functions and layers."""
    names = inference.project.names(point.path, call.func)
    if not names or any(map(in_project, names)):
        return False
    return all(_refuses_others(name) for name in names)


def _refuses_others(name: str) -> bool:
    module, word = split_last(class_of(name))
    if is_instance(name):
        known = word in tensor_operations().layers or word in tensor_operations().learned
        return known and module.startswith("torch.nn") and word not in _OPEN_LAYERS
    if module == "torch.nn.functional":
        return tensor_operations().function(name) is not None
    row = tensor_operations().names.get(word) if module == "torch" else None
    return row is not None and row.listed < 0 and row.variadic < 0 and word != "pow"  # of lists, or of a number


def _bindings(expression: Expression, env: TypeEnvironment) -> set[Binding]:
    """The bindings of the variable that an expression reads."""
    if not isinstance(expression, Ref):
        return set()
    return {env[root] for root in expression.roots if root in env}


# Functions of torch by the position of the integral argument; of methods, the receiver is position 0.
_INDEXED = {
    **dict.fromkeys(
        ("index_select", "gather", "index_add", "index_add_", "index_copy", "index_copy_", "index_fill"), 2
    ),
    **dict.fromkeys(("scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_", "index_fill_"), 2),
    "repeat_interleave": 1,
}
# Operators and methods whose result is integral only if the operands are.
_ARITHMETIC = frozenset({"+", "-", "*", "//", "%"})
_KEEPING_INTEGERS = frozenset(
    {"view", "reshape", "flatten", "unsqueeze", "squeeze", "clone", "contiguous", "expand", "t", "clamp"}
    | {"index_select", "gather", "masked_select", "repeat", "repeat_interleave", "expand_as", "view_as", "permute"}
    | {"transpose", "flip", "roll", "narrow", "select", "detach", "cpu", "cuda"}
)


def indices_by_use(flow: BodyFlow) -> frozenset[Binding]:
    """The bindings that torch takes as indices or counts, and those from which they are computed."""
    shown: set[Binding] = set()
    waiting: list[Binding] = []
    for place in flow.points:
        for each in expressions_within(place.statement):
            waiting += _integral_operands(_index_argument(each), place.env) if isinstance(each, Call) else ()
    while waiting:
        binding = waiting.pop()
        if binding not in shown:
            shown.add(binding)
            waiting += _integral_operands(binding.value, binding.env) if binding.kind == "=" else ()
    return frozenset(shown)


def _integral_operands(value: Expression | None, env: TypeEnvironment | None) -> Iterator[Binding]:
    """The variables that must be integral if a value is."""
    match value:
        case Ref(roots=(root,), path=()) if env is not None and root in env:
            yield env[root]
        case Operation(op=op, operands=operands) if op in _ARITHMETIC:
            for each in operands:
                yield from _integral_operands(each, env)
        case Subscript(value=inner):
            yield from _integral_operands(inner, env)
        case Call(func=Ref(start=start, roots=roots, path=(*before, word), base_end=end)) if word in _KEEPING_INTEGERS:
            yield from _integral_operands(Ref(start, end, roots, tuple(before), end), env)
        case Call(func=Attribute(value=inner, name=word)) if word in _KEEPING_INTEGERS:
            yield from _integral_operands(inner, env)


def _index_argument(call: Call) -> Expression | None:
    """The index argument of a call."""
    word = last_identifier(call.func)
    if word not in _INDEXED:
        return None
    at = _INDEXED[word] - (not (isinstance(call.func, Ref) and call.func.roots == ("torch",)))
    return known_argument(call, at, "index", "repeats")


# Methods that raise on a dense tensor.
_SPARSE = frozenset({"coalesce", "is_coalesced", "_indices", "_values", "_nnz", "sparse_dim", "dense_dim"})
# Operations whose result is sparse only if the operands are.
_KEEPING_SPARSITY = frozenset(
    {"index_select", "sign", "neg", "abs", "clone", "detach", "to", "int", "float", "long", "bool"}
)


def sparse_by_use(flow: BodyFlow) -> frozenset[Binding]:
    """The bindings whose uses imply a sparse tensor."""
    shown: set[Binding] = set()
    asked = [place.statement for place in flow.points if _asks(place.statement)]
    places = (
        place for place in flow.points if not any(each.start < place.statement.start < each.end for each in asked)
    )
    waiting = [each for place in places for each in _coalesced(place.statement, place.env)]
    while waiting:
        binding = waiting.pop()
        if binding not in shown:
            shown.add(binding)
            waiting += [] if binding.kind != "=" else _sparse_operands(binding.value, binding.env)
    return frozenset(shown)


def _asks(statement: Statement) -> bool:
    """Whether a statement tests for sparsity, ``if grad.is_sparse:``: then the value may be dense."""
    return isinstance(statement, If) and any(
        "sparse" in last_identifier(each) for each in subexpressions(statement.test)
    )


def _coalesced(statement: Statement, env: TypeEnvironment) -> Iterator[Binding]:
    for each in expressions_within(statement):
        match each:
            case Call(func=Ref(roots=(root,), path=(word,))) if word in _SPARSE and root in env:
                yield env[root]


def _sparse_operands(value: Expression | None, env: TypeEnvironment | None) -> list[Binding]:
    """The variables that must be sparse if a value is."""
    match value:
        case Ref(roots=(root,), path=()) if env is not None and root in env:
            return [env[root]]
        case Operation(op="+" | "-" | "*", operands=(left, right)):
            return [*_sparse_operands(left, env), *_sparse_operands(right, env)]
        case Call(func=Ref(roots=("torch",), path=(word,)), args=(first, *_)) if word in _KEEPING_SPARSITY:
            return _sparse_operands(first.value, env)
        case Call(func=Ref(start=start, roots=roots, path=(*before, _), base_end=end)) if (
            last_identifier(value.func) in _KEEPING_SPARSITY
        ):
            return _sparse_operands(Ref(start, end, roots, tuple(before), end), env)
    return []
