"""Transfer functions of single operations that no row of the table describes: casts, conversions of data and files, results
that are tuples or numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from torchrepro_lint.dataflow.types.attributes import shape
from torchrepro_lint.dataflow.types.context import TorchArguments, as_tensor, device_at
from torchrepro_lint.dataflow.types.lattice import (
    LOADED,
    NUMBERS,
    UNKNOWN,
    AbstractValue,
    common_device,
    common_gradient,
    device_type,
    dtype_family,
    nested_data,
    promoted_dtype,
    tensor,
)
from torchrepro_lint.dataflow.types.shapes import (
    broadcast_shape,
    matmul_shape,
    reduce,
    with_ndim,
    with_shape_of,
    with_sizes,
)
from torchrepro_lint.syntax.nodes import Ref


def with_dtype(what: AbstractValue, dtype: str, family: str) -> AbstractValue:
    """The tensor in another dtype; gradients flow only through floating-point numbers."""
    grad = False if what.integral or family in ("integer", "bool") else what.grad
    return what._replace(dtype=dtype, family=family, grad=grad)


def values_and_indices(values: AbstractValue) -> AbstractValue:
    """A named tuple of values and indices."""
    indices = values._replace(dtype="int64", family="integer", grad=False)
    return AbstractValue("tuple", items=(values, indices), name="values")


def pointwise(operands: tuple[AbstractValue, ...]) -> AbstractValue:
    """The result of an elementwise operation: broadcast shape, promoted dtype."""
    dtype, family = promoted_dtype(operands)
    plain = all(each.layout == "contiguous" or each.kind in NUMBERS for each in operands)
    return broadcast_shape(operands)._replace(
        dtype=dtype,
        family=family,
        device=common_device(operands),
        layout="contiguous" if plain else "",
        grad=False if family in ("integer", "bool") else common_gradient(operands),
    )


def matmul(left: AbstractValue, right: AbstractValue) -> AbstractValue:
    """The result of ``left @ right``."""
    return matmul_shape(pointwise((left, right)), left, right)._replace(layout="")


def where(arguments: TorchArguments) -> AbstractValue:
    """``torch.where(condition, x, y)``; with only the condition, a tuple of indices."""
    given = [arguments.value_of(at, word) for at, word in enumerate(("condition", "input", "other"))]
    if arguments.receiver is not None:  # x.where(condition, y)
        given = [arguments.value_of(1, "condition"), arguments.receiver, given[2]]
    condition, *sides = (each for each in given if each is not None)
    if len(sides) < 2:
        return (
            AbstractValue("tuple", contents=tensor("integer", dtype="int64", sizes=(None,))) if not sides else UNKNOWN
        )
    found = pointwise(tuple(sides))
    condition = condition if condition.is_tensor else AbstractValue("tensor")
    return with_shape_of(found, broadcast_shape((found, condition)))._replace(layout="")


def to(arguments: TorchArguments) -> AbstractValue:
    """``x.to(...)``: to a dtype, a device, or the dtype and device of another tensor."""
    found = arguments.tensor._replace(kind="tensor")
    words = ("dtype", "device", "other")
    given = [arguments.value_of(at) for at in (1, 2)] + [arguments.value_of(-1, word) for word in words]
    for at, each in enumerate(given):
        if each is None or each.kind in ("bool", "none"):
            continue
        if each.kind == "dtype":
            found = with_dtype(found, each.dtype, each.family)
        elif each.kind in ("device", "str", "int") or at == 3 or _last_word(arguments, at).startswith(_DEVICES):
            found = found._replace(device=device_type(each))
        elif each.is_tensor:
            found = with_dtype(found, each.dtype, each.family)._replace(device=each.device)
        else:
            found = found._replace(dtype="", family="", device="" if at < 2 else found.device)
    return found


_DEVICES = ("device", "dev", "rank", "local_rank", "gpu", "cuda", "cpu")


def _last_word(arguments: TorchArguments, at: int) -> str:
    """The last word of a positional argument's name: an argument named ``device`` is taken for a device."""
    args = [arg.value for arg in arguments.call.args if arg.keyword is None and not arg.star]
    if at < min(len(args), 2) and isinstance(ref := args[at], Ref):
        return ref.path[-1] if ref.path else ref.roots[0].rpartition(".")[2]
    return ""


def to_type(arguments: TorchArguments) -> AbstractValue:
    """``x.type(torch.long)``; without argument, the name of the type."""
    dtype = arguments.value_of(1, "dtype")
    if dtype is None:
        return AbstractValue("str")
    return with_dtype(arguments.tensor._replace(kind="tensor"), dtype.dtype, dtype_family(dtype))


def type_as(arguments: TorchArguments) -> AbstractValue:
    """``x.type_as(y)``."""
    other = arguments.value_of(1, "other") or UNKNOWN
    return with_dtype(arguments.tensor._replace(kind="tensor"), other.dtype, other.family)._replace(device=other.device)


def requires_grad_(arguments: TorchArguments) -> AbstractValue:
    """``x.requires_grad_(flag)``."""
    flag = arguments.constant(1, "requires_grad", default=True)
    return arguments.tensor._replace(grad=False if flag is False else None)


def extremum(arguments: TorchArguments) -> AbstractValue:
    """``max`` and ``min``: as ``median``, and of two tensors elementwise."""
    other = arguments.value_of(1, "other")
    return median(arguments) if other is None or not other.is_tensor else pointwise((arguments.tensor, other))


def median(arguments: TorchArguments) -> AbstractValue:
    """``median``: values and indices; without a dimension, the value."""
    what, dim = arguments.tensor._replace(kind="tensor", layout=""), arguments.value_of(1, "dim")
    if dim is None:
        return with_sizes(what, ()) if arguments.value_of(-1, "other") is None else UNKNOWN
    return values_and_indices(reduce(what, arguments)) if dim.kind in ("int", "str") else UNKNOWN


def bincount(arguments: TorchArguments) -> AbstractValue:
    """``bincount``: integers; with weights, floating-point numbers."""
    weights = arguments.value_of(1, "weights")
    if weights is None or weights.kind == "none":
        return tensor("integer", dtype="int64", device=arguments.tensor.device, sizes=(None,))
    return tensor("floating", device=arguments.tensor.device, sizes=(None,), grad=weights.grad)


def repeat_interleave(arguments: TorchArguments) -> AbstractValue:
    """``repeat_interleave``: rank 1 without ``dim``; of the repeats alone, the indices."""
    found = arguments.tensor._replace(kind="tensor", layout="", sizes=None)
    if arguments.value_of(1, "repeats") is None:
        return with_ndim(with_dtype(found, "int64", "integer"), 1, 1)
    return found if arguments.value_of(2, "dim") is not None else with_ndim(found, 1, 1)


def nonzero(arguments: TorchArguments) -> AbstractValue:
    """``nonzero``: rows of indices, or a tuple of them."""
    switch = arguments.flag(1, "as_tuple")
    rows = tensor("integer", dtype="int64", device=arguments.tensor.device)
    if switch is False:
        return with_ndim(rows, 2, 2)
    return AbstractValue("tuple", contents=with_ndim(rows, 1, 1)) if switch else UNKNOWN


def unique(arguments: TorchArguments, first: int) -> AbstractValue:
    """``unique``: the values, or a tuple with inverse and counts, as the arguments from ``first`` ask; with ``dim`` the rank is
    kept.
    """
    words = ("return_inverse", "return_counts")
    extra = [arguments.constant(first + at, word, default=False) for at, word in enumerate(words)]
    found, dim = arguments.tensor._replace(kind="tensor", layout=""), arguments.value_of(first + 2, "dim")
    values = with_ndim(found, 1, 1) if dim is None or dim.kind == "none" else found._replace(sizes=None)
    if extra == [False, False]:
        return values
    more = tensor("integer", dtype="int64", device=found.device)
    items = (values, *(more for each in extra if each is True))
    return AbstractValue("tuple", items=items) if ... not in extra else UNKNOWN


def meshgrid(arguments: TorchArguments) -> AbstractValue:
    """``meshgrid``: a tuple of n tensors of rank n."""
    parts = arguments.operands
    if not all(each.is_tensor for each in parts):
        return AbstractValue("tuple", contents=tensor(device=common_device(parts), grad=common_gradient(parts)))
    each = tensor(parts[0].family, dtype=parts[0].dtype, device=parts[0].device, grad=parts[0].grad)
    return AbstractValue("tuple", items=(with_ndim(each, len(parts), len(parts)),) * len(parts))


def tensor_of_data(arguments: TorchArguments) -> AbstractValue:
    """``torch.tensor(data)``: the numbers decide the dtype, the nesting the rank."""
    data, asked = arguments.value_of(0, "data") or UNKNOWN, arguments.value_of(1, "dtype")
    dtype, device, layout = "", arguments.value_of(-1, "device"), "contiguous"
    if data.is_tensor or data.kind == "ndarray":
        dtype, family, found, layout = data.dtype, data.family, with_shape_of(AbstractValue("tensor"), data), ""
        place = ""
    else:
        family, sizes = nested_data(data)
        dtype = {"integer": "int64", "bool": "bool"}.get(family, "")
        found = AbstractValue("tensor") if sizes is None else with_sizes(AbstractValue("tensor"), sizes)
        place = device_at(arguments.inference, arguments.point)
    if asked is not None and asked.kind != "none":
        dtype, family = asked.dtype, asked.family
    free = arguments.constant(-1, "requires_grad", default=False) is False or family in ("integer", "bool")
    place = place if device is None or device.kind == "none" else device_type(device)
    return found._replace(dtype=dtype, family=family, device=place, layout=layout, grad=False if free else None)


def as_tensor_of_data(arguments: TorchArguments) -> AbstractValue:
    """``torch.as_tensor(data)``: a tensor keeps its gradient."""
    data, found = arguments.value_of(0, "data") or UNKNOWN, tensor_of_data(arguments)
    if data.is_tensor:
        return found._replace(grad=False if found.integral else data.grad, device=found.device or data.device)
    return found if data.kind else found._replace(device="", grad=None)


def from_array(arguments: TorchArguments) -> AbstractValue:
    """``torch.from_numpy(array)``: on the CPU, without gradient."""
    array = arguments.value_of(0, "ndarray") or UNKNOWN
    return tensor(array.family, dtype=array.dtype, device="cpu", grad=False)


def parameter(arguments: TorchArguments) -> AbstractValue:
    """``nn.Parameter(data)``; its device is unknown, since it moves with its module."""
    data = arguments.value_of(0, "data") or UNKNOWN
    needs = arguments.constant(1, "requires_grad", default=True)
    found = data if data.is_tensor else AbstractValue("tensor")
    return found._replace(kind="parameter", device="", grad=False if needs is False or found.integral else None)


def loaded(arguments: TorchArguments) -> AbstractValue:
    """``torch.load(file)``: no tensor in the result needs a gradient."""
    where = arguments.value_of(1, "map_location")
    return LOADED._replace(device="" if where is None else device_type(where))


def device(arguments: TorchArguments) -> AbstractValue:
    """``torch.device("cuda")``."""
    return AbstractValue("device", device=device_type(arguments.value_of(0, "type") or UNKNOWN))


def size(arguments: TorchArguments) -> AbstractValue:
    """``x.size()``, ``x.size(dim)``."""
    if not arguments.call.args:
        return shape(arguments.tensor)
    at, sizes = arguments.integer(1, "dim"), arguments.tensor.sizes
    known = sizes and at is not None and -len(sizes) <= at < len(sizes)
    return AbstractValue("int", value=sizes[at] if sizes and at is not None and known else None)


def array(arguments: TorchArguments) -> AbstractValue:
    """``x.numpy()``."""
    return AbstractValue("ndarray", dtype=arguments.tensor.dtype, family=arguments.tensor.family)


_OF_FAMILY = {family: kind for kind, family in NUMBERS.items()}


def number(arguments: TorchArguments) -> AbstractValue:
    """``x.item()``."""
    return AbstractValue(_OF_FAMILY.get(arguments.tensor.family, ""))


def listed(arguments: TorchArguments) -> AbstractValue:
    """``x.tolist()``: a list if the rank is positive."""
    what = arguments.tensor
    if what.min_ndim == 0:
        return UNKNOWN
    return AbstractValue("list", contents=AbstractValue(_OF_FAMILY.get(what.family, "")) if what.ndim == 1 else None)


def recurrent(arguments: TorchArguments) -> AbstractValue:
    """``nn.LSTM``: a sequence or a batch of them, and the state."""
    found = as_tensor(arguments.input)
    return AbstractValue("tuple", items=(with_ndim(found, 2, 3), UNKNOWN)) if found.min_ndim else UNKNOWN


def attention(arguments: TorchArguments) -> AbstractValue:
    """``nn.MultiheadAttention``: the result, and the weights."""
    return AbstractValue("tuple", items=(arguments.tensor._replace(sizes=None), tensor()))


FUNCTIONS: dict[str, Callable[..., AbstractValue]] = {each.__name__: each for each in (
    where, to, to_type, type_as, requires_grad_, extremum, median, bincount, repeat_interleave, nonzero, unique, meshgrid,
    tensor_of_data, as_tensor_of_data, from_array, parameter, loaded, device, size, array, number, listed, recurrent, attention,
)}  # fmt: skip
