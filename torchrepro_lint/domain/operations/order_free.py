"""Indices that name no element twice: nothing is added up where a gradient goes back through them.

Operations whose order is open, and makes no difference: sums of whole numbers, and writing to each place once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import OPEN, Literal, literal
from torchrepro_lint.dataflow.types.inference import kinds_of
from torchrepro_lint.domain.operations.subjects import receiver, tensor
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
from torchrepro_lint.syntax.visitor import bodies, expressions, last_word, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.conditions import Known
    from torchrepro_lint.catalogue.rows import Row
    from torchrepro_lint.domain.project import Project


# Of what is given with one dimension: an index that is selected by has no more.
_MAKING = frozenset({"torch.randperm", "torch.arange", "torch.argsort", "torch.unique"})
# Of a list of numbers.
_HOLDING = frozenset({"torch.tensor", "torch.as_tensor", "torch.LongTensor", "torch.IntTensor"})
_MAKING_METHODS = frozenset({"argsort", "unique"})
# ``mask.nonzero()`` has a row for each element of a vector, which is taken out of its brackets.
_ROWS = frozenset({"nonzero"})
_OUT_OF_ROWS = frozenset({"view", "flatten", "squeeze", "reshape", "ravel"})
_KEEPING = frozenset({"to", "cuda", "cpu", "long", "int", "clone", "contiguous", "detach", "type_as", "flip"})
_DEEPEST = 8


def distinct(project: Project, path: str, index: Expression, depth: int = _DEEPEST) -> bool:
    """Whether each value that an index may have names no element twice."""
    found = own_values(project, path, index) if depth else []
    return bool(found) and all(_is_distinct(project, file, value, depth - 1) for file, value in found)


def _is_distinct(project: Project, path: str, value: Expression, depth: int) -> bool:
    match value:
        case Subscript(value=inner, indices=(Operation(op=":"),)):
            return distinct(project, path, inner, depth)
        case Call(func=func):
            names, word, on = project.names(path, func), last_word(func), receiver(value)
            if names and _HOLDING.issuperset(names):
                return bool(value.args) and _lists_each_once(project, path, value.args[0].value)
            if names and _MAKING.issuperset(names):
                return not any(arg.keyword in ("dim", "return_inverse", "return_counts") for arg in value.args)
            if on is None or any(":" in name for name in names):
                return False
            if word in _MAKING_METHODS:
                return not value.args
            if word in _OUT_OF_ROWS:
                return _is_rows(project, path, on)
            return word in _KEEPING and distinct(project, path, on, depth)
    return False


def _lists_each_once(project: Project, path: str, value: Expression) -> bool:
    """Whether what a tensor is made of holds no number twice: it is written out, or taken from a range, and nothing else sees it."""
    if not isinstance(value, Ref):
        return _has_each_once(project, path, value)
    found = kinds_of(project).assigned(path, value.start, value.roots[0]) if len(value.roots) == 1 else []
    return (
        len(found) == 1
        and not value.path
        and ".<locals>." in value.roots[0]
        and _readings(project, path, value.roots[0]) == 1
        and _has_each_once(project, path, found[0])
    )


def _readings(project: Project, path: str, root: str) -> int:
    """How often a variable is named, but for where it is assigned."""
    return sum(
        isinstance(each, Ref) and root in each.roots
        for body in bodies(project.files[path])
        for statement in statements(body)
        for expression in expressions(statement)
        if not (
            isinstance(statement, Assign) and statement.op == "=" and any(expression is it for it in statement.targets)
        )
        for each in within(expression)
    )


def _has_each_once(project: Project, path: str, value: Expression) -> bool:
    match value:
        case Collection(kind="list" | "tuple", items=items):
            numbers = [each.value for each in items if isinstance(each, Constant) and type(each.value) is int]
            return bool(items) and len(set(numbers)) == len(items)
        case Comprehension(kind="list", elements=(element,), clauses=(Clause(target=target, source=source),)):
            return (
                isinstance(element, Ref)
                and isinstance(target, Ref)
                and (element.roots, element.path) == (target.roots, target.path)
                and _has_each_once(project, path, source)
            )
        case Call(func=func, args=args):
            names = project.names(path, func)
            if names == ("builtins.range",):
                return len(args) == 1 or (len(args) > 1 and _is_no_negative(args[0].value))
            return names == ("builtins.list",) and len(args) == 1 and _has_each_once(project, path, args[0].value)
    return False


def _is_no_negative(value: Expression) -> bool:
    """Whether a number counts from the beginning: what counts from the end may be the same."""
    return isinstance(value, Constant) and type(value.value) is int and value.value >= 0


def _is_rows(project: Project, path: str, value: Expression) -> bool:
    found = [each for _, each in own_values(project, path, value)]
    return bool(found) and all(isinstance(each, Call) and last_word(each.func) in _ROWS for each in found)


def own_values(project: Project, path: str, value: Expression) -> list[tuple[str, Expression]]:
    """The values that an expression may have where it stands, with their files; nothing of what a function is given from
    outside.
    """
    if isinstance(value, Ref) and any(project.resolver.parameter(f"{path}{root}") for root in value.roots):
        return []
    if isinstance(value, Ref) and not value.path and len(value.roots) == 1:
        assigned = kinds_of(project).assigned(path, value.start, value.roots[0])
        if assigned and not any(isinstance(each, Ref) for each in assigned):
            return [(path, each) for each in assigned]
    return list(project.values(path, value))


# Operations that add up, in an order that is open unless the flag is on.
_ADDING = frozenset(
    {"torch.cumsum", "torch.index_add", "torch.Tensor.scatter_add_", "torch.Tensor.scatter_reduce", "torch.bincount"}
)
# Operations that write where an index says, to a place as often as it is named.
_WRITING = frozenset({"torch.Tensor.index_copy", "torch.index_add"})
# Operations that take or write one element for each of an index.
_ONE_OF_EACH = frozenset({"torch.gather", "torch.Tensor.scatter"})
_ONES = frozenset({"torch.ones", "torch.ones_like", "torch.zeros", "torch.zeros_like"})
_NEW_ONES = ("new_ones", "new_zeros")


def order_free(project: Project, path: str, call: Call, row: Row, known: Known) -> bool:
    """Whether a case gives the same in any order, and no error where the flag is on."""
    if row.behaviour == "raises":
        return False
    if row.operation in _WRITING and (index := tensor(row.spelling, call, "index")) is not None:
        return distinct(project, path, index) or _adds_exactly(project, path, call, row, known)
    if row.operation in _ONE_OF_EACH:
        return _one_of_each(project, path, row, call)
    return _adds_exactly(project, path, call, row, known)


def _one_of_each(project: Project, path: str, row: Row, call: Call) -> bool:
    """``x.gather(1, target.unsqueeze(1))``: one element of each row, so that nothing is added up in the gradient."""
    dim, index = tensor(row.spelling, call, "dim"), tensor(row.spelling, call, "index")
    if dim is None or index is None:
        return False
    found = [each for _, each in own_values(project, path, index)]
    return bool(found) and all(_is_single(each, literal(dim)) for each in found)


def _is_single(index: Expression, along: Literal) -> bool:
    """Whether an index has one element along a dimension."""
    match index:
        case Call(func=func, args=(*_, Arg(keyword=None | "dim", value=at))) if last_word(func) == "unsqueeze":
            return literal(at) == along is not OPEN or {literal(at), along} == {1, -1}
        case Call(func=func, args=(_, Arg(value=Constant(value=1)))) if last_word(func) in ("view", "reshape"):
            return along in (1, -1)
        case Subscript(indices=(Operation(op=":"), Constant(value=None))):
            return along in (1, -1)
    return False


def _adds_exactly(project: Project, path: str, call: Call, row: Row, known: Known) -> bool:
    """Whether whole numbers are added; dtypes of fractions hold them exactly far beyond what is counted with them."""
    if row.operation not in _ADDING:
        return False
    source = tensor(row.spelling, call, "input")
    if row.operation == "torch.cumsum" or known.get("input.dtype") == "integer":
        return known.get("input.dtype") == "integer" or (source is not None and _is_whole(project, path, source))
    added = [each for word in ("src", "source") if (each := tensor(row.spelling, call, word)) is not None]
    return source is not None and bool(added) and all(_is_whole(project, path, each) for each in (source, *added))


def _is_whole(project: Project, path: str, source: Expression) -> bool:
    if kinds_of(project).of(path, source).integral:
        return True
    found = [value for _, value in own_values(project, path, source)]
    return bool(found) and all(isinstance(each, Call) and _is_ones(project, path, each) for each in found)


def _is_ones(project: Project, path: str, made: Call) -> bool:
    names = project.names(path, made.func) or (last_word(made.func),)
    return all(name in _ONES or name.rpartition(".")[2] in _NEW_ONES for name in names)
