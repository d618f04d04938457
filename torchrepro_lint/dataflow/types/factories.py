"""Tensors that are made: constructors, random ones, conversions from lists and arrays, files."""

from __future__ import annotations

from torchrepro_lint.dataflow.types.context import device_around
from torchrepro_lint.dataflow.types.lattice import LOADED, UNKNOWN, What, device_named, family, tensor
from torchrepro_lint.dataflow.types.reshaping import open_shape
from torchrepro_lint.dataflow.types.tensor_arguments import Given


def _made(given: Given, kind: str, dtype: str = "", sizes: tuple[int | None, ...] | None = None) -> What:
    """A new tensor, with the dtype, device and gradient that keywords ask for."""
    asked = given.what(-1, "dtype")
    if asked is not None and asked.kind != "none":
        dtype, kind = asked.dtype, asked.family
    placed = given.what(-1, "device")
    plain = placed is None or placed.kind == "none"
    device = device_around(given.kinds, given.spot) if placed is None or plain else device_named(placed)
    flag = given.value(-1, "requires_grad", default=False)
    grad = False if flag is False else None
    return tensor(kind, dtype=dtype, device=device, sizes=sizes, layout="contiguous", grad=grad)


def sized(given: Given) -> What:
    """``torch.zeros(3, 4)``."""
    return _made(given, "floating", sizes=given.numbers(0, "size"))


def filled(given: Given) -> What:
    """``torch.full((3, 4), value)``."""
    value = given.what(1, "fill_value") or UNKNOWN
    kind = {"bool": "bool", "int": "integer", "float": "floating"}.get(value.kind, "")
    return _made(given, kind, "int64" if kind == "integer" else "", given.numbers(0, "size"))


def integers(given: Given) -> What:
    """``torch.randint(low, high, size)``."""
    operands = given.operands()
    at = 2 if len(operands) > 2 or (given.what(-1, "high") and len(operands) > 1) else 1
    sizes = given.numbers(-1, "size") if given.what(-1, "size") else given.numbers(at) if len(operands) > at else None
    return _made(given, "integer", "int64", sizes or None)


def permutation(given: Given) -> What:
    return _made(given, "integer", "int64", (given.number(0, "n"),))


def counted(given: Given) -> What:
    """``torch.arange(...)``: of integers where all its bounds are."""
    operands = [family(each) for each in given.operands()]
    kind = "floating" if "floating" in operands else "integer" if operands and set(operands) == {"integer"} else ""
    size = given.number(0, "end") if len(operands) == 1 else None
    return _made(given, kind, "int64" if kind == "integer" else "", (size,))


def spaced(given: Given) -> What:
    """``torch.linspace(start, end, steps)``."""
    return _made(given, "floating", sizes=(given.number(2, "steps"),))


def identity(given: Given) -> What:
    rows = given.number(0, "n")
    return _made(given, "floating", sizes=(rows, rows if given.what(1, "m") is None else given.number(1, "m")))


def converted(given: Given) -> What:
    """``torch.tensor(data)``: the numbers in it tell the dtype, its nesting the dimensions."""
    data = given.what(0, "data") or UNKNOWN
    if data.is_tensor or data.kind == "ndarray":
        dtype = given.what(1, "dtype")
        exact = dtype if dtype is not None and dtype.kind != "none" else data
        found = data if data.is_tensor else What("tensor")
        grad = None if given.value(-1, "requires_grad", default=False) is not False else False
        return found._replace(
            kind="tensor", dtype=exact.dtype, family=exact.family, device="", grad=grad, layout="", of=None, value=None
        )
    kind, sizes = _nested(data)
    return _made(given, kind, "int64" if kind == "integer" else "", sizes)


def adopted(given: Given) -> What:
    """``torch.as_tensor(data)``: a tensor keeps its gradient."""
    data = given.what(0, "data") or UNKNOWN
    found = converted(given)
    return (
        found._replace(grad=data.grad, device=data.device)
        if data.is_tensor
        else found
        if data.kind
        else found._replace(device="", grad=None)
    )


def _nested(what: What) -> tuple[str, tuple[int | None, ...] | None]:
    if what.kind in ("int", "float", "bool"):
        return {"bool": "bool", "int": "integer", "float": "floating"}[what.kind], ()
    if what.kind in ("list", "tuple", "iterator") and what.of is not None:
        kind, inner = _nested(what.of)
        count = None if what.items is None else len(what.items)
        return kind, None if inner is None else (count, *inner)
    return "", None


def from_array(given: Given) -> What:
    """``torch.from_numpy(array)``: on the CPU, outside of any graph."""
    array = given.what(0, "ndarray") or UNKNOWN
    return tensor(array.family, dtype=array.dtype, device="cpu", grad=False)


def alike(given: Given) -> What:
    """``torch.zeros_like(x)``: with the shape of another, and its dtype and device unless asked for others."""
    other = given.tensor
    return _after(given, other)._replace(low=other.low, high=other.high, sizes=other.sizes)


def renewed(given: Given) -> What:
    """``x.new_zeros(3, 4)``: with the dtype and device of another."""
    sizes = given.numbers(1, "size")
    found = _after(given, open_shape(given.tensor))
    return found if sizes is None else found._replace(low=len(sizes), high=len(sizes), sizes=sizes)


def renewed_from(given: Given) -> What:
    """``x.new_tensor(data)``."""
    kind, sizes = _nested(given.what(1, "data") or UNKNOWN)
    return tensor(kind, device=given.tensor.device, sizes=sizes, grad=False)


def _after(given: Given, other: What) -> What:
    asked, placed = given.what(-1, "dtype"), given.what(-1, "device")
    plain = asked is None or asked.kind == "none"
    dtype, kind = (other.dtype, other.family) if asked is None or plain else (asked.dtype, asked.family)
    device = other.device if placed is None or placed.kind == "none" else device_named(placed)
    grad = False if given.value(-1, "requires_grad", default=False) is False else None
    layout = "contiguous" if other.layout == "contiguous" else ""
    return tensor(kind, dtype=dtype, device=device, layout=layout, grad=grad)._replace(low=other.low, high=other.high)


def indices(given: Given) -> What:
    """``torch.tril_indices(row, col)``."""
    return _made(given, "integer", "int64", (2, None))


def parameter(given: Given) -> What:
    """``nn.Parameter(data)``; its module takes it to another device."""
    data = given.what(0, "data") or UNKNOWN
    needs = given.value(1, "requires_grad", default=True)
    found = data if data.is_tensor else What("tensor")
    return found._replace(kind="parameter", device="", grad=False if needs is False or found.integral else None)


def loaded(given: Given) -> What:
    """``torch.load(file)``: whatever it is, no tensor in it needs a gradient."""
    where = given.what(1, "map_location")
    device = device_named(where) if where is not None else ""
    return LOADED._replace(device=device)


def device(given: Given) -> What:
    """``torch.device("cuda")``."""
    return What("device", device=device_named(given.what(0, "type") or UNKNOWN))
