"""Operations whose order is open, and makes no difference: sums of whole numbers, and writing to each place once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import OPEN, Literal, literal
from torchrepro_lint.dataflow.types.inference import kinds_of
from torchrepro_lint.distinct import distinct, own_values
from torchrepro_lint.subjects import tensor
from torchrepro_lint.syntax.nodes import Arg, Call, Constant, Operation, Subscript
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.conditions import Known
    from torchrepro_lint.catalogue.rows import Row
    from torchrepro_lint.project import Project
    from torchrepro_lint.syntax.nodes import Expression

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
