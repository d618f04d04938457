"""Registries, dataclass fields and made arguments: definitions that decorators change.

A registry is a table that a decorator fills: ``NETS[name] = function`` inside ``register``, and ``@register("small")`` elsewhere; or an
object whose method is the decorator, ``@NETS.register_module()``, be its class the project's or a library's. The
fields of a dataclass come in the order in which its constructor takes them. And a decorator may let another function make the
arguments: ``Net(config)`` then constructs ``Net(**Net.from_config(config))``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.call_graph import CallGraph
from torchrepro_lint.resolve.symbols import NAMES, ClassHierarchy
from torchrepro_lint.syntax.binding import known_argument, parameter_argument, receiving_parameters
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Class,
    Collection,
    Constant,
    Expression,
    Function,
    ModuleSummary,
    Record,
    Ref,
    Subscript,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import (
    Symbol,
    Value,
    enclosing_function,
    in_project,
    locals_prefix,
    path_of,
    simple_name,
)
from torchrepro_lint.syntax.visitor import body_expressions


class Registries:
    """The registries of a project."""

    def __init__(self, names: ClassHierarchy) -> None:
        self._names = names
        self.database = names.modules.database

    def fills(self, table: Symbol) -> bool:
        """Whether a variable is a registry."""
        return table in self._fillers or (not self._names.in_isolation and table in self._decorated)

    def entries(self, table: Symbol, words: tuple[str, ...]) -> Iterator[Value]:
        """The functions and classes in a registry (a variable's name): those under ``words``, else all."""
        if self._names.in_isolation:
            return
        registers = (table, *self._fillers.get(table, ()))
        entered = [(key, name) for register in registers for key, name in self._decorated.get(register, ())]
        picked = [name for key, name in entered if key in words]
        yield from picked or (name for _, name in entered)

    def put_aside(self) -> dict[str, list[tuple[str, str]]] | None:
        """Drop the entries of all registries and return them."""
        known: dict[str, list[tuple[str, str]]] | None = vars(self).pop("_decorated", None)
        return known

    def is_still(self, decorated: dict[str, list[tuple[str, str]]]) -> bool:
        """Whether the entries of all registries are these."""
        return decorated == self._decorated

    @cached_property
    def tables(self) -> frozenset[str]:
        """The variables that are registries."""
        return frozenset(self._fillers) if self._decorated else frozenset()

    @cached_property
    def _fillers(self) -> dict[str, list[str]]:
        """For each registry the decorators that store their function in it."""
        found: dict[str, list[str]] = {}
        for path, facts in sorted(self._names.modules.files.items()):
            for table, function in facts.summary.tables:
                found.setdefault(f"{path}{table}", []).append(f"{path}{function}")
        return found

    @cached_property
    def _decorated(self) -> dict[str, list[tuple[str, str]]]:
        """For each such decorator the keys and names of the definitions that it decorates."""
        with self._names.isolated():
            return self._find_decorated()

    def _find_decorated(self) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {}
        for path in sorted(self._names.modules.files):
            if not self._registers and not registers_by_method(self._names.modules.summary(path)):
                continue
            for register, key, name in self.decorated(path):
                found.setdefault(register, []).append((key, name))
        return found

    @cached_property
    def _registers(self) -> set[str]:
        """The decorators that store their function in a registry."""
        return {register for registers in self._fillers.values() for register in registers}

    @query(durable="decorated")
    def decorated(self, path: str) -> tuple[tuple[str, str, str], ...]:
        """The definitions of a file that register themselves: by which decorator, under which key, and the name."""
        return tuple(self._find_decorated_in(path, self._registers))

    def _find_decorated_in(self, path: str, registers: set[str]) -> Iterator[tuple[str, str, str]]:
        facts = self._names.modules.files[path]
        by_method = registers_by_method(facts.summary)
        if not by_method and not self._may_decorate(path, facts, registers):
            return
        definitions: tuple[Function | Class, ...] = (*facts.functions, *facts.classes)
        for definition in definitions:
            for decorator in definition.decorators:
                called = decorator.func if isinstance(decorator, Call) else decorator
                found = registers.intersection(self._names.names(path, called)) if registers else set()
                for name in sorted({*found, *(self._holders(path, called) if by_method else ())}):
                    yield (
                        name,
                        _key(decorator) or simple_name(definition.name),
                        path + definition.name,
                    )

    def _holders(self, path: str, called: Expression) -> Iterator[str]:
        """The variables whose method a decorator ``NETS.register`` is."""
        if isinstance(called, Ref) and called.path[-1:] and called.path[-1].startswith(_REGISTER):
            for root in called.roots:
                for name in self._names.modules.resolve(path, root):
                    yield ".".join((name, *called.path[:-1]))

    def _may_decorate(self, path: str, facts: SyntaxTree, registers: set[str]) -> bool:
        """Whether a file may use one of ``registers`` as a decorator, by its summary."""
        seen = (self._names.names_from_summary(path, roots, words) for roots, words in facts.summary.decorators)
        return any(found is None or not registers.isdisjoint(found) for found in seen)


_REGISTER = "registe"  # also ``NETS.registe_with_name``, which detectors copy from one another


def registers_by_method(summary: ModuleSummary) -> bool:
    """Whether a file decorates definitions with a method of a registry."""
    return any(words and words[-1].startswith(_REGISTER) for _, words in summary.decorators)


def _key(decorator: Expression) -> str:
    if isinstance(decorator, Call) and decorator.args and isinstance(decorator.args[0].value, Constant):
        return given if isinstance((given := decorator.args[0].value.value), str) else ""
    return ""


# The name of what a decorator is applied to, where its wrapper calls that: the decorated functions are entered by their own names.
DECORATED = "functools.wraps()"


def is_decorated_function(names: ClassHierarchy, call_graph: CallGraph, path: str, called: Ref) -> bool:
    """Whether a callee is the first parameter of a decorator of the project: ``function(...)`` in the wrapper that takes its place."""
    found = [names.parameter(path + root) for root in called.roots] if not called.path else []
    return any(
        each is not None
        and each.position == 0
        and not each.function.owner
        and _is_decorator(names, call_graph, path + each.function.name)
        for each in found
    )


def _is_decorator(names: ClassHierarchy, call_graph: CallGraph, function: Symbol) -> bool:
    """Whether definitions of the project are decorated with a function, or with what a function around it returns."""
    outer = enclosing_function(function)
    named = {each: simple_name(each) for each in (function, outer) if each}
    for path in sorted(call_graph.naming(named.values())):
        facts = names.modules.files[path]
        definitions: tuple[Function | Class, ...] = (*facts.functions, *facts.classes)
        decorators = (decorator for definition in definitions for decorator in definition.decorators)
        if any(function in names.names(path, decorator) for decorator in decorators):
            return True
    return False


class DataclassFields(Record, frozen=True):
    """The fields of a dataclass: as variables (``a.py:Options.rows``), those of its bases first, and their words, each once."""

    variables: tuple[Symbol, ...]
    words: tuple[str, ...]


def dataclass_fields(names: ClassHierarchy, owner: Symbol) -> DataclassFields:
    """The fields of a dataclass; none for other classes."""
    return names.final_answer("dataclass fields", owner, lambda: _find_fields(names, owner))


def _find_fields(names: ClassHierarchy, owner: Symbol) -> DataclassFields:
    found = tuple(field for each in reversed(names.ancestry(owner)) for field in _own(names, each))
    return DataclassFields(found, tuple(dict.fromkeys(map(simple_name, found))))


def _own(names: ClassHierarchy, owner: Value) -> Iterator[Symbol]:
    for definition in names.classes(owner):
        path = path_of(owner)
        decorated = (name for each in definition.decorators for name in names.names(path, each))
        if any(name.startswith(("dataclasses.dataclass", "attr")) for name in decorated):
            for statement in definition.body:
                if isinstance(statement, Assign) and _is_taken(names, path, statement):
                    yield from (f"{path}{r}" for t in statement.targets if isinstance(t, Ref) for r in t.roots)


def _is_generated(names: ClassHierarchy, owner: Symbol) -> bool:
    """Whether the constructor of a class is that of a dataclass: none that a class below that, or the dataclass itself, defines."""
    for each in filter(in_project, names.ancestry(owner)):
        own = any(word == "__init__" for definition in names.classes(each) for word, _ in definition.methods)
        if own or any(_own(names, each)):
            return not own
    return False


def _is_taken(names: ClassHierarchy, path: str, statement: Assign) -> bool:
    """Whether the constructor takes a field: not a ``ClassVar``, nor one with ``init=False``."""
    declared = statement.annotation.value if isinstance(statement.annotation, Subscript) else statement.annotation
    if declared is None or "typing.ClassVar" in names.names(path, declared):
        return False
    given = statement.value.args if isinstance(statement.value, Call) else ()
    return not any(
        arg.keyword == "init" and isinstance(arg.value, Constant) and arg.value.value is False for arg in given
    )


def passed_for_field(
    names: ClassHierarchy, call_graph: CallGraph, owner: Symbol, word: str
) -> Iterator[tuple[str, Expression]]:
    """The arguments for a dataclass field of the calls that construct the class or a subclass, each with the calling file."""
    if word not in dataclass_fields(names, owner).words:
        return
    for each in (owner, *names.subclasses(owner)):
        words = dataclass_fields(names, each).words
        if _is_generated(names, each):
            for path, call in call_graph.constructor_calls(each):
                if (given := known_argument(call, words.index(word), word)) is not None:
                    yield path, given


# --- made arguments -----------------------------------------------------------------------------------------------------

# Decorators of libraries, each with the name of the class method that makes the arguments of a constructor, and of the parameter
# for the function that makes those of another function: detectron2 0.6, config/config.py.
MAKING_DECORATORS = dict.fromkeys(
    ("detectron2.config.configurable", "detectron2.config.config.configurable"), ("from_config",)
)


@query(cutoff=True, cycle=NAMES)
def argument_makers(names: ClassHierarchy, name: Symbol, owner: Symbol) -> Iterator[Symbol]:
    """The functions of the project whose returned dictionary a decorator passes to a function by ``**``; ``owner`` is the class that
    is constructed, where that function is its constructor.
    """
    path = path_of(name)
    for decorator in (each for function in names.functions(name) for each in function.decorators):
        for target in names.names(path, decorator.func if isinstance(decorator, Call) else decorator):
            words = {
                *(_MakingDecorator(names, target).words() if in_project(target) else MAKING_DECORATORS.get(target, ()))
            }
            passed = _passed_to(names, target, decorator) if words and isinstance(decorator, Call) else {}
            for word in sorted(words):
                found = (
                    names.names(path, passed[word]) if word in passed else names.methods(owner, word) if owner else ()
                )
                yield from filter(names.functions, found)


def _passed_to(names: ClassHierarchy, decorator: Symbol, call: Call) -> dict[str, Expression]:
    """The arguments of a call that makes a decorator, by parameter."""
    named = {arg.keyword: arg.value for arg in call.args if arg.keyword is not None}
    for function in names.functions(decorator):
        named |= {param.name: arg.value for arg, param in receiving_parameters(function, call, bound=False)}
    return named


class _MakingDecorator:
    """A decorator of the project that may call what it decorates with ``**arguments``, where another function makes these."""

    def __init__(self, names: ClassHierarchy, decorator: Symbol) -> None:
        self._names = names
        self._decorator = decorator
        self._seen: set[tuple[str, Expression]] = set()
        # The calls that are followed, by the function that they run.
        self._calls: dict[Symbol, tuple[str, Call]] = {}

    def words(self) -> Iterator[str]:
        """The names of the attributes of the receiver, and of the decorator's own parameters, that make the arguments."""
        path = path_of(self._decorator)
        for function in self._names.modules.files[path].functions:
            wrapper = path + function.name
            for each in body_expressions(function.body) if self._is_inside(wrapper) else ():
                if isinstance(each, Call) and self._is_decorated(path, each.func, wrapper):
                    for arg in each.args:
                        yield from self._behind_arguments(path, arg.value) if arg.star == "**" else ()

    def _is_inside(self, function: Symbol) -> bool:
        return function.startswith(locals_prefix(self._decorator))

    def _is_decorated(self, path: str, called: Expression, wrapper: Symbol) -> bool:
        """Whether a callee in a wrapper is what is decorated: the first parameter of a function around the wrapper."""
        if not isinstance(called, Ref) or called.path:
            return False
        found = (self._names.parameter(path + root) for root in called.roots)
        return any(
            each is not None and each.position == 0 and wrapper.startswith(locals_prefix(path + each.function.name))
            for each in found
        )

    def _behind_arguments(self, path: str, value: Expression) -> Iterator[str]:
        """The same for what a dictionary of arguments comes from, back to the call that makes it."""
        if (path, value) in self._seen:
            return
        self._seen.add((path, value))
        if isinstance(value, Call):
            functions = [name for name in self._names.names(path, value.func) if self._names.functions(name)]
            for name in functions:
                self._calls[name] = path, value
                for returned in self._names.return_expressions(name):
                    yield from self._behind_arguments(path_of(name), returned)
            if not functions:
                yield from self._behind_maker(path, value.func)
        else:
            for assigned in self._assigned(path, value):
                yield from self._behind_arguments(path, assigned)

    def _behind_maker(self, path: str, value: Expression) -> Iterator[str]:
        """The same for the callee of that call: ``type(self).from_config``, or a parameter that is handed on."""
        if (path, value) in self._seen:
            return
        self._seen.add((path, value))
        match value:
            case Attribute(value=Call(func=Ref(roots=("builtins.type",))), name=word):
                yield word
            case Ref(roots=roots, path=(word,) | ("__class__", word)):
                found = (self._names.parameter(path + root) for root in roots)
                if any(each and each.position == 0 and self._is_inside(path + each.function.name) for each in found):
                    yield word
            case Ref(roots=roots, path=()):
                for each in filter(None, (self._names.parameter(path + root) for root in roots)):
                    function = path + each.function.name
                    if function == self._decorator:
                        yield each.param.name
                    elif function in self._calls:
                        file, call = self._calls[function]
                        given = parameter_argument(call, each.function, each.position, bound=False)
                        yield from self._behind_maker(file, given.value) if given is not None else ()
        for assigned in self._assigned(path, value):
            yield from self._behind_maker(path, assigned)

    def _assigned(self, path: str, value: Expression) -> Iterator[Expression]:
        """The values that a variable is assigned."""
        for root in value.roots if isinstance(value, Ref) and not value.path else ():
            yield from (made for how, made in self._names.assigned(path + root) if how == "=")


def made_arguments(names: ClassHierarchy, makers: Iterable[Symbol], word: str) -> Iterator[tuple[str, Expression]]:
    """The entries under a word of the dictionaries that functions of the project return, each with its file."""
    queue = [(path_of(maker), value) for maker in makers for value in names.return_expressions(maker)]
    seen: set[tuple[str, Expression]] = set()
    while queue:
        path, value = queue.pop()
        if (path, value) not in seen:
            seen.add((path, value))
            for key, item in _entries(names, path, value):
                if key == word:
                    yield path, item
            queue += _other_dictionaries(names, path, value)


def _entries(names: ClassHierarchy, path: str, value: Expression) -> Iterator[tuple[str | None, Expression]]:
    """The entries that an expression gives a dictionary itself; the key is None for those of another dictionary."""
    match value:
        case Collection(kind="dict", items=items):
            for key, item in zip(items[::2], items[1::2], strict=True):
                if item is not None and (key is None or isinstance(key, Constant)):
                    yield None if key is None else str(key.value), item
        case Call(args=args):
            yield from ((arg.keyword, arg.value) for arg in args)
        case Ref(path=()):
            for change in names.events.updates(path, value):
                if change.value is not None and change.kind in ("set", "default"):
                    yield change.key or "", change.value
                yield from ((arg.keyword, arg.value) for arg in change.args)


def _other_dictionaries(names: ClassHierarchy, path: str, value: Expression) -> Iterator[tuple[str, Expression]]:
    """The dictionaries that a dictionary is, or gets the entries of."""
    yield from ((path, item) for key, item in _entries(names, path, value) if key is None)
    if isinstance(value, Call):
        for name in names.names(path, value.func):
            yield from ((path_of(name), each) for each in names.return_expressions(name))
    for root in value.roots if isinstance(value, Ref) and not value.path else ():
        yield from ((path, made) for how, made in names.assigned(path + root) if how == "=")
