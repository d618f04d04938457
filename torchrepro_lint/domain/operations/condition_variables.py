"""Condition variables of the catalogue, read off the inferred types of a call's arguments.

Also here, for conditions on what becomes of a result: which component of a ``(values, indices)`` pair is used, and
embedding tables of which only the weight is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import Interval, argument_reader
from torchrepro_lint.dataflow.types.lattice import UNKNOWN, AbstractValue
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.definitions import unpacking_steps
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    ExpressionStatement,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import qualifier_of, simple_name, split_local
from torchrepro_lint.syntax.visitor import is_starred, last_identifier, statements, subexpressions

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Scalar, Signature
    from torchrepro_lint.dataflow.types.tensor_facts import TensorFacts
    from torchrepro_lint.dataflow.uses import DefUse
    from torchrepro_lint.resolve.program_index import CallSite
    from torchrepro_lint.syntax.use_def import ExpressionPosition
    from torchrepro_lint.trace.traces import Traces


# What the qualified names of tensor methods begin with.
TENSOR = "torch.Tensor."


def tensor_argument(signature: Signature, call: Call, word: str) -> Expression | None:
    """The tensor that a call passes for a parameter; a method's receiver is its ``input``, unless it is called unbound."""
    if word == "input" and signature.name.startswith(TENSOR) and word not in signature.parameters:
        return receiver(call)
    return argument_reader(signature, call)(word)


def receiver(call: Call) -> Expression | None:
    """The receiver of a method call."""
    match call.func:
        case Attribute(value=value):
            return value
        case Ref(start=start, roots=roots, path=(*before, _), base_end=end):
            return Ref(start, end, roots, tuple(before), end)
    return None


def input_subjects(what: AbstractValue) -> dict[str, Scalar | Interval]:
    """The condition variables that a tensor's type decides."""
    known: dict[str, Scalar | Interval] = {}
    if what.family:
        known["input.dtype"] = "integer" if what.integral else what.family
    if what.min_ndim or what.max_ndim is not None:
        known["input.ndim"] = (
            what.min_ndim if what.min_ndim == what.max_ndim else Interval(what.min_ndim, what.max_ndim)
        )
    if what.layout:
        known["input.layout"] = "strided" if what.layout == "contiguous" else what.layout
        known["input.quantized"] = what.layout == "quantized"
    if what.device == "cpu":
        known["device"] = "cpu"
    return known


def call_subjects(tensors: TensorFacts, signature: Signature, call: Call) -> dict[str, Scalar | Interval]:
    """The condition variables that the arguments of a torch function or method decide."""
    read = {word: found for word in _TYPED_PARAMETERS if (found := tensor_argument(signature, call, word)) is not None}
    known = input_subjects(tensors.value(read["input"])) if "input" in read else {}
    if any(_is_on_cpu(tensors.value(read[word])) for word in _SAME_DEVICE if word in read):
        known["device"] = "cpu"
    known.update(_second_factor(tensors, signature, call))
    if "repeats" in read and _is_count(tensors, read["repeats"]):
        known["repeats"] = Interval(0, None)
    if "src" in read and (source := tensors.value(read["src"])).kind in ("int", "float", "bool"):
        known["src"] = source.kind
    elif "src" in read and tensors.is_number_by_default(read["src"]):
        known["src"] = "number"
    if "target" in read:
        return {**_target_subjects(tensors.value(read["target"])), **known}
    if "scale_factor" in signature.parameters:
        known.update(_spatial_dimensions(signature, call, known.get("input.ndim")))
    index = (
        tensors.value(read["index"])
        if "index" in read and simple_name(signature.name) in _INDEX_OF_SAME_RANK
        else UNKNOWN
    )
    return {**{of: value for of, value in input_subjects(index).items() if of == "input.ndim"}, **known}


def _second_factor(tensors: TensorFacts, signature: Signature, call: Call) -> dict[str, Scalar | Interval]:
    """The condition variables that the second factor of a product decides."""
    word = next((each for each in _SECOND if each in signature.parameters), "")
    factor = tensor_argument(signature, call, word) if word else None
    known = {} if factor is None else input_subjects(tensors.value(factor))
    named = {"input.layout": "other.layout", "device": "device"}
    return {named[of]: value for of, value in known.items() if of in named}


_SECOND = ("mat2", "other", "dense")
# Parameters whose tensors are on one device with the input.
_SAME_DEVICE = ("index", "src", "source", "sparse")
_TYPED_PARAMETERS = ("input", "target", "repeats", *_SAME_DEVICE)
# Operations whose index has as many dimensions as the input.
_INDEX_OF_SAME_RANK = (
    "gather",
    "scatter",
    "scatter_",
    "scatter_add",
    "scatter_add_",
    "scatter_reduce",
    "scatter_reduce_",
)


def _spatial_dimensions(
    signature: Signature, call: Call, ndim: Scalar | Interval | None
) -> dict[str, Scalar | Interval]:
    """The number of dimensions that are resized, all but the first two: from the input, else from the size argument."""
    if isinstance(ndim, int):
        return {"spatial": ndim - 2}
    match tensor_argument(signature, call, "size"):
        case Collection(kind="tuple" | "list", items=items) if not any(map(is_starred, items)):
            return {"spatial": len(items)}
        case Subscript(
            value=value,
            indices=(Operation(op=":", operands=(Constant(value=int() as first), Constant(value=None), *_)),),
        ) if first < 0 and _SHAPE.fullmatch(last_identifier(value)):
            return {"spatial": -first}
    return {}


def _is_count(tensors: TensorFacts, repeats: Expression) -> bool:
    """Whether it is a number, by its type or its name; a tensor would give a number for each element."""
    match repeats:
        case Operation(op="*" | "//", operands=operands):
            return all(_is_count(tensors, each) for each in operands)
        case Subscript(value=value, indices=(Constant(value=int()),)) if _SHAPE.fullmatch(last_identifier(value)):
            return True
    return tensors.value(repeats).kind == "int" or bool(_COUNT.fullmatch(last_identifier(repeats)))


_SHAPE = lazy_pattern(r"\w*(shape|size)")
_COUNT = lazy_pattern(r"\w+_(groups|factor|dim)")


def _is_on_cpu(what: AbstractValue) -> bool:
    """Whether it is a tensor on the CPU. A scalar tensor does not count: it combines with any device."""
    return (what.is_tensor or not what.kind) and what.device == "cpu" and (what.min_ndim > 0 or what.max_ndim is None)


def module_subjects(tensors: TensorFacts, call: Call) -> dict[str, Scalar | Interval]:
    """The condition variables that the arguments of a module's call decide: its input; for a loss, the target; for attention, whether
    it returns the weights.
    """
    source, target = known_argument(call, 0, "input"), known_argument(call, 1, "target")
    known = {} if source is None else input_subjects(tensors.value(source))
    if isinstance(weights := known_argument(call, 4, "need_weights"), Constant):
        known["input.need_weights"] = bool(weights.value)
    return {**({} if target is None else _target_subjects(tensors.value(target))), **known}


def _target_subjects(what: AbstractValue) -> dict[str, Scalar | Interval]:
    """Class indices are integers and have one dimension less than the input; probabilities are floating point."""
    if what.integral:
        known: dict[str, Scalar | Interval] = {"input.target": "class indices"}
        if what.min_ndim:
            known["input.ndim"] = Interval(what.min_ndim + 1, None if what.max_ndim is None else what.max_ndim + 1)
        return known
    return {"input.target": "probabilities"} if what.family == "floating" else {}


_COMPONENTS = ("values", "indices")


def uses_component(uses: DefUse, path: str, call: Call, part: str | None) -> bool:
    """Whether a component (``values`` or ``indices``) of a call's result is used; None asks for any of it.

    A result that is passed to a function or returned counts as used.
    """
    spot = uses.spots(path).of(call)
    if spot is None:
        return True
    if spot.parent is not None:
        return _takes_component(spot.parent, part)
    match spot.statement:
        case ExpressionStatement():
            return False
        case Assign(op="=" | ":", targets=targets):
            return any(_is_read(uses, path, spot, target, part) for target in targets)
    return True


def _is_read(uses: DefUse, path: str, spot: ExpressionPosition, target: Expression, part: str | None) -> bool:
    """Whether a component is read anywhere that an assignment to a target reaches."""
    match target:
        case Collection() if part is not None:
            index = _COMPONENTS.index(part)
            picked = next((item for step, item in unpacking_steps(target) if step == index), None)
            return True if picked is None else _is_read(uses, path, spot, picked, None)
        case Ref(path=()):
            for file, ref, words in uses.of_variable(path, target, spot, spot.statement.end):
                read = uses.spots(file).of(ref)
                above = ref._replace(path=words) if words else read.parent if read is not None else None
                if above is None or _takes_component(above, part):
                    return True
            return False
    return True


def _takes_component(above: Expression, part: str | None) -> bool:
    """Whether an expression takes a component out of a pair that is its operand."""
    if part is None:
        return True
    match above:
        case Attribute(name=word) | Ref(path=(word, *_)):
            return word == part or word not in _COMPONENTS
        case Subscript(indices=(Constant(value=int(index)),)):
            return index % 2 == _COMPONENTS.index(part)
        case Subscript(indices=(Operation(op="-", operands=(Constant(value=int(index)),)),)):
            return -index % 2 == _COMPONENTS.index(part)
    return True


_TABLES = frozenset({"torch.nn.Embedding", "torch.nn.modules.sparse.Embedding"})
# Attributes of an embedding that are read without running it.
_WEIGHT_ATTRIBUTES = frozenset({"weight", "num_embeddings", "embedding_dim"})


def is_only_weight_read(project: Traces, path: str, site: CallSite) -> bool:
    """Whether an embedding is stored in an attribute of which the project reads nothing but the weight."""
    words = {
        target.path[0]
        for target in _storing_targets(project, site)
        if isinstance(target, Ref) and len(target.path) == 1
    }
    if len(words) != 1 or not _TABLES.intersection(site.names):
        return False
    word, owner = words.pop(), project.resolver.owner(site.function)
    # Its own file first, where nearly all are run.
    reads = sorted(project.uses.attributes.having(word), key=lambda each: each[0] != path)
    uses = (_is_weight_read(project.uses, *each) for each in reads if _may_be_of(project, owner, *each))
    return next(uses, False) and all(uses)


def _may_be_of(project: Traces, owner: str, path: str, read: Expression, at: int) -> bool:
    """Whether an attribute may be read of an object of a class: ``self`` is one of its own class."""
    method, variable = split_local(read.roots[0]) if isinstance(read, Ref) and at == 0 else ("", "")
    of = f"{path}{qualifier_of(method)}"
    return (
        variable != "self"
        or not qualifier_of(method)
        or owner in project.resolver.ancestry(of)
        or of in project.resolver.ancestry(owner)
    )


def _is_weight_read(uses: DefUse, path: str, read: Expression, at: int) -> bool:
    """Whether nothing but the weight is read of an attribute, or of an element of it."""
    if isinstance(read, Ref) and read.path[at + 1 :]:
        return read.path[at + 1] in _WEIGHT_ATTRIBUTES
    spots = uses.spots(path)
    above = spots.of(read)
    while above is not None and isinstance(above.parent, Subscript) and above.parent.value == read:
        read, above = above.parent, spots.of(above.parent)
    return above is not None and isinstance(above.parent, Attribute) and above.parent.name in _WEIGHT_ATTRIBUTES


def _storing_targets(project: Traces, site: CallSite) -> list[Expression]:
    """The targets that store a created object, directly or through a local variable."""
    found = []
    for target in _assignment_targets(site):
        if not isinstance(target, Ref) or target.path:
            found.append(target)
            continue
        for function in project.resolver.functions(site.function):
            for statement in statements(function.body):
                if isinstance(statement, Assign) and statement.value is not None and statement != site.statement:
                    named = (each.roots for each in subexpressions(statement.value) if isinstance(each, Ref))
                    found += statement.targets if target.roots in named else ()
    return found


def _assignment_targets(site: CallSite) -> tuple[Expression, ...]:
    """The targets of the assignment that stores a created object, by itself or in a list."""
    statement = site.statement
    if not isinstance(statement, Assign) or statement.value is None:
        return ()
    return statement.targets if any(each == site.call for each in subexpressions(statement.value)) else ()
