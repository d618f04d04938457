"""The first stage: the bytes of each file to its facts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.files import Given, Tree
from torchrepro_lint.problem import Fault, guarded
from torchrepro_lint.source import Problem, Source, decode

if TYPE_CHECKING:
    from torchrepro_lint.facts import Facts


class Reading(NamedTuple):
    """A file that was read: its source and facts, or the problem that stood in the way."""

    source: Source | None
    facts: Facts | None
    problem: Problem | None

    @property
    def text(self) -> str:
        """What the offsets of this file's findings count in."""
        if self.problem:
            return self.problem.text
        return self.source.text if self.source else ""


class Readings(NamedTuple):
    """The files of a tree that could be read, by path from the root, and an error for each given one that could not."""

    files: dict[str, Reading]
    errors: tuple[str, ...]


def read(data: bytes) -> Reading:
    """Bytes to facts: pure, so that it may be cached by content or run in another process."""
    source = decode(data)
    return Reading(None, None, source) if isinstance(source, Problem) else collected(source)


def collected(source: Source) -> Reading:
    """The facts of a decoded file. A fault of the tool is a problem of this file, too."""
    from torchrepro_lint.collect import CollectError, collect

    def attempt() -> Facts | Problem:
        try:
            return collect(source.text)
        except CollectError as error:
            return Problem(error.message, error.offset, source.text)

    answer = guarded(attempt)
    if isinstance(answer, Fault):
        answer = Problem(f"cannot be analysed: {answer.message}", 0, source.text)
    return Reading(source, None, answer) if isinstance(answer, Problem) else Reading(source, answer, None)


def read_tree(tree: Tree, advance: Callable[[], None] = lambda: None) -> Readings:
    """Read the whole project, calling ``advance`` after each file. What is not given and unreadable is left out."""
    given = dict(tree.given)
    files: dict[str, Reading] = {}
    errors: list[str] = []
    for path in tree.files:
        try:
            files[path] = read(_bytes(Path(tree.root.path, path), given.get(path)))
        except OSError as error:
            if path in given:
                errors.append(f"{given[path].display}: cannot be read: {error.strerror}")
        advance()
    return Readings(files, tuple(errors))


def _bytes(path: Path, given: Given | None) -> bytes:
    return given.data if given and given.data is not None else path.read_bytes()
