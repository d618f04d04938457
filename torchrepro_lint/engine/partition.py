"""The partition of a project into connected components of its import graph, and how they are checked in several processes.

Nothing that is said of a file in one component depends on a file of another. Components are distributed over processes
by weight; all processes may share one that is too large for one of them.
"""

from __future__ import annotations

import contextlib
import gc
import signal
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, cast

from torchrepro_lint.config.discovery import source_roots
from torchrepro_lint.engine.checker import Checker, CheckResult, broken_off, check, link_project
from torchrepro_lint.engine.import_closure import connected_components, same_import_graph
from torchrepro_lint.engine.limits import DeadlineExceededError, deadline, time_limit
from torchrepro_lint.engine.parsed_file import ParsedFile, page_in
from torchrepro_lint.engine.process_pool import FORKS, WorkerFailure, make_schedule, run_tasks
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.errors import OUT_OF_MEMORY
from torchrepro_lint.syntax.nodes import Record, SyntaxTree
from torchrepro_lint.trace.traces import Traces

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names


# Garbage is collected after so many released files, of which some 30 MiB are left on average: a collection takes a while.
_GARBAGE_FILES = 300
# The packages whose objects answer queries about a component.
_OURS = tuple(f"torchrepro_lint.{name}." for name in ("query", "resolve", "dataflow", "trace", "domain"))


class LinkStore(Protocol):
    """A store of databases: what earlier runs know of components, each named by its sorted paths."""

    def link(self, facts: Mapping[str, SyntaxTree], tree: ModuleTree) -> Names:
        """The names of these files with the answers that are known."""

    def leave(self, paths: Sequence[str]) -> None:
        """Nothing more is asked of a component for now."""


class Partition:
    """The partition of a project into components; each is linked when it is asked for, ``lasting`` ones stay linked.

    ``links`` has what earlier runs know of the components, and takes what this run adds; ``before`` is the partition of an
    earlier state of the same tree. All files without a syntax tree form one more component.
    """

    def __init__(
        self,
        checker: Checker,
        files: Mapping[str, ParsedFile],
        links: LinkStore | None = None,
        *,
        lasting: bool = False,
        before: Partition | None = None,
    ) -> None:
        self._checker = checker
        self._store = links
        self.files = files
        self.facts = facts = {path: each.facts for path, each in sorted(files.items()) if each.facts is not None}
        configurations = checker.manifest.configurations
        if (
            before is not None
            and before.tree.configurations == configurations
            and same_import_graph(before.facts, facts)
        ):
            self.tree: ModuleTree = before.tree
            self.paths: tuple[tuple[str, ...], ...] = before.paths
        else:
            self.tree = ModuleTree(facts, source_roots(checker.tree), configurations=configurations)
            self.paths = connected_components(facts, self.tree)
        self._number = {path: number for number, paths in enumerate(self.paths) for path in paths}
        self._linked: dict[int | None, Traces] = {}
        # The number of released files whose projects await garbage collection: these contain reference cycles.
        self._garbage = 0
        self._lasting = lasting or len(self.paths) < 2
        if self._lasting:
            for each in facts.values():
                page_in(each)

    def of(self, path: str) -> Traces:
        """The project of the component that contains a file."""
        number = self._number.get(path)
        found = self._linked.get(number)
        if found is None:
            if self._garbage > _GARBAGE_FILES:
                gc.collect()
                self._garbage = 0
            found = self._linked[number] = self._link(self._of_number(number))
        return found

    def all(self) -> Iterator[Traces]:
        """The projects of all components, one after the other."""
        return (self.of(paths[0]) for paths in self.paths)

    def by_component(self, paths: Iterable[str]) -> Iterator[list[str]]:
        """Paths grouped by component, in the order of the first path of each."""
        found: dict[int | None, list[str]] = {}
        for path in paths:
            found.setdefault(self._number.get(path), []).append(path)
        return iter(found.values())

    def weight(self, paths: Iterable[str]) -> int:
        """An estimate of the work on files: the calls and values in their summaries."""
        summaries = (self.facts[path].summary for path in paths if path in self.facts)
        return sum(len(each.calls) + len(each.values) for each in summaries)

    def single_file_project(self, path: str) -> Traces:
        """The project of one file, as if there were no others."""
        return self._linked_anew([path])

    def relink(self, path: str) -> None:
        """Link the component of a file again, from nothing: an interrupted computation may have left it inconsistent."""
        number = self._number.get(path)
        self._linked[number] = self._linked_anew(self._of_number(number))

    def unlink(self) -> None:
        """Forget all linked projects."""
        self._linked.clear()

    def release(self, path: str, kept: Collection[str] = ()) -> None:
        """Store what is known of the component of a file for the next run, and free its memory unless it is lasting; the facts of files
        that are ``kept`` will be asked for again.
        """
        number = self._number.get(path)
        paths = self._of_number(number)
        if self._store is not None:
            self._store.leave(paths)
        if not self._lasting:
            if (project := self._linked.pop(number, None)) is not None:
                _dismantle(project, kept=(self.tree, self._checker.catalogue))
            for each in paths:
                if each not in kept:
                    self.files[each].release_facts()
                    self.facts[each] = cast("SyntaxTree", self.files[each].facts)
            self._garbage += len(paths)

    def _of_number(self, number: int | None) -> tuple[str, ...]:
        return () if number is None else self.paths[number]

    def _link(self, paths: tuple[str, ...]) -> Traces:
        facts = {path: self.facts[path] for path in paths}
        return self._linked_anew(paths, self._store.link(facts, self.tree) if self._store and paths else None)

    def _linked_anew(self, paths: Iterable[str], before: Names | None = None) -> Traces:
        return link_project(self._checker, {path: self.files[path] for path in paths}, self.tree, before)


def _dismantle(project: Traces, kept: Iterable[object]) -> None:
    """Break the reference cycles of a project that is done with: then its memory is freed at once, which takes a fifth of the time
    of a search for garbage.

    Cycles go through the objects that answer queries, which refer to one another by their attributes. What is ``kept`` stays whole.
    """
    needed = {id(each) for each in _services(kept)}
    for each in [one for one in _services((project,)) if id(one) not in needed]:
        for name in list(_attributes(each)):
            with contextlib.suppress(AttributeError):  # a property of a base class
                object.__delattr__(each, name)


def _services(start: Iterable[object]) -> list[object]:
    """Objects of ours that have attributes, and those that they refer to by them; records are none."""
    found: dict[int, object] = {}
    left = list(start)
    while left:
        one = left.pop()
        one = getattr(one, "__self__", one)  # of a method
        if id(one) not in found and type(one).__module__.startswith(_OURS) and not isinstance(one, (tuple, Record)):
            found[id(one)] = one
            left += _attributes(one).values()
    return list(found.values())


def _attributes(of: object) -> dict[str, object]:
    slots = (name for kind in type(of).__mro__ for name in getattr(kind, "__slots__", ()))
    return {**getattr(of, "__dict__", {}), **{name: getattr(of, name) for name in slots if hasattr(of, name)}}


# Fewer files are checked faster than processes start.
_WORTH_PROCESSES = 48
# Files of one task: neighbours ask for the same other files.
_BATCH_SIZE = 12
# After so many timeouts in one process, the cause is most likely another file of the component.
_MAX_TIMEOUTS = 2
_NOTHING_KNOWN: Mapping[str, CheckResult] = MappingProxyType({})
# Seconds for a whole bundle: each process limits the time of a file itself.
_NO_DEADLINE = 86_400.0


def check_tree(
    checker: Checker, partition: Partition, jobs: int = 1, known: Mapping[str, CheckResult] = _NOTHING_KNOWN
) -> dict[str, CheckResult]:
    """Check each given file that was read; ``partition`` is the partition of all files. The result is the same for any ``jobs``.

    Files with a ``known`` result are not checked again.
    A file that ends the process which checks it, or takes too long, gets a ``TRL001`` that says so.
    """
    paths = [path for path, _ in checker.tree.given if path in partition.files]
    left = [path for path in paths if path not in known]
    file_checker = _PartitionChecker(checker, partition)
    components = list(partition.by_component(left))
    if jobs < 2 or not FORKS or len(left) < _WORTH_PROCESSES:
        found = dict(file_checker.components(components))
    else:
        found = dict(_in_processes(checker, file_checker, partition, components, jobs))
    return {path: found[path] if path in found else known[path] for path in paths}


def _in_processes(
    checker: Checker,
    file_checker: _PartitionChecker,
    partition: Partition,
    components: Sequence[Sequence[str]],
    jobs: int,
) -> Iterator[tuple[str, CheckResult]]:
    shares = make_schedule([partition.weight(paths) for paths in components], jobs)
    bundles = [[components[number] for number in numbers] for numbers in shares.bundles]
    shared = [components[number] for number in shares.shared]
    again: list[Sequence[str]] = []
    lost: list[str] = []

    def prepare() -> None:
        if shared:
            _ask_shared_queries(partition, shared[0])

    # A process that takes too long for one file ends itself.
    for number, answer in run_tasks(file_checker.bundle, bundles, jobs, deadline=_NO_DEADLINE, meanwhile=prepare):
        if isinstance(answer, WorkerFailure):
            again += bundles[number]
        else:
            yield from answer
    for number, paths in enumerate((*shared, *again)):
        if 0 < number < len(shared):
            _ask_shared_queries(partition, paths)
        batches = _batches(paths)
        for each, results in run_tasks(file_checker.all, batches, jobs, apart=True):
            if isinstance(results, WorkerFailure):
                lost += batches[each]
            else:
                yield from zip(batches[each], results, strict=True)
        partition.release(paths[0])
    # One file of a batch has ended its process; checking each by itself shows which.
    for number, last in run_tasks(file_checker.check, lost, jobs):
        path = lost[number]
        yield (
            path,
            broken_off(checker, partition.files[path], (), last.reason) if isinstance(last, WorkerFailure) else last,
        )


def _batches(paths: Sequence[str]) -> list[Sequence[str]]:
    return [paths[at : at + _BATCH_SIZE] for at in range(0, len(paths), _BATCH_SIZE)]


def _ask_shared_queries(partition: Partition, paths: Sequence[str]) -> None:
    """Answer the queries that nearly every file of a component asks, before processes are forked that would repeat them."""
    # A run in one process imports what its files need.
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
    from torchrepro_lint.domain.programs import program_summaries
    from torchrepro_lint.domain.rng.seeding import seeding_files, seeding_functions

    with contextlib.suppress(DeadlineExceededError, MemoryError), deadline(len(partition.files)):
        project = partition.of(paths[0])
        _ = project.torch_modules, loader_paths(project), initialised_attributes(project), has_device_context(project)
        _ = scripted_values(project), worker_function_names(project), worker_function_words(project)
        _ = seeds_workers(project), worker_seed_spans(project)
        for entries in project.entries_by_file():
            program_summaries(project, entries)
        for path in seeding_files(project).paths:
            project.resolver.imports(path, path)
            seeding_functions(project, path)
        _ = project.all_calls()


def _fixable_files(paths: Sequence[str], results: Iterable[CheckResult]) -> set[str]:
    """The files that fixes would change: completing a fix asks for their facts."""
    fixes = [(path, one.fix) for path, each in zip(paths, results, strict=True) for one in each.findings if one.fix]
    return {path for path, _ in fixes} | {path for _, fix in fixes for path, _ in fix.elsewhere}


@contextlib.contextmanager
def _gc_frozen() -> Iterator[None]:
    """Freeze what there is: garbage is collected between components, and syntax trees, which hold no cycles, are not scanned for it."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _PartitionChecker:
    """Checks files one after the other, each within its time limit."""

    def __init__(self, checker: Checker, partition: Partition) -> None:
        self._checker = checker
        self._partition = partition
        self._late = 0
        self._limit = 0.0

    def all(self, paths: Iterable[str]) -> list[CheckResult]:
        """Check files."""
        return [self.check(path) for path in paths]

    def components(self, groups: Iterable[Sequence[str]]) -> list[tuple[str, CheckResult]]:
        """Check the files of components; each component is linked at its turn and released afterwards."""
        found: list[tuple[str, CheckResult]] = []
        with _gc_frozen():
            for paths in groups:
                results = self.all(paths)
                found += zip(paths, results, strict=True)
                self._partition.release(paths[0], _fixable_files(paths, results))
        return found

    def bundle(self, groups: Iterable[Sequence[str]]) -> list[tuple[str, CheckResult]]:
        """The same in a worker process, which an alarm ends if nothing else stops a file that takes too long."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        self._limit = 2 * time_limit(len(self._partition.files))
        try:
            return self.components(groups)
        finally:  # the parent may be busy for longer
            signal.setitimer(signal.ITIMER_REAL, 0)

    def check(self, path: str) -> CheckResult:
        """Check one file."""
        from torchrepro_lint.dataflow.types.inference import type_inference

        parsed = self._partition.files[path]
        if self._limit:
            signal.setitimer(signal.ITIMER_REAL, self._limit)
        try:
            with deadline(len(self._partition.files)):
                project = self._project_of(path)
                found = check(self._checker_of(), path, parsed, project)
                type_inference(project).rest()
                return found
        except (DeadlineExceededError, MemoryError) as error:
            # The interrupted component must be linked again; the file need not be the cause.
            self._late += 1
            self._partition.relink(path)
            if isinstance(error, DeadlineExceededError):
                return broken_off(self._checker, parsed, error.findings, error.reason)
            return broken_off(self._checker, parsed, (), OUT_OF_MEMORY)

    def _checker_of(self) -> Checker:
        """The checker; of a file by itself it does not tell which suppressions are unused."""
        return self._checker._replace(table=()) if self._late >= _MAX_TIMEOUTS else self._checker

    def _project_of(self, path: str) -> Traces:
        """The project of a file's component; after repeated timeouts that of the file alone, so that a run terminates."""
        return self._partition.single_file_project(path) if self._late >= _MAX_TIMEOUTS else self._partition.of(path)
