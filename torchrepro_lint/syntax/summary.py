"""The summary of a module: its exports, identifiers, option declarations and class outlines, so that linking need not read its tree.

The identifiers are gathered in one walk, in no order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from sys import intern
from typing import Any, TypeAlias

from torchrepro_lint.source.files import is_notebook
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import receiver_giving_all, takes_receiver
from torchrepro_lint.syntax.cli_options import declared_word
from torchrepro_lint.syntax.control_flow import StaticContext, events, is_main_test
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Class,
    Collection,
    Comprehension,
    Constant,
    DefinitionStatement,
    Expression,
    ExpressionStatement,
    Function,
    If,
    Import,
    Loop,
    Match,
    ModuleSummary,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    Try,
    With,
)
from torchrepro_lint.syntax.qualified_names import (
    instance_value,
    is_own,
    is_top_level,
    last_word,
    local_symbol,
    outermost_function,
    qualname_of,
    simple_name,
)
from torchrepro_lint.syntax.visitor import (
    callee_identifier,
    last_identifier,
    other_identifiers,
    returned_values,
    statements,
    subexpressions,
    value_identifiers,
)

# The roots and the path of a reference.
DottedName: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


class IdentifierCollector:
    """Collects the identifiers of a ``ModuleSummary`` from bodies; ``stored`` are the assignments of a name to an element."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.calls: set[str] = set()
        self.keywords: set[str] = set()
        self.options: set[str] = set()
        self.entered: set[str] = set()
        self.partials: set[DottedName] = set()
        self.through: set[str] = set()
        self.inner: set[str] = set()
        self.stored: list[Assign] = []
        self._attributes: set[str] = set()
        self._roots: set[str] = set()

    @property
    def values(self) -> set[str]:
        """The last identifiers of what is named without being called."""
        return self._attributes | set(map(simple_name, self._roots))

    def add(self, body: Iterable[Statement]) -> None:
        """Collect from a body and its nested blocks, without the bodies of functions and lambdas."""
        left: list[Any] = list(body)
        attributes, roots, inner, inside = self._attributes, self._roots, self.inner, _PARTS
        while left:
            it = left.pop()
            kind = type(it)
            if kind is Ref:  # every other one is
                if it.path:
                    attributes.add(it.path[-1])
                    if len(it.path) > 1:
                        inner.update(it.path[:-1])
                else:
                    roots.update(it.roots)
            elif (look := inside.get(kind)) is not None:
                left += look(self, it)

    def call(self, call: Call) -> Iterable[Expression]:
        """Collect from a call; returns its parts that are still to be visited."""
        func, args = call.func, call.args
        word = callee_identifier(func)
        self.calls.add(word)
        if word == "remote":
            self.calls.update(other_identifiers(func))
        if word == "partial" and args and not args[0].star:
            self.partials.add(dotted_name(args[0].value))
        if option := declared_word(call):
            self.options.add(option)
        found: list[Expression] = []
        if type(func) is not Ref:
            found.append(func)
        elif (table := receiver_giving_all(func)) is not None:
            found.append(table)
        elif not func.path:
            self.through.update(func.roots)
            self.calls.update(other_identifiers(func))
        elif len(func.path) > 1:
            self.inner.update(func.path[:-1])
        for arg in args:
            found.append(arg.value)
            if arg.keyword is not None:
                self.keywords.add(arg.keyword)
        return found

    def display(self, display: Collection) -> Iterable[Expression | None]:
        """Collect the literal keys of a dictionary; returns the items of a display."""
        if display.kind == "dict":
            keys = (each.value for each in display.items[::2] if type(each) is Constant)
            self.keywords.update(key for key in keys if type(key) is str)
        return display.items

    def attribute(self, it: Attribute) -> Iterable[Expression]:
        """Collect an attribute of what is no name; returns the object."""
        self.inner.add(it.name)
        return (it.value,)

    def comprehend(self, it: Comprehension) -> Iterable[Expression]:
        """Returns the elements, sources and tests of a comprehension. Its variables are not collected, their attributes are."""
        for clause in it.clauses:
            if type(clause.target) is not Ref or clause.target.path:
                self.inner.update(
                    word for each in subexpressions(clause.target) if type(each) is Ref for word in each.path
                )
        return (*it.elements, *(each for clause in it.clauses for each in (clause.source, *clause.tests)))

    def assign(self, it: Assign) -> Iterable[Expression | None]:
        """Collect an assignment to an element, and its literal key; returns the value and the targets."""
        stored = [target for target in it.targets if type(target) is Subscript]
        for target in stored:
            keys = (each.value for each in target.indices if type(each) is Constant)
            self.keywords.update(key for key in keys if type(key) is str)
        if stored and type(it.value) is Ref:
            self.stored.append(it)
        return (it.value, *it.targets)

    def load(self, it: Import) -> Iterable[Expression]:
        """Collect an import."""
        self.imports.update(it.modules, (name for _, name in it.names))
        return ()


def identifiers_of(body: Iterable[Statement]) -> IdentifierCollector:
    """The identifiers of all that running a body evaluates, including the bodies of classes in it."""
    identifiers, left = IdentifierCollector(), [body]
    while left:
        some = left.pop()
        identifiers.add(some)
        left += (each.body for each in statements(some) if type(each) is DefinitionStatement and each.body)
    return identifiers


def dotted_name(expression: Expression) -> DottedName:
    """The roots and the path of a reference; empty for anything else."""
    return expression.access_path if type(expression) is Ref else ((), ())


_NAMESPACES = frozenset({"globals", "vars"})


def reads_namespaces(summary: ModuleSummary) -> bool:
    """Whether a file calls what gives the namespace of a module."""
    return not _NAMESPACES.isdisjoint(summary.calls)


def has_word(words: tuple[str, ...], word: str) -> bool:
    """Whether a word is in a sorted tuple, as in the fields of a ``ModuleSummary``."""
    at = bisect_left(words, word)
    return at < len(words) and words[at] == word


def _with(to: IdentifierCollector, it: With) -> Iterable[Any]:
    to.entered.update(
        instance_value(last_identifier(each.func)) if type(each) is Call else last_identifier(each)
        for each, _ in it.items
    )
    return (*(each for item in it.items for each in item), *it.body)


def _try(_: IdentifierCollector, it: Try) -> Iterable[Any]:
    handlers = (each for kind, body in it.handlers for each in (kind, *body))
    return (*it.body, *handlers, *it.orelse, *it.final)


def _match(_: IdentifierCollector, it: Match) -> Iterable[Any]:
    return (it.subject, *(each for guard, body in it.cases for each in (guard, *body)))


# The parts of each node type that are still to be visited; None stands for an absent part.
_PARTS: Mapping[type, Callable[[IdentifierCollector, Any], Iterable[Any]]] = {
    Call: IdentifierCollector.call,
    Assign: IdentifierCollector.assign,
    Operation: lambda _, it: it.operands,
    Attribute: IdentifierCollector.attribute,
    Subscript: lambda _, it: (it.value, *it.indices),
    Collection: IdentifierCollector.display,
    Comprehension: IdentifierCollector.comprehend,
    ExpressionStatement: lambda _, it: (it.value,),
    If: lambda _, it: (it.test, *it.body, *it.orelse),
    Loop: lambda _, it: (it.source, it.target, *it.body, *it.orelse),
    SimpleStatement: lambda _, it: it.values,
    DefinitionStatement: lambda _, it: it.values,
    With: _with,
    Try: _try,
    Match: _match,
    Import: IdentifierCollector.load,
}


_PROPERTIES = frozenset({"property", "cached_property", "functools.cached_property"})


def summarise(
    body: tuple[Statement, ...],
    functions: tuple[Function, ...],
    classes: tuple[Class, ...],
    assigned: Mapping[str, Iterable[tuple[str, Expression]]],
    exports: tuple[tuple[str, tuple[str, ...]], ...],
    stars: tuple[str, ...],
) -> ModuleSummary:
    """The summary of a module with these bodies, definitions, exports and star imports."""
    identifiers, tables = IdentifierCollector(), set[tuple[str, str]]()
    definitions: tuple[Function | Class, ...] = (*functions, *classes)
    identifiers.add(body)
    for function in functions:
        identifiers.stored = []
        identifiers.add(function.body)
        tables.update(_registries(function, identifiers.stored))
    for one in classes:
        identifiers.add(one.body)
    return ModuleSummary(
        exports=exports,
        stars=stars,
        imports=_sorted_interned(identifiers.imports),
        calls=_sorted_interned(identifiers.calls),
        values=_sorted_interned(identifiers.values),
        inner=_sorted_interned(identifiers.inner),
        keywords=_sorted_interned(identifiers.keywords),
        decorators=tuple(
            sorted({dotted_name(_decorator_function(one)) for each in definitions for one in each.decorators})
        ),
        partials=tuple(sorted(identifiers.partials)),
        through=tuple(sorted(identifiers.through.intersection(_parameters(functions)))),
        options=_sorted_interned(identifiers.options),
        entered=_sorted_interned(identifiers.entered),
        properties=_sorted_interned({simple_name(each.name) for each in functions if is_property(each)}),
        tables=tuple(sorted(tables)),
        holds=tuple(_held_identifiers(assigned, functions)),
        has_main_guard=any(isinstance(each, If) and is_main_test(each.test) for each in body),
        calls_at_top_level=_calls_at_top_level(body),
        functions=tuple(sorted({each.name for each in functions if is_top_level(each.name)})),
        classes=tuple((each.name, _bases(each)) for each in classes),
    )


# Parts of Python's library that modules call on import to define what they have, and that run nothing.
_DEFINING = lazy_pattern(
    r"(logging|re|typing|typing_extensions|collections|functools|enum|dataclasses|warnings|pathlib"
    r"|os\.(path|environ\.get|getenv)|builtins\.(frozenset|set|dict|list|tuple|int|float|str|len|range|object))(\..*)?"
)


def _calls_at_top_level(body: tuple[Statement, ...]) -> bool:
    """Whether statements themselves call something that may run: what defines and decorates functions and classes runs nothing."""
    own = tuple([each for each in body if not isinstance(each, DefinitionStatement)])
    return any(
        event.kind == "call"
        and not isinstance(event.statement, DefinitionStatement)
        and not (isinstance(event.value, Call) and _defines(event.value.func))
        for event in events(own, StaticContext(main=True))
    )


def _defines(func: Expression) -> bool:
    """Whether a callee is of ``_DEFINING``, also through what such a call gives: ``logging.getLogger().setLevel``."""
    while isinstance(func, Attribute) and isinstance(func.value, Call):
        func = func.value.func
    return isinstance(func, Ref) and all(_DEFINING.fullmatch(".".join((root, *func.path))) for root in func.roots)


def _sorted_interned(words: Iterable[str]) -> tuple[str, ...]:
    """Sorted and interned identifiers."""
    return tuple(sorted(map(intern, words)))


def _parameters(functions: Iterable[Function]) -> Iterator[str]:
    """The full names of the parameters of functions, without receivers."""
    for each in functions:
        yield from (local_symbol(each.name, param.name) for param in each.params[takes_receiver(each) :])


def _bases(definition: Class) -> tuple[Expression, ...]:
    return tuple(base.value for base in definition.bases if base.keyword is None and not base.star)


def is_property(function: Function) -> bool:
    """Whether a method is a property: it runs when it is read."""
    return any(
        isinstance(each, Ref) and last_word((*each.roots, *each.path)[-1]) in _PROPERTIES
        for each in function.decorators
    )


def _decorator_function(decorator: Expression) -> Expression:
    return decorator.func if isinstance(decorator, Call) else decorator


def _held_identifiers(
    assigned: Mapping[str, Iterable[tuple[str, Expression]]], functions: Iterable[Function]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The identifiers of the values of top-level variables and of the results of top-level functions; empty ones are left out."""
    found: dict[str, set[str]] = {}
    for name, values in assigned.items():
        if is_top_level(name):
            found.setdefault(qualname_of(name), set()).update(
                word for _, value in values for word in value_identifiers(value)
            )
    for each in functions:
        if is_top_level(each.name):
            found.setdefault(qualname_of(each.name), set()).update(
                word for value in returned_values(each.body) for word in value_identifiers(value)
            )
    for word, words in sorted(found.items()):
        if words:
            yield intern(word), _sorted_interned(words)


def _registries(function: Function, stored: Sequence[Assign]) -> Iterator[tuple[str, str]]:
    """The registries in which a function stores one of its parameters: ``NETS[name] = function``."""
    own = {local_symbol(function.name, param.name) for param in function.params} if stored else frozenset()
    for statement in stored:
        match statement:
            case Assign(targets=targets, value=Ref(roots=roots)) if not own.isdisjoint(roots):
                for target in targets:
                    if isinstance(target, Subscript) and isinstance(target.value, Ref):
                        outer = outermost_function(function.name)
                        for root in target.value.roots:
                            if is_own(root):
                                yield ".".join((root, *target.value.path)), outer


def imports_torch(summary: ModuleSummary) -> bool:
    """Whether a file imports torch."""
    return any(module == "torch" or module.startswith("torch.") for module in summary.imports)


def is_command(summary: ModuleSummary) -> bool:
    """Whether a file is a script that takes arguments, or says itself that it may be one."""
    return summary.has_main_guard or (summary.calls_at_top_level and "argparse" in summary.imports)


def is_test(path: str, summary: ModuleSummary) -> bool:
    """Whether a file holds tests: ``conftest.py``, a file in ``tests``, ``test_*.py``; with a guard these are scripts.

    Nothing runs a notebook as a test because of its name.
    """
    *folders, name = path.split("/")
    if is_notebook(path):
        return "tests" in folders
    if name == "conftest.py":
        return True
    if "tests" in folders or name.startswith("test_") or name.endswith("_test.py"):
        return not summary.has_main_guard or "tests" in folders
    return False
