"""Symbols of a project: what files define by full name, and the events of their bodies.

Of several definitions of a function in one block the last is in effect. A file is looked into when one of its names is asked for;
the events of its bodies are remembered here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from torchrepro_lint.query.memo_tables import DependencyTracker, LruTable
from torchrepro_lint.resolve.search_path import places_of
from torchrepro_lint.syntax.binding import takes_receiver
from torchrepro_lint.syntax.control_flow import Event, StaticContext, events
from torchrepro_lint.syntax.definitions import (
    EACH,
    ITEM,
    ContainerUpdate,
    Keys,
    MutationSites,
    attribute_stores,
    mutation_sites,
)
from torchrepro_lint.syntax.nodes import (
    Arg,
    AssignedValues,
    Call,
    Class,
    Collection,
    Comprehension,
    Constant,
    DefinitionStatement,
    Expression,
    Function,
    Operation,
    Param,
    Record,
    Ref,
    Statement,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import (
    Symbol,
    Value,
    is_module,
    path_of,
    qualname_of,
    split_local,
    split_name,
)
from torchrepro_lint.syntax.summary import is_property
from torchrepro_lint.syntax.visitor import blocks, bodies, is_starred


def effective_definitions(facts: SyntaxTree) -> Iterator[Function]:
    """The functions of a file without those that a later ``def`` in the same block redefines.

    Decorated ones all stay: a property's setter, an overload or a registered variant adds to the first.
    """
    counts: dict[str, int] = {}
    for function in facts.functions:
        counts[function.name] = counts.get(function.name, 0) + 1
    repeated = {name for name, count in counts.items() if count > 1}
    replaced = _redefined(facts, repeated) if repeated else frozenset()
    yield from (each for each in facts.functions if each.start not in replaced or each.decorators)


def _redefined(facts: SyntaxTree, names: set[str]) -> frozenset[int]:
    """The offsets of ``def`` statements that a later one of the same name and block redefines."""
    found: set[int] = set()
    queue = [*bodies(facts)]
    while queue:
        body: tuple[Statement, ...] = queue.pop()
        last: dict[str, int] = {}
        for statement in body:
            if isinstance(statement, DefinitionStatement) and statement.name in names:
                if statement.name in last:
                    found.add(last[statement.name])
                last[statement.name] = statement.start
            queue.extend(blocks(statement))
    return frozenset(found)


def is_local_change(path: str, before: SyntaxTree, after: SyntaxTree) -> bool:
    """Whether a change of a file leaves alone what is computed from all files together: the search path, the words of options
    and properties, and the registries.
    """
    fields = ("options", "properties", "tables")
    same = all(getattr(before.summary, each) == getattr(after.summary, each) for each in fields)
    return same and places_of(path, before) == places_of(path, after)


class TrackedFiles(dict[str, SyntaxTree]):
    """The syntax trees of files by path; each access records a dependency on the file."""

    def __init__(self, files: Mapping[str, SyntaxTree], reads: DependencyTracker) -> None:
        super().__init__(files)
        self._reads = reads

    def __getitem__(self, path: str) -> SyntaxTree:
        self._reads.dependencies |= self._reads.bits.get(path, 0)
        return super().__getitem__(path)

    def get(self, path: str, default: SyntaxTree | None = None) -> SyntaxTree | None:  # type: ignore[override]
        """The syntax tree of a file, if it is there."""
        self._reads.record_read(path)
        return super().get(path, default)

    def peek(self, path: str) -> SyntaxTree:
        """The syntax tree of a file, without a dependency: for queries over all files."""
        return super().__getitem__(path)


class Parameter(NamedTuple):
    """A parameter of a function, and its position among all of them."""

    function: Function
    param: Param
    position: int

    @property
    def is_receiver(self) -> bool:
        """Whether it is the receiver of a method: the object, or the class."""
        return self.position == 0 and takes_receiver(self.function)


class _Table(Record, frozen=True):
    """The definitions of a file by their names in it: ``Net.forward``, those of variables with their colon."""

    functions: Mapping[str, tuple[Function, ...]]
    classes: Mapping[str, tuple[Class, ...]]
    assigned: Mapping[str, AssignedValues]


_NOTHING = _Table({}, {}, {})


class _Definition(Record, frozen=True):
    """What a symbol names in its file, at ``path``."""

    path: str
    functions: tuple[Function, ...] = ()
    classes: tuple[Class, ...] = ()
    assigned: AssignedValues = ()


_OUTSIDE = _Definition("")


class Definitions:
    """The symbols of a project by ``path:name``; an unknown name gives nothing."""

    def __init__(self, files: Mapping[str, SyntaxTree], reads: DependencyTracker) -> None:
        self._files = files
        self.reads = reads
        self._keeps = reads.incremental  # asked for at every name
        self._tables: dict[str, _Table] = {}
        # By symbol: each is asked for again and again.
        self._found: dict[Symbol, _Definition] = {}
        self._outlines: dict[str, dict[str, tuple[Expression, ...]]] = {}

    def bodies(self, name: Symbol) -> tuple[tuple[Statement, ...], ...]:
        """The bodies of the definitions of a function; of a module (``path:``) its top-level statements."""
        return tuple(each.body for each in self.functions(name)) or (self._files[path_of(name)].body,)

    def facts(self, path: str) -> SyntaxTree:
        """All that is known of a file of the project."""
        self.reads.record_read(path)
        return self._files[path]

    def functions(self, name: Value) -> tuple[Function, ...]:
        """The definitions of a function that are in effect."""
        return self._of(name).functions

    def classes(self, name: Value) -> tuple[Class, ...]:
        """The definitions of a class."""
        return self._of(name).classes

    def assigned(self, name: Symbol) -> AssignedValues:
        """The assignments of a variable, as ``SyntaxTree.assigned`` has them; a variable has at least one."""
        return self._of(name).assigned

    def parameter(self, name: Symbol) -> Parameter | None:
        """The parameter that a variable (``path:f.<locals>.x``) is, of the last definition that has it."""
        function, word = split_local(name)
        for definition in reversed(self.functions(function)) if function else ():
            for position, param in enumerate(definition.params):
                if param.name == word:
                    return Parameter(definition, param, position)
        return None

    def defines(self, name: Value) -> bool:
        """Whether a name is a function or class of the project."""
        path, colon, own = split_name(name)
        if not colon or own in self._outline(path):
            return bool(colon)
        table = self._table(path)
        return own in table.functions or own in table.classes

    def is_in_summary(self, name: Value) -> bool:
        """Whether a name is a class, or a function at the top level, by its file's summary."""
        path, colon, own = split_name(name)
        return bool(colon) and own in self._outline(path)

    def bases(self, name: Value) -> tuple[Expression, ...]:
        """The bases of a class of the project, of all its definitions."""
        path, colon, own = split_name(name)
        return self._outline(path).get(own, ()) if colon else ()

    def forget(self, path: str) -> None:
        """Drop the tables of a changed file."""
        self._found.clear()
        self._tables.pop(path, None)
        self._outlines.pop(path, None)

    def _outline(self, path: str) -> dict[str, tuple[Expression, ...]]:
        """The functions and classes in a file's summary; classes with their bases."""
        if self._keeps:
            self.reads.record_read(path)
        outline = self._outlines.get(path)
        if outline is None:
            facts = self._files.get(path)
            if facts is None:
                return {}
            outline = self._outlines[path] = {qualname_of(name): () for name in facts.summary.functions}
            for name, bases in facts.summary.classes:
                own = qualname_of(name)
                outline[own] = outline.get(own, ()) + bases
        return outline

    def _of(self, name: Value) -> _Definition:
        found = self._found.get(name)
        if found is None:
            path, colon, own = split_name(name)
            if not colon:
                return _OUTSIDE
            table = self._table(path)
            found = _Definition(
                path, table.functions.get(own, ()), table.classes.get(own, ()), table.assigned.get(colon + own, ())
            )
            if table is not _NOTHING:
                self._found[name] = found
        if self._keeps:
            self.reads.record_read(found.path)
        return found

    def _table(self, path: str) -> _Table:
        table = self._tables.get(path)
        if table is None:
            facts = self._files.get(path)
            if facts is None:
                return _NOTHING
            table = self._tables[path] = _table(facts)
        return table


def _entries_written(display: Collection, keys: Keys) -> Iterator[tuple[Expression, Keys]]:
    """What a display has under the first of some keys."""
    key, rest, items = keys[0], keys[1:], display.items
    if display.kind == "dict":
        for name, item in zip(items[::2], items[1::2], strict=True):
            taken = name if key is EACH and name is not None else item
            fits = key in (ITEM, EACH) or not isinstance(name, Constant) or name.value == key
            if taken is not None and fits:
                yield taken, keys if name is None else rest
        return
    exact = isinstance(key, int) and not any(map(is_starred, items))
    for item in items[key : key + 1 or None] if exact and isinstance(key, int) else items:
        if isinstance(item, Operation) and is_starred(item):
            yield item.operands[0], keys
        elif item is not None:
            yield item, rest


def _entries_of(change: ContainerUpdate, keys: Keys) -> Iterator[tuple[Expression, Keys]]:
    """What an in-place update of a container puts under the first of some keys."""
    key, rest = keys[0], keys[1:]
    if change.kind in ("set", "default") and change.value is not None:
        yield from ((change.value, rest),) if change.key is None or key in (change.key, ITEM) else ()
    elif change.kind == "add" and change.value is not None:
        yield from ((change.value, rest),) if not isinstance(key, str) else ()
    elif change.kind == "join" and change.value is not None:
        yield change.value, (ITEM, *rest) if isinstance(key, int) else keys
    yield from _entries_of_arguments(change.args, keys) if change.kind == "merge" else ()


def _entries_of_arguments(args: Iterable[Arg], keys: Keys) -> Iterator[tuple[Expression, Keys]]:
    """What a call of ``dict`` or ``update`` with these arguments puts under the first of some keys: from keywords, a mapping or pairs."""
    for arg in args:
        if not arg.keyword:
            yield arg.value, keys
            yield from ((arg.value, (EACH, 1, *keys[1:])),) if keys[0] is not EACH and not arg.star else ()
        elif keys[0] in (arg.keyword, ITEM):
            yield arg.value, keys[1:]


def _table(facts: SyntaxTree) -> _Table:
    functions: dict[str, list[Function]] = {}
    for function in effective_definitions(facts):
        functions.setdefault(qualname_of(function.name), []).append(function)
    classes: dict[str, list[Class]] = {}
    for each in facts.classes:
        classes.setdefault(qualname_of(each.name), []).append(each)
    return _Table(
        {name: tuple(each) for name, each in functions.items()},
        {name: tuple(each) for name, each in classes.items()},
        facts.assigned,
    )


# The events of all bodies of a project take a sixth of the memory of its trees, so only the most recently used are kept.
_CACHED_BODIES = 5_000


class EventCache:
    """The events of functions and modules, for a target torch; reading one of the ``properties`` runs code."""

    def __init__(self, definitions: Definitions, properties: frozenset[str], torch: str) -> None:
        self._definitions = definitions
        self._imported = StaticContext(False, torch, properties)
        self._started = StaticContext(True, torch, properties)
        most = None if definitions.reads.early_cutoff else _CACHED_BODIES
        # By file and first statement, which identifies a body.
        self._known: LruTable[tuple[str, tuple[Statement, ...], bool], tuple[Event, ...]] = LruTable(most)
        self._mutations: dict[str, MutationSites] = {}
        self._stores: dict[str, dict[str, list[tuple[Ref, Expression]]]] = {}

    def of(self, name: Symbol, *, main: bool = False) -> tuple[Event, ...]:
        """The events of a function (of all its definitions), or of a module (``path:``), with ``main`` as ``__main__``.

        A property has the events of its getter: a setter or deleter is another definition of that name.
        """
        if is_module(name):
            return self.of_body(path_of(name), *self._definitions.bodies(name), main=main)
        definitions = self._definitions.functions(name)
        if len(definitions) > 1:
            definitions = tuple([each for each in definitions if is_property(each)]) or definitions
        found = [self.of_body(path_of(name), each.body) for each in definitions]
        return found[0] if len(found) == 1 else tuple(event for each in found for event in each)

    def of_body(self, path: str, body: tuple[Statement, ...], *, main: bool = True) -> tuple[Event, ...]:
        """The events of one body of a file."""
        key = path, body[:1], main
        found: tuple[Event, ...] | None = self._known.get(key)
        if found is None:
            found = self._known[key] = events(body, self._started if main else self._imported)
        return found

    def added(self, path: str, ref: Ref) -> Iterator[Expression]:
        """The items, or lists of items, that a file adds to a list in a variable or an attribute."""
        for change in self.updates(path, ref):
            if change.kind in ("add", "join") and change.value is not None:
                yield change.value

    def entries(self, path: str, container: Expression, keys: Keys) -> Iterator[tuple[Expression, Keys]]:
        """What a display, or the statements that store in a variable, have under the first of some keys, each with the keys that are left."""
        match container:
            case Collection():
                yield from _entries_written(container, keys)
            case Comprehension(elements=elements):
                yield elements[0 if keys[0] is EACH else -1], keys[1:]
            case Call(func=Ref(roots=("builtins.dict",), path=()) | Ref(path=("OrderedDict",)), args=args):
                yield from _entries_of_arguments(args, keys)
            case Ref():
                for change in self.updates(path, container):
                    yield from _entries_of(change, keys)

    def stored(self, path: str, ref: Ref) -> Iterator[Expression]:
        """The entries that a file stores in a dictionary, or an element of a list, in a variable or an attribute."""
        for change in self.updates(path, ref):
            if change.kind in ("set", "default") and change.value is not None:
                yield change.value
            yield from (arg.value for arg in change.args)

    def updates(self, path: str, ref: Ref) -> Iterator[ContainerUpdate]:
        """The in-place updates of a container in a variable or an attribute of a file."""
        if path not in self._mutations:
            self._mutations[path] = mutation_sites(self._definitions.facts(path))
        for root in ref.roots:
            yield from (change for _, change in self._mutations[path].get((root, ref.path), ()))

    def attribute_stores(self, path: str, word: str) -> Sequence[tuple[Ref, Expression]]:
        """The stores of a file to an attribute of objects other than ``self``: the targets, with the values."""
        if path not in self._stores:
            found = self._stores[path] = {}
            for target, value in attribute_stores(self._definitions.facts(path)):
                found.setdefault(target.path[-1], []).append((target, value))
        self._definitions.reads.record_read(path)
        return self._stores[path].get(word, ())

    def forget(self, path: str, facts: SyntaxTree) -> None:
        """Drop the events of a changed file, which had this tree."""
        self._mutations.pop(path, None)
        self._stores.pop(path, None)
        for body in bodies(facts):
            for main in (True, False):
                self._known.pop((path, body[:1], main))
