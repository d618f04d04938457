"""What inference knows of a call's input, in the words of the catalogue's conditions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import Between, arguments
from torchrepro_lint.dataflow.types.lattice import UNKNOWN, What
from torchrepro_lint.syntax.nodes import Attribute, Call, Collection, Constant, Expression, Operation, Ref, Subscript
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Scalar, Spelling
    from torchrepro_lint.dataflow.types.tensors import Tensors


def tensor(spelling: Spelling, call: Call, word: str) -> Expression | None:
    """The tensor that a function or method is given by a parameter; a method's own is called ``input``."""
    if word == "input" and spelling.name.startswith("torch.Tensor."):
        return receiver(call)
    return arguments(spelling, call)(word)


def receiver(call: Call) -> Expression | None:
    """What a method is called on."""
    match call.func:
        case Attribute(value=value):
            return value
        case Ref(start=start, roots=roots, path=(*before, _), base_end=end):
            return Ref(start, end, roots, tuple(before), end)
    return None


def of_input(what: What) -> dict[str, Scalar | Between]:
    """The subjects that a tensor decides."""
    known: dict[str, Scalar | Between] = {}
    if what.family:
        known["input.dtype"] = "integer" if what.integral else what.family
    if what.low or what.high is not None:
        known["input.ndim"] = what.low if what.low == what.high else Between(what.low, what.high)
    if what.layout:
        known["input.layout"] = "strided" if what.layout == "contiguous" else what.layout
        known["input.quantized"] = what.layout == "quantized"
    if what.device == "cpu":
        known["device"] = "cpu"
    return known


def of_call(tensors: Tensors, spelling: Spelling, call: Call) -> dict[str, Scalar | Between]:
    """What is known of what a function or method of torch is given."""
    read = {word: found for word in _TELLING if (found := tensor(spelling, call, word)) is not None}
    known = of_input(tensors.what(read["input"])) if "input" in read else {}
    if any(_is_on_cpu(tensors.what(read[word])) for word in _TOGETHER if word in read):
        known["device"] = "cpu"
    if "repeats" in read and _is_count(tensors, read["repeats"]):
        known["repeats"] = Between(0, None)
    if "src" in read and (source := tensors.what(read["src"])).kind in ("int", "float", "bool"):
        known["src"] = source.kind
    elif "src" in read and tensors.is_number_by_default(read["src"]):
        known["src"] = "number"
    if "target" in read:
        return {**_of_target(tensors.what(read["target"])), **known}
    if "scale_factor" in spelling.parameters:
        known.update(_spatial(spelling, call, known.get("input.ndim")))
    index = tensors.what(read["index"]) if "index" in read and spelling.name.rpartition(".")[2] in _AS_MANY else UNKNOWN
    return {**{of: value for of, value in of_input(index).items() if of == "input.ndim"}, **known}


# What lies on one device.
_TOGETHER = ("index", "src", "source")
_TELLING = ("input", "target", "repeats", *_TOGETHER)
# What takes an index with as many dimensions as the input has.
_AS_MANY = ("gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_")


def _spatial(spelling: Spelling, call: Call, ndim: Scalar | Between | None) -> dict[str, Scalar | Between]:
    """How many dimensions are resized, all but the first two: by the input, else by the size that is asked for."""
    if isinstance(ndim, int):
        return {"spatial": ndim - 2}
    match tensor(spelling, call, "size"):
        case Collection(kind="tuple" | "list", items=items) if not any(map(_is_starred, items)):
            return {"spatial": len(items)}
        case Subscript(
            value=value,
            indices=(Operation(op=":", operands=(Constant(value=int() as first), Constant(value=None), *_)),),
        ) if first < 0 and _SHAPE.fullmatch(last_word(value)):
            return {"spatial": -first}
    return {}


def _is_starred(item: Expression | None) -> bool:
    return isinstance(item, Operation) and item.op == "*" and len(item.operands) == 1


def _is_count(tensors: Tensors, repeats: Expression) -> bool:
    """Whether it is one number, by what is known of it or by its name; a tensor has a number for each element."""
    match repeats:
        case Operation(op="*" | "//", operands=operands):
            return all(_is_count(tensors, each) for each in operands)
        case Subscript(value=value, indices=(Constant(value=int()),)) if _SHAPE.fullmatch(last_word(value)):
            return True
    return tensors.what(repeats).kind == "int" or bool(_COUNT.fullmatch(last_word(repeats)))


_SHAPE = re.compile(r"\w*(shape|size)")
_COUNT = re.compile(r"\w+_(groups|factor|dim)")


def _is_on_cpu(what: What) -> bool:
    """Whether it is a tensor on the CPU, other than one number, which goes with any device."""
    return (what.is_tensor or not what.kind) and what.device == "cpu" and (what.low > 0 or what.high is None)


def of_module(tensors: Tensors, call: Call) -> dict[str, Scalar | Between]:
    """What is known of what a module is called with: its input and, of a loss, the target."""
    plain = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    named = {arg.keyword: arg.value for arg in call.args if arg.keyword is not None}
    source, target = (plain[0] if plain else named.get("input")), (plain[1] if len(plain) > 1 else named.get("target"))
    known = {} if source is None else of_input(tensors.what(source))
    return {**({} if target is None else _of_target(tensors.what(target))), **known}


def _of_target(what: What) -> dict[str, Scalar | Between]:
    """Class indices are integers and have a dimension less than the input; probabilities are not."""
    if what.integral:
        known: dict[str, Scalar | Between] = {"input.target": "class indices"}
        if what.low:
            known["input.ndim"] = Between(what.low + 1, None if what.high is None else what.high + 1)
        return known
    return {"input.target": "probabilities"} if what.family == "floating" else {}
