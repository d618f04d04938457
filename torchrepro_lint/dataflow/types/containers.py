"""Containers: displays, what iterating gives, what entering gives, and their methods.

What indexing gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types.lattice import NONE, NOTHING, UNKNOWN, What, joined
from torchrepro_lint.dataflow.types.reshaping import open_shape, shifted
from torchrepro_lint.syntax.nodes import Collection, Constant, Expression, Operation

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.dataflow.types.targets import Spot


_SETS = ("set", "frozenset")
_TEXT = What("str", of=What("str"))
_INT = What("int")
# Displays longer than this are tables of data: their first items tell.
_MOST_ITEMS = 32


def display(kinds: TypeInference, collection: Collection, spot: Spot) -> What:
    """A tuple, list, set or dict display."""
    if collection.kind == "dict":
        values = [item for item in collection.items[1::2] if item is not None]
        whole = None in collection.items[::2]
        found = joined(*(kinds.what(each, spot) for each in values[:_MOST_ITEMS]))
        return What("dict", of=None if whole else found)
    items = [
        element(kinds.what(each, spot)) if _starred(each) else kinds.what(each, spot)
        for each in collection.items[:_MOST_ITEMS]
        if each is not None
    ]
    if any(each.kind == "nothing" for each in items):
        return NOTHING
    plain = not any(map(_starred, collection.items))
    of = joined(*items)
    known = plain and collection.kind in ("tuple", "list") and len(items) == len(collection.items)
    return What(collection.kind, of=of, items=tuple(items) if known and items else None)


def _starred(item: Expression | None) -> bool:
    return isinstance(item, Operation) and item.op == "*" and len(item.operands) == 1


def element(what: What) -> What:
    """What iterating a value gives."""
    if what.kind in ("nothing", "loaded"):
        return what
    if what.kind == "dict":
        return UNKNOWN  # the keys
    if what.is_tensor:
        return row(what)
    if what.kind == "ndarray":
        return UNKNOWN
    if what.kind == "dataset":
        return UNKNOWN
    if what.kind == "loader" and what.name.startswith("torch."):
        return What(grad=False)  # a batch, in whatever it is collected
    return what.element


def entered(what: What) -> What:
    """What ``with value as`` gives: most objects give themselves, files and the like are not known."""
    return what if what.kind in ("module", "tensor", "parameter", "nothing", "path") else UNKNOWN


def method(what: What, word: str, args: list[What]) -> What:
    """What a method of a container, text or path gives."""
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
    return UNKNOWN


def _of_set(what: What, word: str, args: list[What]) -> What:
    if word in ("union", "symmetric_difference"):
        others = [each.of or UNKNOWN for each in args]
        return What(what.kind, of=joined(what.of if what.of is not None else UNKNOWN, *others))
    if word in ("intersection", "difference", "copy"):
        return what
    return what.element if word == "pop" else UNKNOWN


def _of_dict(what: What, word: str, args: list[What]) -> What:
    match word:
        case "values":
            return What("iterator", of=what.of)
        case "items":
            pair = What("tuple", items=(UNKNOWN, what.of or UNKNOWN))
            return What("iterator", of=pair)
        case "keys":
            return What("iterator")
        case "copy":
            return what
        case "pop" | "get" | "setdefault" if what.of is not None:
            return joined(what.of, *args[1:2])
    return UNKNOWN


def _of_list(what: What, word: str) -> What:
    if word == "copy":
        return what
    if word in ("index", "count"):
        return _INT
    return what.element if word == "pop" else UNKNOWN


_OF_TEXT = {
    **dict.fromkeys(
        ("lower", "upper", "strip", "lstrip", "rstrip", "replace", "format", "join", "title", "capitalize", "zfill"),
        _TEXT,
    ),
    **dict.fromkeys(("removeprefix", "removesuffix", "ljust", "rjust", "center", "translate", "casefold"), _TEXT),
    **dict.fromkeys(("split", "rsplit", "splitlines"), What("list", of=_TEXT)),
    **dict.fromkeys(("partition", "rpartition"), What("tuple", of=_TEXT, items=(_TEXT, _TEXT, _TEXT))),
    **dict.fromkeys(("find", "rfind", "index", "rindex", "count"), _INT),
    **dict.fromkeys(("startswith", "endswith", "isdigit", "isalpha", "isnumeric", "islower", "isupper"), What("bool")),
    "encode": What("bytes"),
}
_PATHS = What("iterator", of=What("path"))
_OF_PATH = {
    **dict.fromkeys(
        (
            "joinpath",
            "resolve",
            "absolute",
            "expanduser",
            "with_suffix",
            "with_name",
            "with_stem",
            "relative_to",
            "readlink",
            "rename",
            "replace",
        ),
        What("path"),
    ),
    **dict.fromkeys(("as_posix", "as_uri", "read_text", "__str__"), _TEXT),
    **dict.fromkeys(("iterdir", "glob", "rglob"), _PATHS),
    **dict.fromkeys(("exists", "is_file", "is_dir", "is_symlink", "is_absolute", "match"), What("bool")),
    "read_bytes": What("bytes"),
}


_SEQUENCES = ("list", "tuple", "iterator")


def picked(kinds: TypeInference, what: What, indices: tuple[Expression, ...], spot: Spot) -> What:
    """What ``value[indices]`` is."""
    if what.kind in ("nothing", "loaded"):
        return what
    if not what.kind:
        return What(grad=what.grad, family=what.family)
    if what.is_tensor or what.kind == "ndarray":
        return _of_tensor(kinds, what, indices, spot)
    if len(indices) != 1:
        return UNKNOWN
    index = indices[0]
    if isinstance(index, Operation) and index.op == ":":
        return _sliced(what, index)
    if what.kind in _SEQUENCES:
        place = kinds.what(index, spot).value
        return item(what, place) if isinstance(place, int) else what.element
    if what.kind == "dict":
        return what.element
    return What("str", of=What("str")) if what.kind == "str" else UNKNOWN


def item(what: What, place: int) -> What:
    """An element by its number, as unpacking takes it."""
    if what.kind in ("nothing", "loaded"):
        return what
    if what.items is not None:
        return what.items[place] if -len(what.items) <= place < len(what.items) else UNKNOWN
    if what.is_tensor or what.kind == "ndarray":
        return row(what)
    if not what.kind:
        return What(grad=what.grad)
    return what.element if what.kind in _SEQUENCES or what.kind == "str" else UNKNOWN


def row(what: What) -> What:
    """What one index takes out of a tensor."""
    if what.kind == "ndarray":
        return UNKNOWN
    low = max(what.low - 1, 0)
    high = None if what.high is None else max(what.high - 1, 0)
    sizes = what.sizes[1:] if what.sizes else None
    return what._replace(kind="tensor", low=low, high=high, sizes=sizes, scalar=False)


def _sliced(what: What, index: Operation) -> What:
    if what.kind in ("str", "bytes"):
        return what._replace(value=None)
    if what.kind not in ("list", "tuple"):
        return UNKNOWN
    bounds = [each.value if isinstance(each, Constant) else ... for each in index.operands]
    if what.items is not None and ... not in bounds:
        items = what.items[slice(*bounds)]  # type: ignore[arg-type]
        return what._replace(items=items)
    return what._replace(items=None)


def _of_tensor(kinds: TypeInference, what: What, indices: tuple[Expression, ...], spot: Spot) -> What:
    """Numbers drop a dimension, slices keep it, ``None`` adds one; an index that is not known leaves the number open."""
    if what.kind == "ndarray":
        return What("ndarray", dtype=what.dtype, family=what.family) if any(map(_keeps, indices)) else UNKNOWN
    if len(indices) == 1 and not _keeps(indices[0]) and kinds.what(indices[0], spot).kind == "int":
        return row(what)
    change, tensors = 0, []
    for index in indices:
        found = UNKNOWN if _keeps(index) else NONE if _adds(index) else kinds.what(index, spot)
        if found is NONE or found.kind == "int":
            change += 1 if found is NONE else -1
        elif found.is_tensor or found.kind == "list":
            tensors.append(found)
        elif not _keeps(index):
            return open_shape(what._replace(kind="tensor", layout=_unlaid(what.layout)))
    found = shifted(what._replace(kind="tensor", layout=_unlaid(what.layout)), change)
    return _by_tensors(found, tensors) if tensors else found


def _by_tensors(what: What, indices: list[What]) -> What:
    """Masks and tensors of indices: what they have of dimensions goes, what they have together comes."""
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


def _adds(index: Expression) -> bool:
    return isinstance(index, Constant) and index.value is None


def _keeps(index: Expression) -> bool:
    return isinstance(index, Operation) and index.op in (":", "...")


def _unlaid(layout: str) -> str:
    return "" if layout == "contiguous" else layout
