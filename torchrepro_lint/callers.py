"""Who calls a function of the project, and what is passed for a parameter."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Attribute, Call, Expression, Function, Param, Ref, Statement
from torchrepro_lint.walk import expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.memo import Memo
    from torchrepro_lint.names import Names


class Callers:
    """The calls of a project, found by the word that they call."""

    def __init__(self, names: Names, memo: Memo) -> None:
        self._names = names
        self._memo = memo
        self._calls: list[tuple[str, Call]] = []
        self._by_word: dict[str, list[int]] = {}
        for path, facts in sorted(names.modules.files.items()):
            for body in (facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes)):
                self._index(path, body)

    def _index(self, path: str, body: tuple[Statement, ...]) -> None:
        for statement in statements(body):
            for expression in expressions(statement):
                for each in within(expression):
                    if type(each) is Call and (word := _word(each.func)):
                        self._by_word.setdefault(word, []).append(len(self._calls))
                        self._calls.append((path, each))

    def calls(self, word: str) -> bool:
        """Whether any call calls by that word."""
        return word in self._by_word

    def passed(
        self, name: str, function: Function, param: Param, position: int
    ) -> Iterator[tuple[str, Expression | None]]:
        """What each call passes for a parameter: the calling file and the expression, None where it is left out.

        Nothing where no call is seen; a call with ``*`` or ``**``, which may pass anything, passes nothing that is known.
        """
        index = position - bool(function.owner)
        for path, call in self._of(name, function):
            keyword = next((arg for arg in call.args if arg.keyword == param.name), None)
            plain = [arg for arg in call.args if arg.keyword is None and not arg.star]
            if keyword is not None:
                yield path, keyword.value
            elif param.kind != "kw" and 0 <= index < len(plain):
                yield path, plain[index].value
            elif not any(arg.star for arg in call.args):
                yield path, None

    def _of(self, name: str, function: Function) -> Iterator[tuple[str, Call]]:
        """The calls that run a function: by its own name, for a constructor by its class's or an heir's.

        Which they are is a question like any other, since an answer may lead back to it: see ``memo``.
        """
        found = {number for word in self._words(name, function) for number in self._numbers(word, name)}
        return (self._calls[number] for number in sorted(found))

    def _numbers(self, word: str, name: str) -> Iterator[int]:
        """The calls by a word that run ``name``. All calls by the word are looked at once, for whatever they run."""
        runs = self._memo.solve(("calls", word), lambda: self._runs(word))
        start = f"{name} "
        for each in (runs[at] for at in range(bisect_left(runs, start), len(runs))):
            if not each.startswith(start):
                break
            yield int(each[len(start) :])

    def _runs(self, word: str) -> Iterator[str]:
        """``path:function 12`` for each function that call number 12, by this word, runs."""
        for number in self._by_word.get(word, ()):
            path, call = self._calls[number]
            for target in self._names.names(path, call.func):
                if ":" in target:
                    yield f"{target} {number:09}"
                    if self._names.classes(target):
                        yield from (f"{each} {number:09}" for each in self._names.methods(target, "__init__"))

    def _words(self, name: str, function: Function) -> list[str]:
        word = name.rpartition(".")[2].rpartition(":")[2]
        if function.owner and word == "__init__":
            owner = f"{name.partition(':')[0]}{function.owner}"
            return [word, function.owner.rpartition(".")[2].rpartition(":")[2], *self._names.heirs(owner)]
        return [word]


def _word(func: Expression) -> str:
    match func:
        case Ref(roots=roots, path=path):
            return path[-1] if path else roots[0].rpartition(".")[2].lstrip(":?")
        case Attribute(name=word):
            return word
    return ""
