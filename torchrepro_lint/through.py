"""Calls of functions through the parameters that they are passed for: ``run(step)``, and in ``def run(do)`` the call ``do(batch)``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from torchrepro_lint.call_answers import QUESTION, run, through
from torchrepro_lint.query.memo_tables import Kept
from torchrepro_lint.syntax.nodes import Call, Expression, Ref, takes_object

if TYPE_CHECKING:
    from torchrepro_lint.name_context import NameResolution, NumberedCalls
    from torchrepro_lint.query.fixpoint import Memo

_QUESTION = "through"


class Through:
    """The calls of the project's parameters, by what is passed for these where their functions are called by name.

    What is passed on from one parameter to another is not followed, nor a method that gets its object where it is called, nor a
    partial, which leaves out what it has.
    """

    def __init__(self, names: NameResolution, callers: NumberedCalls, memo: Memo) -> None:
        self._names = names
        self._callers = callers
        self._memo = memo
        self._files: Kept[tuple[()], tuple[int, ...]] = Kept(names.modules.reads)

    def drop(self, changed: int) -> None:
        """Forget what was worked out from anything that has changed."""
        self._files.drop(changed)

    def runs(self) -> tuple[str, ...]:
        """What these calls run, sorted: see ``call_answers.run``."""
        return self._memo.solve(
            _QUESTION, lambda: chain.from_iterable(map(self._in_file, self._files.of((), self._having)))
        )

    def _having(self) -> tuple[int, ...]:
        """The numbers of the files in which parameters are called."""
        self._names.modules.reads.see_word(_QUESTION, "")
        summary = self._names.modules.summary
        return tuple(self._callers.number(path) for path in sorted(self._names.modules.files) if summary(path).through)

    def _in_file(self, file: int) -> Iterator[str]:
        roots = self._names.modules.summary(self._callers.path(file)).through
        for word in sorted(set(map(_word, roots))):
            yield from self._runs_in(file, word)

    def _runs_in(self, file: int, word: str) -> tuple[str, ...]:
        """What the calls of the parameters of a name run in one file: when the file changes, only they are worked out again."""
        if not self._memo.secluded:
            self._names.modules.reads.recall("runs")
        return self._memo.solve((QUESTION, through(word), file), lambda: self._runs(file, word), firm=True)

    def _runs(self, file: int, word: str) -> Iterator[str]:
        path = self._callers.path(file)
        for root in self._names.modules.files[path].summary.through:
            targets = tuple(self._passed(path, root)) if _word(root) == word else ()
            for number, call in self._callers.in_part(file, word) if targets else ():
                if _calls(call, root):
                    yield from (run(target, number) for target in targets)

    def _passed(self, path: str, root: str) -> Iterator[str]:
        """The functions, and the constructors of the classes, that are passed for a parameter where it is called by name."""
        found = self._names.parameter(path + root)
        if found is None or self._names.assigned(path + root):
            return
        function, param, position = found
        for caller, given in self._callers.passed_by_name(path + function.name, function, param, position):
            if given is not None:
                yield from self._callable(caller, given)
            elif param.default is not None:
                yield from self._callable(path, param.default)

    def _callable(self, path: str, given: Expression) -> Iterator[str]:
        if self._is_partial(path, given):
            return
        for name in self._names.names(path, given):
            functions = self._names.functions(name) if ":" in name else ()
            if functions and all(self._callers.is_bound(path, given, each) is takes_object(each) for each in functions):
                yield name
            elif ":" in name and self._names.classes(name):
                yield from self._names.methods(name, "__init__")

    def _is_partial(self, path: str, given: Expression, *, variables: bool = True) -> bool:
        if isinstance(given, Call):
            return "functools.partial" in self._names.names(path, given.func)
        values = (
            (value for root in given.roots for _, value in self._names.assigned(path + root))
            if isinstance(given, Ref)
            else ()
        )
        return variables and any(self._is_partial(path, each, variables=False) for each in values)


def _word(root: str) -> str:
    return root.rpartition(".")[2]


def _calls(call: Call, root: str) -> bool:
    return isinstance(call.func, Ref) and not call.func.path and root in call.func.roots
