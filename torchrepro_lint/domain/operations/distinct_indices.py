"""Must-be-distinct analysis of indices: whether index tensors are known to name no element twice."""

from __future__ import annotations

from collections.abc import Sequence

from torchrepro_lint import limits
from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE, LiteralValue, literal_value
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.domain.operations.condition_variables import receiver
from torchrepro_lint.syntax.binding import passing_argument
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
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
from torchrepro_lint.syntax.qualified_names import enclosing_function, in_project, is_nested, path_of
from torchrepro_lint.syntax.visitor import all_statements, last_identifier, read_expressions, subexpressions
from torchrepro_lint.trace.traces import Traces

# Functions whose one-dimensional results name no element twice; an index has one dimension.
_DISTINCT_INDICES = frozenset({"torch.randperm", "torch.arange", "torch.argsort", "torch.unique"})
# Functions that make a tensor of a list of numbers, or of an array.
_TENSOR_OF_LIST = frozenset(
    {"torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.LongTensor", "torch.IntTensor"}
)
# Functions whose arrays name no element twice, with so many arguments at most: with a step, ``arange`` may count in fractions,
# which a conversion to whole numbers makes equal.
_DISTINCT_ARRAYS = {"numpy.arange": 2, "numpy.argsort": 1, "numpy.unique": 1, "numpy.random.permutation": 1}
# Functions that give back the tensor that they get.
_WRAPPERS = frozenset({"torch.autograd.Variable", "torch.autograd.variable.Variable"})
_DISTINCT_METHODS = frozenset({"argsort", "unique"})
# ``mask.nonzero()`` has one row for each element; a flattening makes it an index.
_ROW_INDICES = frozenset({"nonzero"})
_FLATTENING = frozenset({"view", "flatten", "squeeze", "reshape", "ravel"})
_ELEMENTWISE_COPIES = frozenset(
    {"to", "cuda", "cpu", "long", "int", "clone", "contiguous", "detach", "type", "type_as", "flip"}
)
# Functions that give the places of the elements for which a mask holds, one tensor for each dimension.
_PLACES = frozenset({"nonzero", "where", "argwhere"})
# Functions that give values and, second, their indices; along one dimension no index occurs twice.
_RANKED = frozenset({"topk", "sort", "msort"})
# Functions of torchvision that choose among boxes.
_CHOOSING = frozenset({"nms", "batched_nms", "remove_small_boxes"})


def name_each_once(project: Traces, path: str, indices: Sequence[Expression]) -> bool:
    """Whether the index tensors of one subscript name no element twice: masks, or one of them is distinct by itself."""
    types = [type_inference(project).of(path, each) for each in indices]
    if all(each.family == "bool" for each in types):
        return True
    if _is_of_one_mask(project, path, indices) or _is_row_by_row(project, path, indices):
        return True
    if len(indices) > 1 and any(each.min_ndim > 1 for each in types):
        return False  # broadcasting repeats a distinct one
    return any(has_distinct_indices(project, path, each) for each in indices)


def _is_of_one_mask(project: Traces, path: str, indices: Sequence[Expression]) -> bool:
    """``rows, cols = torch.where(mask)``: together they name each element once."""
    found = [_unpacked(project, path, each) for each in indices]
    sources = {value for each in found for value, _, _ in each}
    places = {place for each in found for _, place, _ in each}
    return (
        all(len(each) == 1 and _is_places(each[0][0]) and each[0][2] == len(indices) for each in found)
        and len(sources) == 1
        and len(places) == len(indices)
    )


def _is_row_by_row(project: Traces, path: str, indices: Sequence[Expression]) -> bool:
    """``x[torch.arange(n)[:, None], order]``: each row once, and in it the places of ranked elements."""
    if len(indices) != 2 or ranking_dimension(project, path, indices[1]) not in (1, -1):
        return False
    columns = [(file, _of_column(each)) for file, each in local_values(project, path, indices[0])]
    return bool(columns) and all(rows and has_distinct_indices(project, file, rows) for file, rows in columns)


def _of_column(value: Expression) -> Expression | None:
    """The index that a column is made of: ``rows`` of ``rows.unsqueeze(-1)``, ``rows[:, None]``, ``rows.view(-1, 1)``."""
    match value:
        case Call(func=func, args=(Arg(value=Constant(value=1 | -1)),)) if last_identifier(func) == "unsqueeze":
            return receiver(value)
        case Call(func=func, args=(Arg(value=Constant(value=-1)), Arg(value=Constant(value=1)))):
            return receiver(value) if last_identifier(func) in ("view", "reshape") else None
        case Subscript(value=rows, indices=(Operation(op=":"), Constant(value=None))):
            return rows
    return None


def has_distinct_indices(project: Traces, path: str, index: Expression, depth: int = limits.MAX_INDEX_DEPTH) -> bool:
    """Must-be-distinct analysis: whether no value that an index tensor may have names an element twice."""
    if not depth:
        return False
    if _has_one_element(project, path, index):
        return True
    if pairs := _unpacked(project, path, index):
        flat = type_inference(project).of(path, index).min_ndim <= 1
        return flat and all(
            _part_is_distinct(value, place, count) or _returned_is_distinct(project, path, value, place, depth - 1)
            for value, place, count in pairs
        )
    if _is_parameter(project, path, index):
        passed = _passed(project, path, index)
        return bool(passed) and all(has_distinct_indices(project, file, value, depth - 1) for file, value in passed)
    found = local_values(project, path, index)
    return bool(found) and all(_value_is_distinct(project, file, value, depth - 1) for file, value in found)


def ranking_dimension(project: Traces, path: str, index: Expression) -> LiteralValue:
    """The dimension along which an index has the places of ranked elements, each once in each line: ``scores.topk(5, dim=1)[1]``."""
    made = [_ranked(value, place) for value, place, _ in _unpacked(project, path, index)]
    made = made or [_ranked(value) for _, value in local_values(project, path, index)]
    found = {UNKNOWN_VALUE if call is None else _ranked_dimension(project, path, call) for call in made}
    return found.pop() if len(found) == 1 else UNKNOWN_VALUE


def _ranked(value: Expression, place: int = -1) -> Call | None:
    """The call that ranks elements and whose second result is a value."""
    match value:
        case Call(func=func) if (place == 1 and last_identifier(func) in _RANKED) or last_identifier(func) == "argsort":
            return value
        case (
            Subscript(value=Call() as call, indices=(Constant(value=1 | -1),))
            | Attribute(value=Call() as call, name="indices")
        ):
            return _ranked(call, 1)
    return None


def _ranked_dimension(project: Traces, path: str, call: Call) -> LiteralValue:
    names, word = project.names(path, call.func), last_identifier(call.func)
    given = passing_argument(call, (word == "topk") + (f"torch.{word}" in names), "dim")
    return -1 if given is None else literal_value(given.value)


def _passed(project: Traces, path: str, index: Expression) -> list[tuple[str, Expression]]:
    """What all callers pass for a parameter; nothing where there may be others."""
    if not isinstance(index, Ref) or index.path or len(index.roots) != 1:
        return []
    name = path + enclosing_function(index.roots[0])
    functions = project.resolver.functions(name)
    if len(functions) != 1 or project.resolver.call_graph.has_unknown_callers(name, functions[0]):
        return []
    found = list(project.values(path, index))
    return [] if (path, index) in found or any(_is_parameter(project, file, value) for file, value in found) else found


def _is_parameter(project: Traces, path: str, value: Expression) -> bool:
    return isinstance(value, Ref) and any(project.resolver.parameter(f"{path}{root}") for root in value.roots)


def _has_one_element(project: Traces, path: str, index: Expression) -> bool:
    """Whether an index is one number, or a tensor of one element."""
    match index:
        case Subscript(value=inner, indices=(Constant(value=None),)):
            return _has_one_element(project, path, inner)
        case Call(func=func, args=(Arg(value=Constant(value=1), star=""),)) if last_identifier(func) in (
            "view",
            "reshape",
        ):
            return True
    what = type_inference(project).of(path, index)
    if what.kind == "int" or what.max_ndim == 0:
        return True
    if what.sizes is None or set(what.sizes) != {1}:
        return False
    return not any(_is_of_variable_list(project, file, value) for file, value in local_values(project, path, index))


def _is_tensor(project: Traces, path: str, index: Expression) -> bool:
    """Whether an index is a tensor of integers: a distinct tensor by a distinct one has some of its elements, each once."""
    what = type_inference(project).of(path, index)
    return what.is_tensor and what.family != "bool" and what.max_ndim != 0


def _is_of_variable_list(project: Traces, path: str, value: Expression) -> bool:
    """Whether a tensor is made of a list in a variable: something else may have appended to it."""
    match value:
        case Call(func=func, args=(Arg(value=Ref()), *_)):
            return not _TENSOR_OF_LIST.isdisjoint(project.names(path, func))
    return False


def _unpacked(project: Traces, path: str, index: Expression) -> list[tuple[Expression, int, int]]:
    match index:
        case Ref(roots=(root,), path=()):
            return type_inference(project).unpackings(path, index.start, root)
    return []


def _part_is_distinct(value: Expression, place: int, count: int) -> bool:
    """Whether a part of an unpacked result is distinct: indices beside sorted values, unique values, the places in a row."""
    if not isinstance(value, Call):
        return False
    word = last_identifier(value.func)
    if word in _RANKED:
        return place % 2 == 1
    return (word == "unique" and place == 0) or (_is_places(value) and count == 1)


def _returned_is_distinct(project: Traces, path: str, value: Expression, place: int, depth: int) -> bool:
    """Whether a part of what a function of the project returns is distinct, in each of its returns."""
    parts: list[tuple[str, Expression]] = []
    for name in project.names(path, value.func) if isinstance(value, Call) else ():
        for returned in project.resolver.return_expressions(name):
            items = returned.items if isinstance(returned, Collection) and returned.kind == "tuple" else ()
            item = items[place] if place < len(items) else None
            if item is None:
                return False
            parts.append((path_of(name), item))
    return bool(parts) and all(has_distinct_indices(project, file, item, depth) for file, item in parts)


def _is_places(value: Expression) -> bool:
    """``torch.where(mask)``, ``mask.nonzero(as_tuple=True)``."""
    if not isinstance(value, Call) or last_identifier(value.func) not in _PLACES:
        return False
    return last_identifier(value.func) != "where" or (len(value.args) == 1 and receiver(value) is not None)


def _value_is_distinct(project: Traces, path: str, value: Expression, depth: int) -> bool:
    match value:
        case Subscript(value=inner, indices=(Operation(op=":"),)):
            return has_distinct_indices(project, path, inner, depth)
        case Subscript(value=inner, indices=(Ref() | Call() | Subscript() as other,)) if _is_tensor(
            project, path, other
        ):
            return all(has_distinct_indices(project, path, each, depth) for each in (inner, other))
        case Subscript(value=Ref() as listing) if items := _items(project, path, listing):
            return all(has_distinct_indices(project, file, item, depth) for file, item in items)
        case Subscript(value=Call() as pair, indices=(Constant(value=int(place)),)):
            flat = type_inference(project).of(path, value).min_ndim <= 1
            return (flat and _part_is_distinct(pair, place, 1)) or _has_one_element(project, path, value)
        case Attribute(value=Call() as pair, name="indices"):
            return type_inference(project).of(path, value).min_ndim <= 1 and _part_is_distinct(pair, 1, 2)
        case Operation(op="+" | "-", operands=(inner, Constant(value=int()))):
            return has_distinct_indices(project, path, inner, depth)
        case Operation(op="+", operands=(Constant(value=int()), inner)):
            return has_distinct_indices(project, path, inner, depth)
        case Call():
            return _call_is_distinct(project, path, value, depth)
    return False


def _items(project: Traces, path: str, listing: Ref) -> list[tuple[str, Expression]]:
    """What the items of a list are that is only displayed: ``[torch.arange(size) for size in sizes]``."""
    if [*project.resolver.events.added(path, listing), *project.resolver.events.stored(path, listing)]:
        return []
    found: list[tuple[str, Expression]] = []
    for file, value in local_values(project, path, listing):
        match value:
            case Collection(kind="list" | "tuple", items=items) if all(each is not None for each in items):
                found += ((file, each) for each in items if each is not None)
            case Comprehension(kind="list", elements=(element,)):
                found.append((file, element))
            case _:
                return []
    return found


def _call_is_distinct(project: Traces, path: str, call: Call, depth: int) -> bool:
    names, word, on = project.names(path, call.func), last_identifier(call.func), receiver(call)
    if _is_choice(project, path, call, names):
        return True
    if names and _TENSOR_OF_LIST.issuperset(names):
        return bool(call.args) and _tensor_data_is_distinct(project, path, call.args[0].value)
    if names and _DISTINCT_INDICES.issuperset(names):
        return not any(arg.keyword in ("dim", "return_inverse", "return_counts") for arg in call.args)
    if names and _WRAPPERS.issuperset(names):
        return bool(call.args) and has_distinct_indices(project, path, call.args[0].value, depth)
    if on is None or any(map(in_project, names)):
        return False
    if word in _DISTINCT_METHODS:
        return not call.args
    if word == "index_select" and call.args:
        return all(has_distinct_indices(project, path, each, depth) for each in (on, call.args[-1].value))
    if word in _FLATTENING:
        return _is_row_indices(project, path, on) or has_distinct_indices(project, path, on, depth)
    return word in _ELEMENTWISE_COPIES and has_distinct_indices(project, path, on, depth)


def _is_choice(project: Traces, path: str, call: Call, names: tuple[str, ...]) -> bool:
    """Whether a call chooses some of what there is, each once: boxes, or samples without replacement."""
    word = last_identifier(call.func)
    if names and word in _CHOOSING:
        return all(name.startswith("torchvision.") for name in names)
    if word != "multinomial" or any(arg.keyword == "replacement" for arg in call.args):
        return False
    replaces = len(call.args) > (2 if names else 1)
    return not replaces and type_inference(project).of(path, call).min_ndim <= 1


def _tensor_data_is_distinct(project: Traces, path: str, value: Expression) -> bool:
    """Whether the data of a tensor has no number twice: it is literal or a range, and is read nowhere else."""
    if not isinstance(value, Ref):
        return _literal_is_distinct(project, path, value)
    found = type_inference(project).assigned(path, value.start, value.roots[0]) if len(value.roots) == 1 else []
    return (
        len(found) == 1
        and not value.path
        and is_nested(value.roots[0])
        and _count_reads(project, path, value.roots[0]) == 1
        and _literal_is_distinct(project, path, found[0])
    )


def _count_reads(project: Traces, path: str, root: str) -> int:
    """The number of reads of a variable."""
    return sum(
        isinstance(each, Ref) and root in each.roots
        for statement in all_statements(project.files[path])
        for expression in read_expressions(statement)
        for each in subexpressions(expression)
    )


def _literal_is_distinct(project: Traces, path: str, value: Expression) -> bool:
    match value:
        case Collection(kind="list" | "tuple", items=items):
            numbers = [each.value for each in items if isinstance(each, Constant) and type(each.value) is int]
            return bool(items) and len(set(numbers)) == len(items)
        case Comprehension(kind="list", elements=(element,), clauses=(Clause(target=target, source=source),)):
            return (
                isinstance(element, Ref)
                and isinstance(target, Ref)
                and element.access_path == target.access_path
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


def _is_row_indices(project: Traces, path: str, value: Expression) -> bool:
    found = [each for _, each in local_values(project, path, value)]
    return bool(found) and all(isinstance(each, Call) and last_identifier(each.func) in _ROW_INDICES for each in found)


def local_values(project: Traces, path: str, value: Expression) -> list[tuple[str, Expression]]:
    """The values that an expression may have where it stands, with their files; none for parameters."""
    if _is_parameter(project, path, value):
        return []
    if isinstance(value, Ref) and not value.path and len(value.roots) == 1:
        assigned = type_inference(project).assigned(path, value.start, value.roots[0])
        if assigned and not any(isinstance(each, Ref) for each in assigned):
            return [(path, each) for each in assigned]
    return list(project.values(path, value))
