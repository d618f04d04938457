"""Order-insensitivity of operations: nondeterministic order makes no difference to exact sums and to unique writes.

Sums of integers are exact; writes are unique where an index is known to name no element twice.
"""

from __future__ import annotations

from math import prod

from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE, LiteralValue, Subjects, literal_value
from torchrepro_lint.catalogue.rows import OperationRow
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.domain.operations.condition_variables import tensor_argument
from torchrepro_lint.domain.operations.distinct_indices import (
    has_distinct_indices,
    local_values,
    name_each_once,
    ranking_dimension,
)
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    Operation,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import last_word
from torchrepro_lint.syntax.visitor import is_same_reference, last_identifier
from torchrepro_lint.trace.traces import Traces

# Operations that sum, in an open order unless deterministic mode is on.
_SUMMING = frozenset(
    {"torch.cumsum", "torch.index_add", "torch.Tensor.scatter_add_", "torch.Tensor.scatter_reduce", "torch.bincount"}
    | {"torch.Tensor.put_"}
)
_INDEXING = "torch.Tensor.__getitem__"
_PUTTING = "torch.Tensor.index_put"
# Beyond so many elements, indexing on the CPU is done by several threads: at::internal::GRAIN_SIZE.
_PARALLEL_SINCE = 32_768
# Operations that write to each element as often as an index names it.
_WRITING = frozenset({"torch.Tensor.index_copy", "torch.index_add"})
# Operations that read or write one element for each element of an index.
_ONE_PER_INDEX = frozenset({"torch.gather", "torch.Tensor.scatter"})
_ONES = frozenset({"torch.ones", "torch.ones_like", "torch.zeros", "torch.zeros_like"})
_NEW_ONES = ("new_ones", "new_zeros")


def is_order_free(project: Traces, path: str, call: Call, row: OperationRow, known: Subjects) -> bool:
    """Whether a case gives the same result in any order, and raises nothing in deterministic mode."""
    if row.behaviour == "raises":
        return False
    if row.operation in (_INDEXING, _PUTTING):
        return _is_order_free_indexing(project, path, call, row, known)
    if row.operation in _WRITING and (index := tensor_argument(row.signature, call, "index")) is not None:
        return has_distinct_indices(project, path, index) or _adds_exactly(project, path, call, row, known)
    if row.operation in _ONE_PER_INDEX:
        return _takes_one_per_row(project, path, row, call)
    return _adds_exactly(project, path, call, row, known)


def _is_order_free_indexing(project: Traces, path: str, call: Call, row: OperationRow, known: Subjects) -> bool:
    """Whether indexing names no element twice, writes equal values where it does, adds integers, or runs in one thread."""
    indices = tensor_argument(row.signature, call, "indices")
    if not isinstance(indices, Collection) or None in indices.items:
        return False
    named = [each for each in indices.items if each is not None]
    source = tensor_argument(row.signature, call, "input")
    if name_each_once(project, path, named) or _is_small(project, path, source, named[0], known):
        return True
    if row.operation == _INDEXING:
        return False
    values = tensor_argument(row.signature, call, "values")
    if not _overwrites(row):
        return known.get("input.dtype") == "integer"
    return values is not None and _is_equal_at_equal_indices(project, path, values, named)


def _overwrites(row: OperationRow) -> bool:
    """Whether a row is about the last write to an element, not about a sum."""
    return any(each.of == "accumulate" and each.values == (False,) for each in row.when)


def _is_small(project: Traces, path: str, source: Expression | None, index: Expression, known: Subjects) -> bool:
    """Whether indexing on the CPU has too few elements for a second thread."""
    if known.get("device") != "cpu" or source is None:
        return False
    one, other = (type_inference(project).of(path, each).sizes for each in (source, index))
    if one is None or other is None:
        return False
    known_sizes = [each for each in (*one, *other) if each is not None]
    if len(known_sizes) < len(one) + len(other) or 0 in known_sizes:
        return False
    return prod(known_sizes) // min(known_sizes[: len(one)], default=1) < _PARALLEL_SINCE


def _is_equal_at_equal_indices(project: Traces, path: str, values: Expression, indices: list[Expression]) -> bool:
    """Whether equal indices get equal values: one number for all, or what is read at the same index."""
    what = type_inference(project).of(path, values)
    if what.kind in ("int", "float", "bool") or (what.is_tensor and what.max_ndim == 0):
        return True
    match values:
        case Constant():
            return True
        case Subscript(indices=same):
            return len(same) == len(indices) and all(map(is_same_reference, same, indices))
        case Operation(op="+" | "-" | "*" | "/" | "**" | "//" | "%", operands=operands):
            return all(_is_equal_at_equal_indices(project, path, each, indices) for each in operands)
    return isinstance(values, Call) and _is_ones(project, path, values)


def _takes_one_per_row(project: Traces, path: str, row: OperationRow, call: Call) -> bool:
    """``x.gather(1, target.unsqueeze(1))``, ``x.scatter(1, ranks, y)``: no element of a row twice, so that nothing is summed."""
    dim, index = tensor_argument(row.signature, call, "dim"), tensor_argument(row.signature, call, "index")
    if dim is None or index is None:
        return False
    if _is_squeezed(project, path, call, literal_value(dim)):
        return True
    if _is_same_dimension(ranking_dimension(project, path, index), literal_value(dim)):
        return True
    found = [each for _, each in local_values(project, path, index)]
    return bool(found) and all(_is_single(each, literal_value(dim)) for each in found)


def _is_squeezed(project: Traces, path: str, call: Call, along: LiteralValue) -> bool:
    """``x.gather(1, target).squeeze(1)``: the result has size one along the dimension, and so has the index."""
    spots = project.uses.spots(path)
    read = spots.of(call)
    if read is None or not isinstance(read.parent, Attribute) or read.parent.name != "squeeze":
        return False
    called = spots.of(read.parent)
    if called is None or not isinstance(called.parent, Call) or called.parent.func != read.parent:
        return False
    match called.parent.args:
        case ():
            return True
        case (Arg(value=at),):
            return _is_same_dimension(literal_value(at), along)
    return False


def _is_same_dimension(one: LiteralValue, other: LiteralValue) -> bool:
    """Whether two dimensions are the same; the last of two is 1 and -1."""
    return one == other is not UNKNOWN_VALUE or {one, other} == {1, -1}


def _is_single(index: Expression, along: LiteralValue) -> bool:
    """Whether an index has size one along a dimension."""
    match index:
        case Call(func=func, args=(*_, Arg(keyword=None | "dim", value=at))) if last_identifier(func) == "unsqueeze":
            return _is_same_dimension(literal_value(at), along)
        case Call(func=Attribute(value=inner, name="long" | "to" | "cuda" | "int")):
            return _is_single(inner, along)
        case Call(func=func, args=(_, Arg(value=Constant(value=1)))) if last_identifier(func) in ("view", "reshape"):
            return along in (1, -1)
        case Subscript(indices=(Operation(op=":"), Constant(value=None))):
            return along in (1, -1)
    return False


def _adds_exactly(project: Traces, path: str, call: Call, row: OperationRow, known: Subjects) -> bool:
    """Whether integers are summed; floating-point dtypes represent such sums exactly at the sizes in use."""
    if row.operation not in _SUMMING or _overwrites(row):
        return False
    source = tensor_argument(row.signature, call, "input")
    if row.operation == "torch.cumsum" or known.get("input.dtype") == "integer":
        return known.get("input.dtype") == "integer" or (source is not None and _is_whole(project, path, source))
    added = [each for word in ("src", "source") if (each := tensor_argument(row.signature, call, word)) is not None]
    return source is not None and bool(added) and all(_is_whole(project, path, each) for each in (source, *added))


def _is_whole(project: Traces, path: str, source: Expression) -> bool:
    if type_inference(project).of(path, source).integral:
        return True
    found = [value for _, value in local_values(project, path, source)]
    return bool(found) and all(isinstance(each, Call) and _is_ones(project, path, each) for each in found)


def _is_ones(project: Traces, path: str, made: Call) -> bool:
    names = project.names(path, made.func) or (last_identifier(made.func),)
    return all(name in _ONES or last_word(name) in _NEW_ONES for name in names)
