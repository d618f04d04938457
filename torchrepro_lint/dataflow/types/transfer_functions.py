"""Transfer functions: the result of a torch function, a method of a tensor or a layer, by its row in the table of tensor
operations.

A row names a function for the shape (``SHAPES``), a rule for the dtype and one for the layout; what it cannot say is a
function of ``tensor_functions``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.tensor_operations import TensorOperation, tensor_operations
from torchrepro_lint.dataflow.arguments import base_constructor_calls
from torchrepro_lint.dataflow.types.annotations import DTYPES
from torchrepro_lint.dataflow.types.attributes import return_value
from torchrepro_lint.dataflow.types.containers import element
from torchrepro_lint.dataflow.types.context import TorchArguments, as_tensor, device_at, gradients_off
from torchrepro_lint.dataflow.types.lattice import (
    BOTTOM,
    NUMBERS,
    TEXT,
    UNKNOWN,
    AbstractValue,
    common_device,
    common_gradient,
    device_type,
    dtype_family,
    join_all,
    promoted_dtype,
)
from torchrepro_lint.dataflow.types.library_functions import is_segmentation_model
from torchrepro_lint.dataflow.types.shapes import SHAPES, with_shape_of
from torchrepro_lint.dataflow.types.tensor_functions import FUNCTIONS, values_and_indices, with_dtype
from torchrepro_lint.syntax.binding import uses_receiver
from torchrepro_lint.syntax.nodes import Arg, Call, Expression, Operation, Ref
from torchrepro_lint.syntax.qualified_names import in_project, path_of
from torchrepro_lint.syntax.visitor import is_none

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import ProgramPoint
    from torchrepro_lint.dataflow.types.context import TypeInference


def method_value(
    inference: TypeInference, receiver: AbstractValue, word: str, call: Call, point: ProgramPoint
) -> AbstractValue:
    """The result of a tensor method."""
    arguments = TorchArguments(inference, call, point, receiver)
    if arguments.has_bottom:
        return BOTTOM
    row = tensor_operations().method(word)
    if row is None and word.endswith("_") and not word.startswith("_"):
        row = tensor_operations().names.get(word[:-1])
        return receiver._replace(kind="tensor") if row is None else _in_place(receiver, row, _applied(row, arguments))
    return UNKNOWN if row is None else _applied(row, arguments)


def _in_place(receiver: AbstractValue, row: TensorOperation, after: AbstractValue) -> AbstractValue:
    """The receiver after an in-place method: dtype and device do not change, nor does the shape by broadcasting."""
    if not after.is_tensor:
        return receiver._replace(kind="tensor")
    found = with_shape_of(after, receiver) if row.shape == "broadcast" else after
    least = max(found.min_ndim, after.min_ndim)
    return found._replace(min_ndim=least, dtype=receiver.dtype, family=receiver.family, device=receiver.device)


def function_value(inference: TypeInference, name: str, call: Call, point: ProgramPoint) -> AbstractValue | None:
    """The result of a torch function, or of a constructor such as ``nn.Parameter``; None if the table does not have it."""
    arguments = TorchArguments(inference, call, point, None)
    if arguments.has_bottom:
        return BOTTOM
    row = tensor_operations().function(name)
    if row is None:
        return UNKNOWN if name.startswith(("torch.nn.functional.", "torch._C._nn.")) else None
    return _applied(row, arguments)


def constructor_value(inference: TypeInference, name: str, call: Call, point: ProgramPoint) -> AbstractValue | None:
    """The result of a torch constructor that is more than an instance: ``nn.Parameter(data)``."""
    return function_value(inference, name, call, point) if name in tensor_operations().functions else None


_OF_DICT = frozenset({"items", "values", "keys", "get", "pop", "copy", "setdefault", "popitem", "update"})


def method_of_loaded(
    inference: TypeInference, receiver: AbstractValue, word: str, call: Call, point: ProgramPoint
) -> AbstractValue:
    """The result of a method of loaded data: of a dictionary, or of a tensor in it."""
    if word in ("items", "values"):
        pair = AbstractValue("tuple", items=(TEXT, receiver))
        return AbstractValue("iterator", contents=pair if word == "items" else receiver)
    if word in _OF_DICT:
        return receiver
    return method_value(inference, as_tensor(receiver), word, call, point)


def method_of_unknown(
    inference: TypeInference, receiver: AbstractValue, word: str, call: Call, point: ProgramPoint
) -> AbstractValue:
    """The result of a method of an unknown value: a tensor if only tensors have it, else what holds if it is one."""
    if tensor_operations().method(word) is None:
        return UNKNOWN
    found = method_value(inference, receiver._replace(kind="tensor"), word, call, point)
    if word in tensor_operations().tensor_only or found.kind == "nothing":
        return found
    return found._replace(kind="") if found.is_tensor else UNKNOWN


# --- layers ----------------------------------------------------------------------------------------------------------

_SEQUENTIAL = frozenset({"torch.nn.Sequential", "torch.nn.modules.container.Sequential"})
# The constructor call of a layer that is not known.
_ANYTHING = Ref(0, 0, (), (), 0)
_ANY_CALL = Call(0, 0, _ANYTHING, (Arg(0, 0, None, "*", _ANYTHING), Arg(0, 0, None, "**", _ANYTHING)), 0)


def module_value(inference: TypeInference, module: AbstractValue, call: Call, point: ProgramPoint) -> AbstractValue:
    """The result of calling a module of torch or an object of the project."""
    arguments = TorchArguments(inference, call, point, None)
    return BOTTOM if arguments.has_bottom else _of_module(inference, module, arguments.input, point)


def _of_module(
    inference: TypeInference, module: AbstractValue, value: AbstractValue, point: ProgramPoint
) -> AbstractValue:
    """The result for a value: of the project's ``__call__`` or ``forward``, of a layer, or of layers in turn."""
    resolver = inference.project.resolver
    if not in_project(module.name):
        return _of_layer(inference, module, value, point)
    if methods := resolver.call_methods(module.name):
        return join_all(*(return_value(inference, each, point) for each in methods))
    if _SEQUENTIAL.isdisjoint(resolver.ancestry(module.name)):
        return UNKNOWN
    makers = [(name, each) for name in resolver.methods(module.name, "__init__") for each in resolver.functions(name)]
    whole = [name for name, maker in makers[:1] if not uses_receiver(maker)]
    bases = ((name, call) for name in whole for call, _ in base_constructor_calls(inference.project, name))
    calls = list(dict.fromkeys((path_of(name), call) for name, call in bases))
    given = calls if makers else [module.constructor_call] if module.constructor_call else []
    return _in_turn(inference, *given[0], value, point) if len(given) == 1 else UNKNOWN


def _of_layer(
    inference: TypeInference, layer: AbstractValue, value: AbstractValue, point: ProgramPoint
) -> AbstractValue:
    """The result of a torch layer for a value."""
    module, _, word = layer.name.rpartition(".")
    path, call = layer.constructor_call or (point.path, _ANY_CALL)
    if value.kind != "nothing" and is_segmentation_model(layer.name):
        scores = AbstractValue("tensor", family="floating", min_ndim=4, max_ndim=4, device=as_tensor(value).device)
        return AbstractValue("dict", contents=under_gradient_mode(inference, scores, point))
    if value.kind == "nothing" or not module.startswith("torch.nn"):
        return value if value.kind == "nothing" else UNKNOWN
    if word == "Sequential":
        return _in_turn(inference, path, call, value, point) if layer.constructor_call else UNKNOWN
    learned = tensor_operations().learned.get(word)
    row = learned or tensor_operations().layers.get(word)
    if row is None:
        return UNKNOWN
    there = inference.program_point(path, call.start) if layer.constructor_call else point
    found = _value(row, TorchArguments(inference, call, there, value))
    return under_gradient_mode(inference, _of_parameters(found, value, learned=learned is not None), point)


def _in_turn(
    inference: TypeInference, path: str, call: Call, value: AbstractValue, point: ProgramPoint
) -> AbstractValue:
    """The result of the modules that a call gets, each called with the result of the one before."""
    for arg in call.args:
        modules = [*_alternatives(inference, path, arg.value, point)]
        if arg.star or arg.keyword or any(each.kind != "module" for each in modules):
            return UNKNOWN
        value = join_all(*(_of_module(inference, each, value, point) for each in modules))
    return value


def _alternatives(
    inference: TypeInference, path: str, value: Expression, point: ProgramPoint
) -> Iterator[AbstractValue]:
    """The modules that an expression may be, those of a conditional expression, also of a variable's, one by one."""
    roots = value.roots if isinstance(value, Ref) and not value.path else ()
    assigned = [each for root in roots for how, each in inference.project.resolver.assigned(path + root) if how == "="]
    for whole in assigned if any(isinstance(each, Operation) for each in assigned) else [value]:
        chosen = whole.operands[1:] if isinstance(whole, Operation) and whole.op == "if" else (whole,)
        for each in chosen:
            if each == whole or not is_none(each):
                yield inference.infer(each, inference.program_point(path, each.start, point.calls_left))


def _of_parameters(what: AbstractValue, value: AbstractValue, *, learned: bool) -> AbstractValue:
    """The result of a layer, which may have been cast or moved since, and whose parameters may need a gradient."""
    if what.kind == "tuple" and what.items:
        return what._replace(items=tuple(_of_parameters(each, value, learned=learned) for each in what.items))
    if not what.is_tensor or what.integral:
        return what
    grad = None if learned else what.grad
    return what._replace(kind="tensor", dtype="", layout="", device=as_tensor(value).device, grad=grad)


# --- rows ------------------------------------------------------------------------------------------------------------


def _applied(row: TensorOperation, arguments: TorchArguments) -> AbstractValue:
    """The result of an operation, under the gradient mode in force."""
    found = _value(row, arguments)
    return found if row.grad == "asked" else under_gradient_mode(arguments.inference, found, arguments.point)


def _value(row: TensorOperation, arguments: TorchArguments) -> AbstractValue:
    arguments = arguments._replace(operands=_operands(row, arguments))
    if row.function:
        return FUNCTIONS[row.function](arguments, **row.parameters)
    if row.result in _CONSTANTS:
        return _CONSTANTS[row.result]
    if row.result == "rank":
        return AbstractValue("int", value=arguments.tensor.ndim)
    what = as_tensor(arguments.operands[0])._replace(kind="tensor") if arguments.operands else AbstractValue("tensor")
    found = SHAPES[row.shape](what, arguments, **row.parameters)._replace(optional=False)
    found = _with_device(row, _with_dtype(row, found, arguments), arguments)
    found = found._replace(layout=_layout(row.layout, what, arguments), grad=_gradient(row, found, arguments))
    return _in_container(row, found, arguments)


_CONSTANTS = {
    "int": AbstractValue("int"),
    "bool": AbstractValue("bool"),
    "ints": AbstractValue("tuple", contents=AbstractValue("int")),
}


def _operands(row: TensorOperation, arguments: TorchArguments) -> tuple[AbstractValue, ...]:
    """The operands of an operation, without those that the call leaves out."""
    if row.listed >= 0:
        sequence = arguments.value_of(row.listed, "tensors") or UNKNOWN
        return sequence.items or (element(sequence),)
    if row.variadic >= 0:
        return arguments.rest(row.variadic)
    found = (arguments.value_of(position, word) for word, position in row.operands)
    return tuple(each for each in found if each is not None and each.kind != "none")


def _in_container(row: TensorOperation, found: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """The result in the container that the operation returns."""
    if row.result == "values":
        return values_and_indices(found)
    if row.result == "parts":
        return AbstractValue("tuple", contents=found)
    if row.result == "indices":
        asked = arguments.constant(row.indices, "return_indices", default=False)
        pair = values_and_indices(found)._replace(name="") if asked is True else UNKNOWN
        return found if asked is False else pair
    return found


def _with_dtype(row: TensorOperation, what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """The result with its dtype: the one that the call asks for, or by the rule of the row."""
    asked = arguments.value_of(row.cast, "dtype")
    if asked is not None and asked.kind not in ("none", "int"):
        return with_dtype(what, asked.dtype, asked.family)
    return with_dtype(what, *(DTYPES.get(row.dtype) or _dtype(row.dtype, what, arguments)))


_FLOATING, _INT64 = ("", "floating"), ("int64", "integer")
# What some rules make of the dtypes of a family.
_BY_FAMILY = {
    "floating": {"integer": _FLOATING, "bool": _FLOATING},
    "sum": {"integer": _INT64, "bool": _INT64},
    "not_bool": {"bool": _INT64},
    "real": {"complex": _FLOATING},
    "weights": {"": _FLOATING},
    "loss": {"": _FLOATING, "complex": _FLOATING},
    "contraction": {"integer": ("", "integer"), "bool": ("", "")},
    "default": dict.fromkeys(("", "bool", "integer", "floating", "complex"), _FLOATING),
}


def _dtype(rule: str, what: AbstractValue, arguments: TorchArguments) -> tuple[str, str]:
    """The dtype and the family of a result, by a rule of the table."""
    known = (what.dtype, what.family)
    match rule:
        case "promoted" | "promoted_loss" | "promoted_contraction":
            known = promoted_dtype(arguments.operands)
        case "quotient":
            known = promoted_dtype(arguments.operands)
            rule = "floating" if arguments.constant(-1, "rounding_mode") is None else rule
        case "bounded":  # no complex numbers
            return promoted_dtype(arguments.operands) if what.family != "floating" else _bounded(arguments.operands)
        case "truth":
            return known if what.dtype == "uint8" else ("bool", "bool")
        case "index":
            return _INT64 if arguments.value_of(-1, "out_int32") is None else ("", "integer")
        case "filled":
            return _of_numbers([arguments.value_of(1, "fill_value") or UNKNOWN])
        case "bounds":
            given = [arguments.value_of(*each) for each in ((0, "start"), (1, "end"), (2, "step"), (-1, "end"))]
            return _of_numbers([each for each in given if each is not None])
        case "unknown":
            return "", ""
    return _BY_FAMILY.get(rule.removeprefix("promoted_"), {}).get(known[1], known)


def _bounded(operands: Sequence[AbstractValue]) -> tuple[str, str]:
    """The dtype of floating-point numbers that others bound."""
    found = promoted_dtype(operands)
    return found if found[1] else ("", "floating")


def _of_numbers(numbers: Sequence[AbstractValue]) -> tuple[str, str]:
    """The dtype of a tensor that is made of numbers."""
    family = promoted_dtype([AbstractValue("tensor", family=dtype_family(each)) for each in numbers])[1]
    return "int64" if family == "integer" else family if family == "bool" else "", family


def _with_device(row: TensorOperation, what: AbstractValue, arguments: TorchArguments) -> AbstractValue:
    """The result with its device: the one that the call asks for, that of the row, or that of the operands."""
    asked = arguments.value_of(-1, "device")
    if asked is not None and asked.kind != "none":
        return what._replace(device=device_type(asked))
    if row.device:
        return what._replace(device=row.device.removeprefix("unknown"))
    if not arguments.operands:
        return what._replace(device=device_at(arguments.inference, arguments.point))
    common = common_device(arguments.operands) if len(arguments.operands) > 1 else what.device
    return what._replace(device=common if row.shape == "broadcast" else common or what.device)


def _gradient(row: TensorOperation, what: AbstractValue, arguments: TorchArguments) -> bool | None:
    """False if the result needs no gradient."""
    if what.integral or row.grad == "none":
        return False
    if row.grad == "asked":
        return False if arguments.constant(-1, "requires_grad", default=False) is False else None
    return common_gradient(arguments.operands) if row.grad == "operands" else None


_DENSE = ("contiguous", "strided")


def _layout(rule: str, what: AbstractValue, arguments: TorchArguments) -> str:
    """The layout of a result, by a rule of the table."""
    match rule:
        case "keep":
            return what.layout
        case "open":
            return "" if what.layout == "contiguous" else what.layout
        case "strided":
            return "strided" if what.layout in _DENSE else what.layout
        case "pointwise":
            plain = all(each.layout == "contiguous" or each.kind in NUMBERS for each in arguments.operands)
            return "contiguous" if plain else ""
        case "copy":
            return "contiguous" if not what.layout or what.layout in _DENSE else ""
        case "like" | "contiguous":
            asked = any(arg.keyword == "memory_format" for arg in arguments.call.args)
            return "contiguous" if not asked and (rule == "contiguous" or what.layout == "contiguous") else ""
        case "asked":
            return "contiguous" if arguments.value_of(1, "memory_format") is None else ""
    return "" if rule == "new" else rule


def under_gradient_mode(inference: TypeInference, what: AbstractValue, point: ProgramPoint) -> AbstractValue:
    """The value, without gradient if it is computed under ``no_grad``."""
    if what.is_tensor and what.kind != "parameter" and what.grad is None and gradients_off(inference, point):
        return what._replace(grad=False)
    if what.kind == "tuple" and what.items and gradients_off(inference, point):
        return what._replace(items=tuple(under_gradient_mode(inference, each, point) for each in what.items))
    return what
