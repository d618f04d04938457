"""Name resolution and the call graph as the modules that they are made of see them: the questions that these ask of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from torchrepro_lint.resolve.imports import ImportResolver
    from torchrepro_lint.resolve.symbols import Parameter
    from torchrepro_lint.syntax.nodes import Call, Class, Expression, Function, Param


class NumberedCalls(Protocol):
    """The calls of a project, in the numbers that remembered answers have: what ``callers`` answers."""

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

    def passed_by_name(
        self, name: str, function: Function, param: Param, position: int
    ) -> Iterable[tuple[str, Expression | None]]:
        """What each call that names a function passes for a parameter."""
        ...

    def is_bound(self, path: str, func: Expression, function: Function) -> bool:
        """Whether the first parameter of a method is none of the arguments of a call of what an expression gives."""
        ...


class Constructions(Protocol):
    """The calls of classes."""

    def constructor_calls(self, owner: str) -> Iterator[tuple[str, Call]]:
        """The calls of a class."""
        ...


class NameResolution(Protocol):
    """What ``names`` answers."""

    modules: ImportResolver

    @property
    def call_graph(self) -> Constructions:
        """Who calls which function of the project."""
        ...

    @property
    def in_isolation(self) -> bool:
        """Whether what is worked out must not depend on all files."""
        ...

    def isolated(self) -> AbstractContextManager[None]:
        """For what is worked out from all files."""
        ...

    def names(self, path: str, expression: Expression) -> tuple[str, ...]:
        """What an expression may stand for."""
        ...

    def names_from_summary(self, path: str, roots: tuple[str, ...], words: tuple[str, ...]) -> tuple[str, ...] | None:
        """The same as far as it can be told without a look inside."""
        ...

    def receiver(self, path: str, func: Expression) -> Iterator[str]:
        """What the method that an expression gives is looked up in."""
        ...

    def functions(self, name: str) -> tuple[Function, ...]:
        """The definitions of a function of the project."""
        ...

    def classes(self, name: str) -> tuple[Class, ...]:
        """The definitions of a class of the project."""
        ...

    def methods(self, owner: str, word: str) -> tuple[str, ...]:
        """The methods of a class, or of its bases, that a word stands for."""
        ...

    def ancestry(self, name: str) -> tuple[str, ...]:
        """A class and its bases, nearest first."""
        ...

    def subclass_words(self, name: str) -> list[str]:
        """The short names of the classes of the project that inherit from a class of it."""
        ...

    def subclasses(self, name: str) -> list[str]:
        """The classes of the project that inherit from a class of it."""
        ...

    def parameter(self, name: str) -> Parameter | None:
        """The parameter that a variable is."""
        ...

    def assigned(self, variable: str) -> tuple[tuple[str, Expression], ...]:
        """What a variable is assigned, and how."""
        ...
