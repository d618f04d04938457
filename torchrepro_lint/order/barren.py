"""What can be no set, however far it is followed: nearly all that a program goes along.

What is found here is more than what ``likely`` finds, which gives up after so many steps. Therefore what leads to nothing
can be remembered: each variable and each call of a project is followed once, and not for each that leads there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint.order.likely import ALGEBRA, ALONG, HANDING, LOOKING_UP, PARTS
from torchrepro_lint.order.set_words import MOST_ITEMS, annotates_set, makes_set, names_set, returns_set, takes_set
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Collection,
    Expression,
    Operation,
    Ref,
    Subscript,
    parted,
    path_of,
)
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names

_Key: TypeAlias = "tuple[str, tuple[str, ...], tuple[str, ...]] | int"
# What has more values may be anything; so many are looked at for one question, and in vain for all.
_MOST_VALUES = 1000
_MOST_STEPS = 100_000
# Stands for what has no key.
_UNNAMED = -1
# Stands for a set among values.
_SET = Collection(0, 0, "set", ())


class Barren:
    """Answers for the expressions of a project."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._barren: set[_Key] = set()
        self._fertile: set[_Key] = set()
        # So many more values may be looked at in vain: what was found to be barren is remembered, what led to a set is not.
        self._left = _MOST_STEPS

    def holds(self, path: str, expression: Expression) -> bool:
        """Whether nothing that an expression may stand for is written like a set; false where that takes too long to tell."""
        if (known := _key(path, expression)) in self._barren:
            return True
        if known in self._fertile or self._left <= 0 or makes_set(expression):
            return False
        came: dict[_Key, _Key | None] = {}
        last, steps = self._followed(path, expression, came)
        if last is None:
            self._barren.update(came)
            return True
        self._left -= steps
        self._note(came, last)
        return False

    def _followed(self, path: str, expression: Expression, came: dict[_Key, _Key | None]) -> tuple[_Key | None, int]:
        """What leads to a set, or to more than is followed, and how many values were looked at; ``came`` is for what they are
        and what led to each.
        """
        left: list[tuple[str, Expression, _Key | None]] = [(path, expression, None)]
        steps = 0
        while left:
            file, value, to = left.pop()
            key = _key(file, value)
            if key is not None:
                if key in self._fertile:
                    return to or _UNNAMED, steps
                if key in came or key in self._barren:
                    continue
                came[key] = to
                to = key
            found = list(self._behind(file, value))
            steps += len(found)
            if len(found) > _MOST_VALUES or steps > _MOST_STEPS or any(makes_set(each) for _, each in found):
                return to or _UNNAMED, steps
            left += [(at, each, to) for at, each in found]
        return None, steps

    def _note(self, came: dict[_Key, _Key | None], to: _Key | None) -> None:
        """All that has led to a set does."""
        while to is not None and to != _UNNAMED:
            self._fertile.add(to)
            to = came[to]

    def _behind(self, path: str, value: Expression) -> Iterator[tuple[str, Expression]]:
        """What a value may stand for, one step on."""
        match value:
            case Ref(path=()):
                for root in value.roots:
                    for name in self._names.modules.resolve(path, root):
                        yield from self._of_variable(name)
            case Ref(path=(word,)):
                yield from self._of_attribute(path, value, word)
            case Call():
                yield from self._of_call(path, value)
            case Operation(op=op, operands=operands) if op in ALGEBRA:
                yield from ((path, each) for each in operands)
            case Subscript(value=inner) | Attribute(value=inner):
                yield path, inner
            case Collection(kind="list" | "tuple", items=items):
                yield from ((path, each) for each in items[:MOST_ITEMS] if isinstance(each, Ref))

    def _of_variable(self, name: str) -> Iterator[tuple[str, Expression]]:
        path = path_of(name)
        if ":" not in name:
            return
        for how, value in self._names.assigned(name):
            if how in ("=", "[]"):
                yield path, value
            elif how == "|=" or (how == ":" and names_set(value)):
                yield path, _SET
        if takes_set(self._names, name):
            yield path, _SET
        yield from self._names.passed(name)

    def _of_attribute(self, path: str, ref: Ref, word: str) -> Iterator[tuple[str, Expression]]:
        names = self._names
        for owner in names.names_of(path, ref._replace(path=())):
            file, colon, rest = parted(owner)
            if colon and not rest:
                for target in names.modules.attribute(file, word) or ():
                    yield from self._of_variable(target)
            elif colon:
                if annotates_set(names, f"{owner.removesuffix('()')}.{word}"):
                    yield file, _SET
                if owner.endswith("()"):
                    yield from names.attribute_values(owner[:-2], word)

    def _of_call(self, path: str, call: Call) -> Iterator[tuple[str, Expression]]:
        func, word = call.func, last_word(call.func)
        if word in LOOKING_UP or word in PARTS:
            if isinstance(func, Ref) and func.path:
                yield path, func._replace(path=func.path[:-1])
            elif isinstance(func, Attribute):
                yield path, func.value
        if word in HANDING or word in ALONG:
            for arg in call.args:
                yield path, _SET if names_set(arg.value) else arg.value
        for name in self._names.names(path, func):
            if ":" in name:
                if returns_set(self._names, name):
                    yield path, _SET
                yield from ((path_of(name), each) for each in self._names.return_expressions(name))


def _key(path: str, value: Expression) -> _Key | None:
    """What tells a value apart that leads on to others; None for what leads to what is in it alone."""
    if type(value) is Ref:
        return path, value.roots, value.path
    return id(value) if type(value) is Call else None
