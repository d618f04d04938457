"""The first stage: the bytes of each file to its facts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.files import Given, Tree
from torchrepro_lint.problem import Fault, guarded
from torchrepro_lint.source import Problem, Source, decode, is_notebook
from torchrepro_lint.text import Lines

if TYPE_CHECKING:
    from torchrepro_lint.facts import Facts


class Reading(NamedTuple):
    """A file that was read: its source and facts, or the problem that stood in the way."""

    source: Source | None
    facts: Facts | None
    problem: Problem | None

    @property
    def text(self) -> str:
        """What the offsets of this file's findings count in; of a notebook the program."""
        if self.problem:
            return self.problem.text
        return self.source.program if self.source else ""

    @property
    def lines(self) -> Lines:
        """The lines of ``text``."""
        return Lines(self.text, self.source.cells if self.source else ())

    @property
    def written(self) -> Lines:
        """The lines as they are written: of equal length, but with what of a notebook is not Python."""
        return Lines(self.source.text, self.source.cells) if self.source and self.source.notebook else self.lines


class Readings(NamedTuple):
    """The files of a tree that could be read, by path from the root, and an error for each given one that could not."""

    files: dict[str, Reading]
    errors: tuple[str, ...]


def read(data: bytes, notebook: bool = False) -> Reading:
    """Bytes to facts: pure, so that it may be cached by content or run in another process."""
    source = decode(data, notebook)
    return Reading(None, None, source) if isinstance(source, Problem) else collected(source)


def collected(source: Source) -> Reading:
    """The facts of a decoded file. A fault of the tool is a problem of this file, too."""
    from torchrepro_lint.collect import CollectError, collect

    def attempt() -> Facts | Problem:
        try:
            facts = collect(source.program)
            if _goes_on(facts, source) and (broken := _broken_cell(source)):
                return Problem(*broken, source.program)
            return facts
        except CollectError as error:
            return Problem(*(_broken_cell(source) or (error.message, error.offset)), source.program)

    answer = guarded(attempt)
    if isinstance(answer, Fault):
        answer = Problem(f"cannot be analysed: {answer.message}", 0, source.program)
    return Reading(source, None, answer) if isinstance(answer, Problem) else Reading(source, answer, None)


def _goes_on(facts: Facts, source: Source) -> bool:
    """Whether a statement or a string of one cell seems to go on in the next, which no cell's does."""
    from torchrepro_lint.ipython import leaves_string_open

    ends = [cell.end for cell in source.cells[:-1]]
    return any(bisect_left(ends, each.start) < bisect_left(ends, each.end) for each in facts.body) or any(
        leaves_string_open(source.program[cell.start : cell.end]) for cell in source.cells
    )


def _broken_cell(source: Source) -> tuple[str, int] | None:
    """What is wrong with the first cell that does not parse by itself: a bracket left open shows in a later one."""
    from torchrepro_lint.collect import CollectError, collect
    from torchrepro_lint.ipython import OPENING, is_indented

    for cell in source.cells:
        text = source.program[cell.start : cell.end]
        opening = OPENING if is_indented(text) else ""
        try:
            collect(opening + text)
        except CollectError as error:
            return error.message, min(cell.start + max(error.offset - len(opening), 0), cell.end)
    return None


def read_tree(tree: Tree, advance: Callable[[], None] = lambda: None) -> Readings:
    """Read the whole project, calling ``advance`` after each file. What is not given and unreadable is left out."""
    given = dict(tree.given)
    files: dict[str, Reading] = {}
    errors: list[str] = []
    for path in tree.files:
        try:
            files[path] = read(_bytes(Path(tree.root.path, path), given.get(path)), is_notebook(path))
        except OSError as error:
            if path in given:
                errors.append(f"{given[path].display}: cannot be read: {error.strerror}")
        advance()
    return Readings(files, tuple(errors))


def _bytes(path: Path, given: Given | None) -> bytes:
    return given.data if given and given.data is not None else path.read_bytes()
