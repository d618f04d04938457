"""Entry points: ``__main__`` blocks, scripts, command-line functions, and what settings and pyproject.toml name."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from torchrepro_lint.config.discovery import glob_matcher
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.nodes import Call, Expression, Function, Ref, SyntaxTree
from torchrepro_lint.syntax.qualified_names import last_word, path_of, simple_name, top_package
from torchrepro_lint.syntax.summary import is_test

# Decorators that expose a function on a command line: their packages, and their last words.
_PACKAGES = frozenset({"click", "typer", "cloup", "rich_click", "asyncclick"})
_WORDS = frozenset({"command", "group", "callback"})
_OF_GROUPS = frozenset({"command", "group", "result_callback", "resultcallback"})
# Those of sacred, which seeds all generators before it calls the function (0.8.7, run.py): with its own seed unless the configuration has one.
_EXPERIMENTS = frozenset(f"sacred.Experiment().{word}" for word in ("main", "automain", "command"))


class Entry(NamedTuple):
    """An entry point: a module that is executed, or (``function``) a function that is called.

    ``before`` are the functions that run first: a command's groups and callbacks.
    """

    path: str
    function: str | None
    before: tuple[str, ...] = ()


class EntryPoints:
    """The entry points of a project, file by file.

    ``scripts`` are the targets of ``[project.scripts]``, ``started`` are globs of the files that a setting says are started.
    """

    def __init__(
        self,
        names: Names,
        scripts: Sequence[str],
        started: Sequence[str],
    ) -> None:
        self._names = names
        self.database = names.database
        self._scripts = scripts
        self._globs = started

    def all(self) -> tuple[Entry, ...]:
        """All of them, sorted by path."""
        return tuple(entry for path in sorted(self._names.modules.files) for entry in self.of(path))

    def of(self, path: str) -> tuple[Entry, ...]:
        """The entry points of one file: the file itself first, then its functions."""
        every = {*self._own(path), *self._named().get(path, ())}
        return tuple(sorted(every, key=lambda entry: entry.function or "")) if every else ()

    @query(cutoff=True)
    def _own(self, path: str) -> tuple[Entry, ...]:
        """The entry points of a file without those that ``[project.scripts]`` names."""
        return tuple(self._find(path))

    def _find(self, path: str) -> Iterator[Entry]:
        names, facts = self._names, self._names.modules.files[path]
        if path in self._started or _is_script(path, facts, lambda: self._is_imported(path)):
            yield Entry(path, None)
        if _may_expose(names, path) and not is_test(path, facts.summary):
            for each in facts.functions:
                if _is_command(names, path, each):
                    yield Entry(path, path + each.name, _before(names, path, each))

    @cached_property
    def _started(self) -> frozenset[str]:
        return frozenset(filter(glob_matcher(self._globs), self._names.modules.files))

    @query()
    def _named(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {}
        for entry in (entry for script in self._scripts for entry in _named(self._names, script)):
            found.setdefault(entry.path, []).append(entry)
        return found

    def _is_imported(self, path: str) -> bool:
        """Whether another file that is no test imports a file."""
        stem = path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
        imports, modules = self._imports(), self._names.modules
        return any(
            importer != path
            and modules.loaded(importer, module) == path
            and not is_test(importer, modules.files[importer].summary)
            for importer, module in (*imports.get(stem, ()), *imports.get("", ()))
        )

    @query()
    def _imports(self) -> dict[str, list[tuple[str, str]]]:
        """The imports of all files, by the last word of what they load: a file, and what it writes."""
        self._names.modules.reads.record_word("imports", "")
        found: dict[str, list[tuple[str, str]]] = {}
        for path, summary in self._names.modules.summaries():
            for module in summary.imports:
                found.setdefault(last_word(module), []).append((path, module))
        return found


def _is_script(path: str, facts: SyntaxTree, imported: Callable[[], bool]) -> bool:
    if is_test(path, facts.summary):
        return False
    if facts.summary.has_main_guard:
        return True
    special = posixpath.basename(path) in ("__init__.py", "setup.py")
    return facts.summary.calls_at_top_level and not special and not imported()


def _may_expose(names: Names, path: str) -> bool:
    """Whether a decorator of a file may expose a command, by the file's summary."""
    for roots, words in names.modules.files[path].summary.decorators:
        found = names.names_from_summary(path, roots, words)
        if found is None or any(map(_is_exposing, found)):
            return True
    return False


def _is_exposing(name: str) -> bool:
    package, word = top_package(name), simple_name(name)
    return name == "hydra.main" or name in _EXPERIMENTS or (package in _PACKAGES and word in _WORDS)


def is_seeded_by_runner(names: Names, entry: Entry) -> bool:
    """Whether the package that runs a function of an entry point may seed the generators before."""
    return entry.function is not None and any(
        not _EXPERIMENTS.isdisjoint(names.names(entry.path, decorator))
        for function in names.functions(entry.function)
        for decorator in function.decorators
    )


def _is_command(names: Names, path: str, function: Function) -> bool:
    if function.owner is not None:
        return False
    return any(
        _exposes(names, path, decorator.func if isinstance(decorator, Call) else decorator)
        for decorator in function.decorators
    )


def _exposes(names: Names, path: str, decorator: Expression) -> bool:
    """``click.command``, ``typer.Typer().command``, ``hydra.main``, or ``command`` of a group that is a function."""
    if any(map(_is_exposing, names.names(path, decorator))):
        return True
    return any(_is_command(names, path_of(group), each) for group, each in _groups(names, path, decorator))


def _groups(names: Names, path: str, decorator: Expression) -> Iterator[tuple[str, Function]]:
    """The function ``cli`` of ``@cli.command()``, or of ``@cli.result_callback()``, which gets what its commands return."""
    if isinstance(decorator, Ref) and len(decorator.path) == 1 and decorator.path[0] in _OF_GROUPS:
        for root in decorator.roots:
            for group in names.modules.resolve(path, root):
                yield from ((group, each) for each in names.functions(group) if each.decorators)


def _before(names: Names, path: str, function: Function) -> tuple[str, ...]:
    """The functions that run before a command: its group, and the callback of its typer application."""
    found: list[str] = []
    for decorator in function.decorators:
        func = decorator.func if isinstance(decorator, Call) else decorator
        found += (group for group, _ in _groups(names, path, func))
        if isinstance(func, Ref) and func.path == ("command",):
            found += (path + name for name in _callbacks(names, path).get(func.roots, ()))
    return tuple(dict.fromkeys(found))


@query(lru=1)
def _callbacks(names: Names, path: str) -> dict[tuple[str, ...], list[str]]:
    """The functions that ``@app.callback()`` decorates, by the application."""
    found: dict[tuple[str, ...], list[str]] = {}
    for each in names.modules.files[path].functions:
        for other in each.decorators:
            if isinstance(other, Call) and isinstance(other.func, Ref) and other.func.path == ("callback",):
                found.setdefault(other.func.roots, []).append(each.name)
    return found


def _named(names: Names, script: str) -> Iterator[Entry]:
    """The function that ``package.module:main`` of ``[project.scripts]`` means, wherever the package lies."""
    module, _, function = script.partition(":")
    tail = module.replace(".", "/")
    for path in names.modules.files:
        stem = path.removesuffix(".py").removesuffix("/__init__")
        if stem == tail or stem.endswith(f"/{tail}"):
            for target in names.modules.attribute(path, function.partition(".")[0]) or ():
                if names.functions(target):
                    yield Entry(path_of(target), target)


@query()
def is_program(names: Names, path: str) -> bool:
    """Whether a file is a script or a test."""
    names.modules.reads.record_read(path)
    facts = names.modules.files[path]
    return facts.summary.has_main_guard or is_test(path, facts.summary)
