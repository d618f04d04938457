"""What a set is written like: what makes one, and what is declared to be one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Call, Collection, Comprehension, Expression, Ref
from torchrepro_lint.syntax.visitor import last_word, within

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names

_MAKERS = frozenset({"set", "frozenset", "union", "intersection", "difference", "symmetric_difference"})
# Displays longer than this are tables of data: their first items tell.
MOST_ITEMS = 32
_ANNOTATIONS = frozenset({"set", "Set", "FrozenSet", "frozenset", "AbstractSet", "MutableSet"})


def makes_set(value: Expression) -> bool:
    """Whether an expression is a display or a comprehension of a set, or a call that makes one by its word; or a display or
    comprehension of these.
    """
    match value:
        case Collection(kind="set") | Comprehension(kind="set"):
            return True
        case Call(func=func):
            return last_word(func) in _MAKERS
        case Comprehension(elements=elements):
            return makes_set(elements[-1])
        case Collection(items=items):
            return any(makes_set(each) for each in items[:MOST_ITEMS] if each is not None)
    return False


def names_set(annotation: Expression | None) -> bool:
    """Whether an annotation, or a factory, names a set anywhere."""
    if annotation is None:
        return False
    if type(annotation) is Ref:  # most are
        return _word(annotation) in _ANNOTATIONS
    return any(type(each) is Ref and _word(each) in _ANNOTATIONS for each in within(annotation))


def annotates_set(names: Names, variable: str) -> bool:
    """Whether a variable or an attribute of a class of the project is annotated so."""
    return any(how == ":" and names_set(each) for how, each in names.assigned(variable))


def takes_set(names: Names, variable: str) -> bool:
    """Whether a variable is a parameter that is annotated so."""
    found = names.parameter(variable)
    return found is not None and names_set(found.param.annotation)


def returns_set(names: Names, function: str) -> bool:
    """Whether the result of a function of the project is annotated so."""
    return any(names_set(each.returns) for each in names.functions(function))


def _word(ref: Ref) -> str:
    return ref.path[-1] if ref.path else ref.roots[-1].rpartition(".")[2]
