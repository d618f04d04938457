"""Containers: displays, what iterating gives, what entering gives, and their methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.infer.what import NOTHING, UNKNOWN, What, joined
from torchrepro_lint.syntax.nodes import Collection, Expression, Operation

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot

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
        from torchrepro_lint.infer.indexing import row

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
