"""Symbols and the class hierarchy: what files define by full name, and base classes, subclasses and inherited methods.

Of several definitions of a function in one block the last is in effect. A file is looked into when one of its names is asked for;
the events of its bodies are remembered here. The hierarchy is the lowest layer of ``Names``: a base is an expression, and what that
stands for is asked of the layers above.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import NamedTuple

from torchrepro_lint.query import limits
from torchrepro_lint.query.database import query
from torchrepro_lint.query.fixpoint import TablingSolver
from torchrepro_lint.query.memo_tables import DependencyTracker, LruTable, MemoTable, with_tuples
from torchrepro_lint.resolve.imports import ImportResolver
from torchrepro_lint.syntax.control_flow import Event, StaticContext, events
from torchrepro_lint.syntax.definitions import MutationSites, instance_assignments, mutation_sites
from torchrepro_lint.syntax.nodes import (
    AssignedValues,
    Class,
    DefinitionStatement,
    Expression,
    Function,
    Param,
    Ref,
    Statement,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import (
    Root,
    Symbol,
    Value,
    class_below,
    class_of,
    in_project,
    instance_value,
    is_module,
    is_super,
    path_of,
    qualname_of,
    simple_name,
    split_local,
    split_name,
)
from torchrepro_lint.syntax.summary import is_property
from torchrepro_lint.syntax.visitor import blocks, bodies, returned_values


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


class Parameter(NamedTuple):
    """A parameter of a function, and its position among all of them."""

    function: Function
    param: Param
    position: int


class _Table(NamedTuple):
    """The definitions of a file by their names in it: ``Net.forward``, those of variables with their colon."""

    functions: Mapping[str, tuple[Function, ...]]
    classes: Mapping[str, tuple[Class, ...]]
    assigned: Mapping[str, AssignedValues]


_NOTHING = _Table({}, {}, {})


class Definitions:
    """The symbols of a project by ``path:name``; an unknown name gives nothing."""

    def __init__(self, files: Mapping[str, SyntaxTree], reads: DependencyTracker) -> None:
        self._files = files
        self.reads = reads
        self._keeps = reads.incremental  # asked for at every name
        self._tables: dict[str, _Table] = {}
        self._outlines: dict[str, dict[str, tuple[Expression, ...]]] = {}

    def top_level(self, module: Symbol) -> tuple[Statement, ...]:
        """The top-level statements of a module (``path:``)."""
        return self._files[path_of(module)].body

    def facts(self, path: str) -> SyntaxTree:
        """All that is known of a file of the project."""
        self.reads.record_read(path)
        return self._files[path]

    def functions(self, name: Value) -> tuple[Function, ...]:
        """The definitions of a function that are in effect."""
        path, colon, own = split_name(name)
        return self._table(path).functions.get(own, ()) if colon else ()

    def classes(self, name: Value) -> tuple[Class, ...]:
        """The definitions of a class."""
        path, colon, own = split_name(name)
        return self._table(path).classes.get(own, ()) if colon else ()

    def assigned(self, name: Symbol) -> AssignedValues | None:
        """The assignments of a variable, as ``SyntaxTree.assigned`` has them; None where it is no variable."""
        path, colon, own = split_name(name)
        return self._table(path).assigned.get(colon + own) if colon else None

    def parameter(self, name: Symbol) -> Parameter | None:
        """The parameter that a variable is, of the last definition that has it."""
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

    def _table(self, path: str) -> _Table:
        if self._keeps:
            self.reads.record_read(path)
        table = self._tables.get(path)
        if table is None:
            facts = self._files.get(path)
            if facts is None:
                return _NOTHING
            table = self._tables[path] = _table(facts)
        return table


def _table(facts: SyntaxTree) -> _Table:
    functions: dict[str, list[Function]] = {}
    for function in effective_definitions(facts):
        functions.setdefault(qualname_of(function.name), []).append(function)
    classes: dict[str, list[Class]] = {}
    for each in facts.classes:
        classes.setdefault(qualname_of(each.name), []).append(each)
    return _Table(with_tuples(functions), with_tuples(classes), facts.assigned)


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

    def of(self, name: Symbol, *, main: bool = False) -> tuple[Event, ...]:
        """The events of a function (of all its definitions), or of a module (``path:``), with ``main`` as ``__main__``.

        A property has the events of its getter: a setter or deleter is another definition of that name.
        """
        if is_module(name):
            return self.of_body(path_of(name), self._definitions.top_level(name), main=main)
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
        if path not in self._mutations:
            self._mutations[path] = mutation_sites(self._definitions.facts(path))
        for root in ref.roots:
            for _, change in self._mutations[path].get((root, ref.path), ()):
                if change.kind in ("add", "join") and change.value is not None:
                    yield change.value

    def stored(self, path: str, ref: Ref) -> Iterator[Expression]:
        """The entries that a file stores in a dictionary, or an element of a list, in a variable or an attribute."""
        if path not in self._mutations:
            self._mutations[path] = mutation_sites(self._definitions.facts(path))
        for root in ref.roots:
            for _, change in self._mutations[path].get((root, ref.path), ()):
                if change.kind in ("set", "default") and change.value is not None:
                    yield change.value
                yield from (arg.value for arg in change.args)

    def forget(self, path: str, facts: SyntaxTree) -> None:
        """Drop the events of a changed file, which had this tree."""
        self._mutations.pop(path, None)
        for body in bodies(facts):
            for main in (True, False):
                self._known.pop((path, body[:1], main))


# The most classes whose instance attributes are kept.
_CACHED_CLASSES = 1_000


class ClassHierarchy(ABC):
    """The definitions of a project, and the inheritance between its classes; results are memoised for its life."""

    def __init__(self, modules: ImportResolver, torch: str) -> None:
        self.modules = modules
        self._torch = torch
        self._definitions = Definitions(modules.files, modules.reads)
        self._attributes: LruTable[str, dict[str, list[tuple[str, str, Expression]]]] = LruTable(
            None if modules.reads.early_cutoff else _CACHED_CLASSES
        )
        self.database = modules.database
        self._memo = TablingSolver(modules.reads)
        # Ancestries that do not depend on a broken cycle.
        self._ancestries: MemoTable[str, tuple[str, ...]] = self.database.table("ancestries", compare=True)
        self.database.invalidates(self._memo)

    @abstractmethod
    def names(self, path: str, expression: Expression) -> tuple[Value, ...]:
        """The names that an expression of a file may stand for, sorted."""

    def isolated(self) -> AbstractContextManager[None]:
        """For results that are computed once, in isolation from open queries; see ``TablingSolver.isolated``."""
        return self._memo.isolated()

    @property
    def in_isolation(self) -> bool:
        """Whether such a computation is running: subclasses and registries are then empty."""
        return self._memo.in_isolation

    # --- definitions -------------------------------------------------------------------------------------------------

    def functions(self, name: Value) -> tuple[Function, ...]:
        """The definitions of a function of the project; none where it is no such name."""
        return self._definitions.functions(name)

    def classes(self, name: Value) -> tuple[Class, ...]:
        """The definitions of a class of the project."""
        return self._definitions.classes(name)

    def is_in_summary(self, name: Value) -> bool:
        """Whether a name is known to be a function or class of the project without a look into its file."""
        return self._definitions.is_in_summary(name)

    def names_from_summary(
        self, path: str, roots: tuple[Root, ...], words: tuple[str, ...]
    ) -> tuple[Value, ...] | None:
        """``names`` of a reference by the summaries of files alone; None where that takes more."""
        found: set[str] = set()
        for root in roots:
            for name in self.modules.resolve(path, root):
                _, colon, rest = split_name(name)
                if colon and (words or (rest and not self._definitions.is_in_summary(name))):
                    return None
                found.add(".".join((name, *words)))
        return tuple(sorted(found)) if roots else None

    def defined_in(self, path: str) -> Iterator[Symbol]:
        """The functions and classes that a module has, its own and imported ones."""
        for file in self.modules.starred(path):
            for _, names in self.modules.files[file].exports:
                for name in names:
                    yield from (found for found in self.modules.resolve(file, name) if self._definitions.defines(found))

    def all_classes(self) -> Iterator[Symbol]:
        """The names of all classes of the project."""
        for path in sorted(self.modules.files):
            yield from dict.fromkeys(path + each for each, _ in self.modules.summary(path).classes)

    def assigned(self, variable: Symbol) -> tuple[tuple[str, Expression], ...]:
        """The assignments of a variable of the project, as ``SyntaxTree.assigned`` has them."""
        return self._definitions.assigned(variable) or ()

    def parameter(self, name: Symbol) -> Parameter | None:
        """The parameter that a variable of the project (``path:f.<locals>.x``) is; None for another."""
        return self._definitions.parameter(name)

    def owner(self, function: Symbol) -> Symbol:
        """The class of the project that a function is a method of; empty for another."""
        path = path_of(function)
        return next((f"{path}{each.owner}" for each in self.functions(function) if each.owner), "")

    def is_generator(self, name: Symbol) -> bool:
        """Whether a function of the project runs only as its result is iterated or entered."""
        return any(function.generator for function in self.functions(name))

    def is_property(self, name: Symbol) -> bool:
        """Whether a method of the project is run by reading it."""
        return any(is_property(function) for function in self.functions(name))

    @cached_property
    def property_words(self) -> frozenset[str]:
        """The short names of all properties of the project."""
        return frozenset(word for facts in self.modules.files.values() for word in facts.summary.properties)

    @cached_property
    def events(self) -> EventCache:
        """The events of each body of the project."""
        return EventCache(self._definitions, self.property_words, self._torch)

    def return_expressions(self, name: Symbol) -> Iterator[Expression]:
        """The expressions that a function of the project returns."""
        for function in self.functions(name):
            yield from returned_values(function.body)

    # --- inheritance -------------------------------------------------------------------------------------------------

    def ancestry(self, name: Value) -> tuple[Value, ...]:
        """A class and its bases, nearest first: the project's, then those from outside (dotted)."""
        if self._memo.in_isolation:
            return self._find_ancestry(name)
        return self._ancestries.unless_provisional(
            name, lambda: self._memo.with_finality(lambda: self._find_ancestry(name))
        )

    def _find_ancestry(self, name: Value) -> tuple[Value, ...]:
        if not self._definitions.bases(name):
            return (name,)
        order: dict[str, None] = {}
        queue = deque([name])
        while queue and len(order) < limits.MAX_ANCESTORS:
            current = queue.popleft()
            if current in order:
                continue
            order[current] = None
            path = path_of(current)
            for base in self._definitions.bases(current):
                queue += self.names(path, base)
        return tuple(sorted(order, key=in_project, reverse=True))

    def subclass_words(self, name: Symbol) -> list[str]:
        """The short names of the subclasses of a class of the project."""
        return sorted(set(map(simple_name, self.subclasses(name))))

    def subclasses(self, name: Value) -> list[Symbol]:
        """The subclasses of a class of the project, direct or not."""
        return [] if self.in_isolation else self._subclasses.get(name, [])

    @cached_property
    def _subclasses(self) -> dict[Value, list[Symbol]]:
        found: dict[str, list[str]] = {}
        with self.isolated():
            for each in self.all_classes():
                for base in self.above(each):
                    found.setdefault(base, []).append(each)
        return found

    @query(durable="above")
    def above(self, name: Symbol) -> tuple[Value, ...]:
        """The bases of a class, direct or not, where they are computed in isolation (see ``TablingSolver.isolated``)."""
        return self._find_ancestry(name)[1:]

    def methods(self, owner: Value, word: str) -> tuple[Value, ...]:
        """Method resolution: the function that ``owner().word`` runs, one of the project or dotted names of outside bases.

        ``Net.<super>`` as the owner starts above ``Net``.
        """
        outside = []
        above = is_super(owner)
        for each in self.ancestry(class_below(owner))[above:]:
            if not in_project(each):
                outside.append(f"{instance_value(each)}.{word}")
            for definition in self.classes(each):
                methods = dict(definition.methods)
                if word in methods:
                    return (path_of(each) + methods[word],)
        return tuple(outside)

    def call_methods(self, owner: Value) -> tuple[Symbol, ...]:
        """The methods of the project that calling an object of a class runs, which may be given instead: ``__call__``, or a module's
        ``forward``.
        """
        for word in ("__call__", "forward"):
            own = tuple(name for name in self.methods(class_of(owner), word) if self.functions(name))
            if own:
                return own
        return ()

    def public_methods(self, name: Value) -> Iterator[Symbol]:
        """The methods of a class, or of an object of it, that a command line offers, with its constructor."""
        for definition in self.classes(class_of(name)):
            path = path_of(name)
            yield from (path + method for word, method in definition.methods if word == "__init__" or word[0] != "_")

    def methods_like(self, owner: Symbol, words: re.Pattern[str]) -> Iterator[Symbol]:
        """The methods of a class, and of its bases in the project, whose words fit, the class's own first."""
        seen: set[str] = set()
        for each in self.ancestry(owner):
            for definition in self.classes(each):
                path = path_of(each)
                for word, name in definition.methods:
                    if words.fullmatch(word) and word not in seen:
                        yield path + name
                seen.update(word for word, _ in definition.methods)

    def instance_attributes(self, owner: Symbol) -> Mapping[str, Sequence[tuple[str, str, Expression]]]:
        """The attribute store of a class, what its methods assign to ``self``: word → (how, method, value)."""
        self.modules.reads.record_read(path_of(owner))
        known: dict[str, list[tuple[str, str, Expression]]] | None = self._attributes.get(owner)
        if known is None:
            known = self._attributes[owner] = {}
            path = path_of(owner)
            for definition in self.classes(owner):
                for _, method in definition.methods:
                    for function in self.functions(path + method):
                        for word, how, value in instance_assignments(function):
                            known.setdefault(word, []).append((how, path + method, value))
        return known

    def attribute_values(self, owner: Symbol, word: str) -> Iterator[tuple[str, Expression]]:
        """The values of an attribute of a class's objects, assigned in its methods or body, each with its file."""
        for each in self.ancestry(owner):
            if in_project(each):
                path = path_of(each)
                for how, _, value in self.instance_attributes(each).get(word, ()):
                    if how == "=":
                        yield path, value
                for how, value in self.assigned(f"{each}.{word}"):
                    if how == "=":
                        yield path, value
