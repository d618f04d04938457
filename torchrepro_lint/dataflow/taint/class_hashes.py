"""Hashes of a class's objects: whether they are the same in every run, since they are made of numbers alone."""

from __future__ import annotations

from torchrepro_lint.dataflow.taint.numeric_sets import has_stable_hash
from torchrepro_lint.dataflow.types.annotations import annotated
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import AbstractValue
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.syntax.nodes import Assign, Call, Constant, Expression, Operation
from torchrepro_lint.syntax.qualified_names import in_project, path_of

_NUMBERS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "enum.IntEnum", "enum.IntFlag"})
_ARITHMETIC = frozenset({"+", "-", "*", "//", "%", "^", "|", "&", "<<", ">>", "~", "**"})
# A number with another value in each run.
_ADDRESSES = frozenset({"builtins.id", "builtins.hash"})


def has_repeated_hash(project: ValueFlow, element: AbstractValue) -> bool:
    """Whether values have the same hash in every run: numbers, objects of a class with an ``integer_hash``, tuples of these."""
    if element.kind == "tuple":
        parts = element.items or ((element.contents,) if element.contents else ())
        return bool(parts) and all(has_repeated_hash(project, each) for each in parts)
    if element.kind == "instance" and in_project(element.name):
        return integer_hash(project, element.name)
    return has_stable_hash(element)


def integer_hash(project: ValueFlow, owner: str) -> bool:
    """Whether objects of a class of the project (``path.py:Class``) have the same hash in every run.

    Its ``__hash__`` hashes numbers alone, or it is a dataclass or a named tuple of numbers, or a subclass of ``int``. A class
    without any of these hashes the address of each object.
    """
    names = project.resolver
    methods = [name for name in names.methods(owner, "__hash__") if names.functions(name)]
    if methods:
        returned = [(path_of(name), each) for name in methods for each in names.return_expressions(name)]
        return bool(returned) and all(_is_stable(project, path, each) for path, each in returned)
    above = names.ancestry(owner)
    if not _NUMBERS.isdisjoint(above):
        return True
    return ("typing.NamedTuple" in above or _hashes_fields(project, owner)) and _has_number_fields(project, owner)


def _is_stable(project: ValueFlow, path: str, value: Expression) -> bool:
    """Whether an expression that ``__hash__`` returns is the same in every run."""
    match value:
        case Constant(value=int()):
            return True
        case Operation(op=op, operands=operands) if op in _ARITHMETIC:
            return all(_is_stable(project, path, each) for each in operands)
        case Call(func=func, args=(arg,)) if "builtins.hash" in project.names(path, func):
            return has_stable_hash(type_inference(project).of(path, arg.value))
        case Call(func=func) if not _ADDRESSES.isdisjoint(project.names(path, func)):
            return False
    return has_stable_hash(type_inference(project).of(path, value))


def _hashes_fields(project: ValueFlow, owner: str) -> bool:
    """Whether a class is a dataclass whose hash is that of its fields: a frozen one."""
    for definition in project.resolver.classes(owner):
        for decorator in definition.decorators:
            for arg in decorator.args if isinstance(decorator, Call) else ():
                if arg.keyword in ("frozen", "unsafe_hash") and getattr(arg.value, "value", None) is True:
                    return True
    return False


def _has_number_fields(project: ValueFlow, owner: str) -> bool:
    """Whether all annotated fields of a class and its bases in the project are numbers."""
    names, inference = project.resolver, type_inference(project)
    annotations = [
        (path_of(each), statement.annotation)
        for each in names.ancestry(owner)
        for definition in names.classes(each)
        for statement in definition.body
        if isinstance(statement, Assign) and statement.annotation is not None
    ]
    return bool(annotations) and all(has_stable_hash(annotated(inference, path, each)) for path, each in annotations)
