"""One walk over what was collected of a file, for what a link asks of every file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from torchrepro_lint.events import events
from torchrepro_lint.facts import (
    Assign,
    Call,
    Class,
    Collection,
    Constant,
    Expression,
    Function,
    If,
    Import,
    Lambda,
    Ref,
    Statement,
    Subscript,
    Summary,
)
from torchrepro_lint.options import declared_word
from torchrepro_lint.truth import Setting, is_main_test
from torchrepro_lint.walk import called_word, expressions, held_words, last_word, parts, returned, statements

# The roots and the path of a reference.
Named: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]

_PROPERTIES = frozenset({"property", "cached_property", "functools.cached_property"})


def summarise(
    body: tuple[Statement, ...],
    functions: tuple[Function, ...],
    classes: tuple[Class, ...],
    assigned: Mapping[str, Iterable[tuple[str, Expression]]],
    exports: tuple[tuple[str, tuple[str, ...]], ...],
    stars: tuple[str, ...],
) -> Summary:
    """The summary of a file with these bodies, variables, top-level names and star imports."""
    words = _Words()
    definitions: tuple[Function | Class, ...] = (*functions, *classes)
    for each in (body, *(function.body for function in functions), *(one.body for one in classes)):
        for statement in statements(each):
            words.add(statement)
    return Summary(
        exports=exports,
        stars=stars,
        imports=tuple(sorted(words.imports)),
        calls=tuple(sorted(words.calls)),
        values=tuple(sorted(words.values)),
        keywords=tuple(sorted(words.keywords)),
        decorators=tuple(sorted({_named(_undone(one)) for each in definitions for one in each.decorators})),
        partials=tuple(sorted(words.partials)),
        options=tuple(sorted(words.options)),
        properties=tuple(sorted({each.name.rpartition(".")[2] for each in functions if is_property(each)})),
        tables=tuple(sorted({table for each in functions for table in _tables(each)})),
        holds=tuple(_holds(assigned, functions)),
        guarded=any(isinstance(each, If) and is_main_test(each.test) for each in body),
        acts=any(event.kind == "call" for event in events(body, Setting(main=True))),
        functions=tuple(sorted({each.name for each in functions if "." not in each.name})),
        classes=tuple((each.name, _bases(each)) for each in classes),
    )


def _bases(definition: Class) -> tuple[Expression, ...]:
    return tuple(base.value for base in definition.bases if base.keyword is None and not base.star)


def is_property(function: Function) -> bool:
    """Whether a method runs when it is read."""
    return any(
        isinstance(each, Ref) and (*each.roots, *each.path)[-1].rpartition(".")[2] in _PROPERTIES
        for each in function.decorators
    )


class _Words:
    """The words that the statements of a file hold."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.calls: set[str] = set()
        self.values: set[str] = set()
        self.keywords: set[str] = set()
        self.options: set[str] = set()
        self.partials: set[Named] = set()

    def add(self, statement: Statement) -> None:
        if isinstance(statement, Import):
            self.imports.update(statement.modules, (name for _, name in statement.names))
        for expression in expressions(statement):
            self._look(expression)

    def _look(self, expression: Expression) -> None:
        kind = type(expression)
        if kind is Ref:
            self.values.add(last_word(expression))
        elif kind is Call:
            self._call(expression)  # type: ignore[arg-type]  # narrowed by exact type
        elif kind is not Lambda:
            if isinstance(expression, Collection) and expression.kind == "dict":
                keys = (each.value for each in expression.items[::2] if isinstance(each, Constant))
                self.keywords.update(key for key in keys if isinstance(key, str))
            for each in parts(expression):
                self._look(each)

    def _call(self, call: Call) -> None:
        word = called_word(call.func)
        self.calls.add(word)
        if word == "partial" and call.args and not call.args[0].star:
            self.partials.add(_named(call.args[0].value))
        if option := declared_word(call):
            self.options.add(option)
        self.keywords.update(arg.keyword for arg in call.args if arg.keyword is not None)
        for each in parts(call):
            if each is not call.func or type(each) is not Ref:
                self._look(each)


def _undone(decorator: Expression) -> Expression:
    return decorator.func if isinstance(decorator, Call) else decorator


def _named(expression: Expression) -> Named:
    return (expression.roots, expression.path) if isinstance(expression, Ref) else ((), ())


def _holds(
    assigned: Mapping[str, Iterable[tuple[str, Expression]]], functions: Iterable[Function]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What is assigned to top-level variables, and what top-level functions return, by words; what has none is left out."""
    found: dict[str, set[str]] = {}
    for name, values in assigned.items():
        if "." not in name:
            found.setdefault(name[1:], set()).update(word for _, value in values for word in held_words(value))
    for each in functions:
        if "." not in each.name:
            found.setdefault(each.name[1:], set()).update(
                word for value in returned(each.body) for word in held_words(value)
            )
    for word, words in sorted(found.items()):
        if words:
            yield word, tuple(sorted(words))


def _tables(function: Function) -> Iterator[tuple[str, str]]:
    """The tables in which a function stores one of its parameters: ``NETS[name] = function``."""
    own = {f"{function.name}.<locals>.{param.name}" for param in function.params}
    for statement in statements(function.body) if own else ():
        match statement:
            case Assign(targets=targets, value=Ref(roots=roots)) if not own.isdisjoint(roots):
                for target in targets:
                    if isinstance(target, Subscript) and isinstance(target.value, Ref):
                        outer = function.name.partition(".<locals>.")[0]
                        for root in target.value.roots:
                            if root.startswith(":"):
                                yield ".".join((root, *target.value.path)), outer
