"""The bytes of a file to its facts.

Files that have not changed since an earlier run: their text and facts are read when they are asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from zlib import compress, decompress

from torchrepro_lint.engine.store.file_store import ReadBack, put_away
from torchrepro_lint.source.decoding import Problem, Source, decode, is_notebook
from torchrepro_lint.source.errors import Fault, guarded
from torchrepro_lint.source.files import TooLarge, digest, program
from torchrepro_lint.source.text import Lines

if TYPE_CHECKING:
    from torchrepro_lint.syntax.nodes import Facts, Summary


class _PutAway(NamedTuple):
    """A source that is no notebook, its text compressed."""

    text: bytes
    encoding: str
    bom: bytes


# A file is looked at by one rule after the other.
@lru_cache(maxsize=4)
def _unpacked(of: _PutAway) -> Source:
    """The source as it was."""
    return Source(decompress(of.text).decode("utf-8", "surrogatepass"), of.encoding, of.bom)


class Reading:
    """A file that was read: its source and facts, or the problem that stood in the way."""

    def __init__(self, source: Source | None, facts: Facts | None, problem: Problem | None) -> None:
        self._source: Source | _PutAway | None = source
        self._facts = facts
        self.problem = problem

    @property
    def source(self) -> Source | None:
        """None where the file could not be decoded."""
        if isinstance(self._source, _PutAway):
            return _unpacked(self._source)
        return self._source

    def put_away(self, *, facts: bool = False) -> None:
        """Hold the text compressed: of a thousand files few are looked at again, and theirs take little time to read back. With
        ``facts`` these, too: see ``put_away``.
        """
        if facts and self._facts is not None:
            self._facts = put_away(self._facts)
        if isinstance(self._source, Source) and self._source.notebook is None:
            text, encoding, bom, _ = self._source
            self._source = _PutAway(compress(text.encode("utf-8", "surrogatepass"), 1), encoding, bom)

    @property
    def facts(self) -> Facts | None:
        """None where there is a problem."""
        return self._facts

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


def read(data: bytes, notebook: bool = False, parser: str = "auto") -> Reading:
    """Bytes to facts: pure, so that it may be cached by content and parser, or run in another process."""
    source = decode(data, notebook)
    return Reading(None, None, source) if isinstance(source, Problem) else collected(source, parser)


def too_large(error: TooLarge) -> Reading:
    """A file of which not even the bytes are read."""
    return Reading(None, None, Problem(f"too large to analyse: {error.strerror}", 0, ""))


def collected(source: Source, parser: str = "auto") -> Reading:
    """The facts of a decoded file, read by a ``parser`` of the settings. A fault of the tool is a problem of this file, too."""
    from torchrepro_lint.syntax.parse import CollectError, collect

    def attempt() -> Facts | Problem:
        try:
            facts = collect(source.program, parser)
            if _goes_on(facts, source) and (broken := _broken_cell(source, parser)):
                return Problem(*broken, source.program)
            return facts
        except CollectError as error:
            return Problem(*(_broken_cell(source, parser) or (error.message, error.offset)), source.program)

    answer = guarded(attempt)
    if isinstance(answer, Fault):
        answer = Problem(f"cannot be analysed: {answer.message}", 0, source.program)
    return Reading(source, None, answer) if isinstance(answer, Problem) else Reading(source, answer, None)


def _goes_on(facts: Facts, source: Source) -> bool:
    """Whether a statement or a string of one cell seems to go on in the next, which no cell's does."""
    from torchrepro_lint.source.ipython import leaves_string_open

    ends = [cell.end for cell in source.cells[:-1]]
    return any(bisect_left(ends, each.start) < bisect_left(ends, each.end) for each in facts.body) or any(
        leaves_string_open(source.program[cell.start : cell.end]) for cell in source.cells
    )


def _broken_cell(source: Source, parser: str) -> tuple[str, int] | None:
    """What is wrong with the first cell that does not parse by itself: a bracket left open shows in a later one."""
    from torchrepro_lint.source.ipython import OPENING, is_indented
    from torchrepro_lint.syntax.parse import CollectError, collect

    for cell in source.cells:
        text = source.program[cell.start : cell.end]
        opening = OPENING if is_indented(text) else ""
        try:
            collect(opening + text, parser)
        except CollectError as error:
            return error.message, min(cell.start + max(error.offset - len(opening), 0), cell.end)
    return None


class StoredReading(Reading):
    """A reading of a file whose bytes have a digest; ``unpack`` gives its facts, as ``parser`` read them, or raises
    ``ValueError``.
    """

    def __init__(self, path: str, digest: str, summary: Summary, unpack: Callable[[], Facts], parser: str) -> None:
        super().__init__(None, None, None)
        self._path = path
        self._digest = digest
        self._summary = summary
        self._unpack = unpack
        self._parser = parser

    @cached_property
    def source(self) -> Source | None:
        """The source, read again; nothing where the file has vanished or changed meanwhile."""
        notebook = is_notebook(self._path)
        try:
            data = program(self._path)
        except OSError:
            return None
        if digest(data, notebook) != self._digest:
            return None
        found = decode(data, notebook)
        return found if isinstance(found, Source) else None

    @cached_property
    def facts(self) -> Facts | None:
        """The facts, of which only the summary is read so far."""
        return cast("Facts", _StoredFacts(self._summary, self))

    def load(self) -> Facts:
        """The facts; collected anew where what was packed is damaged. Raises ``OSError``."""
        try:
            return self._unpack()
        except ValueError:
            found = read(program(self._path), is_notebook(self._path), self._parser).facts
            if found is None:
                raise OSError("the file changed while it was read") from None
            return found


class _StoredFacts(ReadBack):
    """Facts that are read when more than their summary is asked for."""

    def __init__(self, summary: Summary, reading: StoredReading) -> None:
        self.summary = summary
        self._reading = reading

    @property
    def exports(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return self.summary.exports

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if "_facts" not in vars(self):
            self._facts = self._reading.load()
        return getattr(self._facts, name)

    def let_go(self) -> None:
        vars(self).pop("_facts", None)
