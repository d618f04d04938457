"""The class hierarchy: base classes, subclasses and inherited methods.

It is the lowest layer of ``Names``: a base is an expression, and what that stands for is asked of the layers above.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TypeVar

from torchrepro_lint import limits
from torchrepro_lint.query.database import query
from torchrepro_lint.query.memo_tables import LruTable
from torchrepro_lint.query.tabling import SetEquations
from torchrepro_lint.resolve.definitions import Definitions, EventCache
from torchrepro_lint.resolve.imports import ImportResolver
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import is_classmethod, takes_receiver
from torchrepro_lint.syntax.definitions import Keys, instance_assignments
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Constant,
    Expression,
    ExpressionStatement,
    Function,
    Ref,
)
from torchrepro_lint.syntax.qualified_names import (
    Root,
    Symbol,
    Value,
    class_below,
    class_of,
    in_project,
    instance_value,
    is_super,
    local_symbol,
    path_of,
    simple_name,
    split_name,
)
from torchrepro_lint.syntax.summary import is_property
from torchrepro_lint.syntax.visitor import is_none, returned_values, statements, text_parts

_Answer = TypeVar("_Answer")

# Names lead to values, values to calls, and these to names again.
NAMES = SetEquations()
# The most classes whose instance attributes are kept.
_CACHED_CLASSES = 1_000
# Classes of networks from outside the project, of torch and of frameworks.
_MODULE_CLASS = lazy_pattern(
    r"torch\.nn\.(modules\.(\w+\.)*)?(?!(Uninitialized)?(Parameter|Buffer)$)[A-Z]\w*|torch\.jit\.ScriptModule|"
    r"(\w+\.)+(LightningModule|PreTrainedModel|ModelMixin|BaseModule)"
)


class ClassHierarchy(Definitions, ABC):
    """The definitions of a project, and the inheritance between its classes; results are memoised for its life."""

    def __init__(self, modules: ImportResolver, torch: str) -> None:
        super().__init__(modules.files, modules.reads)
        self.modules = modules
        self._torch = torch
        most = None if modules.reads.early_cutoff else _CACHED_CLASSES
        self._attributes: LruTable[str, dict[str, list[tuple[str, str, Expression]]]] = LruTable(most)
        self.database = modules.database
        self._solver = self.database.solver(NAMES)

    # --- asked of the layers above -----------------------------------------------------------------------------------

    @abstractmethod
    def names(self, path: str, expression: Expression) -> tuple[Value, ...]:
        """The names that an expression of a file may stand for, sorted."""

    @abstractmethod
    def receiver(self, path: str, func: Expression) -> Iterator[Value]:
        """The names of the receiver of the method ``func``; for a function of a module, the module."""

    @abstractmethod
    def follow(self, name: Value, words: tuple[str, ...]) -> tuple[Value, ...]:
        """The names that a chain of attributes of a name may stand for."""

    @abstractmethod
    def values(self, path: str, expression: Expression) -> Iterable[tuple[str, Expression]]:
        """The sources of an expression, each with its file: a variable's values, else the expression itself."""

    @abstractmethod
    def values_through_calls(self, path: str, expression: Expression) -> Iterable[tuple[str, Expression]]:
        """``values``, and for a call of a function of the project the expressions that it returns."""

    @abstractmethod
    def mapped(self, path: str, mapping: Expression, key: str) -> Iterable[tuple[str, Expression]]:
        """What an object of a dictionary class of the project has under a key, each with its file."""

    @abstractmethod
    def object_names(self, path: str, expression: Expression) -> tuple[Value, ...]:
        """The names of the objects that an expression of a file may be; for a method ``net.encode`` of the functions."""

    @abstractmethod
    def literal_texts(self, path: str, key: Expression, *, whole: bool = False) -> tuple[str, ...]:
        """The strings that an expression may be, from literals and from the literals of options; with ``whole`` none, if it may be others."""

    # --- isolation ---------------------------------------------------------------------------------------------------

    def isolated(self) -> AbstractContextManager[None]:
        """For results that are computed once, in isolation from open queries; see ``TablingSolver.isolated``."""
        return self._solver.isolated()

    @property
    def in_isolation(self) -> bool:
        """Whether such a computation is running: subclasses and registries are then empty."""
        return self._solver.in_isolation

    # --- definitions -------------------------------------------------------------------------------------------------

    def names_from_summary(
        self, path: str, roots: tuple[Root, ...], words: tuple[str, ...]
    ) -> tuple[Value, ...] | None:
        """``names`` of a reference by the summaries of files alone; None where that takes more."""
        found: set[str] = set()
        for name, left in self.modules.referents(path, roots, words):
            _, colon, rest = split_name(name)
            if colon and (left or (rest and not self.is_in_summary(name))):
                return None
            found.add(".".join((name, *left)))
        return tuple(sorted(found)) if roots else None

    def defined_in(self, path: str) -> Iterator[Symbol]:
        """The functions and classes that a module has, its own and imported ones: by a star those that ``__all__`` lists, if it does."""
        for file in self.modules.starred(path):
            held = self.assigned(f"{file}:__all__") if file != path else ()
            lists = [each.items for how, each in held if how == "=" and isinstance(each, Collection)]
            listed = (
                {each.value for each in lists[0] if isinstance(each, Constant)} if len(lists) == len(held) == 1 else ()
            )
            for word, names in self.modules.files[file].exports:
                for name in names if not listed or word in listed else ():
                    yield from (found for found in self.modules.resolve(file, name) if self.defines(found))

    def all_classes(self) -> Iterator[Symbol]:
        """The names of all classes of the project."""
        for path in sorted(self.modules.files):
            yield from dict.fromkeys(path + each for each, _ in self.modules.summary(path).classes)

    def starts_at_receiver(self, path: str, ref: Ref) -> bool:
        """Whether a reference starts at the receiver of a method: ``self.name``."""
        parameters = (self.parameter(path + root) for root in ref.roots)
        return any(each is not None and each.is_receiver for each in parameters)

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
        return EventCache(self, self.property_words, self._torch)

    def return_expressions(self, name: Symbol) -> Iterator[Expression]:
        """The expressions that a function of the project returns."""
        for function in self.functions(name):
            yield from returned_values(function.body)

    def final_answer(self, table: str, key: Hashable, compute: Callable[[], _Answer]) -> _Answer:
        """An answer about the project that may be asked for while names are resolved; see ``TablingSolver.final_answer``."""
        return self._solver.final_answer(self.database.table(table, compare=True), key, compute)

    # --- inheritance -------------------------------------------------------------------------------------------------

    def ancestry(self, name: Value) -> tuple[Value, ...]:
        """A class and its bases, nearest first: the project's, then those from outside (dotted)."""
        return self.final_answer("ancestries", name, lambda: self._find_ancestry(name))

    def _find_ancestry(self, name: Value) -> tuple[Value, ...]:
        if not self.bases(name):
            return (name,)
        order: dict[str, None] = {}
        queue = deque([name])
        while queue and len(order) < limits.MAX_ANCESTORS:
            current = queue.popleft()
            if current in order:
                continue
            order[current] = None
            path = path_of(current)
            for base in self.bases(current):
                queue += self.names(path, base)
        return tuple(sorted(order, key=in_project, reverse=True))

    def subclass_words(self, name: Symbol) -> list[str]:
        """The short names of the subclasses of a class of the project."""
        return sorted(set(map(simple_name, self.subclasses(name))))

    def is_generic(self, name: Value) -> bool:
        """Whether a name is a class of which a subscript makes an alias: ``Box[int]`` is ``Box``, and ``Color["RED"]`` a member."""
        return bool(self.classes(name)) and not any(each.startswith("enum.") for each in self.ancestry(name))

    def is_module_class(self, name: Value) -> bool:
        """Whether a class is a network's: torch's ``Module``, one of its layers, a framework's class of networks, or inherits from one."""
        return any(map(_MODULE_CLASS.fullmatch, self.ancestry(name)))

    def without_imported_bases(self, names: Iterable[Value]) -> list[Value]:
        """The names without classes that a module imports as bases of its own ones, which no computed name means."""
        found = list(names)
        above = {base for each in found for base in self.ancestry(each) if path_of(base) != path_of(each)}
        return [each for each in found if each not in above]

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
        return self.final_answer("methods", (owner, word), lambda: self._find_methods(owner, word))

    def _find_methods(self, owner: Value, word: str) -> tuple[Value, ...]:
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

    def is_bound(self, path: str, func: Expression, function: Function) -> bool:
        """Whether a call of ``func`` passes the receiver implicitly, so that its arguments start at the second parameter."""
        if not takes_receiver(function):
            return False
        match func:
            case Ref(path=(*words, _)):
                holders = self.names(path, func._replace(path=tuple(words)))
                return is_classmethod(function) or not holders or not all(map(self.classes, holders))
        return True

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
                        for word, how, value in (*instance_assignments(function), *self._set_by_text(path, function)):
                            known.setdefault(word, []).append((how, path + method, value))
        return known

    def _set_by_text(self, path: str, function: Function) -> Iterator[tuple[str, str, Expression]]:
        """What a method sets on its first parameter by a text, ``setattr(self, f"layer{i}", value)``; nothing if all of it is computed."""
        for key, value in () if _SETTERS.isdisjoint(self.modules.summary(path).calls) else _text_stores(function):
            texts, words = [key], key.path if isinstance(key, Ref) else ()
            for root in key.roots if isinstance(key, Ref) and not words else ():
                texts += (each for how, each in self.assigned(path + root) if how == "=")
            texts += (each for word, how, each in instance_assignments(function) if how == "=" and words == (word,))
            yield from ((word, "=", value) for word in filter(None, map(gapped_text, texts)))

    def stored_attributes(self, owner: Symbol, word: str) -> Sequence[tuple[str, str, Expression]]:
        """What the methods of a class assign to an attribute of ``self``: (how, method, value). An attribute that is set under a
        composed name, ``layer*``, is each that fits where the class has none of its own; a word with gaps is all that fit.
        """
        known = self.instance_attributes(owner)
        if word in known and GAP not in word:
            return known[word]
        return [row for each in known if GAP in each or GAP in word for row in known[each] if may_be_one(each, word)]

    def attribute_values(self, owner: Symbol, word: str) -> Iterator[tuple[str, Expression]]:
        """The values of an attribute of a class's objects, assigned in its methods or body, each with its file; those of
        subclasses where the class leaves it to these: ``PRODUCTS = {}``. A property has what it returns.
        """
        found = [pair for each in self.ancestry(owner) for pair in self._own_values(each, word)]
        for method in filter(self.is_property, self.methods(owner, word) if word in self.property_words else ()):
            found += ((path_of(method), value) for value in self.return_expressions(method))
        below = self.subclasses(owner) if all(_is_left_open(value) for _, value in found) else ()
        if len(below) <= limits.MAX_SUBCLASSES:
            found += [pair for each in below for pair in self._own_values(each, word)]
        return iter(found)

    def _own_values(self, owner: Value, word: str) -> Iterator[tuple[str, Expression]]:
        path, rows = path_of(owner), self.stored_attributes(owner, word) if in_project(owner) else ()
        yield from ((path, value) for how, _, value in rows if how == "=")
        yield from ((path, value) for how, value in self.assigned(f"{owner}.{word}") if how == "=" and path)

    def attribute_entries(self, owner: Symbol, word: str, keys: Keys) -> Iterator[tuple[str, Expression, Keys]]:
        """What the methods of a class store in the container that is an attribute of ``self``; see ``EventCache.entries``."""
        for each in filter(in_project, self.ancestry(owner)):
            path = path_of(each)
            methods = {name for definition in self.classes(each) for _, name in definition.methods}
            for function in (one for name in sorted(methods) for one in self.functions(path + name) if one.params):
                own = local_symbol(function.name, function.params[0].name)
                container = Ref(function.start, function.start, (own,), (word,), function.start)
                yield from ((path, *found) for found in self.events.entries(path, container, keys))


def _is_left_open(value: Expression) -> bool:
    """Whether a value of an attribute only says that there is one: None, or an empty container."""
    return is_none(value) or (isinstance(value, Collection) and not value.items)


# Stands in the name of an attribute for a part that is computed.
GAP = "*"
_METHODS = frozenset({"add_module", "register_module", "__setattr__"})
_SETTERS = frozenset({"setattr", *_METHODS})


def _text_stores(function: Function) -> Iterator[tuple[Expression, Expression]]:
    """The stores to attributes of a method's first parameter that a text names: the text, and the value."""
    own = local_symbol(function.name, function.params[0].name) if function.params else ""
    for statement in statements(function.body) if own else ():
        match statement:
            case ExpressionStatement(value=Call(func=Ref(roots=("builtins.setattr",)), args=(holder, key, given))):
                if isinstance(holder.value, Ref) and own in holder.value.roots and not holder.value.path:
                    yield key.value, given.value
            case ExpressionStatement(value=Call(func=Ref(roots=roots, path=(word,)), args=(key, given))):
                if own in roots and word in _METHODS:
                    yield key.value, given.value


def gapped_text(value: Expression) -> str:
    """A text with gaps for its computed parts, ``layer*``; empty where all of it is computed."""
    if isinstance(value, Constant):
        return value.value if isinstance(value.value, str) else ""
    text = "".join(part if isinstance(part, str) else gapped_text(part) or GAP for part in text_parts(value))
    return text if text.strip(GAP) else ""


def may_be_one(one: str, other: str) -> bool:
    """Whether two texts with gaps may be the same, by their beginnings and ends."""
    (start, end), (begin, stop) = ((text.partition(GAP)[0], text.rpartition(GAP)[2]) for text in (one, other))
    return (start.startswith(begin) or begin.startswith(start)) and (end.endswith(stop) or stop.endswith(end))
