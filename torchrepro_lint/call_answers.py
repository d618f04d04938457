"""What calls run, as a table that can be carried from one run to the next (see ``answers_json``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.query.fixpoint import Memo

if TYPE_CHECKING:
    from torchrepro_lint.name_context import NumberedCalls

QUESTION = "calls"
_BETWEEN = "\n"
# Before the word of calls that are asked what their parameters are given, and not what is of that name.
_THROUGH = "<through>."


def through(word: str) -> str:
    """The word of the question what calls of parameters run that have a word for their name."""
    return f"{_THROUGH}{word}"


class CallAnswers:
    """By file and word: the functions that calls by the word run in the file, each with the number of the call among those; by the
    word of ``through`` those that parameters of that name run there.

    A memo has these answers, in which the calls of the project are numbered as they came.
    """

    def __init__(self, callers: NumberedCalls, memo: Memo) -> None:
        self._callers = callers
        self._memo = memo

    def known(self) -> list[tuple[str, tuple[tuple[str, int], ...], int]]:
        """What has been answered, and from what, but for answers that lead back to themselves."""
        found = []
        for key, answer, seen in self._memo.answers():
            if type(key) is tuple and key[0] == QUESTION and len(key) == 3:
                _, word, file = key
                first = self._callers.first(file, word.removeprefix(_THROUGH))
                rows = tuple((target, int(number) - first) for target, number in map(_parted, answer))
                found.append((f"{self._callers.path(file)}{_BETWEEN}{word}", rows, seen))
        return found

    def enter(self, key: str, answer: tuple[tuple[str, int], ...], seen: int) -> None:
        """Take over what ``known`` gave of a project in the same state."""
        path, _, word = key.rpartition(_BETWEEN)
        file = self._callers.number(path)
        first = self._callers.first(file, word.removeprefix(_THROUGH))
        self._memo.enter((QUESTION, word, file), tuple(sorted(run(target, first + at) for target, at in answer)), seen)


def run(target: str, number: int) -> str:
    """A function that call ``number`` runs, as the memo has it."""
    return f"{target} {number:020}"


def _parted(answer: str) -> tuple[str, str]:
    target, _, number = answer.rpartition(" ")
    return target, number
