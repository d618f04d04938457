"""Value sources as the modules of that analysis see it: the questions that they ask of the whole, and what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchrepro_lint.query.fixpoint import Allowance
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.scoped import Arguments, Scope, Scoped
    from torchrepro_lint.syntax.definitions import Assignments, Change, Mutations
    from torchrepro_lint.syntax.nodes import Function, Operation


class Construction(NamedTuple):
    """An object of a class of the project: the scope of its methods, and the calls of constructors from outside that its
    own leads to, each with the constructor's class.
    """

    scope: Scope
    outside: tuple[tuple[str, Scoped], ...]


class Step(NamedTuple):
    """A value that is given, or a change of it in place, in a file; ``certain`` if it happens always."""

    path: str
    certain: bool
    value: Scoped | Arguments | None = None
    change: Change | None = None


class ValueSources(Protocol):
    """Where values come from: what ``origins`` answers."""

    project: ProgramIndex
    certain: dict[tuple[int, int], bool]
    choices: dict[int, tuple[Operation, ...]]
    dictionaries: Allowance

    def of(self, scoped: Scoped, steps: int = ...) -> tuple[Scoped, ...]:
        """The expressions that an expression may stand for; itself where nothing is behind it."""
        ...

    def assignments(self, path: str) -> Assignments:
        """What the variables of a file are given."""
        ...

    def mutations(self, path: str) -> Mutations:
        """What the statements of a file do to dictionaries and lists."""
        ...

    def history(self, scoped: Scoped, *, changes: bool = True) -> Iterator[Step]:
        """What a variable or an attribute is given before a place, and with ``changes`` the statements that may change it."""
        ...

    def set_attributes(self, path: str, words: Sequence[str], made: Scoped | None = None) -> list[Scoped]:
        """What a file sets as attributes of these names."""
        ...

    def added_to(self, made: Scoped, words: Sequence[str]) -> Iterator[Scoped]:
        """What a file adds to lists that are attributes of these names of what a call has made."""
        ...

    def runs(self, path: str, function: Function, offset: int, scope: Scope) -> bool:
        """Whether a place of a function can be reached with what a scope passes."""
        ...

    def construct(self, call: Scoped, owner: str) -> Construction:
        """The object of a class of the project that a call makes."""
        ...

    def collected(self, scoped: Scoped) -> Arguments:
        """The items of a list or tuple, those that are added later among them, as spare arguments."""
        ...
