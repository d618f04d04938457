"""Types of containers: displays, iteration, indexing, context managers, and methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.dataflow.types.bindings import ADDING, Binding, literal_value
from torchrepro_lint.dataflow.types.lattice import BOTTOM, NONE, TEXT, UNKNOWN, AbstractValue, join_all, or_none
from torchrepro_lint.dataflow.types.shapes import open_shape, shifted
from torchrepro_lint.syntax.nodes import Call, Collection, Constant, Expression, Operation, Ref
from torchrepro_lint.syntax.visitor import is_none, is_starred, last_identifier

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import ProgramPoint
    from torchrepro_lint.dataflow.types.context import TypeInference


_SETS = ("set", "frozenset")
_INT = AbstractValue("int")


def display_value(inference: TypeInference, collection: Collection, point: ProgramPoint) -> AbstractValue:
    """A tuple, list, set or dict display."""
    if collection.kind == "dict":
        values = [item for item in collection.items[1::2] if item is not None]
        found = [inference.infer(each, point) for each in values[: limits.MAX_DISPLAY_ITEMS]]
        merged = [
            mapped(what) if key is None else what for key, what in zip(collection.items[::2], found, strict=False)
        ]
        return AbstractValue("dict", contents=join_all(*merged, *_beyond(values)))
    items = [
        element(inference.infer(each, point)) if is_starred(each) else inference.infer(each, point)
        for each in collection.items[: limits.MAX_DISPLAY_ITEMS]
        if each is not None
    ]
    if any(each.kind == "nothing" for each in items):
        return BOTTOM
    plain = not any(map(is_starred, collection.items))
    of = join_all(*items, *_beyond(collection.items))
    known = plain and collection.kind in ("tuple", "list") and len(items) == len(collection.items)
    return AbstractValue(collection.kind, contents=of, items=tuple(items) if known and items else None)


def _beyond(items: Sequence[Expression | None]) -> Iterator[AbstractValue]:
    """What is known of the items of a display that are not evaluated, for those that differ from the first ones."""
    rest = items[limits.MAX_DISPLAY_ITEMS :]
    if not all(isinstance(each, Constant) for each in rest):
        yield NONE  # they may be anything
    kinds = {type(each.value): each for each in rest if isinstance(each, Constant)}
    yield from (literal_value(each.value) for each in kinds.values())


def element(what: AbstractValue) -> AbstractValue:
    """The type of the elements that iteration gives."""
    if what.kind in ("nothing", "loaded") or (not what.kind and what.grad is False):
        return what  # what is in a batch needs no gradient either
    if what.kind == "dict":
        return UNKNOWN  # the keys are not tracked
    if what.is_tensor:
        return row(what)
    if what.kind == "ndarray":
        return UNKNOWN
    if what.kind == "dataset":
        return UNKNOWN
    if what.kind == "loader" and what.name.startswith("torch."):
        return AbstractValue(grad=False)  # a batch, in any container
    return what.element


def mapped(what: AbstractValue) -> AbstractValue:
    """The type of the values of a mapping."""
    if what.kind in ("nothing", "loaded"):
        return what
    return what.contents if what.kind == "dict" and what.contents is not None else UNKNOWN


def mapping(parts: Iterable[AbstractValue], values: Iterable[AbstractValue] = ()) -> AbstractValue:
    """The dictionary that ``dict`` makes of other mappings or of pairs, and of the values of its keywords."""
    return AbstractValue("dict", contents=join_all(*map(_second, parts), *values))


def _second(what: AbstractValue) -> AbstractValue:
    """The type of the values of a mapping, or of the second elements of pairs."""
    if what.kind in ("dict", "loaded", "nothing"):
        return mapped(what)
    pair = element(what)
    return pair.items[1] if pair.kind in ("tuple", "list") and pair.items and len(pair.items) == 2 else UNKNOWN


def entered(what: AbstractValue) -> AbstractValue:
    """The value of ``with value as name``: modules, tensors, paths and files give themselves, others are unknown."""
    return what if what.kind in ("module", "tensor", "parameter", "nothing", "path", "file") else UNKNOWN


def method_value(what: AbstractValue, word: str, args: list[AbstractValue]) -> AbstractValue:
    """The result of a method of a container, string, path or file."""
    if what.kind in _SETS:
        return _of_set(what, word, args)
    if what.kind == "dict":
        return _of_dict(what, word, args)
    if what.kind in ("list", "tuple"):
        return _of_list(what, word)
    if what.kind == "str":
        return _OF_TEXT.get(word, UNKNOWN)
    if what.kind == "path":
        return _OF_PATH.get(word, UNKNOWN)
    if what.kind == "file":
        return _OF_FILE.get(word, UNKNOWN)
    return UNKNOWN


def _of_set(what: AbstractValue, word: str, args: list[AbstractValue]) -> AbstractValue:
    if word in ("union", "symmetric_difference"):
        others = [each.contents or UNKNOWN for each in args]
        return AbstractValue(
            what.kind, contents=join_all(what.contents if what.contents is not None else UNKNOWN, *others)
        )
    if word in ("intersection", "difference", "copy"):
        return what
    return what.element if word == "pop" else UNKNOWN


def _of_dict(what: AbstractValue, word: str, args: list[AbstractValue]) -> AbstractValue:
    match word:
        case "values":
            return AbstractValue("iterator", contents=what.contents)
        case "items":
            pair = AbstractValue("tuple", items=(UNKNOWN, what.contents or UNKNOWN))
            return AbstractValue("iterator", contents=pair)
        case "keys":
            return AbstractValue("iterator")
        case "copy":
            return what
        case "get" if what.contents is not None and len(args) < 2:
            return or_none(what.contents)
        case "pop" | "get" | "setdefault" if what.contents is not None:
            return join_all(what.contents, *args[1:2])
    return UNKNOWN


def _of_list(what: AbstractValue, word: str) -> AbstractValue:
    if word == "copy":
        return what
    if word in ("index", "count"):
        return _INT
    return what.element if word == "pop" else UNKNOWN


_OF_TEXT = {
    **dict.fromkeys(("lower", "upper", "strip", "lstrip", "rstrip", "replace", "format", "join", "title"), TEXT),
    **dict.fromkeys(("capitalize", "zfill", "removeprefix", "removesuffix", "ljust", "rjust", "center"), TEXT),
    **dict.fromkeys(("translate", "casefold"), TEXT),
    **dict.fromkeys(("split", "rsplit", "splitlines"), AbstractValue("list", contents=TEXT)),
    **dict.fromkeys(("partition", "rpartition"), AbstractValue("tuple", contents=TEXT, items=(TEXT, TEXT, TEXT))),
    **dict.fromkeys(("find", "rfind", "index", "rindex", "count"), _INT),
    **dict.fromkeys(
        ("startswith", "endswith", "isdigit", "isalpha", "isnumeric", "islower", "isupper"), AbstractValue("bool")
    ),
    "encode": AbstractValue("bytes"),
}
_PATHS = AbstractValue("iterator", contents=AbstractValue("path"))
_OF_PATH = {
    **{word: AbstractValue("path") for word in ("joinpath", "resolve", "absolute", "expanduser", "with_suffix")},
    **{
        word: AbstractValue("path")
        for word in ("with_name", "with_stem", "relative_to", "readlink", "rename", "replace")
    },
    **dict.fromkeys(("as_posix", "as_uri", "read_text", "__str__"), TEXT),
    **dict.fromkeys(("iterdir", "glob", "rglob"), _PATHS),
    **dict.fromkeys(("exists", "is_file", "is_dir", "is_symlink", "is_absolute", "match"), AbstractValue("bool")),
    "read_bytes": AbstractValue("bytes"),
}

_OF_FILE = {"read": TEXT, "readline": TEXT, "readlines": AbstractValue("list", contents=TEXT)}


_SEQUENCES = ("list", "tuple", "iterator")


def subscript_value(
    inference: TypeInference, what: AbstractValue, indices: tuple[Expression, ...], point: ProgramPoint
) -> AbstractValue:
    """The type of ``value[indices]``."""
    if what.kind in ("nothing", "loaded"):
        return what
    if not what.kind:
        return AbstractValue(grad=what.grad, family=what.family)
    if what.is_tensor or what.kind == "ndarray":
        return _of_tensor(inference, what, indices, point)
    if len(indices) != 1:
        return UNKNOWN
    index = indices[0]
    if isinstance(index, Operation) and index.op == ":":
        return _sliced(what, index)
    if what.kind in _SEQUENCES:
        place = inference.infer(index, point).value
        return item(what, place) if isinstance(place, int) else what.element
    if what.kind == "dict":
        return what.element
    return TEXT if what.kind == "str" else UNKNOWN


def item(what: AbstractValue, place: int) -> AbstractValue:
    """The element at an index, as in unpacking."""
    if what.kind in ("nothing", "loaded"):
        return what
    if what.items is not None:
        return what.items[place] if -len(what.items) <= place < len(what.items) else UNKNOWN
    if what.is_tensor or what.kind == "ndarray":
        return row(what)
    if not what.kind:
        return AbstractValue(grad=what.grad)
    return what.element if what.kind in _SEQUENCES or what.kind == "str" else UNKNOWN


def row(what: AbstractValue) -> AbstractValue:
    """A tensor after one integer index."""
    if what.kind == "ndarray":
        return UNKNOWN
    low = max(what.min_ndim - 1, 0)
    high = None if what.max_ndim is None else max(what.max_ndim - 1, 0)
    sizes = what.sizes[1:] if what.sizes else None
    return what._replace(kind="tensor", min_ndim=low, max_ndim=high, sizes=sizes, scalar=False)


def _sliced(what: AbstractValue, index: Operation) -> AbstractValue:
    if what.kind in ("str", "bytes"):
        return what._replace(value=None)
    if what.kind not in ("list", "tuple"):
        return UNKNOWN
    bounds = [each.value if isinstance(each, Constant) else ... for each in index.operands]
    if what.items is not None and ... not in bounds:
        items = what.items[slice(*bounds)]  # type: ignore[arg-type]
        return what._replace(items=items)
    return what._replace(items=None)


def _of_tensor(
    inference: TypeInference, what: AbstractValue, indices: tuple[Expression, ...], point: ProgramPoint
) -> AbstractValue:
    """Tensor indexing: integers drop a dimension, slices keep it, ``None`` adds one; an unknown index leaves the rank open."""
    if what.kind == "ndarray":
        return (
            AbstractValue("ndarray", dtype=what.dtype, family=what.family)
            if any(map(_keeps_dimension, indices))
            else UNKNOWN
        )
    if len(indices) == 1 and not _keeps_dimension(indices[0]) and inference.infer(indices[0], point).kind == "int":
        return row(what)
    change, tensors = 0, []
    for index in indices:
        found = (
            UNKNOWN if _keeps_dimension(index) else NONE if _adds_dimension(index) else inference.infer(index, point)
        )
        if found is NONE or found.kind == "int":
            change += 1 if found is NONE else -1
        elif found.is_tensor or found.kind == "list":
            tensors.append(found)
        elif not _keeps_dimension(index):
            return open_shape(what._replace(kind="tensor", layout=_without_contiguity(what.layout)))
    found = shifted(what._replace(kind="tensor", layout=_without_contiguity(what.layout)), change)
    return _by_tensors(found, tensors) if tensors else found


def _by_tensors(what: AbstractValue, indices: list[AbstractValue]) -> AbstractValue:
    """Advanced indexing: masks and index tensors replace their dimensions by the broadcast ones."""
    gone, come, masks = 0, 0, False
    for index in indices:
        count = 1 if index.kind == "list" else index.ndim
        if count is None or (index.is_tensor and not index.integral):
            return open_shape(what)
        mask = index.family == "bool"
        masks = masks or mask
        gone += count if mask else 1
        come = max(come, 1 if mask else count)
    return shifted(what, come - gone)


def _adds_dimension(index: Expression) -> bool:
    return is_none(index)


def _keeps_dimension(index: Expression) -> bool:
    return isinstance(index, Operation) and index.op in (":", "...")


def _without_contiguity(layout: str) -> str:
    return "" if layout == "contiguous" else layout


def after_insertion(
    inference: TypeInference, binding: Binding, before: AbstractValue, inner: ProgramPoint
) -> AbstractValue:
    """A container after a method that fills it, or after it escapes into a call."""
    call = binding.value
    if not isinstance(call, Call):
        return before._replace(contents=None, items=None) if before.kind in ("list", "set", "dict") else before
    if before.kind == "dict" and binding.kind != "handed":
        return before._replace(contents=_after_update(inference, call, before, inner))
    if before.kind not in ("list", "set") or binding.kind == "mixed" or len(call.args) != 1 or call.args[0].star:
        return before._replace(contents=None, items=None) if before.kind in ("list", "set", "dict") else before
    assert isinstance(call.func, Ref)
    given = inference.infer(call.args[0].value, inner)
    added = given if call.func.path[-1] in ADDING else element(given)
    return before._replace(
        contents=join_all(before.contents, added) if before.contents is not None and added.kind else None, items=None
    )


def _after_update(
    inference: TypeInference, call: Call, before: AbstractValue, inner: ProgramPoint
) -> AbstractValue | None:
    """The values of a dictionary after ``update`` or ``setdefault``; None where they are not known."""
    if before.contents is None or any(arg.star == "*" for arg in call.args):
        return None
    given = [(arg, inference.infer(arg.value, inner)) for arg in call.args]
    if last_identifier(call.func) == "update":
        parts = (what for arg, what in given if arg.keyword is None)
        return join_all(before.contents, mapping(parts, (what for arg, what in given if arg.keyword)).element)
    return join_all(before.contents, given[1][1]) if len(given) == 2 else None


def after_element_write(before: AbstractValue, value: AbstractValue) -> AbstractValue:
    """A value after element assignment: the contents of a container become unknown, a tensor may get a gradient."""
    if before.is_tensor:
        return before if value.grad is False or value.kind in ("int", "float", "bool") else before._replace(grad=None)
    if before.kind == "dict":
        return before._replace(contents=join_all(before.contents, value) if before.contents is not None else None)
    return before._replace(contents=None, items=None) if before.kind in ("list", "nothing") else before
