"""Calls of functions through the parameters that they are passed for: ``run(step)``, and in ``def run(do)`` the call ``do(batch)``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from torchrepro_lint.call_answers import run
from torchrepro_lint.facts import Call, Ref
from torchrepro_lint.kept import Kept

if TYPE_CHECKING:
    from torchrepro_lint.callers import Callers
    from torchrepro_lint.memo import Memo
    from torchrepro_lint.names import Names

_QUESTION = "through"


class Through:
    """The calls of the project's parameters, by what is passed for these where their functions are called by name.

    What is passed on from one parameter to another is not followed: who calls by name is known without who calls otherwise, so
    that these questions lead to none of their own kind.
    """

    def __init__(self, names: Names, callers: Callers, memo: Memo) -> None:
        self._names = names
        self._callers = callers
        self._memo = memo
        self._files: Kept[tuple[()], tuple[int, ...]] = Kept(names.modules.reads)

    def drop(self, changed: int) -> None:
        """Forget what was worked out from anything that has changed."""
        self._files.drop(changed)

    def runs(self) -> tuple[str, ...]:
        """What these calls run, sorted: see ``call_answers.run``."""
        self._names.modules.reads.see_word(_QUESTION, "")
        files = self._files.of((), self._having)
        return self._memo.solve(_QUESTION, lambda: chain.from_iterable(map(self._in_file, files)))

    def _having(self) -> tuple[int, ...]:
        """The numbers of the files in which parameters are called."""
        summary = self._names.modules.summary
        return tuple(self._callers.number(path) for path in sorted(self._names.modules.files) if summary(path).through)

    def _in_file(self, file: int) -> tuple[str, ...]:
        return self._memo.solve((_QUESTION, file), lambda: self._runs_in(file), firm=True)

    def _runs_in(self, file: int) -> Iterator[str]:
        path = self._callers.path(file)
        for root in self._names.modules.summary(path).through:
            targets = tuple(self._passed(path, root))
            for number, call in self._callers.in_part(file, root.rpartition(".")[2]) if targets else ():
                if _calls(call, root):
                    yield from (run(target, number) for target in targets)

    def _passed(self, path: str, root: str) -> Iterator[str]:
        """The functions, and the constructors of the classes, that are passed for a parameter where it is called by name."""
        found = self._names.parameter(path + root)
        if found is None:
            return
        function, param, position = found
        for caller, given in self._callers.passed_by_name(path + function.name, function, param, position):
            for name in self._names.names(caller, given) if given is not None else ():
                if ":" in name and self._names.functions(name):
                    yield name
                elif ":" in name and self._names.classes(name):
                    yield from self._names.methods(name, "__init__")


def _calls(call: Call, root: str) -> bool:
    return isinstance(call.func, Ref) and not call.func.path and root in call.func.roots
