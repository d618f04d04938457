"""One walk over what was collected of a file, for what a link asks of every file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import intern

from torchrepro_lint.evaluating import events
from torchrepro_lint.facts import (
    Assign,
    Call,
    Class,
    Expression,
    Function,
    If,
    Ref,
    Statement,
    Subscript,
    Summary,
)
from torchrepro_lint.methods import takes_object
from torchrepro_lint.truth import Setting, is_main_test
from torchrepro_lint.walk import held_words, returned
from torchrepro_lint.words import Words, named

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
    words, tables = Words(), set[tuple[str, str]]()
    definitions: tuple[Function | Class, ...] = (*functions, *classes)
    words.add(body)
    for function in functions:
        words.stored = []
        words.add(function.body)
        tables.update(_tables(function, words.stored))
    for one in classes:
        words.add(one.body)
    return Summary(
        exports=exports,
        stars=stars,
        imports=_in_order(words.imports),
        calls=_in_order(words.calls),
        values=_in_order(words.values),
        inner=_in_order(words.inner),
        keywords=_in_order(words.keywords),
        decorators=tuple(sorted({named(_undone(one)) for each in definitions for one in each.decorators})),
        partials=tuple(sorted(words.partials)),
        through=tuple(sorted(words.through.intersection(_parameters(functions)))),
        options=_in_order(words.options),
        entered=_in_order(words.entered),
        properties=_in_order({each.name.rpartition(".")[2] for each in functions if is_property(each)}),
        tables=tuple(sorted(tables)),
        holds=tuple(_holds(assigned, functions)),
        guarded=any(isinstance(each, If) and is_main_test(each.test) for each in body),
        acts=any(event.kind == "call" for event in events(body, Setting(main=True))),
        functions=tuple(sorted({each.name for each in functions if "." not in each.name})),
        classes=tuple((each.name, _bases(each)) for each in classes),
    )


def _in_order(words: Iterable[str]) -> tuple[str, ...]:
    """Words, each one text for all files."""
    return tuple(sorted(map(intern, words)))


def _parameters(functions: Iterable[Function]) -> Iterator[str]:
    """The parameters of functions by their names, without what a method is called on."""
    for each in functions:
        yield from (f"{each.name}.<locals>.{param.name}" for param in each.params[takes_object(each) :])


def _bases(definition: Class) -> tuple[Expression, ...]:
    return tuple(base.value for base in definition.bases if base.keyword is None and not base.star)


def is_property(function: Function) -> bool:
    """Whether a method runs when it is read."""
    return any(
        isinstance(each, Ref) and (*each.roots, *each.path)[-1].rpartition(".")[2] in _PROPERTIES
        for each in function.decorators
    )


def _undone(decorator: Expression) -> Expression:
    return decorator.func if isinstance(decorator, Call) else decorator


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
            yield intern(word), _in_order(words)


def _tables(function: Function, stored: Sequence[Assign]) -> Iterator[tuple[str, str]]:
    """The tables in which a function stores one of its parameters: ``NETS[name] = function``."""
    own = {f"{function.name}.<locals>.{param.name}" for param in function.params} if stored else frozenset()
    for statement in stored:
        match statement:
            case Assign(targets=targets, value=Ref(roots=roots)) if not own.isdisjoint(roots):
                for target in targets:
                    if isinstance(target, Subscript) and isinstance(target.value, Ref):
                        outer = function.name.partition(".<locals>.")[0]
                        for root in target.value.roots:
                            if root.startswith(":"):
                                yield ".".join((root, *target.value.path)), outer
