"""Durability: the memo tables of a component's queries, saved with their dependencies and revalidated in the next process.

The next run restores the answers in a database of the files as they were, then applies the changes since. So an answer
survives exactly where it would survive in a running server.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from torchrepro_lint.checks.fixes.scripted import scripted_values
from torchrepro_lint.checks.initialisation import initialised_attributes
from torchrepro_lint.dataflow.types.context import has_device_context
from torchrepro_lint.domain.loaders.constructions import loader_paths
from torchrepro_lint.domain.loaders.fetch_effects import seeds_workers
from torchrepro_lint.domain.loaders.workers import (
    worker_function_names,
    worker_function_words,
    worker_seed_spans,
)
from torchrepro_lint.domain.programs import program_summaries, program_summary
from torchrepro_lint.domain.rng.library_generators import calls_setter
from torchrepro_lint.domain.rng.seeding import seeding_files, seeding_words
from torchrepro_lint.engine.store.cache import tool_stamp
from torchrepro_lint.resolve.call_sites import CallCandidates, CallPlace, FileCalls
from torchrepro_lint.resolve.imports import ImportResolver
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.program_index import file_calls, link, prepare_revision, revise
from torchrepro_lint.resolve.registries import Registries
from torchrepro_lint.source.files import digest
from torchrepro_lint.syntax.nodes import Record, fields
from torchrepro_lint.trace.events import EventTargets, EventTargetTable

if TYPE_CHECKING:
    from torchrepro_lint.engine.checker import Checker
    from torchrepro_lint.engine.read_project import ParsedProject
    from torchrepro_lint.engine.store.cache import Cache
    from torchrepro_lint.resolve.search_path import ModuleTree
    from torchrepro_lint.syntax.nodes import SyntaxTree


def compress_json(value: Any) -> bytes:
    """Compressed JSON of a value; records become lists."""
    text = json.dumps(value, separators=(",", ":"), check_circular=False, default=fields)
    return zlib.compress(text.encode("ascii"), 1)


def decompress_json(data: bytes) -> Any:
    """The value that ``compress_json`` was given."""
    return json.loads(zlib.decompress(data))


def component_key(paths: Sequence[str]) -> str:
    """A key of a component that names its files in the cache."""
    return blake2b("\0".join(paths).encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if type(value) is list else value


def _read_calls(value: Any) -> FileCalls:
    by_target, by_word, methods, named = value
    return FileCalls(_read_places(by_target), _read_places(by_word), methods, named)


def _read_places(of: dict[str, list[Any]]) -> dict[str, tuple[CallPlace, ...]]:
    return {name: tuple([CallPlace(*each) for each in places]) for name, places in of.items()}


class _DurableQuery(Record, frozen=True):
    """A query whose answers are stored: its function, and how an answer is written as JSON and read."""

    function: Callable[..., Any]
    write: Callable[[Any], Any] = list
    read: Callable[[Any], Any] = _as_tuples

    def count(self, names: Names) -> int:
        """How many answers are known."""
        table = names.database.known(self.function)
        return len(table.entries()) if table else 0

    def entries(self, names: Names) -> list[tuple[Any, Any, int]]:
        """The answers that are known: key, answer, and dependencies."""
        table = names.database.known(self.function)
        return [(key, self.write(answer), seen) for key, answer, seen in table.entries()] if table else []

    def restore(self, names: Names, key: Any, answer: Any, seen: int) -> None:
        """Take over one of the ``entries`` of an earlier run on the same files."""
        names.database.table_of(self.function).restore(_as_tuples(key), self.read(answer), seen)


def _is(value: Any) -> Any:
    return value


# Answers that are restored when a program is linked.
ANSWERS: dict[str, _DurableQuery] = {
    "default devices": _DurableQuery(has_device_context, _is, _is),
    "initialised attributes": _DurableQuery(initialised_attributes, sorted, frozenset),
    "loader files": _DurableQuery(loader_paths),
    "programs": _DurableQuery(
        program_summaries,
        lambda found: [[sorted(each.functions), each.accelerated] for each in found],
        lambda rows: tuple(program_summary(functions, accelerated=fast) for functions, fast in rows),
    ),
    "scripted values": _DurableQuery(scripted_values),
    "seeding files": _DurableQuery(
        seeding_files,
        lambda it: [it.paths, sorted(it.words)],
        lambda it: CallCandidates(tuple(it[0]), frozenset(it[1])),
    ),
    "seeding words": _DurableQuery(seeding_words, sorted, frozenset),
    "setters": _DurableQuery(calls_setter, _is, _is),
    "worker function words": _DurableQuery(worker_function_words, sorted, frozenset),
    "worker functions": _DurableQuery(worker_function_names, sorted, frozenset),
    "worker seeds": _DurableQuery(worker_seed_spans),
    "workers are seeded": _DurableQuery(seeds_workers, _is, _is),
}


def encode_answers(of: Names) -> list[Any]:
    """The answers of ``ANSWERS`` as JSON values; the dependencies of each are one number, in hexadecimal."""
    return [
        [
            name,
            [
                [key, answer, f"{seen:x}"]
                for key, answer, seen in sorted(each.entries(of), key=lambda row: repr(row[0]))
            ],
        ]
        for name, each in ANSWERS.items()
    ]


def restore_answers(into: Names, answers: list[Any]) -> None:
    """Restore what ``encode_answers`` gave in a database of the same files."""
    for name, rows in answers:
        for key, answer, seen in rows:
            ANSWERS[name].restore(into, key, answer, int(seen, 16))


class _StoredTable(Protocol):
    """A table that is stored."""

    def count(self, names: Names, /) -> int: ...

    def entries(self, names: Names, /) -> Sequence[tuple[Any, Any, int]]: ...

    def restore(self, names: Names, key: Any, answer: Any, seen: int, /) -> None: ...


class _CallTargets:
    """The call targets, whose keys and answers are converted."""

    def count(self, names: Names) -> int:
        return len(self.entries(names))

    def entries(self, names: Names) -> list[tuple[Any, Any, int]]:
        return names.call_graph.answers.entries()

    def restore(self, names: Names, key: Any, answer: Any, seen: int) -> None:
        names.call_graph.answers.restore(key, _as_tuples(answer), seen)


class _Outcomes:
    """The targets of events."""

    def count(self, names: Names) -> int:
        return len(names.database.table("outcomes").entries())

    def entries(self, names: Names) -> list[tuple[Any, Any, int]]:
        return [*EventTargetTable(names.database.table("outcomes")).entries()]

    def restore(self, names: Names, key: Any, answer: Any, seen: int) -> None:
        found = EventTargets(tuple(answer[0]), answer[1], answer[2], tuple(answer[3]))
        EventTargetTable(names.database.table("outcomes")).restore(key, found, seen)


# Tables that are loaded when their first answer is asked for. The names are those of their cache files.
TABLES: dict[str, _StoredTable] = {
    "above": _DurableQuery(Names.above),
    "calls": _DurableQuery(file_calls, _is, _read_calls),
    "decorated": _DurableQuery(Registries.decorated),
    "imported": _DurableQuery(ImportResolver.imported),
    "outcomes": _Outcomes(),
    "runs": _CallTargets(),
}


def encode_table(of: Names, name: str) -> list[Any]:
    """One of ``TABLES`` as JSON values; dependencies are numbered, since few answers differ in them."""
    rows = sorted(TABLES[name].entries(of), key=lambda row: row[0])
    seen = {each: number for number, each in enumerate(sorted({seen for _, _, seen in rows}))}
    return [[f"{each:x}" for each in seen], [[word, answer, seen[of]] for word, answer, of in rows]]


def restore_table(into: Names, name: str, table: Any) -> int:
    """Restore a table but for answers whose dependencies have changed; returns the number of restored answers."""
    kept = TABLES[name]
    seen = [int(each, 16) for each in table[0]]
    still = [(word, answer, seen[of]) for word, answer, of in table[1] if not seen[of] & into.database.changed]
    for word, answer, each in still:
        kept.restore(into, word, answer, each)
    return len(still)


_NAME = "answers"
# Tables have files of their own, which are rewritten after so many answers had to be recomputed.
_MAX_RECOMPUTED = 40


class QueryStore:
    """The query store: answers of the last run about each component, and the answers to store for the next."""

    def __init__(self, checker: Checker, project_files: ParsedProject, cache: Cache) -> None:
        self._checker = checker
        self._project_files = project_files
        self._cache = cache
        self._components: dict[Sequence[str], _ComponentStore] = {}

    def link(self, facts: Mapping[str, SyntaxTree], tree: ModuleTree) -> Names:
        """The names of a component, with its database; ``tree`` is the module tree of the whole project."""
        paths = tuple(facts)
        own = self._project_files._replace(digests={path: self._project_files.digests[path] for path in paths})
        component = self._components[paths] = _ComponentStore(
            self._checker, own, self._cache, tree, component_key(paths), facts
        )
        return component.link

    def leave(self, paths: Sequence[str]) -> None:
        """Store the answers about a component, if it was linked."""
        if (component := self._components.pop(paths, None)) is not None:
            component.leave()

    def forget_others(self, components: Collection[Sequence[str]]) -> None:
        """Remove the files of components that no longer exist."""
        forget_others(self._cache, (_NAME, *TABLES), components)


def forget_others(cache: Cache, names: Collection[str], components: Collection[Sequence[str]]) -> None:
    """Remove the files with some names of all components but these."""
    known = {component_key(paths) for paths in components}
    for path in cache.place.glob("*-*"):
        name, _, key = path.name.rpartition("-")
        if name in names and key not in known:
            with suppress(OSError):
                path.unlink()


class _ComponentStore:
    """The database of a component with the answers of the last run; ``key`` names its files in the cache."""

    def __init__(
        self,
        checker: Checker,
        project_files: ParsedProject,
        cache: Cache,
        tree: ModuleTree,
        key: str,
        files: Mapping[str, SyntaxTree],
    ) -> None:
        self._checker = checker
        self._project_files = project_files
        self._cache = cache
        self._tree = tree
        self._key = key
        self._restored_count = 0
        # The digests of the stored tables, and the number of answers restored from each.
        self._tables: dict[str, str] = {}
        self._restored_tables: dict[str, int] = {}
        self.link = self._restored(files)

    def leave(self) -> None:
        """Store the answers, if there are more than were restored; otherwise the next run starts from the same files.

        Nothing is stored about texts that are not on disk.
        """
        if self._is_new or self._project_files.stored or _count_answers(self.link) > self._restored_count:
            self._project_files.store()
            self._write()

    def _write(self) -> None:
        digests = self._project_files.digests
        if any(given.data is not None for _, given in self._checker.tree.given):
            return
        if digests.keys() != self.link.modules.files.keys():
            return
        self._write_tables()
        tables = [self._tables, f"{self.link.database.changed:x}"]
        answers = [self._fingerprint(self.link.modules.files), digests, *tables, encode_answers(self.link)]
        self._cache.write(self._file(_NAME), compress_json(answers))

    def _write_tables(self) -> None:
        if all(
            each.count(self.link) - self._restored_tables.get(name, 0) <= _MAX_RECOMPUTED
            for name, each in TABLES.items()
        ):
            return
        for name in TABLES:
            self._restore_table(self.link, name)
        self.link.database.changed = 0
        for name in TABLES:
            data = compress_json(encode_table(self.link, name))
            self._tables[name] = digest(data)
            self._cache.write(self._file(name), data)

    def _restore_table(self, into: Names, name: str) -> None:
        """Restore a table in a database, once."""
        if name in self._restored_tables or name not in self._tables:
            return
        self._restored_tables[name] = 0  # opening the table asks for this
        data = self._cache.read(self._file(name))
        known = data is not None and digest(data) == self._tables[name]
        self._restored_tables[name] = (
            restore_table(into, name, decompress_json(data)) if data is not None and known else 0
        )

    def _restored(self, files: Mapping[str, SyntaxTree]) -> Names:
        data = self._cache.read(self._file(_NAME))
        fingerprint, digests, *rest = decompress_json(data) if data else ("", {})
        before = _facts_before(files, self._project_files, digests)
        if before is not None and fingerprint == self._fingerprint(before):
            found = self._linked(before)
            self._tables, changed, answers = rest
            found.database.changed = int(changed, 16)
            found.modules.reads.recall = partial(self._restore_table, found)
            restore_answers(found, answers)
            prepare_revision(found, files)
            if revise(found, files):
                self._is_new = False
                self._restored_count = _count_answers(found)
                return found
        self._is_new, self._tables, self._restored_tables = True, {}, {}
        return self._linked(files)

    def _fingerprint(self, files: Mapping[str, SyntaxTree]) -> str:
        """A digest of what answers about the files of the component depend on besides their contents."""
        settings, manifest = self._checker.tree.root.settings, self._checker.manifest
        asked = (tool_stamp(), settings.parser, settings.entry_points, settings.seeders, manifest)
        found = repr((*asked, self._tree.key_of(files), self._checker.catalogue.version))
        return digest(found.encode("utf-8", "surrogatepass"))

    def _linked(self, files: Mapping[str, SyntaxTree]) -> Names:
        return link(files, self._tree, self._checker.catalogue.version, incremental=True)

    def _file(self, name: str) -> str:
        return f"{name}-{self._key}"


def _facts_before(
    files: Mapping[str, SyntaxTree], project_files: ParsedProject, digests: Mapping[str, str]
) -> dict[str, SyntaxTree] | None:
    """The facts of all files with these digests; None if the set of files differs, or facts are missing."""
    if files.keys() != digests.keys():
        return None
    found = dict(files)
    for path, was in digests.items():
        if project_files.digests.get(path) != was:
            known = project_files.before.get(path)
            if known is None or known[0] != was:
                return None
            found[path] = known[1]
    return found


def _count_answers(of: Names) -> int:
    return sum(each.count(of) for each in ANSWERS.values())
