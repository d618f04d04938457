"""What happens in a run, and the way there from its entry point."""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.syntax.events import Event, Guard
from torchrepro_lint.syntax.nodes import Small


class Step(Small, frozen=True):
    """One step of the way from an entry point: the event of a file that enters the function ``into``."""

    path: str
    event: Event
    into: str


class Action(Small, frozen=True):
    """An event, and what its call, iterated or indexed value may stand for (of an item that is set, what it is an item of).

    ``assumed`` says that the names are what the calls of the project pass for parameters, and so may not be all.
    ``mode`` is ``worker`` inside what a loader's workers run, ``loaded`` inside the construction of a model whose
    weights are all replaced afterwards, else empty. ``function`` is where it happens.
    """

    path: str
    function: str
    event: Event
    names: tuple[str, ...]
    assumed: bool
    mode: str


class Happening(Small, frozen=True):
    """An action of a run, and the way to it. Programs that import the same modules have millions of these between them, and
    of the actions a few: so they are apart.
    """

    action: Action
    way: tuple[Step, ...]

    @property
    def path(self) -> str:
        """The file in which it happens."""
        return self.action.path

    @property
    def function(self) -> str:
        """The function in which it happens."""
        return self.action.function

    @property
    def event(self) -> Event:
        """What happens."""
        return self.action.event

    @property
    def names(self) -> tuple[str, ...]:
        """What that may stand for."""
        return self.action.names

    @property
    def assumed(self) -> bool:
        """Whether it may stand for more."""
        return self.action.assumed

    @property
    def mode(self) -> str:
        """In which mode it happens."""
        return self.action.mode


def guards(happening: Happening) -> tuple[Guard, ...]:
    """All that surrounds a happening, from the entry point on."""
    return (*(guard for step in happening.way for guard in step.event.guards), *happening.event.guards)


class Target(Small, frozen=True):
    """A function that is entered: in which mode, and on an object of which class (empty: the one that defines it)."""

    function: str
    mode: str
    receiver: str = ""


class Waiting(NamedTuple):
    """Functions that will be entered later, by the way that leads to where they were handed over."""

    way: tuple[Step, ...]
    step: Step
    targets: list[Target]
