"""Reading a whole project: each file parsed, or its syntax tree taken from the cache, in this process or in several."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from torchrepro_lint.config.discovery import ProjectTree
from torchrepro_lint.config.roots import likely_has_components
from torchrepro_lint.engine.limits import DeadlineExceededError, deadline
from torchrepro_lint.engine.parsed_file import ParsedFile, StoredFile, parse_bytes, too_large
from torchrepro_lint.engine.process_pool import WorkerFailure, run_tasks
from torchrepro_lint.engine.store.file_store import FileStore, PackedFacts, pack_facts
from torchrepro_lint.source.decoding import Source, SourceProblem, decode
from torchrepro_lint.source.errors import OUT_OF_MEMORY
from torchrepro_lint.source.files import FileSignature, TooLarge, digest, file_signature, is_notebook, read_program
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.qualified_names import clear_interned

if TYPE_CHECKING:
    from torchrepro_lint.engine.store.cache import Cache
    from torchrepro_lint.syntax.nodes import SyntaxTree

# Fewer bytes are parsed faster than processes start.
_WORTH_PROCESSES = 400_000
# Earlier facts are looked up for at most so many changed files.
_MOST_CHANGED = 32
# The facts of so many bytes of source stay in memory as they are, which takes about 160 MiB. Those of further files are paged out.
_PAGING_BYTES = 16_000_000
# So few changed files are parsed again faster than the whole store is rewritten.
_FEW_CHANGED = 8
# Longer files are read before all others.
_LONG_FILE = 100_000
# A file of this size is parsed in a process of its own, so that its failure costs no other file.
_LARGE_FILE = 1_000_000


class ReadOptions(Record, frozen=True):
    """How files are read: the number of processes, whether with a cache, and its directory (None: the default).

    With ``jobs=1`` a large file still has a process of its own. With ``jobs=0`` none has: a process with threads must not be
    forked, since a lock that a thread holds would stay locked in the child.
    """

    jobs: int = 1
    cached: bool = False
    directory: str | None = None

    def cache(self, root: str) -> Cache | None:
        """The cache of the project at ``root``, if one is to be used."""
        if not self.cached:
            return None
        from torchrepro_lint.engine.store.cache import open_cache

        return open_cache(root, self.directory)


ONE_PROCESS = ReadOptions()


class ParsedProject(Record, frozen=True):
    """The files of a project that could be read, by path from the root, and an error for each file to lint that could not.

    ``seen`` has the state and digest of each file when it was read, by absolute path; ``digests`` those of all files with
    facts, by path; ``before`` the digests and facts that the last run stored of changed files, if they are few. ``stored``
    says that the facts of many changed files are stored already; ``store`` stores those of a few, if the caller finds it worth it.
    """

    files: dict[str, ParsedFile]
    errors: tuple[str, ...]
    seen: dict[str, tuple[FileSignature, str]]
    digests: dict[str, str]
    before: dict[str, tuple[str, SyntaxTree]]
    stored: bool
    store: Callable[[], None]


class _ReadTask(Record, frozen=True):
    """A file to read: its absolute path, its bytes where they come from elsewhere, and whether to page out its facts."""

    path: str
    data: bytes | None
    page_out: bool


class _ReadResult(Record, frozen=True):
    """The result of a task: the parsed file, or None where the digest is stored; ``error`` says why it cannot be read."""

    seen: FileSignature | None
    digest: str
    parsed: ParsedFile | None
    packed: PackedFacts | None
    error: str = ""


def read_tree(
    tree: ProjectTree, advance: Callable[[], None] = lambda: None, options: ReadOptions = ONE_PROCESS
) -> ParsedProject:
    """Read the whole project, calling ``advance`` after each file. An unreadable file that is not to be linted is skipped.

    The result depends on the files alone, not on the cache or the number of processes.
    """
    cache = options.cache(tree.root.path)
    file_store = FileStore(cache, tree.root.settings.parser) if cache else None
    return _Reader(tree, file_store).read(advance, options.jobs)


class _Reader:
    def __init__(self, tree: ProjectTree, file_store: FileStore | None) -> None:
        self._tree = tree
        self._file_store = file_store
        self._parser = tree.root.settings.parser
        self._given = dict(tree.given)
        self._found: dict[str, ParsedFile] = {}
        self._seen: dict[str, tuple[FileSignature, str]] = {}
        self._stored: set[str] = set()
        self._errors: dict[str, str] = {}
        self._fresh: dict[str, PackedFacts] = {}
        self._digests: dict[str, str] = {}

    def read(self, advance: Callable[[], None], jobs: int) -> ParsedProject:
        changed = []
        for path in self._tree.files:
            if self._from_store(path):
                advance()
            else:
                changed.append(path)
        for path, answer in self._read_changed(changed, jobs):
            self._take_result(path, answer)
            advance()
        clear_interned()
        before = self._before(changed)
        stored = len(changed) > _FEW_CHANGED
        if stored:
            self._store_all()
        errors = (self._errors[path] for path, _ in self._tree.given if path in self._errors)
        files = {path: self._found[path] for path in self._tree.files if path in self._found}
        seen = {self._place(path): known for path, known in self._seen.items()}
        digests = {path: self._digests[path] for path, each in files.items() if each.facts is not None}
        return ParsedProject(files, tuple(errors), seen, digests, before, stored, self._store_all)

    def _store_all(self) -> None:
        if self._file_store:
            fresh, self._fresh = self._fresh, {}
            self._file_store.update(dict(sorted({**self._piped_states(), **self._stored_states()}.items())), fresh)

    def _stored_states(self) -> dict[str, tuple[FileSignature, str]]:
        return {path: self._seen[path] for path in self._stored}

    def _piped_states(self) -> dict[str, tuple[FileSignature, str]]:
        """The stored entries of files whose text comes from elsewhere: they stay."""
        known = (
            {path: self._file_store.known(path) for path in self._tree.files if self._piped(path)}
            if self._file_store
            else {}
        )
        return {path: each for path, each in known.items() if each is not None}

    def _before(self, changed: Sequence[str]) -> dict[str, tuple[str, SyntaxTree]]:
        """The stored facts of changed files; none where too many have changed."""
        found: dict[str, tuple[str, SyntaxTree]] = {}
        for path in changed if self._file_store and len(changed) <= _MOST_CHANGED else ():
            known = self._file_store.known(path) if self._file_store else None
            if known is not None and self._file_store and known[1] != self._digests.get(path):
                with contextlib.suppress(ValueError):
                    found[path] = known[1], self._file_store.facts(known[1])
        return found

    def _from_store(self, path: str) -> bool:
        """Take an unchanged file from the store; whether it was there."""
        if self._file_store is None or self._piped(path):
            return False
        try:
            seen = file_signature(self._place(path))
        except OSError:
            return False
        known = self._file_store.digest(path, seen)
        return known is not None and self._take_stored(path, seen, known)

    def _take_stored(self, path: str, seen: FileSignature, known: str) -> bool:
        summary = self._file_store.summary(known) if self._file_store else None
        if self._file_store is None or summary is None:
            return False
        unpack = partial(self._file_store.facts, known)
        self._found[path] = StoredFile(self._place(path), known, summary, unpack, self._parser)
        self._digests[path] = known
        self._seen[path] = (seen, known)
        self._stored.add(path)
        return True

    def _read_changed(self, paths: list[str], jobs: int) -> Iterator[tuple[str, _ReadResult]]:
        """The results of files, in no promised order.

        Long files are read first, lest one process still reads one at the end. All others are read folder by folder: what is in
        memory side by side is then released together.
        """
        sizes = {path: self._size(path) for path in paths}
        ordered = sorted(paths, key=lambda path: (-sizes[path] if sizes[path] > _LONG_FILE else 0, path))
        paged = self._paged(ordered, sizes)
        tasks = [_ReadTask(self._place(path), self._piped(path), path in paged) for path in ordered]
        work = partial(_read_guarded, self._file_store.digests if self._file_store else None, self._parser)
        alone = jobs < 2 or sum(sizes.values()) < _WORTH_PROCESSES
        if alone and (jobs < 1 or max(sizes.values(), default=0) < _LARGE_FILE):
            yield from zip(ordered, map(work, tasks), strict=True)
        else:
            _import_parsers(self._parser)
            own = sum(sizes[path] < _LARGE_FILE for path in ordered) if jobs > 1 else 0
            for number, answer in run_tasks(work, tasks, jobs, own=own):
                task = tasks[number]
                yield ordered[number], _failed(task, answer) if isinstance(answer, WorkerFailure) else answer

    def _paged(self, ordered: Sequence[str], sizes: Mapping[str, int]) -> frozenset[str]:
        """The files whose facts are paged out: those that come too late to be kept as they are, if components are checked in turn."""
        ends = zip(ordered, itertools.accumulate(sizes[path] for path in ordered), strict=True)
        late = frozenset(path for path, end in ends if end > _PAGING_BYTES)
        return late if late and likely_has_components(sizes, self._bytes) else frozenset()

    def _take_result(self, path: str, answer: _ReadResult) -> None:
        if answer.error:
            if path in self._given:
                self._errors[path] = f"{self._given[path].display}: cannot be read: {answer.error}"
            return
        if answer.parsed is None:  # its digest was known
            assert answer.seen is not None
            self._take_stored(path, answer.seen, answer.digest)
            return
        self._found[path] = answer.parsed
        self._digests[path] = answer.digest
        if answer.seen:
            self._seen[path] = (answer.seen, answer.digest)
        if answer.packed:
            self._stored.add(path)
            self._fresh[answer.digest] = answer.packed

    def _piped(self, path: str) -> bytes | None:
        return self._given[path].data if path in self._given else None

    def _place(self, path: str) -> str:
        return self._tree.place(path)

    def _bytes(self, path: str) -> bytes:
        try:
            return self._piped(path) or read_program(self._place(path))
        except (OSError, MemoryError):
            return b""

    def _size(self, path: str) -> int:
        data = self._piped(path)
        if data is not None:
            return len(data)
        try:
            return os.stat(self._place(path)).st_size
        except OSError:
            return 0


def _read_guarded(known: frozenset[str] | None, parser: str, task: _ReadTask) -> _ReadResult:
    """Read one file under the limits of time and memory."""
    try:
        with deadline():
            return _read(known, parser, task)
    except DeadlineExceededError as late:
        failure = WorkerFailure(late.reason)
    except MemoryError:
        failure = WorkerFailure(OUT_OF_MEMORY)
    return _failed(task, failure)


def _read(known: frozenset[str] | None, parser: str, task: _ReadTask) -> _ReadResult:
    """Read one file; it is not parsed if its digest is ``known``. Without digests nothing is stored."""
    notebook = is_notebook(task.path)
    if task.data is not None:
        return _ReadResult(None, digest(task.data, notebook), parse_bytes(task.data, notebook, parser), None)
    try:
        seen = file_signature(task.path)
        data = read_program(task.path)
    except TooLarge as error:
        return _ReadResult(seen, "", too_large(error), None)
    except OSError as error:
        return _ReadResult(None, "", None, None, error.strerror or str(error))
    name = digest(data, notebook)
    if known is not None and name in known:
        return _ReadResult(seen, name, None, None)
    parsed = parse_bytes(data, notebook, parser)
    stored = pack_facts(parsed.facts) if known is not None and parsed.facts and not parsed.problems else None
    parsed.page_out(facts=task.page_out)
    return _ReadResult(seen, name, parsed, stored)


def _import_parsers(parser: str) -> None:
    """Import the parsers before workers are forked, which then share them."""
    import torchrepro_lint.syntax.parse

    if parser == "libcst":
        import torchrepro_lint.syntax.libcst_tree  # noqa: F401


def _failed(task: _ReadTask, failure: WorkerFailure) -> _ReadResult:
    """The result for a file whose analysis ended its worker: a problem of that file."""
    message = f"cannot be analysed: {failure.reason}"
    try:
        source = decode(read_program(task.path) if task.data is None else task.data, is_notebook(task.path))
        problem = SourceProblem(message, 0, source.program) if isinstance(source, Source) else source
        parsed = ParsedFile(source if isinstance(source, Source) else None, None, (problem,))
    except OSError as error:
        return _ReadResult(None, "", None, None, error.strerror or str(error))
    except MemoryError:
        parsed = ParsedFile(None, None, (SourceProblem(message, 0, ""),))
    return _ReadResult(None, "", parsed, None)
