"""What the attributes of tensors, arrays, frames and paths are."""

from __future__ import annotations

from torchrepro_lint.infer.what import UNKNOWN, What


def of_unknown(what: What, word: str) -> What:
    """An attribute of what may be a tensor, or an array: whichever it is, a shape is a shape."""
    if word in ("data", "T", "mT"):
        return of_tensor(what, word)._replace(kind="")
    if word == "shape":
        return What("tuple", of=What("int"))
    return What(word) if word in ("device", "dtype") else UNKNOWN


def of_tensor(what: What, word: str) -> What:
    """An attribute of a tensor."""
    if word == "data":
        return what._replace(kind="tensor", grad=False)
    if word in ("T", "mT", "H", "mH"):
        sizes = what.sizes[::-1] if what.sizes is not None and len(what.sizes) == 2 else None
        return what._replace(
            kind="tensor", sizes=sizes, layout="strided" if what.layout == "contiguous" else what.layout
        )
    if word == "shape":
        return shape(what)
    if word in ("ndim", "itemsize", "nbytes"):
        return What("int", value=what.ndim if word == "ndim" else None)
    if word == "grad":
        return what._replace(kind="tensor", grad=False, layout="")
    if word in ("real", "imag"):
        return What("tensor", family="floating", device=what.device, low=what.low, high=what.high, sizes=what.sizes)
    return _TENSOR.get(word, UNKNOWN)


def shape(what: What) -> What:
    """The shape of a tensor, as a tuple of as many numbers as it has dimensions."""
    if what.sizes is not None:
        return What("tuple", of=What("int"), items=tuple(What("int", value=each) for each in what.sizes))
    return What("tuple", of=What("int"), items=None if what.ndim is None else (What("int"),) * what.ndim)


def of_array(what: What, word: str) -> What:
    """An attribute of an array."""
    if word == "T":
        return what._replace(sizes=None)
    return {
        "shape": What("tuple", of=What("int")),
        "ndim": What("int"),
        "size": What("int"),
        "dtype": What("dtype"),
    }.get(word, UNKNOWN)


def of_frame(what: What, word: str) -> What:
    """An attribute of a frame or a series: a column too is one."""
    column = What("series") if what.kind == "dataframe" and word in ("index", "columns") else UNKNOWN
    return _PANDAS.get(word, column)


_TENSOR = {
    "dtype": What("dtype"),
    "device": What("device"),
    **dict.fromkeys(("requires_grad", "is_cuda", "is_leaf", "is_sparse", "is_quantized", "is_nested"), What("bool")),
}
_TEXT = What("str", of=What("str"))
PATH = {
    "parent": What("path"),
    **dict.fromkeys(("name", "stem", "suffix", "anchor", "root", "drive"), _TEXT),
    "parts": What("tuple", of=_TEXT),
    "suffixes": What("list", of=_TEXT),
    "parents": What("tuple", of=What("path")),
}
_PANDAS = {
    "values": What("ndarray"),
    "iloc": What("dataframe"),
    "loc": What("dataframe"),
    "shape": What("tuple", of=What("int")),
}
