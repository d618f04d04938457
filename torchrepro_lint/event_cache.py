"""The events of the bodies of a project, each worked out once."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.definitions import Definitions
from torchrepro_lint.query.memo_tables import Recent
from torchrepro_lint.syntax.control_flow import Setting
from torchrepro_lint.syntax.definitions import Mutations, mutations
from torchrepro_lint.syntax.events import Event, events
from torchrepro_lint.syntax.nodes import Expression, Facts, Ref, Statement
from torchrepro_lint.syntax.summary import is_property

# The events of all bodies of a project take a sixth of the memory of its facts. They are let go of as in ``link``.
_MOST_BODIES = 5_000


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
