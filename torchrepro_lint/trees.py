"""The first stage: all files of a project to their readings, from the cache, in this process or in several."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.files import Given, Tree
from torchrepro_lint.pack import Pack, Packed, State, digest, packed, state
from torchrepro_lint.reading import Reading, read
from torchrepro_lint.source import Problem, Source, decode, is_notebook
from torchrepro_lint.stored import StoredReading
from torchrepro_lint.workers import Death, work_through

if TYPE_CHECKING:
    from torchrepro_lint.cache import Cache

# So many bytes take longer to collect than processes to start.
_WORTH_PROCESSES = 400_000
# A file of this size is read in a process of its own, whose end costs no other file.
_LARGE = 1_000_000


class Readings(NamedTuple):
    """The files of a tree that could be read, by path from the root, and an error for each given one that could not."""

    files: dict[str, Reading]
    errors: tuple[str, ...]


class _Task(NamedTuple):
    """A file to read: where it is, and its bytes where they come from elsewhere."""

    path: str
    data: bytes | None


class _Answer(NamedTuple):
    """What became of a task: its reading, or None where the digest was known; ``error`` says why it cannot be read."""

    seen: State | None
    digest: str
    reading: Reading | None
    packed: Packed | None
    error: str = ""


def read_tree(tree: Tree, advance: Callable[[], None], cache: Cache | None, jobs: int) -> Readings:
    """Read the whole project, calling ``advance`` after each file. What is not given and unreadable is left out.

    The readings depend on the files alone, whatever the cache holds and however many processes work.
    """
    return _Reader(tree, Pack(cache) if cache else None).read(advance, jobs)


class _Reader:
    def __init__(self, tree: Tree, pack: Pack | None) -> None:
        self._tree = tree
        self._pack = pack
        self._given = dict(tree.given)
        self._found: dict[str, Reading] = {}
        self._stored: dict[str, tuple[State, str]] = {}
        self._errors: dict[str, str] = {}
        self._fresh: dict[str, Packed] = {}

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
        if self._pack:
            self._pack.update(self._stored, self._fresh)
        errors = (self._errors[path] for path, _ in self._tree.given if path in self._errors)
        return Readings({path: self._found[path] for path in self._tree.files if path in self._found}, tuple(errors))

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
        self._found[path] = StoredReading(self._place(path), self._pack, known, summary)
        self._stored[path] = (seen, known)
        return True

    def _collect(self, paths: list[str], jobs: int) -> Iterator[tuple[str, _Answer]]:
        """The answers of files, in no promised order; the large ones come first."""
        sizes = {path: self._size(path) for path in paths}
        ordered = sorted(paths, key=lambda path: (-sizes[path], path))
        tasks = [_Task(str(self._place(path)), self._piped(path)) for path in ordered]
        work = partial(_answer, self._pack.digests if self._pack else None)
        alone = jobs < 2 or sum(sizes.values()) < _WORTH_PROCESSES
        if alone and max(sizes.values(), default=0) < _LARGE:
            yield from zip(ordered, map(work, tasks), strict=True)
        else:
            _prepare()
            for number, answer in work_through(work, tasks, jobs):
                task = tasks[number]
                yield ordered[number], _dead(task, answer) if isinstance(answer, Death) else answer

    def _take(self, path: str, answer: _Answer) -> None:
        if answer.error:
            if path in self._given:
                self._errors[path] = f"{self._given[path].display}: cannot be read: {answer.error}"
            return
        if answer.reading is None:
            assert answer.seen is not None
            if self._store(path, answer.seen, answer.digest):
                return
            answer = _answer(None, _Task(str(self._place(path)), None))
            return self._take(path, answer)
        self._found[path] = answer.reading
        if answer.packed and answer.seen:
            self._stored[path] = (answer.seen, answer.digest)
            self._fresh[answer.digest] = answer.packed

    def _piped(self, path: str) -> bytes | None:
        return self._given[path].data if path in self._given else None

    def _place(self, path: str) -> Path:
        return Path(self._tree.root.path, path)

    def _size(self, path: str) -> int:
        data = self._piped(path)
        if data is not None:
            return len(data)
        try:
            return os.stat(self._place(path)).st_size
        except OSError:
            return 0


def _answer(known: frozenset[str] | None, task: _Task) -> _Answer:
    """Read one file; what it says is not needed where its digest is known. Without digests nothing is stored."""
    notebook = is_notebook(task.path)
    if task.data is not None:
        return _Answer(None, "", read(task.data, notebook), None)
    try:
        seen = state(task.path)
        data = Path(task.path).read_bytes()
    except OSError as error:
        return _Answer(None, "", None, None, error.strerror or str(error))
    name = digest(data + b"\0notebook" if notebook else data)
    if known is not None and name in known:
        return _Answer(seen, name, None, None)
    reading = read(data, notebook)
    return _Answer(seen, name, reading, packed(reading.facts) if known is not None and reading.facts else None)


def _prepare() -> None:
    """What every worker needs is loaded before they are started, so that forked ones share it."""
    import torchrepro_lint.collect  # noqa: F401


def _dead(task: _Task, death: Death) -> _Answer:
    """A file whose analysis ended its worker: a problem of that file."""
    try:
        source = decode(task.data or Path(task.path).read_bytes(), is_notebook(task.path))
    except OSError as error:
        return _Answer(None, "", None, None, error.strerror or str(error))
    if isinstance(source, Source):
        return _Answer(
            None, "", Reading(source, None, Problem(f"cannot be analysed: {death.reason}", 0, source.program)), None
        )
    return _Answer(None, "", Reading(None, None, source), None)
