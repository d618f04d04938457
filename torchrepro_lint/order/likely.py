"""A cheap look at whether an expression may be a set at all, before inference is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.order.set_words import MOST_ITEMS, annotates_set, makes_set, names_set, returns_set, takes_set
from torchrepro_lint.syntax.nodes import Attribute, Call, Collection, Expression, Operation, Ref, Subscript
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names

# What gives one of its operands, or a set of several.
ALGEBRA = frozenset({"-", "|", "&", "^", "or", "and", "if", ":="})
# Methods that give their object, or what is in it; calls that give what they are handed.
LOOKING_UP = frozenset({"copy", "get", "pop", "setdefault"})
HANDING = frozenset({"defaultdict", "field", "cast", "copy", "deepcopy", "iter", "tqdm"})
# Likewise of what is in them: methods, and calls that go along what they are handed.
PARTS = frozenset({"items", "values"})
ALONG = frozenset({"enumerate", "zip", "list", "tuple", "reversed", "sorted"})
_MOST = 80


def may_be_set(names: Names, path: str, expression: Expression) -> bool:
    """Whether anything that an expression stands for is written like a set."""
    return _Look(names).may_be(path, expression)


class _Look:
    """One look; each value is looked at once."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.seen: set[tuple[str, int]] = set()
        self.gone: set[tuple[str, str]] = set()

    def may_be(self, path: str, expression: Expression) -> bool:
        if _is_annotated(self.names, path, expression):
            return True
        for file, value in self.names.made(path, expression):
            if len(self.seen) > _MOST:
                break
            if self._is_written(file, value):
                return True
        return any(self.may_be(path, each) for each in self._around(path, expression))

    def _is_written(self, path: str, value: Expression) -> bool:
        key = (path, value.start * 1000003 + value.end)
        if key in self.seen:
            return False
        self.seen.add(key)
        return self._shape(path, value)

    def _around(self, path: str, value: Expression) -> Iterator[Expression]:
        """What a variable is an element of, once: what a loop or a comprehension goes along."""
        if isinstance(value, Ref) and not value.path:
            for root in value.roots:
                if (path, root) not in self.gone and len(self.gone) < _MOST:
                    self.gone.add((path, root))
                    yield from (each for how, each in self.names.assigned(f"{path}{root}") if how == "[]")

    def _shape(self, path: str, value: Expression) -> bool:
        names = self.names
        match value:
            case _ if makes_set(value):
                return True
            case Call(func=Ref(path=(*words, word)) as func) if word in LOOKING_UP or word in PARTS:
                return self.may_be(path, func._replace(path=tuple(words)))
            case Call(func=Attribute(value=inner, name=word)) if word in LOOKING_UP or word in PARTS:
                return self.may_be(path, inner)
            case Call(func=func, args=args):
                if last_word(func) in HANDING or last_word(func) in ALONG:
                    return any(self.may_be(path, arg.value) or names_set(arg.value) for arg in args)
                return any(returns_set(names, name) for name in names.names(path, func) if ":" in name)
            case Operation(op=op, operands=operands) if op in ALGEBRA:
                return any(self.may_be(path, each) for each in operands)
            case Subscript(value=inner) | Attribute(value=inner):
                return self.may_be(path, inner)
            case Collection(kind="list" | "tuple", items=items):
                return any(isinstance(each, Ref) and self.may_be(path, each) for each in items[:MOST_ITEMS])
        return _is_annotated(names, path, value)


def _is_annotated(names: Names, path: str, value: Expression) -> bool:
    """Whether a variable, parameter or attribute is declared as a set, or goes along a display of sets."""
    if not isinstance(value, Ref):
        return False
    for root in value.roots:
        if not value.path:
            if takes_set(names, f"{path}{root}"):
                return True
            if any(how == "|=" or (how == ":" and names_set(each)) for how, each in names.assigned(f"{path}{root}")):
                return True
    if len(value.path) == 1:
        for owner in names.names_of(path, value._replace(path=())):
            if annotates_set(names, f"{owner.removesuffix('()')}.{value.path[0]}"):
                return True
    return False
