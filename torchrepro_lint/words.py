"""The words that the statements of a file hold, gathered in one walk in no order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from torchrepro_lint.declared_options import declared_word
from torchrepro_lint.facts import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Define,
    Do,
    Expression,
    If,
    Import,
    Leave,
    Loop,
    Match,
    Operation,
    Ref,
    Statement,
    Subscript,
    Try,
    With,
)
from torchrepro_lint.walk import called_word, last_word, statements, within

# The roots and the path of a reference.
Named: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


class Words:
    """What ``Summary`` has of the statements that were added; ``stored`` are the assignments of a name to an item."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.calls: set[str] = set()
        self.keywords: set[str] = set()
        self.options: set[str] = set()
        self.entered: set[str] = set()
        self.partials: set[Named] = set()
        self.through: set[str] = set()
        self.inner: set[str] = set()
        self.stored: list[Assign] = []
        self._attributes: set[str] = set()
        self._roots: set[str] = set()

    @property
    def values(self) -> set[str]:
        """The last words of what is named without being called."""
        return self._attributes | {root.rpartition(".")[2].lstrip(":?") for root in self._roots}

    def add(self, body: Iterable[Statement]) -> None:
        """Look through a body, nested blocks included; what a definition or lambda runs when it is called is not in it."""
        left: list[Any] = list(body)
        attributes, roots, inner, inside = self._attributes, self._roots, self.inner, _INSIDE
        while left:
            it = left.pop()
            kind = type(it)
            if kind is Ref:  # every other one is
                if it.path:
                    attributes.add(it.path[-1])
                    if len(it.path) > 1:
                        inner.update(it.path[:-1])
                else:
                    roots.add(it.roots[0])
            elif (look := inside.get(kind)) is not None:
                left += look(self, it)

    def call(self, call: Call) -> Iterable[Expression]:
        """Note a call; what is in it, without a mere name that it calls."""
        func, args = call.func, call.args
        word = called_word(func)
        self.calls.add(word)
        if word == "partial" and args and not args[0].star:
            self.partials.add(named(args[0].value))
        if option := declared_word(call):
            self.options.add(option)
        found: list[Expression] = []
        if type(func) is not Ref:
            found.append(func)
        elif not func.path:
            self.through.update(func.roots)
        elif len(func.path) > 1:
            self.inner.update(func.path[:-1])
        for arg in args:
            found.append(arg.value)
            if arg.keyword is not None:
                self.keywords.add(arg.keyword)
        return found

    def display(self, display: Collection) -> Iterable[Expression | None]:
        """Note the literal keys of a dictionary; what is in a display."""
        if display.kind == "dict":
            keys = (each.value for each in display.items[::2] if type(each) is Constant)
            self.keywords.update(key for key in keys if type(key) is str)
        return display.items

    def attribute(self, it: Attribute) -> Iterable[Expression]:
        """Note an attribute of what is no name; what it is of."""
        self.inner.add(it.name)
        return (it.value,)

    def comprehend(self, it: Comprehension) -> Iterable[Expression]:
        """The elements, sources and tests of a comprehension. Its variables are no words of the file, their attributes are."""
        for clause in it.clauses:
            if type(clause.target) is not Ref or clause.target.path:
                self.inner.update(word for each in within(clause.target) if type(each) is Ref for word in each.path)
        return (*it.elements, *(each for clause in it.clauses for each in (clause.source, *clause.tests)))

    def assign(self, it: Assign) -> Iterable[Expression | None]:
        """Note what is stored; the value and the targets of an assignment."""
        if type(it.value) is Ref and any(type(target) is Subscript for target in it.targets):
            self.stored.append(it)
        return (it.value, *it.targets)

    def load(self, it: Import) -> Iterable[Expression]:
        """Note an import."""
        self.imports.update(it.modules, (name for _, name in it.names))
        return ()


def words_of(body: Iterable[Statement]) -> Words:
    """The words of all that running a body evaluates, the bodies of classes in it included."""
    words, left = Words(), [body]
    while left:
        some = left.pop()
        words.add(some)
        left += (each.body for each in statements(some) if type(each) is Define and each.body)
    return words


def named(expression: Expression) -> Named:
    """The roots and the path of a reference, of anything else none."""
    return (expression.roots, expression.path) if type(expression) is Ref else ((), ())


def has_word(words: tuple[str, ...], word: str) -> bool:
    """Whether a word is among sorted ones, as those of a ``Summary`` are."""
    at = bisect_left(words, word)
    return at < len(words) and words[at] == word


def _with(to: Words, it: With) -> Iterable[Any]:
    to.entered.update(f"{last_word(each.func)}()" if type(each) is Call else last_word(each) for each, _ in it.items)
    return (*(each for item in it.items for each in item), *it.body)


def _try(_: Words, it: Try) -> Iterable[Any]:
    handlers = (each for kind, body in it.handlers for each in (kind, *body))
    return (*it.body, *handlers, *it.orelse, *it.final)


def _match(_: Words, it: Match) -> Iterable[Any]:
    return (it.subject, *(each for guard, body in it.cases for each in (guard, *body)))


# What is in each kind of record but names; None among it stands for what is left out.
_INSIDE: Mapping[type, Callable[[Words, Any], Iterable[Any]]] = {
    Call: Words.call,
    Assign: Words.assign,
    Operation: lambda _, it: it.operands,
    Attribute: Words.attribute,
    Subscript: lambda _, it: (it.value, *it.indices),
    Collection: Words.display,
    Comprehension: Words.comprehend,
    Do: lambda _, it: (it.value,),
    If: lambda _, it: (it.test, *it.body, *it.orelse),
    Loop: lambda _, it: (it.source, it.target, *it.body, *it.orelse),
    Leave: lambda _, it: it.values,
    Define: lambda _, it: it.values,
    With: _with,
    Try: _try,
    Match: _match,
    Import: Words.load,
}
