"""Memo tables of traces: what runs have found of events and functions, and the parts of traces that runs have in common."""

from __future__ import annotations

from torchrepro_lint.happenings import Action, Target
from torchrepro_lint.query.memo_tables import Kept, Reads, Recent
from torchrepro_lint.stretches import Stretch
from torchrepro_lint.syntax.events import Event
from torchrepro_lint.syntax.nodes import Small, fields

# So many actions are one object for all runs in which they happen.
_MOST_ACTIONS = 1 << 17
# Of methods that run on objects of classes that inherit them, likewise.
_MOST_ON_HEIRS = 5_000


class Outcome(Small, frozen=True):
    """What an event calls, whether that is what calls pass for parameters (see ``Happening``), whether it enters nothing of
    the project whatever runs it, and what of the project it hands over.
    """

    found: tuple[str, ...]
    assumed: bool
    quiet: bool
    handed: tuple[str, ...]


class Happens(Small, frozen=True):
    """What tells the events of a project apart, as far as their outcomes differ: the file, what happens, and to what."""

    path: str
    kind: str
    value: str
    start: int
    end: int

    @classmethod
    def of(cls, path: str, event: Event) -> Happens:
        """That of an event of a file."""
        assert event.value is not None
        return cls(path, event.kind, type(event.value).__name__, event.value.start, event.value.end)


class Outcomes:
    """What runs have found of events, as a table that can be carried from one run to the next (see ``answers_json``)."""

    def __init__(self, kept: Kept[Happens, Outcome]) -> None:
        self._kept = kept

    def known(self) -> list[tuple[str, Outcome, int]]:
        """What has been found, and from what."""
        return [("\n".join(map(str, fields(key))), outcome, seen) for key, outcome, seen in self._kept.known()]

    def enter(self, key: str, outcome: Outcome, seen: int) -> None:
        """Take over what ``known`` gave of a project in the same state."""
        path, kind, value, start, end = key.rsplit("\n", 4)
        self._kept.enter(Happens(path, kind, value, int(start), int(end)), outcome, seen)


class RunTables:
    """What the runs of a project remember between them."""

    def __init__(self, reads: Reads) -> None:
        self.outcomes: Kept[Happens, Outcome] = Kept(reads)
        # Those of methods that run on an object of another class than their own, each with that class.
        self.on_heirs: Kept[tuple[Happens, str], Outcome] = Kept(reads, None if reads.firm else _MOST_ON_HEIRS)
        # What events of a kind on a name enter, by the classes of the objects that they are on: functions, each with the
        # class of its object, and whether it waits until its result is used.
        self.entered: Kept[tuple[str, str, tuple[str, ...]], tuple[tuple[str, str, bool], ...]] = Kept(reads)

        # The statements (by identity) of functions and modules that make a model whose weights are all replaced; whether
        # the module is started.
        self.replaced: Kept[tuple[str, bool], frozenset[int]] = Kept(reads)

        # By the identity of their events, which they hold.
        self._actions: Recent[int, Action] = Recent(_MOST_ACTIONS)

        # What runs have done where they came to import a module.
        self.stretches: Kept[Target, Stretch] = Kept(reads)

    def action(
        self, path: str, function: str, event: Event, names: tuple[str, ...], assumed: bool, mode: str
    ) -> Action:
        """What an event of a function is in a run: one object for all runs in which it is the same."""
        known: Action | None = self._actions.get(id(event))
        if (
            known is None
            or known.event is not event
            or (known.function, known.names, known.assumed, known.mode) != (function, names, assumed, mode)
        ):
            known = self._actions[id(event)] = Action(path, function, event, names, assumed, mode)
        return known

    def drop(self, changed: int) -> None:
        """Forget what was worked out from anything that has changed."""
        self.outcomes.drop(changed)
        self.on_heirs.drop(changed)
        self.entered.drop(changed)
        self.replaced.drop(changed)
        self.stretches.drop(changed)
