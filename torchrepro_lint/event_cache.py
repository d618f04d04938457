"""The events of the bodies of a project, each worked out once."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.definitions import Definitions
from torchrepro_lint.evaluating import events
from torchrepro_lint.events import Event
from torchrepro_lint.facts import Expression, Facts, Ref, Statement
from torchrepro_lint.happenings import Action, Target
from torchrepro_lint.kept import Kept
from torchrepro_lint.mutations import Mutations, mutations
from torchrepro_lint.recent import Recent
from torchrepro_lint.small import Small, fields
from torchrepro_lint.stretches import Stretch
from torchrepro_lint.summary import is_property
from torchrepro_lint.truth import Setting

# The events of all bodies of a project take a sixth of the memory of its facts. They are let go of as in ``link``.
_MOST_BODIES = 5_000
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


class EventCache:
    """The events of functions and modules, for a target torch; ``properties`` are the words whose reading runs code."""

    def __init__(self, definitions: Definitions, properties: frozenset[str], torch: str) -> None:
        self._definitions = definitions
        self._imported = Setting(False, torch, properties)
        self._started = Setting(True, torch, properties)
        most = None if definitions.reads.firm else _MOST_BODIES
        # By the identity of a body, which stays as long as the facts.
        self._known: Recent[tuple[int, bool], tuple[Event, ...]] = Recent(most)
        self._mutations: dict[str, Mutations] = {}
        self.outcomes: Kept[Happens, Outcome] = Kept(definitions.reads)
        # Those of methods that run on an object of another class than their own, each with that class.
        self.on_heirs: Kept[tuple[Happens, str], Outcome] = Kept(
            definitions.reads, None if definitions.reads.firm else _MOST_ON_HEIRS
        )
        # What events of a kind on a name enter, by the classes of the objects that they are on: functions, each with the
        # class of its object, and whether it waits until its result is used.
        self.entered: Kept[tuple[str, str, tuple[str, ...]], tuple[tuple[str, str, bool], ...]] = Kept(
            definitions.reads
        )

        # The statements (by identity) of functions and modules that make a model whose weights are all replaced; whether
        # the module is started.
        self.replaced: Kept[tuple[str, bool], frozenset[int]] = Kept(definitions.reads)

        # By the identity of their events, which they hold.
        self._actions: Recent[int, Action] = Recent(_MOST_ACTIONS)

        # What runs have done where they came to import a module.
        self.stretches: Kept[Target, Stretch] = Kept(definitions.reads)

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

    def of(self, name: str, *, main: bool = False) -> tuple[Event, ...]:
        """The events of a function (of all its definitions), or of a module (``path:``), started where ``main`` says so.

        Of a property, those of reading it: what sets or deletes it is another definition of that name.
        """
        if name.endswith(":"):
            return self.of_body(self._definitions.top_level(name), main=main)
        definitions = self._definitions.functions(name)
        if len(definitions) > 1:
            definitions = tuple([each for each in definitions if is_property(each)]) or definitions
        found = [self.of_body(each.body) for each in definitions]
        return found[0] if len(found) == 1 else tuple(event for each in found for event in each)

    def of_body(self, body: tuple[Statement, ...], *, main: bool = True) -> tuple[Event, ...]:
        """The events of one body of the facts; a function's module may be the one that is started."""
        key = (id(body), main)
        found: tuple[Event, ...] | None = self._known.get(key)
        if found is None:
            found = self._known[key] = events(body, self._started if main else self._imported)
        return found

    def added(self, path: str, ref: Ref) -> Iterator[Expression]:
        """What the statements of a file add to a list that a variable or an attribute holds: items, or lists of items."""
        if path not in self._mutations:
            self._mutations[path] = mutations(self._definitions.facts(path))
        for root in ref.roots:
            for _, change in self._mutations[path].get((root, ref.path), ()):
                if change.kind in ("add", "join") and change.value is not None:
                    yield change.value

    def forget(self, path: str, facts: Facts) -> None:
        """A file has changed, which had these facts."""
        self._mutations.pop(path, None)
        for body in (facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes)):
            for main in (True, False):
                self._known.pop((id(body), main))

    def drop(self, changed: int) -> None:
        """Forget what was worked out from anything that has changed."""
        self.outcomes.drop(changed)
        self.on_heirs.drop(changed)
        self.entered.drop(changed)
        self.replaced.drop(changed)
        self.stretches.drop(changed)
