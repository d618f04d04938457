"""What happens in a run, and the way there from its entry point.

Whether a place of a program runs more than once: in a loop, for each epoch, batch or sample.

What a run does from where it imports a module until that has run, for other runs that come to the same import.

Programs of one project import much the same modules, and after an edit they do so again.

What the runs of a file's commands have in common: its top level, run once for all of them.

Memo tables of traces: what runs have found of events and functions, and the parts of traces that runs have in common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from torchrepro_lint.query.memo_tables import Kept, Reads, Recent
from torchrepro_lint.syntax.control_flow import Level, in_loop, level_of
from torchrepro_lint.syntax.events import Event, Guard
from torchrepro_lint.syntax.nodes import Call, Comprehension, Small, Statement, fields
from torchrepro_lint.syntax.visitor import expressions, within

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex


class CallFrame(Small, frozen=True):
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
    way: tuple[CallFrame, ...]

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

    way: tuple[CallFrame, ...]
    step: CallFrame
    targets: list[Target]


_OFTEN = re.compile(
    r"(?i)(?=\w*\Z)(?:forward|__getitem__|__getitems__|__iter__|__next__|__call__|"
    r"(\w*_)?(step|batch|collate\w*|augment\w*|sample|transform)|\w*epoch\w*|next_\w+|get_batch\w*)|<lambda>"
)
# Callers of callers are looked at so many times.
_DEPTH = 5


def runs_often(project: ProgramIndex, path: str, call: Call) -> bool:
    """Whether a call of a file runs more than once in a run, as far as loops, names and the calls of the project tell."""
    level = level_of(project.files[path], call.start)
    return level is None or _often(project, path, level, call, _DEPTH)


def function_runs_often(project: ProgramIndex, path: str, level: Level) -> bool:
    """Whether the function of a level runs more than once in a run; the level's own loops do not count."""
    return _is_repeated(project, path, level, _DEPTH)


def _often(project: ProgramIndex, path: str, level: Level, call: Call, depth: int) -> bool:
    if in_loop(level) or _in_comprehension(level.spots[-1].statement, call):
        return True
    return _is_repeated(project, path, level, depth)


def _is_repeated(project: ProgramIndex, path: str, level: Level, depth: int) -> bool:
    if level.function is None or depth == 0:
        return False
    word = level.function.name.rpartition(".")[2].lstrip(":")
    if _OFTEN.fullmatch(word):
        return True
    names = [f"{path}{level.function.name}"]
    if word == "__init__" and level.function.owner:
        names.append(f"{path}{level.function.owner}")
    return any(_site_repeats(project, name, depth) for name in names)


def _site_repeats(project: ProgramIndex, name: str, depth: int) -> bool:
    for path, site in project.sites_of(name):
        level = level_of(project.files[path], site.call.start)
        if level is not None and _often(project, path, level, site.call, depth - 1):
            return True
    return False


def _in_comprehension(statement: Statement, call: Call) -> bool:
    return any(
        isinstance(each, Comprehension) and any(element.start <= call.start < element.end for element in each.elements)
        for expression in expressions(statement)
        for each in within(expression)
    )


class Entered(Small, frozen=True):
    """A function that is entered, and from where: a function, and which of its events."""

    function: str
    caller: str
    event: Event


class Stretch(NamedTuple):
    """A part of a run in which nothing waits when it begins.

    ``asked`` are the targets that it came to, ``known`` those of them that had been entered before: in a run of which the same
    is true it goes the same way. ``way`` leads to where it begins, and ``seen`` are the targets that it enters first.
    """

    asked: frozenset[Target]
    known: frozenset[Target]
    way: tuple[CallFrame, ...]
    happenings: tuple[Happening, ...]
    entered: tuple[Entered, ...]
    seen: tuple[Target, ...]
    waiting: tuple[tuple[int | str, Waiting], ...]

    def fits(self, seen: Collection[Target]) -> bool:
        """Whether it goes the same way where these targets have been entered."""
        return all((each in seen) is (each in self.known) for each in self.asked)

    def happens(self, way: tuple[CallFrame, ...]) -> Iterator[Happening]:
        """Its happenings where another way leads to its beginning."""
        start, ways = len(self.way), dict[int, tuple[CallFrame, ...]]()
        for each in self.happenings:
            old = each.way
            new = ways.get(id(old))
            if new is None:
                new = ways[id(old)] = (*way, *old[start:])
            yield Happening(each.action, new)

    def waits(self, way: tuple[CallFrame, ...]) -> Iterator[tuple[int | str, Waiting]]:
        """What is left waiting, likewise."""
        for key, each in self.waiting:
            yield key, each._replace(way=(*way, *each.way[len(self.way) :]))


_Answer = TypeVar("_Answer")


class Beginning:
    """The happenings with which several runs begin, and what was worked out from them alone, or with the runs."""

    def __init__(self, happenings: Sequence[Happening] = ()) -> None:
        self.happenings = tuple(happenings)
        self.known: dict[str, Any] = {}


class Begun(Protocol):
    """A trace that begins as others do."""

    @property
    def beginning(self) -> Beginning:
        """What it has in common with them."""
        ...

    @property
    def happenings(self) -> Sequence[Happening]:
        """All its events, those of the beginning first."""
        ...


def in_parts(
    run: Begun,
    name: str,
    compute: Callable[[int, Sequence[Happening]], _Answer],
    kept: dict[str, Any] | None = None,
) -> tuple[_Answer, ...]:
    """What ``compute`` makes of happenings, of which the first has an order: of those that the run begins with as others
    do, remembered by the name, and of its own.

    A run may be kept while files change that it does not come by: what asks for more than happenings, once the run is
    there, is remembered in what is ``kept`` for one project.
    """
    begun = run.beginning
    if not begun.happenings:
        return (compute(0, run.happenings),)
    remembered = begun.known if kept is None else kept.setdefault(f"{__name__} {id(begun)}", {})
    if name not in remembered:
        remembered[name] = compute(0, begun.happenings)
    known: _Answer = remembered[name]
    start = len(begun.happenings)
    return known, compute(start, run.happenings[start:])


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
