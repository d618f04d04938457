"""Models of library calls in a trace: which of a program's callables a framework runs or stores, by rows of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import count

from torchrepro_lint.catalogue.catalogue import frameworks
from torchrepro_lint.catalogue.rows import FrameworkModel
from torchrepro_lint.source.patterns import wildcard_expression
from torchrepro_lint.syntax.qualified_names import (
    constructed_class,
    in_project,
    is_inherited_constructor,
    split_method,
    top_package,
    without_calls,
)


def rows_of(names: Iterable[str]) -> Iterator[FrameworkModel]:
    """The rows about the names that a call may call."""
    for name in names:
        if not in_project(name):
            yield from rows_named(name)


@lru_cache(maxsize=1 << 14)
def rows_named(name: str) -> tuple[FrameworkModel, ...]:
    """The rows about one name."""
    return frameworks().of(_passed_callable(constructed_class(name) if is_inherited_constructor(name) else name))


def _passed_callable(name: str) -> str:
    """The name of a method through its class: ``vision_learner().fit`` is a Learner's, ``Trainer().fit`` a Trainer's."""
    made, rest = split_method(name)
    kinds = [row.gives for row in frameworks().of(made) if row.gives] if rest else []
    owner = f"{top_package(name)}.{kinds[0]}" if kinds else made
    return without_calls(f"{owner}.{rest}".removesuffix("."))


def stores_callables(names: Iterable[str]) -> str:
    """Who calls what a call stores, its callable arguments or what it decorates: ``later``, or its ``receiver``; empty if it stores none."""
    return next((row.keeps for row in rows_of(names) if row.keeps), "")


def calls_method(names: Iterable[str], word: str) -> bool:
    """Whether a call runs a method of this name on its arguments or its receiver."""
    return any(callback_words(pattern).fullmatch(word) for row in rows_of(names) for pattern in row.calls)


@lru_cache(maxsize=256)
def callback_words(pattern: str) -> re.Pattern[str]:
    """The methods that a pattern of a row names: ``*`` stands for any letters."""
    return re.compile(wildcard_expression(pattern, r"\w*", count()))


def trains_or_measures(names: Iterable[str]) -> bool:
    """Whether a call trains or evaluates a model."""
    return any(row.matters for row in rows_of(names))
