"""Stable hashes: those of the elements of a set, and of a class's objects, that are the same in every run: made of numbers alone."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.dataflow.taint.numeric_sets import (
    SUBSET_METHODS,
    elements_are_numbers,
    has_stable_hash,
    is_given_unseen,
    is_tensor_method,
    subscript_path,
)
from torchrepro_lint.dataflow.types.annotations import annotated, annotations_of
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import AbstractValue
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import in_project, path_of, simple_name
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of

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


# Calls whose result has only elements of the first argument.
_SUBSET_CALLS = frozenset({"builtins.set", "builtins.frozenset", "builtins.list", "builtins.sorted", "random.sample"})


def has_stable_elements(project: ValueFlow, path: str, expression: Expression) -> bool:
    """Whether all elements of a set or list are numbers, whose hashes are the same in every run."""
    return _has_stable_elements(project, path, expression, set())


def _has_stable_elements(
    project: ValueFlow, path: str, expression: Expression, seen: set[tuple[str, int, int]]
) -> bool:
    """``seen`` breaks cycles: a reference that was seen is decided by the rest, but for the first value of a parameter."""
    key = (path, expression.start, expression.end)
    if isinstance(expression, Ref) and key in seen:
        return expression.path != () or not any(is_given_unseen(project, path + root) for root in expression.roots)
    seen.add(key)
    match expression:
        case Subscript(value=one, indices=(Operation(op=":"),)):
            return _has_stable_elements(project, path, one, seen)
        case Operation(op="-" | "&" | "|" | "^" | "+" as op, operands=operands):
            stable = [_has_stable_elements(project, path, each, seen) for each in operands]
            # What is combined holds elements of one type. What is taken away does not matter.
            alike = any(stable) and all(_may_hold_numbers(project, path, each) for each in operands)
            return alike or all(stable) or (op == "-" and stable[0])
        case Collection(items=items):
            return bool(items) and all(isinstance(each, Constant) and type(each.value) is int for each in items)
        case Call(func=func, args=(arg, *_)) if not _SUBSET_CALLS.isdisjoint(project.names(path, func)):
            return _has_stable_elements(project, path, arg.value, seen)
        case Call(func=func) if last_identifier(func) in SUBSET_METHODS and (whole := receiver_of(func)) is not None:
            return _has_stable_elements(project, path, whole, seen)
        case Call(func=func) if last_identifier(func) in ("tolist", "unique"):
            return is_tensor_method(project, path, func)
        case Comprehension() | Ref() | Call() | Subscript() if elements_are_numbers(project, path, expression):
            return True
        case Call() if _is_annotated_to_return(project, path, expression.func):
            return True
        case Ref() if _is_declared(project, path, expression):
            return True
        case Ref() if type_inference(project).of(path, expression).kind != "dict":  # whose keys are set elsewhere, too
            found = [pair for pair in project.resolver.values(path, expression) if pair[1] != expression]
            known = bool(found) and not _is_of_loop(project, path, expression)
            return known and all(_has_stable_elements(project, file, each, seen) for file, each in found)
    return False


def _is_of_loop(project: ValueFlow, path: str, ref: Ref) -> bool:
    """Whether a variable is one of what a loop iterates over, besides what is assigned to it: ``names = list(names)``."""
    return not ref.path and any(how == "[]" for root in ref.roots for how, _ in project.resolver.assigned(path + root))


def _may_hold_numbers(project: ValueFlow, path: str, whole: Expression) -> bool:
    """Whether the elements of a container may be numbers, as far as inference knows, which does not know keys."""
    if isinstance(whole, Call) and last_identifier(whole.func) == "keys":
        return has_stable_elements(project, path, whole)
    element = type_inference(project).of(path, whole).element
    return not element.kind or has_repeated_hash(project, element)


def _is_declared(project: ValueFlow, path: str, ref: Ref) -> bool:
    """Whether a variable or attribute is annotated with numbers: ``indices: set[int]``."""
    return any(each.kind != "dict" and has_stable_hash(each.element) for each in declared_types(project, path, ref))


def declared_types(project: ValueFlow, path: str, ref: Ref) -> Iterator[AbstractValue]:
    """The types with which a variable or attribute is annotated, in its class, in methods and in bases."""
    inference = type_inference(project)
    yield from (annotated(inference, file, said) for file, said in annotations_of(project.resolver, path, ref))


def _is_annotated_to_return(project: ValueFlow, path: str, func: Expression) -> bool:
    """Whether the return annotation says numbers: ``def cycles(...) -> Set[Tuple[int, ...]]``."""
    names = project.names(path, func)
    said = [(name, each.returns) for name in names for each in project.resolver.functions(name)]
    return bool(said) and all(
        returns is not None and has_stable_hash(annotated(type_inference(project), path_of(name), returns).element)
        for name, returns in said
    )


def becomes_numbers(project: ValueFlow, path: str, spot: ExpressionPosition) -> bool:
    """Whether the list made from an expression becomes a tensor, or its elements seed generators: both take only numbers."""
    taken = spot.parent
    if not isinstance(taken, Call) or not _LISTS.issuperset(project.names(path, taken.func)):
        return False
    statement = spot.statement
    roots = {
        root
        for target in (statement.targets if isinstance(statement, Assign) and statement.value == taken else ())
        if isinstance(target, Ref) and not target.path
        for root in target.roots
    }
    for site in project.calls_by(path, _TENSOR_WORDS | _ARRAY_WORDS | _SEEDER_WORDS):
        given = [arg.value for arg in site.call.args[:1]]
        if not _SEEDERS.isdisjoint(site.names):
            given = [whole for each in given for whole in _iterated_by(project, path, each)]
        elif _TENSORS.isdisjoint(site.names) and not _makes_numbers(site):
            continue
        if any(_is_given(each, taken, roots) for each in given):
            return True
    return False


def _iterated_by(project: ValueFlow, path: str, variable: Expression) -> Iterator[Expression]:
    """The containers of which a loop variable is an element: ``found`` for ``x`` of ``for i, x in enumerate(found)``."""
    assignments = project.value_sources.assignments(path)
    for root in variable.roots if isinstance(variable, Ref) and not variable.path else ():
        for each in assignments.get(root, ()):
            match subscript_path(each.value) if isinstance(each.value, Subscript) else None:
                case Call(func=func, args=(arg, *_)), (None, 1) if last_identifier(func) == "enumerate":
                    yield arg.value
                case inner, (None,):
                    yield inner


def _makes_numbers(site: CallSite) -> bool:
    """Whether a call makes an array of numbers: ``numpy.array(list(found), dtype=numpy.int32)``."""
    if _ARRAYS.isdisjoint(site.names):
        return False
    dtypes = (last_identifier(arg.value) for arg in site.call.args if arg.keyword == "dtype")
    return any(_NUMBER_DTYPE.fullmatch(word) for word in dtypes)


def _is_given(value: Expression, taken: Call, roots: set[str]) -> bool:
    return value == taken or (isinstance(value, Ref) and not value.path and not roots.isdisjoint(value.roots))


_LISTS = frozenset({"builtins.list", "builtins.tuple"})
_ARRAY_WORDS = frozenset({"array", "asarray"})
_ARRAYS = frozenset({"numpy.array", "numpy.asarray"})
_NUMBER_DTYPE = lazy_pattern(r"u?int\d*|long|float\d*|double|half")
_TENSOR_WORDS = frozenset(
    {"tensor", "as_tensor", "LongTensor", "IntTensor", "FloatTensor", "DoubleTensor", "Tensor", "ShortTensor"}
)
_TENSORS = frozenset(f"torch.{word}" for word in _TENSOR_WORDS)
# Seeders that take only numbers.
_SEEDERS = frozenset(f"numpy.random.{word}" for word in ("RandomState", "default_rng", "SeedSequence", "seed")) | {
    f"torch.{word}manual_seed{rest}" for word in ("", "cuda.", "Generator().") for rest in ("", "_all")
}
_SEEDER_WORDS = frozenset(map(simple_name, _SEEDERS))
