"""A cheap look at whether an expression may be a set at all, before inference is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.facts import Attribute, Call, Collection, Comprehension, Expression, Operation, Ref, Subscript
from torchrepro_lint.order.set_words import MAKERS, names_set
from torchrepro_lint.walk import last_word

if TYPE_CHECKING:
    from torchrepro_lint.names import Names

# What gives one of its operands, or a set of several.
ALGEBRA = frozenset({"-", "|", "&", "^", "or", "and", "if", ":="})
# Methods that give their object, or what is in it; calls that give what they are handed.
LOOKING_UP = frozenset({"copy", "get", "pop", "setdefault"})
HANDING = frozenset({"defaultdict", "field", "cast", "copy", "deepcopy", "iter", "tqdm"})
_MOST = 200


def may_be_set(names: Names, path: str, expression: Expression) -> bool:
    """Whether anything that an expression stands for is written like a set."""
    return _Look(names).may_be(path, expression)


class _Look:
    """One look; each value is looked at once."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.seen: set[tuple[str, int]] = set()

    def may_be(self, path: str, expression: Expression) -> bool:
        if _is_annotated(self.names, path, expression):
            return True
        return any(self._is_written(file, value) for file, value in self.names.made(path, expression))

    def _is_written(self, path: str, value: Expression) -> bool:
        key = (path, value.start * 1000003 + value.end)
        if key in self.seen or len(self.seen) > _MOST:
            return False
        self.seen.add(key)
        return self._shape(path, value)

    def _shape(self, path: str, value: Expression) -> bool:
        names = self.names
        match value:
            case Collection(kind="set") | Comprehension(kind="set"):
                return True
            case Call(func=func) if last_word(func) in MAKERS:
                return True
            case Call(func=Ref(path=(*words, word)) as func) if word in LOOKING_UP:
                return self.may_be(path, func._replace(path=tuple(words)))
            case Call(func=func, args=args):
                if last_word(func) in HANDING:
                    return any(self.may_be(path, arg.value) or names_set(arg.value) for arg in args)
                return any(_returns_set(names, name) for name in names.names(path, func) if ":" in name)
            case Operation(op=op, operands=operands) if op in ALGEBRA:
                return any(self.may_be(path, each) for each in operands)
            case Subscript(value=inner) | Attribute(value=inner):
                return self.may_be(path, inner)
        return _is_annotated(names, path, value)


def _returns_set(names: Names, name: str) -> bool:
    return any(each.returns is not None and names_set(each.returns) for each in names.functions(name))


def _is_annotated(names: Names, path: str, value: Expression) -> bool:
    """Whether a variable, parameter or attribute is declared as a set, or goes along a display of sets."""
    if not isinstance(value, Ref):
        return False
    for root in value.roots:
        if not value.path:
            parameter = names.parameter(f"{path}{root}")
            if parameter and parameter.param.annotation and names_set(parameter.param.annotation):
                return True
            if any(how == "|=" or (how == ":" and names_set(each)) for how, each in names.assigned(f"{path}{root}")):
                return True
    if len(value.path) == 1:
        for owner in names.names_of(path, value._replace(path=())):
            declared = names.assigned(f"{owner.removesuffix('()')}.{value.path[0]}")
            if any(how == ":" and names_set(each) for how, each in declared):
                return True
    return False
