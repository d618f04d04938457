"""Sets of what came out of tensors: numbers, however many dimensions a list had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.infer.annotations import annotated
from torchrepro_lint.infer.kinds import kinds_of
from torchrepro_lint.order.numerals import elements_are_numerals, is_of_tensor
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Comprehension,
    Expression,
    Operation,
    Ref,
    Subscript,
    path_of,
)
from torchrepro_lint.syntax.visitor import declared_attributes, last_word

if TYPE_CHECKING:
    from torchrepro_lint.infer.what import What
    from torchrepro_lint.syntax.use_def import Spot
    from torchrepro_lint.value_flow import ValueFlow

# Their hashes are the same in every run. None's is its address before Python 3.12, but a set has one None only.
_STEADY = frozenset({"int", "float", "bool", "none"})
# What makes a number of anything.
_NUMBERS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "builtins.len", "builtins.ord"})
# Methods that give some of what a set holds.
_NARROWING = frozenset({"intersection", "difference", "copy"})
# Calls whose result holds nothing but elements of their first argument.
_KEEPING = frozenset({"builtins.set", "builtins.frozenset", "builtins.list", "builtins.sorted", "random.sample"})


def holds_numbers(project: ValueFlow, path: str, expression: Expression) -> bool:
    """Whether all that a set or list holds are a tensor's numbers, whose hashes are the same in every run."""
    return _holds(project, path, expression, set())


def becomes_tensor(project: ValueFlow, path: str, spot: Spot) -> bool:
    """Whether torch makes a tensor of the list that an expression ends in: it takes numbers alone."""
    taken = spot.parent
    if not isinstance(taken, Call) or not _LISTS.issuperset(project.names(path, taken.func)):
        return False
    statement = spot.statement
    roots = {
        root
        for target in (statement.targets if isinstance(statement, Assign) and statement.value is taken else ())
        if isinstance(target, Ref) and not target.path
        for root in target.roots
    }
    return any(
        _TENSORS.intersection(site.names) and _is_given(site.call, taken, roots)
        for site in project.calls_by(path, _TENSOR_WORDS)
    )


def _is_given(call: Call, taken: Call, roots: set[str]) -> bool:
    value = call.args[0].value if call.args else None
    return value is taken or (isinstance(value, Ref) and not value.path and not roots.isdisjoint(value.roots))


_LISTS = frozenset({"builtins.list", "builtins.tuple"})
_TENSOR_WORDS = frozenset(
    {"tensor", "as_tensor", "LongTensor", "IntTensor", "FloatTensor", "DoubleTensor", "Tensor", "ShortTensor"}
)
_TENSORS = frozenset(f"torch.{word}" for word in _TENSOR_WORDS)


def _holds(project: ValueFlow, path: str, expression: Expression, seen: set[tuple[str, int, int]]) -> bool:
    """What has been ``seen`` holds what the rest does."""
    key = (path, expression.start, expression.end)
    if isinstance(expression, Ref) and key in seen:
        return True
    seen.add(key)
    match expression:
        case Operation(op="-" | "&", operands=(one, _)) | Subscript(value=one, indices=(Operation(op=":"),)):
            return _holds(project, path, one, seen)
        case Operation(op="|", operands=(one, other)):
            return all(_holds(project, path, each, seen) for each in (one, other))
        case Call(func=func, args=(arg, *_)) if not _KEEPING.isdisjoint(project.names(path, func)):
            return _holds(project, path, arg.value, seen)
        case Call(func=Attribute(value=one, name=word)) if word in _NARROWING:
            return _holds(project, path, one, seen)
        case Call(func=Ref(path=(*before, word)) as func) if word in _NARROWING:
            return _holds(project, path, func._replace(path=tuple(before)), seen)
        case Call(func=func) if last_word(func) in ("tolist", "unique"):
            return is_of_tensor(project, path, func)
        case Comprehension() | Ref() | Call() if elements_are_numerals(project, path, expression):
            return True
        case Call() if _counts(project, path, expression) or _is_said_to_return(project, path, expression.func):
            return True
        case Ref() if _is_declared(project, path, expression):
            return True
        case Ref():
            found = [pair for pair in project.resolver.values(path, expression) if pair[1] != expression]
            return bool(found) and all(_holds(project, file, each, seen) for file, each in found)
    return False


def _counts(project: ValueFlow, path: str, call: Call) -> bool:
    """``map(int, words)``."""
    if len(call.args) < 2 or project.names(path, call.func) != ("builtins.map",):
        return False
    made = project.names(path, call.args[0].value)
    return bool(made) and _NUMBERS.issuperset(made)


def _is_declared(project: ValueFlow, path: str, ref: Ref) -> bool:
    """``indices: set[int]``, as a variable or as an attribute of an object of the project."""
    resolver = project.resolver
    names: list[str] = []
    if not ref.path:
        names = [name for root in ref.roots for name in resolver.modules.resolve(path, root)]
    elif len(ref.path) == 1:
        owners = resolver.names_of(path, ref._replace(path=()))
        names = [f"{owner.removesuffix('()')}.{ref.path[0]}" for owner in owners]
    declared = [
        (path_of(name), value)
        for name in names
        if ":" in name
        for value in (
            *(value for how, value in resolver.assigned(name) if how == ":"),
            *(_declared_in_methods(project, name) if ref.path else ()),
        )
    ]
    return any(is_steady(annotated(kinds_of(project), file, value).element) for file, value in declared)


def _declared_in_methods(project: ValueFlow, name: str) -> Iterator[Expression]:
    """What ``self.indices: set[int] = set()`` declares in the methods of a class, or of one that it inherits from."""
    owner, _, word = name.rpartition(".")
    resolver = project.resolver
    for each in resolver.ancestry(owner):
        methods = (f"{path_of(each)}{method}" for one in resolver.classes(each) for _, method in one.methods)
        for function in (found for method in methods for found in resolver.functions(method)):
            yield from declared_attributes(function, word)


def _is_said_to_return(project: ValueFlow, path: str, func: Expression) -> bool:
    """``def cycles(...) -> Set[Tuple[int, ...]]``, whatever its body says no more of."""
    names = project.names(path, func)
    said = [(name, each.returns) for name in names for each in project.resolver.functions(name)]
    return bool(said) and all(
        returns is not None and is_steady(annotated(kinds_of(project), path_of(name), returns).element)
        for name, returns in said
    )


def is_steady(element: What) -> bool:
    """Whether values hash the same in every run: numbers, and tuples of them."""
    if element.kind == "tuple":
        parts = element.items or ((element.of,) if element.of else ())
        return bool(parts) and all(is_steady(each) for each in parts)
    return element.kind in _STEADY
