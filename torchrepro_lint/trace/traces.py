"""Traces of a program's entry points and functions, and the mode flags, attributes by which a program says in which mode it runs: a
trace has nothing of the other mode. This is the layer above names, values and order that follows what a run does.

``Context`` adds the module under check, with its text and tree: the argument of each rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.environment import ANY_ATTRIBUTE, attributes_set
from torchrepro_lint.dataflow.taint.analysis import TaintFlow
from torchrepro_lint.query.database import Database, query
from torchrepro_lint.resolve.program_index import ProgramIndex, link
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.definitions import unpack
from torchrepro_lint.syntax.nodes import Assign, Constant, Expression, Record, Ref
from torchrepro_lint.syntax.qualified_names import in_project, is_local, is_module, is_self, path_of, simple_name
from torchrepro_lint.syntax.visitor import statements
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.entry_points import Entry, EntryPoints
from torchrepro_lint.trace.events import TraceMemoTables

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.catalogue import Catalogue
    from torchrepro_lint.catalogue.libraries import LibraryVersions
    from torchrepro_lint.config.settings import Settings
    from torchrepro_lint.resolve.names import Names
    from torchrepro_lint.source.text import Lines
    from torchrepro_lint.syntax.nodes import Statement, SyntaxTree


class Traces(TaintFlow):
    """The modules of a project with its entry points and their traces. The queries of the domain are functions of it.

    ``tree`` holds all modules, ``files`` those that are linked; ``scripts`` are the targets of ``[project.scripts]``,
    ``libraries`` the requirements; ``position`` locates an offset for messages (row 0 without texts); ``text`` is a
    file's text, for fixes. ``names`` are those of an earlier project, after the changes of files.
    """

    def __init__(
        self,
        files: Mapping[str, SyntaxTree],
        settings: Settings,
        catalogue: Catalogue,
        tree: ModuleTree | None = None,
        scripts: Sequence[str] = (),
        position: Callable[[str, int], Position] = lambda _path, _offset: Position(0, 0),
        text: Callable[[str], str] = lambda _path: "",
        libraries: LibraryVersions = (),
        names: Names | None = None,
    ) -> None:
        names = names or link(files, tree or ModuleTree(files, (".",)), catalogue.version)
        super().__init__(names, position, text, libraries)
        self.settings = settings
        self.catalogue = catalogue
        self._tables = names.database.part(TraceMemoTables)
        self._scripts = scripts

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entry points, sorted by path."""
        return self.entry_points.all()

    @cached_property
    def entry_points(self) -> EntryPoints:
        """The entry points, file by file."""
        return EntryPoints(self.resolver, self._scripts, self.settings.entry_points)

    @query(cutoff=True)
    def entries_by_file(self) -> tuple[tuple[Entry, ...], ...]:
        """The entry points of each file that has any."""
        return tuple(entries for path in sorted(self.files) if (entries := self.entry_points.of(path)))

    def traces_from(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Trace]]:
        """The traces of the entry points of a file, without those that are part of another."""
        names, tables, commands = self.resolver, self._tables, [each for each in entries if each.function]
        paths = {each.path for each in commands}
        begun = Trace.of_module(paths.pop(), names, tables) if len(commands) > 1 and len(paths) == 1 else None
        runs = [
            (entry, self._without_other_modes(entry, Trace.from_entry(entry, names, tables, begun)))
            for entry in entries
        ]
        started = next((run.functions for entry, run in runs if entry.function is None), frozenset())
        for entry, run in runs:
            # A command that the module's own __main__ block calls is part of that trace.
            if entry.function is None or entry.function not in started:
                yield entry, run

    def _without_other_modes(self, entry: Entry, run: Trace) -> Trace:
        """The trace of an entry point without what the attributes that say its mode rule out."""
        flags = mode_flags(self, run)
        return Trace.from_entry(entry, self.resolver, self._tables, flags=flags) if flags else run

    def trace_in_worker(self, functions: tuple[str, ...], receiver: str = "") -> Trace:
        """The trace of functions that a loader's worker calls, methods on an object of the receiver's class."""
        return Trace(self.resolver, self._tables, functions, mode="worker", receiver=receiver)

    def trace_of(self, function: str) -> Trace:
        """The trace of one function, or of a module's top level (``path:``)."""
        return Trace(self.resolver, self._tables, (function,), main=is_module(function))


class Context(Record, frozen=True):
    """The module under check and its project; ``path`` has slashes and is relative to the project's root."""

    path: str
    tree: SyntaxTree
    lines: Lines
    project: Traces
    catalogue: Catalogue
    settings: Settings

    @property
    def database(self) -> Database:
        """The database of the project: what a rule asks of all files may be a query, whose answer does not depend on ``path``."""
        return self.project.database


def mode_flags(project: Traces, run: Trace) -> Mapping[str, bool]:
    """The attributes by which a program says in which mode it runs: an object of a class of its own sets one to a truth value, some
    store hands it on to another object, ``opt.is_train = self.is_train``, and all others of its files set the same value, but for
    methods of classes that it does not reach. Path conditions on them are decided.
    """
    functions = run.functions
    with project.database.reads.untracked():  # what is not asked below is of other files, and decides nothing
        setters = sorted(each for each in _flag_setters(project) if each[0] in functions)
    if not setters:
        return {}
    files = [_attribute_stores(project, path) for path in sorted(run.paths)]
    owners = {"", *map(project.resolver.owner, functions)}
    handed = {word for stores in files for function, word in stores.handed if function in functions}
    found: dict[str, bool] = {}
    for function, word in (each for each in setters if each[1] in handed):
        # A base from elsewhere may set it, too, as ``torch.nn.Module`` does ``training``.
        bases = project.resolver.ancestry(project.resolver.owner(function))
        if all(in_project(each) or each == "builtins.object" for each in bases):
            stored = (each for stores in files for each in stores.of.get(word, ()))
            values = {value for of, value in stored if project.resolver.owner(of) in owners}
            if len(values) == 1 and ... not in values and not any(word in stores.other for stores in files):
                found[word] = True in values
    return found


@query(cutoff=True)
def _flag_setters(project: Traces) -> frozenset[tuple[str, str]]:
    """The methods of the project that set an attribute to a truth value which some function hands on to another object, with its name."""
    files = [_attribute_stores(project, path) for path in sorted(project.files)]
    handed = {word for each in files for _, word in each.handed}
    return frozenset(pair for each in files for pair in each.flags if pair[1] in handed)


class _AttributeStores(Record, frozen=True):
    """What the functions of a file store in attributes: each word, with each function and the truth value that it stores, or ``...``;
    the methods that store a truth value in an attribute of ``self``, the functions that hand an attribute of one object on to another;
    and the words that get a value in ``other`` ways: at the top level, as a field of a class, as an option, as an argument.
    """

    of: Mapping[str, tuple[tuple[str, object], ...]]
    flags: frozenset[tuple[str, str]]
    handed: frozenset[tuple[str, str]]
    other: frozenset[str]


@query(cutoff=True)
def _attribute_stores(project: Traces, path: str) -> _AttributeStores:
    facts, found = project.files[path], dict[str, list[tuple[str, object]]]()
    flags, handed = set[tuple[str, str]](), set[tuple[str, str]]()
    for function in facts.functions:
        name = path + function.name
        for place, value in _stores(function.body):
            word = place.path[-1]
            if isinstance(value, Ref) and value.path[-1:] == (word,):
                handed.add((name, word))
                continue
            truth = value.value if isinstance(value, Constant) and isinstance(value.value, bool) else ...
            found.setdefault(word, []).append((name, truth))
            if truth is not ... and place.path == (word,) and any(map(is_self, place.roots)):
                flags.add((name, word))
    fields = map(simple_name, (each for each in facts.assigned if "." in each and not is_local(each)))
    module = (place.path[-1] for place, _ in _stores(facts.body))
    other = frozenset((*fields, *facts.summary.options, *facts.summary.keywords, *module))
    of = {word: tuple(stores) for word, stores in found.items()}
    return _AttributeStores(of, frozenset(flags), frozenset(handed), other)


def _stores(body: tuple[Statement, ...]) -> Iterator[tuple[Ref, Expression | None]]:
    """The attributes that statements store, each with the value; None for one that is not known, or computed from the value before."""
    for statement in statements(body):
        if isinstance(statement, Assign) and statement.value is not None:
            for target in statement.targets:
                for place, part, steps in unpack(target, statement.value):
                    if isinstance(place, Ref) and place.path:
                        yield place, part if statement.op in ("=", ":") and not steps else None


def may_change(project: ProgramIndex, owner: str, word: str, paths: Iterable[str]) -> bool:
    """Whether an attribute of a class's objects may be set in other ways than by ``self.word = value`` of its methods, in some files."""
    names = project.resolver
    family = [*filter(in_project, (*names.ancestry(owner), *names.subclasses(owner)))]
    return (
        any(how != "=" for each in family for how, _, _ in names.stored_attributes(each, word))
        or any(ANY_ATTRIBUTE in attributes_set(names, path_of(each)) for each in family)
        or any(word in attributes_set(names, path) for path in paths)
    )
