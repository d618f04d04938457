"""The parse query: the bytes of one file to its source and syntax tree (its facts), or to the problem that prevents
this.

Files that have not changed since an earlier run are read lazily: text and facts are loaded when they are asked for.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, cast
from zlib import compress, decompress

from torchrepro_lint.engine.limits import guarded_analysis
from torchrepro_lint.source.decoding import Source, SourceProblem, decode
from torchrepro_lint.source.errors import Fault
from torchrepro_lint.source.files import TooLarge, digest, is_notebook, read_program
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Lines
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.serialization import pickled, unpickled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchrepro_lint.source.text import Cell
    from torchrepro_lint.syntax.nodes import ModuleSummary, SyntaxTree
    from torchrepro_lint.syntax.parse import ParseError


class _CompressedSource(Record, frozen=True):
    """A source that is no notebook, with its text compressed."""

    text: bytes
    encoding: str
    bom: bytes


# One rule after the other asks for the same file.
@lru_cache(maxsize=4)
def _decompressed(of: _CompressedSource) -> Source:
    """The decompressed source."""
    return Source(decompress(of.text).decode("utf-8", "surrogatepass"), of.encoding, of.bom)


class ParsedFile:
    """A parsed file: its source and syntax tree, or the problem that prevented parsing. A notebook may have both: a problem for
    each cell that cannot be parsed, and the syntax tree of the others.
    """

    def __init__(
        self,
        source: Source | None,
        facts: SyntaxTree | None,
        problems: tuple[SourceProblem, ...] = (),
        parser: str = "auto",
    ) -> None:
        self._source: Source | _CompressedSource | None = source
        self._facts = facts
        self.problems = problems
        self._parser = parser

    def __getstate__(self) -> dict[str, Any]:
        """The state for another process, which reads the facts when it asks for them."""
        return vars(self) | {"_facts": self._facts and page_out(self._facts, compressed=False)}

    @property
    def source(self) -> Source | None:
        """The source; None where the file could not be decoded."""
        if isinstance(self._source, _CompressedSource):
            return _decompressed(self._source)
        return self._source

    def page_out(self, *, facts: bool = False) -> None:
        """Compress the text, as few files are looked at again; with ``facts`` the syntax tree, too."""
        if facts and self._facts is not None:
            self._facts = page_out(self._facts)
        if isinstance(self._source, Source) and self._source.notebook is None:
            text, encoding, bom, _ = self._source
            self._source = _CompressedSource(compress(text.encode("utf-8", "surrogatepass"), 1), encoding, bom)

    @property
    def facts(self) -> SyntaxTree | None:
        """The syntax tree; None where there is a problem."""
        return self._facts

    def release_facts(self) -> None:
        """Forget the facts but for their summary: they are loaded again when they are asked for."""
        facts: Any = self.facts
        if isinstance(facts, _LoadedFacts):
            facts.evict()
        elif facts is not None:
            self._facts = cast("SyntaxTree", _LoadedFacts(facts.summary, self))

    def load(self) -> SyntaxTree:
        """The facts, parsed again. Raises ``OSError``."""
        found = parse_decoded(self.source, self._parser).facts if self.source else None
        if found is None:
            raise OSError("the file could be parsed before")
        return found

    @property
    def text(self) -> str:
        """The text in which offsets of findings count; of a notebook the program."""
        if self.problems:
            return self.problems[0].text
        return self.source.program if self.source else ""

    @property
    def lines(self) -> Lines:
        """The lines of ``text``."""
        return Lines(self.text, self.source.cells if self.source else ())

    @property
    def written(self) -> Lines:
        """The lines as they are written: of equal length, but with the parts of a notebook that are not Python."""
        return Lines(self.source.text, self.source.cells) if self.source and self.source.notebook else self.lines


def parse_bytes(data: bytes, notebook: bool = False, parser: str = "auto") -> ParsedFile:
    """Parse the bytes of a file: a pure function, so its result may be cached by content and parser."""
    source = decode(data, notebook)
    return ParsedFile(None, None, (source,)) if isinstance(source, SourceProblem) else parse_decoded(source, parser)


def too_large(error: TooLarge) -> ParsedFile:
    """The result for a file that is too large to read."""
    return ParsedFile(None, None, (SourceProblem(f"too large to analyse: {error.strerror}", 0, ""),))


def parse_decoded(source: Source, parser: str = "auto") -> ParsedFile:
    """Parse a decoded file by a ``parser`` of the settings. A fault of the tool is a problem of this file, too."""
    answer = guarded_analysis(lambda: _parse(source, parser))
    if isinstance(answer, Fault):
        return ParsedFile(
            source, None, (SourceProblem(f"cannot be analysed: {answer.message}", 0, source.program),), parser
        )
    return answer


def _parse(source: Source, parser: str) -> ParsedFile:
    from torchrepro_lint.syntax.parse import ParseError, parse_module
    from torchrepro_lint.syntax.syntax_errors import in_cell

    problem: ParseError | None = None
    try:
        facts = parse_module(source.program, parser)
        if not _crosses_cells(facts, source):
            return ParsedFile(source, facts, (), parser)
    except ParseError as error:
        problem = error
    broken = _broken_cells(source, parser)
    if broken and (rest := _without(source, [cell for cell, _ in broken])) is not None:
        others = parse_decoded(rest, parser)
        if not others.problems:
            told = (SourceProblem(in_cell(each.message), each.offset, rest.program) for _, each in broken)
            return ParsedFile(rest, others.facts, tuple(told), parser)
    if broken:
        problem = broken[0][1]
    if problem is None:
        return ParsedFile(source, facts, (), parser)
    return ParsedFile(source, None, (SourceProblem(problem.message, problem.offset, source.program),), parser)


def _crosses_cells(facts: SyntaxTree, source: Source) -> bool:
    """Whether a statement or a string seems to span cells of a notebook, which is an error in its first cell."""
    from torchrepro_lint.source.notebooks import leaves_string_open

    ends = [cell.end for cell in source.cells[:-1]]
    return any(bisect_left(ends, each.start) < bisect_left(ends, each.end) for each in facts.body) or any(
        leaves_string_open(source.program[cell.start : cell.end]) for cell in source.cells
    )


def _broken_cells(source: Source, parser: str) -> list[tuple[Cell, ParseError]]:
    """The cells that do not parse by themselves, with their errors: the parser of the whole reports an open bracket too late."""
    from torchrepro_lint.source.decoding import INDENT_HEADER
    from torchrepro_lint.source.notebooks import is_indented
    from torchrepro_lint.syntax.parse import ParseError, parse_module

    found = []
    for cell in source.cells:
        text = source.program[cell.start : cell.end]
        opening = INDENT_HEADER if is_indented(text) else ""
        try:
            parse_module(opening + text, parser)
        except ParseError as error:
            offset = min(cell.start + max(error.offset - len(opening), 0), cell.end)
            found.append((cell, ParseError(error.message, offset)))
    return found


# What says in a cell that it may seed, or set what other findings rest on.
_DECIDES = lazy_pattern(r"seed|trainer|determinis|cudnn|generator|rng", re.IGNORECASE)


def _without(source: Source, broken: Sequence[Cell]) -> Source | None:
    """A notebook in which unknown code stands for some cells; None where one of them may decide what is found elsewhere."""
    from torchrepro_lint.source.notebooks import replaced_by_unknown

    program = source.program
    if source.notebook is None or any(_DECIDES.search(program, cell.start, cell.end) for cell in broken):
        return None
    for cell in broken:
        unknown = replaced_by_unknown(program[cell.start : cell.end])
        program = program[: cell.start] + unknown + program[cell.end :]
    return source.with_program(program)


class StoredFile(ParsedFile):
    """An unchanged file that is loaded lazily; ``unpack`` gives its facts, as ``parser`` made them, or raises ``ValueError``."""

    def __init__(
        self, path: str, digest: str, summary: ModuleSummary, unpack: Callable[[], SyntaxTree], parser: str
    ) -> None:
        super().__init__(None, None, (), parser)
        self._path = path
        self._digest = digest
        self._summary = summary
        self._unpack = unpack

    @cached_property
    def source(self) -> Source | None:
        """The source, read again; None where the file has vanished or changed meanwhile."""
        notebook = is_notebook(self._path)
        try:
            data = read_program(self._path)
        except OSError:
            return None
        if digest(data, notebook) != self._digest:
            return None
        found = decode(data, notebook)
        return found if isinstance(found, Source) else None

    @cached_property
    def facts(self) -> SyntaxTree | None:
        """The facts, loaded lazily but for the summary."""
        return cast("SyntaxTree", _LoadedFacts(self._summary, self))

    def load(self) -> SyntaxTree:
        """The facts; parsed again where the stored ones are damaged. Raises ``OSError``."""
        try:
            return self._unpack()
        except ValueError:
            found = parse_bytes(read_program(self._path), is_notebook(self._path), self._parser).facts
            if found is None:
                raise OSError("the file changed while it was read") from None
            return found


class _LoadedFacts:
    """Facts that are loaded when more than their summary is asked for."""

    def __init__(self, summary: ModuleSummary, file: ParsedFile) -> None:
        self.summary = summary
        self._file = file

    @property
    def exports(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return self.summary.exports

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if "_facts" not in vars(self):
            self._facts = self._file.load()
        return getattr(self._facts, name)

    def evict(self) -> None:
        """Forget what was loaded: the next load makes new records."""
        vars(self).pop("_facts", None)


_PAGED_FIELDS = ("body", "functions", "classes", "assigned", "imports_end")


def page_out(facts: SyntaxTree, *, compressed: bool = True) -> SyntaxTree:
    """Page out facts: all but the summary becomes bytes until it is asked for. Facts that are nested too deeply are returned unchanged."""
    known: object = facts
    if isinstance(known, PagedFacts):
        return facts
    try:
        data = pickled([getattr(facts, each) for each in _PAGED_FIELDS])
    except RecursionError:
        return facts
    return cast("SyntaxTree", PagedFacts(facts.summary, compress(data, 1) if compressed else data, compressed))


def page_in(facts: object) -> None:
    """Page in facts for good, if they are paged out."""
    if isinstance(facts, PagedFacts):
        facts.read()


class PagedFacts:
    """Facts that are paged out: bytes, which are dropped once they are read."""

    def __init__(self, summary: Any, data: bytes, compressed: bool) -> None:
        self.summary = summary
        self._data = data
        self._compressed = compressed

    @property
    def exports(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """See ``Summary``."""
        return cast("SyntaxTree", self).summary.exports

    def bodies_calling(self, _word: str) -> Sequence[int | None]:
        """See ``Facts``."""
        return (None,)

    def __getattr__(self, name: str) -> Any:
        if name not in _PAGED_FIELDS or not self._data:
            raise AttributeError(name)
        self.read()
        return vars(self)[name]

    def read(self) -> None:
        """Load all fields."""
        if self._data:
            data = decompress(self._data) if self._compressed else self._data
            vars(self).update(zip(_PAGED_FIELDS, unpickled(data), strict=True))
            self._data = b""
