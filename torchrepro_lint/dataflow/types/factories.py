"""Transfer functions that make tensors: constructors, random ones, conversions from lists and arrays, files."""

from __future__ import annotations

from torchrepro_lint.dataflow.types.context import device_at
from torchrepro_lint.dataflow.types.lattice import LOADED, UNKNOWN, AbstractValue, device_type, dtype_family, tensor
from torchrepro_lint.dataflow.types.reshaping import open_shape
from torchrepro_lint.dataflow.types.tensor_arguments import TorchArguments


def _new_tensor(
    arguments: TorchArguments, kind: str, dtype: str = "", sizes: tuple[int | None, ...] | None = None
) -> AbstractValue:
    """A new tensor, with the dtype, device and gradient that the keywords request."""
    asked = arguments.value_of(-1, "dtype")
    if asked is not None and asked.kind != "none":
        dtype, kind = asked.dtype, asked.family
    placed = arguments.value_of(-1, "device")
    plain = placed is None or placed.kind == "none"
    device = device_at(arguments.inference, arguments.point) if placed is None or plain else device_type(placed)
    flag = arguments.constant(-1, "requires_grad", default=False)
    grad = False if flag is False else None
    return tensor(kind, dtype=dtype, device=device, sizes=sizes, layout="contiguous", grad=grad)


def sized(arguments: TorchArguments) -> AbstractValue:
    """``torch.zeros(3, 4)``."""
    return _new_tensor(arguments, "floating", sizes=arguments.integers(0, "size"))


def filled(arguments: TorchArguments) -> AbstractValue:
    """``torch.full((3, 4), value)``."""
    value = arguments.value_of(1, "fill_value") or UNKNOWN
    kind = {"bool": "bool", "int": "integer", "float": "floating"}.get(value.kind, "")
    return _new_tensor(arguments, kind, "int64" if kind == "integer" else "", arguments.integers(0, "size"))


def integers(arguments: TorchArguments) -> AbstractValue:
    """``torch.randint(low, high, size)``."""
    operands = arguments.operands()
    at = 2 if len(operands) > 2 or (arguments.value_of(-1, "high") and len(operands) > 1) else 1
    sizes = (
        arguments.integers(-1, "size")
        if arguments.value_of(-1, "size")
        else arguments.integers(at)
        if len(operands) > at
        else None
    )
    return _new_tensor(arguments, "integer", "int64", sizes or None)


def permutation(arguments: TorchArguments) -> AbstractValue:
    return _new_tensor(arguments, "integer", "int64", (arguments.integer(0, "n"),))


def arange(arguments: TorchArguments) -> AbstractValue:
    """``torch.arange(...)``: integral if all bounds are."""
    operands = [dtype_family(each) for each in arguments.operands()]
    kind = "floating" if "floating" in operands else "integer" if operands and set(operands) == {"integer"} else ""
    size = arguments.integer(0, "end") if len(operands) == 1 else None
    return _new_tensor(arguments, kind, "int64" if kind == "integer" else "", (size,))


def linspace(arguments: TorchArguments) -> AbstractValue:
    """``torch.linspace(start, end, steps)``."""
    return _new_tensor(arguments, "floating", sizes=(arguments.integer(2, "steps"),))


def eye(arguments: TorchArguments) -> AbstractValue:
    rows = arguments.integer(0, "n")
    return _new_tensor(
        arguments, "floating", sizes=(rows, rows if arguments.value_of(1, "m") is None else arguments.integer(1, "m"))
    )


def tensor_of_data(arguments: TorchArguments) -> AbstractValue:
    """``torch.tensor(data)``: the numbers decide the dtype, the nesting the rank."""
    data = arguments.value_of(0, "data") or UNKNOWN
    if data.is_tensor or data.kind == "ndarray":
        dtype = arguments.value_of(1, "dtype")
        exact = dtype if dtype is not None and dtype.kind != "none" else data
        found = data if data.is_tensor else AbstractValue("tensor")
        grad = None if arguments.constant(-1, "requires_grad", default=False) is not False else False
        return found._replace(
            kind="tensor",
            dtype=exact.dtype,
            family=exact.family,
            device="",
            grad=grad,
            layout="",
            contents=None,
            value=None,
        )
    kind, sizes = _nested(data)
    return _new_tensor(arguments, kind, "int64" if kind == "integer" else "", sizes)


def as_tensor(arguments: TorchArguments) -> AbstractValue:
    """``torch.as_tensor(data)``: a tensor keeps its gradient."""
    data = arguments.value_of(0, "data") or UNKNOWN
    found = tensor_of_data(arguments)
    return (
        found._replace(grad=data.grad, device=data.device)
        if data.is_tensor
        else found
        if data.kind
        else found._replace(device="", grad=None)
    )


def _nested(what: AbstractValue) -> tuple[str, tuple[int | None, ...] | None]:
    if what.kind in ("int", "float", "bool"):
        return {"bool": "bool", "int": "integer", "float": "floating"}[what.kind], ()
    if what.kind in ("list", "tuple", "iterator") and what.contents is not None:
        kind, inner = _nested(what.contents)
        count = None if what.items is None else len(what.items)
        return kind, None if inner is None else (count, *inner)
    return "", None


def from_array(arguments: TorchArguments) -> AbstractValue:
    """``torch.from_numpy(array)``: on the CPU, without gradient."""
    array = arguments.value_of(0, "ndarray") or UNKNOWN
    return tensor(array.family, dtype=array.dtype, device="cpu", grad=False)


def zeros_like(arguments: TorchArguments) -> AbstractValue:
    """``torch.zeros_like(x)``: the shape of another tensor, and its dtype and device unless others are requested."""
    other = arguments.tensor
    return _like(arguments, other)._replace(min_ndim=other.min_ndim, max_ndim=other.max_ndim, sizes=other.sizes)


def new_zeros(arguments: TorchArguments) -> AbstractValue:
    """``x.new_zeros(3, 4)``: the dtype and device of another tensor."""
    sizes = arguments.integers(1, "size")
    found = _like(arguments, open_shape(arguments.tensor))
    return found if sizes is None else found._replace(min_ndim=len(sizes), max_ndim=len(sizes), sizes=sizes)


def new_tensor(arguments: TorchArguments) -> AbstractValue:
    """``x.new_tensor(data)``."""
    kind, sizes = _nested(arguments.value_of(1, "data") or UNKNOWN)
    return tensor(kind, device=arguments.tensor.device, sizes=sizes, grad=False)


def _like(arguments: TorchArguments, other: AbstractValue) -> AbstractValue:
    asked, placed = arguments.value_of(-1, "dtype"), arguments.value_of(-1, "device")
    plain = asked is None or asked.kind == "none"
    dtype, kind = (other.dtype, other.family) if asked is None or plain else (asked.dtype, asked.family)
    device = other.device if placed is None or placed.kind == "none" else device_type(placed)
    grad = False if arguments.constant(-1, "requires_grad", default=False) is False else None
    layout = "contiguous" if other.layout == "contiguous" else ""
    return tensor(kind, dtype=dtype, device=device, layout=layout, grad=grad)._replace(
        min_ndim=other.min_ndim, max_ndim=other.max_ndim
    )


def indices(arguments: TorchArguments) -> AbstractValue:
    """``torch.tril_indices(row, col)``."""
    return _new_tensor(arguments, "integer", "int64", (2, None))


def parameter(arguments: TorchArguments) -> AbstractValue:
    """``nn.Parameter(data)``; its device is unknown, since it moves with its module."""
    data = arguments.value_of(0, "data") or UNKNOWN
    needs = arguments.constant(1, "requires_grad", default=True)
    found = data if data.is_tensor else AbstractValue("tensor")
    return found._replace(kind="parameter", device="", grad=False if needs is False or found.integral else None)


def loaded(arguments: TorchArguments) -> AbstractValue:
    """``torch.load(file)``: no tensor in the result needs a gradient."""
    where = arguments.value_of(1, "map_location")
    device = device_type(where) if where is not None else ""
    return LOADED._replace(device=device)


def device(arguments: TorchArguments) -> AbstractValue:
    """``torch.device("cuda")``."""
    return AbstractValue("device", device=device_type(arguments.value_of(0, "type") or UNKNOWN))
