"""The first stage: all files of a project to their readings, from the cache, in this process or in several."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.config.discovery import Tree
from torchrepro_lint.config.roots import falls_apart
from torchrepro_lint.engine.limits import Late, deadline
from torchrepro_lint.engine.process_pool import Death, work_through
from torchrepro_lint.engine.reading import Reading, StoredReading, read, too_large
from torchrepro_lint.engine.store.file_store import Pack, Packed, pack_facts
from torchrepro_lint.query.memo_tables import forget
from torchrepro_lint.source.decoding import Problem, Source, decode, is_notebook
from torchrepro_lint.source.errors import NO_ROOM
from torchrepro_lint.source.files import State, TooLarge, digest, program, state

if TYPE_CHECKING:
    from torchrepro_lint.engine.store.cache import Cache
    from torchrepro_lint.syntax.nodes import Facts

# So many bytes take longer to collect than processes to start.
_WORTH_PROCESSES = 400_000
# Of more changed files it is not looked up what they said before.
_MOST_CHANGED = 32
# The facts of so many bytes take little room.
_ROOMY = 4_000_000
# So few are collected again in less time than everything takes to be stored anew.
_FEW = 8
# A file of this size is read in a process of its own, whose end costs no other file.
_LARGE = 1_000_000


class Means(NamedTuple):
    """With what files are read: how many processes, whether with a cache, and below which directory (None: the usual).

    With one process a large file has one of its own nevertheless; with none at all, nothing has: a process that has threads
    cannot be forked, for a lock that one of them holds stays locked in the other.
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


ALONE = Means()


class Readings(NamedTuple):
    """The files of a tree that could be read, by path from the root, and an error for each given one that could not.

    ``seen`` has, by absolute path, how each file was when it was read, ``digests`` those of all files with facts, by path;
    ``before`` has what the last run stored of changed files, if they are few: digests and facts. ``stored`` says that
    the facts of many changed files are stored already; ``store`` stores those of a few, which is left to whoever knows whether
    it pays.
    """

    files: dict[str, Reading]
    errors: tuple[str, ...]
    seen: dict[str, tuple[State, str]]
    digests: dict[str, str]
    before: dict[str, tuple[str, Facts]]
    stored: bool
    store: Callable[[], None]


class _Task(NamedTuple):
    """A file to read: where it is, its bytes where they come from elsewhere, and whether its facts are put away."""

    path: str
    data: bytes | None
    away: bool


class _Answer(NamedTuple):
    """What became of a task: its reading, or None where the digest was known; ``error`` says why it cannot be read."""

    seen: State | None
    digest: str
    reading: Reading | None
    packed: Packed | None
    error: str = ""


def read_tree(tree: Tree, advance: Callable[[], None] = lambda: None, means: Means = ALONE) -> Readings:
    """Read the whole project, calling ``advance`` after each file. What is not given and unreadable is left out.

    The readings depend on the files alone, whatever the cache holds and however many processes work.
    """
    cache = means.cache(tree.root.path)
    pack = Pack(cache, tree.root.settings.parser) if cache else None
    return _Reader(tree, pack).read(advance, means.jobs)


class _Reader:
    def __init__(self, tree: Tree, pack: Pack | None) -> None:
        self._tree = tree
        self._pack = pack
        self._parser = tree.root.settings.parser
        self._given = dict(tree.given)
        self._found: dict[str, Reading] = {}
        self._seen: dict[str, tuple[State, str]] = {}
        self._stored: set[str] = set()
        self._errors: dict[str, str] = {}
        self._fresh: dict[str, Packed] = {}
        self._digests: dict[str, str] = {}

    def read(self, advance: Callable[[], None], jobs: int) -> Readings:
        changed = []
        for path in self._tree.files:
            if self._from_pack(path):
                advance()
            else:
                changed.append(path)
        for path, answer in self._collect(changed, jobs):
            self._take(path, answer)
            advance()
        forget()
        before = self._before(changed)
        stored = len(changed) > _FEW
        if stored:
            self._store_all()
        errors = (self._errors[path] for path, _ in self._tree.given if path in self._errors)
        files = {path: self._found[path] for path in self._tree.files if path in self._found}
        seen = {self._place(path): known for path, known in self._seen.items()}
        digests = {path: self._digests[path] for path, each in files.items() if each.facts is not None}
        return Readings(files, tuple(errors), seen, digests, before, stored, self._store_all)

    def _store_all(self) -> None:
        if self._pack:
            fresh, self._fresh = self._fresh, {}
            self._pack.update(dict(sorted({**self._of_piped(), **self._stored_now()}.items())), fresh)

    def _stored_now(self) -> dict[str, tuple[State, str]]:
        return {path: self._seen[path] for path in self._stored}

    def _of_piped(self) -> dict[str, tuple[State, str]]:
        """What is stored of files whose text comes from elsewhere: it stays."""
        known = {path: self._pack.known(path) for path in self._tree.files if self._piped(path)} if self._pack else {}
        return {path: each for path, each in known.items() if each is not None}

    def _before(self, changed: Sequence[str]) -> dict[str, tuple[str, Facts]]:
        """What is stored of changed files; nothing where so many have changed that it is of no use."""
        found: dict[str, tuple[str, Facts]] = {}
        for path in changed if self._pack and len(changed) <= _MOST_CHANGED else ():
            known = self._pack.known(path) if self._pack else None
            if known is not None and self._pack and known[1] != self._digests.get(path):
                with contextlib.suppress(ValueError):
                    found[path] = known[1], self._pack.facts(known[1])
        return found

    def _from_pack(self, path: str) -> bool:
        """Take a file that has not changed from the pack."""
        if self._pack is None or self._piped(path):
            return False
        try:
            seen = state(self._place(path))
        except OSError:
            return False
        known = self._pack.digest(path, seen)
        return known is not None and self._store(path, seen, known)

    def _store(self, path: str, seen: State, known: str) -> bool:
        summary = self._pack.summary(known) if self._pack else None
        if self._pack is None or summary is None:
            return False
        unpack = partial(self._pack.facts, known)
        self._found[path] = StoredReading(self._place(path), known, summary, unpack, self._parser)
        self._digests[path] = known
        self._seen[path] = (seen, known)
        self._stored.add(path)
        return True

    def _collect(self, paths: list[str], jobs: int) -> Iterator[tuple[str, _Answer]]:
        """The answers of files, in no promised order; the large ones come first."""
        sizes = {path: self._size(path) for path in paths}
        ordered = sorted(paths, key=lambda path: (-sizes[path], path))
        away = sum(sizes.values()) > _ROOMY and falls_apart(sizes, self._bytes)
        tasks = [_Task(self._place(path), self._piped(path), away) for path in ordered]
        work = partial(_answer, self._pack.digests if self._pack else None, self._parser)
        alone = jobs < 2 or sum(sizes.values()) < _WORTH_PROCESSES
        if alone and (jobs < 1 or max(sizes.values(), default=0) < _LARGE):
            yield from zip(ordered, map(work, tasks), strict=True)
        else:
            _prepare(self._parser)
            own = sum(sizes[path] < _LARGE for path in ordered) if jobs > 1 else 0
            for number, answer in work_through(work, tasks, jobs, own=own):
                task = tasks[number]
                yield ordered[number], _dead(task, answer) if isinstance(answer, Death) else answer

    def _take(self, path: str, answer: _Answer) -> None:
        if answer.error:
            if path in self._given:
                self._errors[path] = f"{self._given[path].display}: cannot be read: {answer.error}"
            return
        if answer.reading is None:  # its digest was known
            assert answer.seen is not None
            self._store(path, answer.seen, answer.digest)
            return
        self._found[path] = answer.reading
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
            return self._piped(path) or program(self._place(path))
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


def _answer(known: frozenset[str] | None, parser: str, task: _Task) -> _Answer:
    """Read one file, which may take too long, or too much memory."""
    try:
        with deadline():
            return _read(known, parser, task)
    except Late as late:
        death = Death(late.reason)
    except MemoryError:
        death = Death(NO_ROOM)
    return _dead(task, death)


def _read(known: frozenset[str] | None, parser: str, task: _Task) -> _Answer:
    """Read one file; what it says is not needed where its digest is known. Without digests nothing is stored."""
    notebook = is_notebook(task.path)
    if task.data is not None:
        return _Answer(None, digest(task.data, notebook), read(task.data, notebook, parser), None)
    try:
        seen = state(task.path)
        data = program(task.path)
    except TooLarge as error:
        return _Answer(seen, "", too_large(error), None)
    except OSError as error:
        return _Answer(None, "", None, None, error.strerror or str(error))
    name = digest(data, notebook)
    if known is not None and name in known:
        return _Answer(seen, name, None, None)
    reading = read(data, notebook, parser)
    stored = pack_facts(reading.facts) if known is not None and reading.facts else None
    reading.put_away(facts=task.away)
    return _Answer(seen, name, reading, stored)


def _prepare(parser: str) -> None:
    """What every worker needs is loaded before they are started, so that forked ones share it."""
    import torchrepro_lint.syntax.parse

    if parser == "libcst":
        import torchrepro_lint.syntax.libcst_tree  # noqa: F401


def _dead(task: _Task, death: Death) -> _Answer:
    """A file whose analysis ended its worker: a problem of that file."""
    told = f"cannot be analysed: {death.reason}"
    try:
        source = decode(program(task.path) if task.data is None else task.data, is_notebook(task.path))
        problem = Problem(told, 0, source.program) if isinstance(source, Source) else source
        reading = Reading(source if isinstance(source, Source) else None, None, problem)
    except OSError as error:
        return _Answer(None, "", None, None, error.strerror or str(error))
    except MemoryError:
        reading = Reading(None, None, Problem(told, 0, ""))
    return _Answer(None, "", reading, None)
