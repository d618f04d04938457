"""Implicit calls: ``x[i]`` by integer tensors runs ``__getitem__``, whose backward adds up, and ``x[i] = v`` runs ``index_put_``.

Each becomes a call site of the method that torch runs, so that the catalogue's conditions are evaluated as for any call.
Slices, masks, numbers and lists are no such indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchrepro_lint.catalogue.rows import OperationRow
from torchrepro_lint.dataflow.types.tensor_facts import TensorFacts
from torchrepro_lint.domain.programs import may_stay_on_cpu, may_use_accelerator
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.syntax.control_flow import Event
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Operation,
    Record,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import top_package
from torchrepro_lint.syntax.visitor import last_identifier
from torchrepro_lint.trace.traces import Context

_READ = "torch.Tensor.__getitem__", "x[i]"
_WRITE = "torch.Tensor.index_put_", "x[i] = v"


class ImplicitCall(Record, frozen=True):
    """The call of a method by a subscript: its site, the method, how it is written, and the subscript."""

    site: CallSite
    name: str
    written: str
    subscript: Subscript


def subscript_rows(context: Context) -> Iterator[OperationRow]:
    """The rows of the methods that subscripts run; ``x[i] = v`` does not accumulate."""
    for name, _ in (_READ, _WRITE):
        for row in context.catalogue.operation(name):
            if not any(each.of == "accumulate" and each.values == (True,) for each in row.when):
                yield row


def implicit_calls(context: Context) -> Iterator[ImplicitCall]:
    """The subscripts of tensors by integer tensors in the module under check."""
    tree = context.project.files[context.path]
    if "torch" not in map(top_package, tree.summary.imports):
        return
    tensors, on_cpu = TensorFacts(context.project, context.path), may_stay_on_cpu(context.project, context.path)
    kinds = _KINDS if on_cpu else _KINDS - {"index"}
    for name, body in (("", tree.body), *((each.name, each.body) for each in tree.functions)):
        function = f"{context.path}{name or ':'}"
        for event in context.project.resolver.events.of_body(context.path, body):
            if event.kind in kinds:
                yield from _of_event(context, tensors, function, event)


_KINDS = frozenset({"set", "index"})


def _of_event(context: Context, tensors: TensorFacts, function: str, event: Event) -> Iterator[ImplicitCall]:
    subscript = event.value if event.kind == "set" else event.given
    if not isinstance(subscript, Subscript) or _is_other(tensors, subscript):
        return
    if event.kind == "set":
        yield from _written(tensors, function, event, subscript)
    elif not may_use_accelerator(context.project, function) and (indices := _integer_indices(tensors, subscript)):
        site = _site(event, function, subscript, "__getitem__", (indices,))
        yield ImplicitCall(site, *_READ, subscript)


def _is_other(tensors: TensorFacts, subscript: Subscript) -> bool:
    """Whether a subscript is one of no tensor, or by none: a test by syntax, which spares type inference."""
    indices = _items(subscript.indices)
    if not any(map(_may_be_tensor, indices)) or not tensors.may_be_tensor(subscript.value):
        return True
    return not any(_may_be_tensor(each) and tensors.may_be_tensor(each) for each in indices)


def _written(tensors: TensorFacts, function: str, event: Event, target: Subscript) -> Iterator[ImplicitCall]:
    indices = _integer_indices(tensors, target)
    if indices is not None:
        values = () if event.given is None else (event.given,)
        yield ImplicitCall(_site(event, function, target, "index_put_", (indices, *values)), *_WRITE, target)


def _integer_indices(tensors: TensorFacts, subscript: Subscript) -> Collection | None:
    """The index tensors of a subscript of a tensor, as a tuple; None unless all that are no slices are of integers."""
    indices = [each for each in _items(subscript.indices) if not _is_slice(each)]
    found = [(each, tensors.value(each)) for each in indices]
    wide = [each for each, what in found if what.is_tensor and what.family == "integer" and what.max_ndim != 0]
    others = [what for each, what in found if each not in wide]
    if not wide or not all(what.kind == "int" or what.max_ndim == 0 for what in others):
        return None
    if not tensors.value(subscript.value).is_tensor:
        return None
    return Collection(subscript.start, subscript.end, "tuple", tuple(wide))


def _items(indices: Sequence[Expression]) -> Sequence[Expression]:
    """The indices; ``x[(i, j)]`` is ``x[i, j]``."""
    match indices:
        case (Collection(kind="tuple", items=items),) if None not in items:
            return [each for each in items if each is not None]
    return indices


def _is_slice(index: Expression) -> bool:
    return (isinstance(index, Operation) and index.op in (":", "...")) or (
        isinstance(index, Constant) and not isinstance(index.value, int)
    )


def _may_be_tensor(index: Expression) -> bool:
    """Whether an index may be a tensor, by its syntax."""
    if isinstance(index, Operation):
        text = any(isinstance(each, Constant) and isinstance(each.value, str) for each in index.operands)
        return not text and index.op not in _NO_TENSORS and any(map(_may_be_tensor, index.operands))
    if isinstance(index, Call) and last_identifier(index.func) in _OF_TEXT:
        return False
    return not isinstance(index, Constant | Comprehension | Lambda) and not (
        isinstance(index, Collection) and index.kind != "tuple"
    )


# Operators whose result is a mask, a string or a slice.
_NO_TENSORS = frozenset({":", "...", "==", "!=", "<", "<=", ">", ">=", "not", "in", "not in", "is", "is not", "f"})


# Methods of strings, and functions that give numbers or strings.
_OF_TEXT = frozenset({"replace", "format", "join", "strip", "lower", "upper", "split", "removeprefix", "str", "len"})


def _site(event: Event, function: str, subscript: Subscript, word: str, values: tuple[Expression, ...]) -> CallSite:
    start, end = subscript.start, subscript.end
    func = Attribute(start, end, subscript.value, word, subscript.base_end)
    args = tuple(Arg(each.start, each.end, None, "", each) for each in values)
    return CallSite(Call(start, end, func, args, subscript.base_end), function, (), event.guards, event.statement)
