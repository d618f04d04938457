"""Methods that are called by a name that is put together: ``getattr(self, f"get_{word}_names")()``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING

from torchrepro_lint.source.globs import between, in_order
from torchrepro_lint.syntax.nodes import Call, Constant, Define, Expression, Facts, Operation, Ref, Statement
from torchrepro_lint.syntax.visitor import expressions, parts, statements

if TYPE_CHECKING:
    from torchrepro_lint.uses import Uses

# So many letters of a name must be given, or it might be any.
_LEAST = 4


class Spelled:
    """Answers for all files that call what ``getattr`` gives."""

    def __init__(self, uses: Uses, files: tuple[str, ...]) -> None:
        self._uses, self._files = uses, files

    def calls(self, word: str) -> list[tuple[str, Call]]:
        """The calls of what ``getattr`` finds under a name that may be this one, each with its file."""
        return [(path, call) for pattern, path, call in self._patterns if pattern.fullmatch(word)]

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str, Call]]:
        found = []
        for path in self._files:
            # What is called has no word of its own: it is the result of another call.
            if {"getattr", ""} <= set(self._uses.summary(path).calls):
                for call in _called_results(self._uses.facts(path)):
                    pattern = _pattern(call.func)
                    if pattern is not None:
                        found.append((pattern, path, call))
        return found


def _called_results(facts: Facts) -> Iterator[Call]:
    """The calls of what another call returns, in the bodies that may call what ``getattr`` does."""
    results = set(facts.calling(""))
    for number in facts.calling("getattr"):
        if number is None:
            bodies = (facts.body, *(each.body for each in facts.functions))
        elif number in results:
            bodies = (facts.functions[number - 1].body if number else facts.body,)
        else:
            continue
        for body in bodies:
            yield from _in_order(_evaluated(body))


def _evaluated(body: tuple[Statement, ...]) -> Iterator[Expression]:
    """What the statements of a body evaluate, those of classes in it, too."""
    for statement in statements(body):
        yield from expressions(statement)
        if isinstance(statement, Define):
            yield from _evaluated(statement.body)


def _in_order(some: Iterable[Expression]) -> Iterator[Call]:
    """The calls of calls in expressions, outer ones first."""
    for expression in some:
        left = [expression]
        while left:
            each = left.pop()
            if type(each) is Call and type(each.func) is Call:
                yield each
            left += reversed(parts(each))


def _pattern(call: Expression) -> re.Pattern[str] | None:
    match call:
        case Call(func=Ref(roots=("builtins.getattr",), path=()), args=(_, name, *_)):
            texts = _texts(name.value)
            if sum(map(len, texts)) >= _LEAST:
                pieces = ["".join(map(re.escape, piece)) for piece in between(texts, "")]
                return re.compile(in_order(pieces, r"\w*", count()))
    return None


def _texts(name: Expression) -> list[str]:
    """The parts of a text, empty for what is not known; nothing where all of it is known, or none."""
    if isinstance(name, Operation) and name.op in ("f", "+"):
        return [
            each.value if isinstance(each, Constant) and isinstance(each.value, str) else "" for each in name.operands
        ]
    return []
