"""Protocols of name resolution and the call graph, for the modules that both are made of.

A part sees the whole only through these, so that no import leads back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torchrepro_lint.syntax.qualified_names import Root, Symbol, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from torchrepro_lint.resolve.definitions import Parameter
    from torchrepro_lint.resolve.imports import ImportResolver
    from torchrepro_lint.syntax.nodes import Call, Class, Expression, Function


class NumberedCalls(Protocol):
    """The numbered calls of a project, as ``CallGraph`` has them."""

    def first(self, number: int, word: str) -> int:
        """The number of the first call of a file by a word."""
        ...

    def path(self, number: int) -> str:
        """The file of a number."""
        ...

    def number(self, path: str) -> int:
        """The number of a file."""
        ...

    def numbered_calls(self, number: int, word: str) -> Iterator[tuple[int, Call]]:
        """The calls of a file by a word, with their numbers."""
        ...

    def passed_by_name(self, name: str, function: Function, position: int) -> Iterable[tuple[str, Expression | None]]:
        """The arguments for a parameter of the calls that name a function."""
        ...

    def is_bound(self, path: str, func: Expression, function: Function) -> bool:
        """Whether a call of ``func`` passes the receiver implicitly."""
        ...


class Constructions(Protocol):
    """Constructor calls, as ``CallGraph`` has them."""

    def constructor_calls(self, owner: Symbol) -> Iterator[tuple[str, Call]]:
        """The calls that construct an object of a class."""
        ...

    def naming(self, words: Iterable[str]) -> set[str]:
        """The files that call something by one of these words, or name it as a value."""
        ...


class ConfiguredNames(Protocol):
    """Name resolution, as configurations need it."""

    modules: ImportResolver

    def names(self, path: str, expression: Expression) -> tuple[Value, ...]:
        """The names that an expression may stand for."""
        ...

    def follow(self, name: Value, words: tuple[str, ...]) -> tuple[Value, ...]:
        """The names that a chain of attributes of a name may stand for."""
        ...

    def values(self, path: str, expression: Expression) -> Iterable[tuple[str, Expression]]:
        """The sources of an expression, each with its file."""
        ...

    def values_through_calls(self, path: str, expression: Expression) -> Iterable[tuple[str, Expression]]:
        """The same, and for a call of a function of the project the expressions that it returns."""
        ...

    def literal_texts(self, path: str, key: Expression) -> tuple[str, ...]:
        """The strings that an expression may be, from literals and from the literals of options."""
        ...

    def parameter(self, name: Symbol) -> Parameter | None:
        """The parameter that a variable is."""
        ...

    def assigned(self, variable: Symbol) -> tuple[tuple[str, Expression], ...]:
        """The assignments of a variable, each with its kind."""
        ...


class NameResolution(Protocol):
    """Name resolution, as ``Names`` has it."""

    modules: ImportResolver

    @property
    def call_graph(self) -> Constructions:
        """The constructor calls of the project."""
        ...

    @property
    def in_isolation(self) -> bool:
        """Whether a computation in isolation is running."""
        ...

    def isolated(self) -> AbstractContextManager[None]:
        """For results that are computed once, in isolation from open queries."""
        ...

    def names(self, path: str, expression: Expression) -> tuple[Value, ...]:
        """The names that an expression may stand for."""
        ...

    def names_from_summary(
        self, path: str, roots: tuple[Root, ...], words: tuple[str, ...]
    ) -> tuple[Value, ...] | None:
        """The same for a reference, by summaries alone; None where they do not tell."""
        ...

    def receiver(self, path: str, func: Expression) -> Iterator[Value]:
        """The names of the receiver of a method."""
        ...

    def functions(self, name: Value) -> tuple[Function, ...]:
        """The definitions of a function of the project."""
        ...

    def classes(self, name: Value) -> tuple[Class, ...]:
        """The definitions of a class of the project."""
        ...

    def methods(self, owner: Value, word: str) -> tuple[Value, ...]:
        """The methods of a class, or of its bases, with a name."""
        ...

    def ancestry(self, name: Value) -> tuple[Value, ...]:
        """A class and its bases, nearest first."""
        ...

    def subclass_words(self, name: Symbol) -> list[str]:
        """The short names of the subclasses of a class of the project."""
        ...

    def subclasses(self, name: Value) -> list[Symbol]:
        """The subclasses of a class of the project."""
        ...

    def parameter(self, name: Symbol) -> Parameter | None:
        """The parameter that a variable is."""
        ...

    def assigned(self, variable: Symbol) -> tuple[tuple[str, Expression], ...]:
        """The assignments of a variable, each with its kind."""
        ...
