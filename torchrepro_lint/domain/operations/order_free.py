"""Order-insensitivity of operations: nondeterministic order makes no difference to exact sums and to unique writes.

Sums of integers are exact; writes are unique where an index is known to name no element twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE, LiteralValue, literal_value
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.domain.operations.condition_variables import receiver, tensor_argument
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Call,
    Clause,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.visitor import bodies, expressions, last_identifier, statements, subexpressions

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.conditions import Subjects
    from torchrepro_lint.catalogue.rows import OperationRow
    from torchrepro_lint.domain.project import Project


# Functions whose one-dimensional results name no element twice; an index has one dimension.
_DISTINCT_INDICES = frozenset({"torch.randperm", "torch.arange", "torch.argsort", "torch.unique"})
# Functions that make a tensor of a list of numbers, or of an array.
_TENSOR_OF_LIST = frozenset(
    {"torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.LongTensor", "torch.IntTensor"}
)
# Functions whose arrays name no element twice, with so many arguments at most: with a step, ``arange`` may count in fractions,
# which a conversion to whole numbers makes equal.
_DISTINCT_ARRAYS = {"numpy.arange": 2, "numpy.argsort": 1, "numpy.unique": 1}
# Functions that give back the tensor that they get.
_WRAPPERS = frozenset({"torch.autograd.Variable", "torch.autograd.variable.Variable"})
_DISTINCT_METHODS = frozenset({"argsort", "unique"})
# ``mask.nonzero()`` has one row for each element; a flattening makes it an index.
_ROW_INDICES = frozenset({"nonzero"})
_FLATTENING = frozenset({"view", "flatten", "squeeze", "reshape", "ravel"})
_ELEMENTWISE_COPIES = frozenset(
    {"to", "cuda", "cpu", "long", "int", "clone", "contiguous", "detach", "type", "type_as", "flip"}
)
_MOST_NESTED = 8


def has_distinct_indices(project: Project, path: str, index: Expression, depth: int = _MOST_NESTED) -> bool:
    """Must-be-distinct analysis: whether no value that an index tensor may have names an element twice."""
    found = local_values(project, path, index) if depth else []
    return bool(found) and all(_value_is_distinct(project, file, value, depth - 1) for file, value in found)


def _value_is_distinct(project: Project, path: str, value: Expression, depth: int) -> bool:
    match value:
        case Subscript(value=inner, indices=(Operation(op=":"),)):
            return has_distinct_indices(project, path, inner, depth)
        case Operation(op="+" | "-", operands=(inner, Constant(value=int()))):
            return has_distinct_indices(project, path, inner, depth)
        case Operation(op="+", operands=(Constant(value=int()), inner)):
            return has_distinct_indices(project, path, inner, depth)
        case Call(func=func):
            names, word, on = project.names(path, func), last_identifier(func), receiver(value)
            if names and _TENSOR_OF_LIST.issuperset(names):
                return bool(value.args) and _tensor_data_is_distinct(project, path, value.args[0].value)
            if names and _DISTINCT_INDICES.issuperset(names):
                return not any(arg.keyword in ("dim", "return_inverse", "return_counts") for arg in value.args)
            if names and _WRAPPERS.issuperset(names):
                return bool(value.args) and has_distinct_indices(project, path, value.args[0].value, depth)
            if on is None or any(":" in name for name in names):
                return False
            if word in _DISTINCT_METHODS:
                return not value.args
            if word in _FLATTENING:
                return _is_row_indices(project, path, on) or has_distinct_indices(project, path, on, depth)
            return word in _ELEMENTWISE_COPIES and has_distinct_indices(project, path, on, depth)
    return False


def _tensor_data_is_distinct(project: Project, path: str, value: Expression) -> bool:
    """Whether the data of a tensor has no number twice: it is literal or a range, and is read nowhere else."""
    if not isinstance(value, Ref):
        return _literal_is_distinct(project, path, value)
    found = type_inference(project).assigned(path, value.start, value.roots[0]) if len(value.roots) == 1 else []
    return (
        len(found) == 1
        and not value.path
        and ".<locals>." in value.roots[0]
        and _count_reads(project, path, value.roots[0]) == 1
        and _literal_is_distinct(project, path, found[0])
    )


def _count_reads(project: Project, path: str, root: str) -> int:
    """The number of reads of a variable."""
    return sum(
        isinstance(each, Ref) and root in each.roots
        for body in bodies(project.files[path])
        for statement in statements(body)
        for expression in expressions(statement)
        if not (
            isinstance(statement, Assign) and statement.op == "=" and any(expression is it for it in statement.targets)
        )
        for each in subexpressions(expression)
    )


def _literal_is_distinct(project: Project, path: str, value: Expression) -> bool:
    match value:
        case Collection(kind="list" | "tuple", items=items):
            numbers = [each.value for each in items if isinstance(each, Constant) and type(each.value) is int]
            return bool(items) and len(set(numbers)) == len(items)
        case Comprehension(kind="list", elements=(element,), clauses=(Clause(target=target, source=source),)):
            return (
                isinstance(element, Ref)
                and isinstance(target, Ref)
                and (element.roots, element.path) == (target.roots, target.path)
                and _literal_is_distinct(project, path, source)
            )
        case Call(func=func, args=args):
            names = project.names(path, func)
            if names == ("builtins.range",):
                return len(args) == 1 or (len(args) > 1 and not _counts_from_end(args[0].value))
            if names and all(name in _DISTINCT_ARRAYS for name in names):
                return not any(arg.keyword or len(args) > _DISTINCT_ARRAYS[name] for arg in args for name in names)
            return names == ("builtins.list",) and len(args) == 1 and _literal_is_distinct(project, path, args[0].value)
    return False


def _counts_from_end(value: Expression) -> bool:
    """Whether an index is a negative literal: it may name the same element as one that counts from the start.

    Where a variable is negative, the operations that ask refuse it.
    """
    match value:
        case Constant(value=int(number)):
            return number < 0
        case Operation(op="-", operands=(Constant(),)):
            return True
    return False


def _is_row_indices(project: Project, path: str, value: Expression) -> bool:
    found = [each for _, each in local_values(project, path, value)]
    return bool(found) and all(isinstance(each, Call) and last_identifier(each.func) in _ROW_INDICES for each in found)


def local_values(project: Project, path: str, value: Expression) -> list[tuple[str, Expression]]:
    """The values that an expression may have where it stands, with their files; none for parameters."""
    if isinstance(value, Ref) and any(project.resolver.parameter(f"{path}{root}") for root in value.roots):
        return []
    if isinstance(value, Ref) and not value.path and len(value.roots) == 1:
        assigned = type_inference(project).assigned(path, value.start, value.roots[0])
        if assigned and not any(isinstance(each, Ref) for each in assigned):
            return [(path, each) for each in assigned]
    return list(project.values(path, value))


# Operations that sum, in an open order unless deterministic mode is on.
_SUMMING = frozenset(
    {"torch.cumsum", "torch.index_add", "torch.Tensor.scatter_add_", "torch.Tensor.scatter_reduce", "torch.bincount"}
)
# Operations that write to each element as often as an index names it.
_WRITING = frozenset({"torch.Tensor.index_copy", "torch.index_add"})
# Operations that read or write one element for each element of an index.
_ONE_PER_INDEX = frozenset({"torch.gather", "torch.Tensor.scatter"})
_ONES = frozenset({"torch.ones", "torch.ones_like", "torch.zeros", "torch.zeros_like"})
_NEW_ONES = ("new_ones", "new_zeros")


def is_order_free(project: Project, path: str, call: Call, row: OperationRow, known: Subjects) -> bool:
    """Whether a case gives the same result in any order, and raises nothing in deterministic mode."""
    if row.behaviour == "raises":
        return False
    if row.operation in _WRITING and (index := tensor_argument(row.signature, call, "index")) is not None:
        return has_distinct_indices(project, path, index) or _adds_exactly(project, path, call, row, known)
    if row.operation in _ONE_PER_INDEX:
        return _takes_one_per_row(project, path, row, call)
    return _adds_exactly(project, path, call, row, known)


def _takes_one_per_row(project: Project, path: str, row: OperationRow, call: Call) -> bool:
    """``x.gather(1, target.unsqueeze(1))``: one element of each row, so that the gradient sums nothing."""
    dim, index = tensor_argument(row.signature, call, "dim"), tensor_argument(row.signature, call, "index")
    if dim is None or index is None:
        return False
    found = [each for _, each in local_values(project, path, index)]
    return bool(found) and all(_is_single(each, literal_value(dim)) for each in found)


def _is_single(index: Expression, along: LiteralValue) -> bool:
    """Whether an index has size one along a dimension."""
    match index:
        case Call(func=func, args=(*_, Arg(keyword=None | "dim", value=at))) if last_identifier(func) == "unsqueeze":
            return literal_value(at) == along is not UNKNOWN_VALUE or {literal_value(at), along} == {1, -1}
        case Call(func=func, args=(_, Arg(value=Constant(value=1)))) if last_identifier(func) in ("view", "reshape"):
            return along in (1, -1)
        case Subscript(indices=(Operation(op=":"), Constant(value=None))):
            return along in (1, -1)
    return False


def _adds_exactly(project: Project, path: str, call: Call, row: OperationRow, known: Subjects) -> bool:
    """Whether integers are summed; floating-point dtypes represent such sums exactly at the sizes in use."""
    if row.operation not in _SUMMING:
        return False
    source = tensor_argument(row.signature, call, "input")
    if row.operation == "torch.cumsum" or known.get("input.dtype") == "integer":
        return known.get("input.dtype") == "integer" or (source is not None and _is_whole(project, path, source))
    added = [each for word in ("src", "source") if (each := tensor_argument(row.signature, call, word)) is not None]
    return source is not None and bool(added) and all(_is_whole(project, path, each) for each in (source, *added))


def _is_whole(project: Project, path: str, source: Expression) -> bool:
    if type_inference(project).of(path, source).integral:
        return True
    found = [value for _, value in local_values(project, path, source)]
    return bool(found) and all(isinstance(each, Call) and _is_ones(project, path, each) for each in found)


def _is_ones(project: Project, path: str, made: Call) -> bool:
    names = project.names(path, made.func) or (last_identifier(made.func),)
    return all(name in _ONES or name.rpartition(".")[2] in _NEW_ONES for name in names)
