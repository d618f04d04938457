"""What a run does: an entry point's events in order, through every function of the project that it reaches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from torchrepro_lint.catalogue.loaders import loader_kinds, loader_names
from torchrepro_lint.query.memo_tables import tight
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.program_index import entered
from torchrepro_lint.syntax.events import Event
from torchrepro_lint.syntax.nodes import Attribute, Call, Constant, Expression, Ref, Subscript, fields, path_of
from torchrepro_lint.trace.dead_initialisation import replaced
from torchrepro_lint.trace.entry_points import Entry, is_test
from torchrepro_lint.trace.framework_models import (
    Handed,
    handed_values,
    keeps,
    receiver_of,
    rows_of,
    run_by,
    through_loader,
    values_in,
)
from torchrepro_lint.trace.trace import (
    Beginning,
    CallFrame,
    Entered,
    Happening,
    Happens,
    Outcome,
    RunTables,
    Stretch,
    Target,
    Waiting,
)


class Begun(NamedTuple):
    """A run up to the end of a module's top level, and its happenings as others begin with them."""

    run: Run
    beginning: Beginning


class _Frame(NamedTuple):
    """A function that is being run, and the events that are left of it."""

    function: str
    path: str
    rest: Iterator[Event]
    way: tuple[CallFrame, ...]
    mode: str
    loaded: frozenset[int]
    receiver: str


class _Import(NamedTuple):
    """A module that an import in a function that is being run comes to."""

    by: _Frame
    event: Event
    file: str


class _Recording(NamedTuple):
    """A stretch that is going on: what it begins with, the bits that were seen before, how much there was, and what was
    asked since.
    """

    target: Target
    frame: _Frame
    outer: int
    marks: tuple[int, int, int]
    asked: set[Target]


# In the place of a class: a file that was imported, though what its functions do is not of interest there.
_IMPORTED = "import"
# Likewise: a class of which objects are made.
_MADE = "made"
# Likewise: a function or class that was handed to something.
_HANDED = "handed"
_NO_CLASSES = frozenset({_IMPORTED, _MADE, _HANDED})
# So many classes may have class methods in common that are run for each of them.
_MOST_HEIRS = 20


class _Absent(NamedTuple):
    """What is not entered because no object of its class has been made yet, and the function that would enter it."""

    name: str
    kind: str
    mode: str
    waiting: Waiting
    receivers: tuple[str, ...]
    function: str


class Run:
    """All that some functions reach, each function once, in evaluation order.

    ``starts`` are functions or modules (``path:``) that run one after the other; a first module runs as ``__main__``
    where ``main`` says so. With ``mode`` they run in workers.

    Entering a function a second time could not show anything earlier, so the first occurrence of everything is exact,
    and recursion ends by itself.
    """

    def __init__(
        self,
        names: Names,
        tables: RunTables,
        starts: Iterable[str],
        *,
        main: bool = False,
        mode: str = "",
        after: Begun | None = None,
    ) -> None:
        self._names = names
        self._events = names.events
        self._tables = tables
        # The functions and modules that were entered, and (``_IMPORTED``) the files that were imported, as they came.
        self._seen: dict[Target, None] = {}
        self._entered: list[Entered] = []
        # The stretches that are going on, each inside the one before.
        self._recording: list[_Recording] = []
        self.happenings: list[Happening] = []
        self._waiting: dict[int | str, Waiting] = {}
        self._absent: list[_Absent] = []
        # Likewise what is passed for a parameter, by its name, and has not been handed over yet where that is called.
        self._unhanded: dict[str, list[_Absent]] = {}
        self.beginning = after.beginning if after else Beginning()
        self.starts = tuple(starts)
        if after:
            self._go_on(after.run)
        for name in self.starts:
            self._execute(Target(name, mode), (), main=main and name.endswith(":"))
        self._run_the_rest()

    @classmethod
    def from_entry(cls, entry: Entry, names: Names, tables: RunTables, after: Begun | None = None) -> Run:
        """The run that an entry point starts; ``after`` is what has begun with its module, where several are to."""
        starts = (f"{entry.path}:", *entry.before, *([entry.function] if entry.function else []))
        main = entry.function is None
        return cls(names, tables, starts, main=main, after=after if not main else None)

    @classmethod
    def of_module(cls, path: str, names: Names, tables: RunTables) -> Begun:
        """A run of a module, with which the runs of its commands begin: what waits is not run yet."""
        run = cls(names, tables, ())
        run.starts = (f"{path}:",)
        run._execute(Target(f"{path}:", ""), ())
        return Begun(run, Beginning(run.happenings))

    def _go_on(self, other: Run) -> None:
        """Begin with all that another run has done."""
        self._seen |= other._seen
        self._entered += other._entered
        self.happenings += other.happenings
        self._absent += other._absent
        self._unhanded |= {name: [*each] for name, each in other._unhanded.items()}
        self._waiting |= {key: each._replace(targets=[*each.targets]) for key, each in other._waiting.items()}

    @cached_property
    def functions(self) -> frozenset[str]:
        """The functions of the project that the run reaches; ``path:`` is a module's top level."""
        return frozenset(target.function for target in self._seen if target.receiver not in _NO_CLASSES)

    @cached_property
    def paths(self) -> frozenset[str]:
        """The files of which the run reaches anything."""
        return frozenset(map(path_of, self.functions))

    @cached_property
    def entries(self) -> dict[str, tuple[Entered, ...]]:
        """For each function how it is entered; for one that waits to the end that is where it was handed over."""
        found: dict[str, list[Entered]] = {}
        for each in self._entered:
            found.setdefault(each.function, []).append(each)
        return tight(found)

    @cached_property
    def started(self) -> frozenset[str]:
        """What the entry point itself calls, as ``main()`` under the guard."""
        return frozenset(name for happening in self.happenings if not happening.way for name in happening.names)

    def _execute(self, start: Target, way: tuple[CallFrame, ...], *, main: bool = False) -> None:
        """Run a function and all that it enters; the stack is our own, since call chains outgrow Python's."""
        if start in self._seen:
            return
        self._seen[start] = None
        stack: list[_Frame | _Import] = [self._frame(start, way, main=main)]
        while stack:
            top = stack[-1]
            if isinstance(top, _Import):
                stack.pop()
                stack += self._import(top)
                continue
            event = next(top.rest, None)
            if event is None:
                stack.pop()
                if self._recording and self._recording[-1].frame is top:
                    self._keep(self._recording.pop())
            elif event.kind == "import":
                files = self._names.modules.run_by(top.path, event.modules)
                stack.extend(_Import(top, event, file) for file in reversed(files))
            else:
                entered = [frame for target in self._happen(top, event) for frame in self._enter(top, event, target)]
                stack.extend(reversed(entered))

    def _import(self, one: _Import) -> list[_Frame]:
        """A module runs where it is imported first; not once more where another run has come to it in the same state."""
        imported = Target(one.file, one.by.mode, _IMPORTED)
        if self._asks(imported):
            return []
        self._seen[imported] = None
        target = Target(f"{one.file}:", one.by.mode)
        frames = self._enter(one.by, one.event, target)
        if frames and not self._waiting:
            if self._repeats(target, frames[0].way):
                return []
            self._record(target, frames[0])
        return frames

    def _enter(self, by: _Frame, event: Event, target: Target) -> list[_Frame]:
        """The frame of a function that has not been entered before."""
        self._entered.append(Entered(target.function, by.function, event))
        if self._asks(target):
            return []
        self._seen[target] = None
        return [self._frame(target, (*by.way, CallFrame(by.path, event, target.function)))]

    def _asks(self, target: Target) -> bool:
        """Whether a target has been entered before."""
        if self._recording:
            self._recording[-1].asked.add(target)
        return target in self._seen

    def _repeats(self, target: Target, way: tuple[CallFrame, ...]) -> bool:
        """Do what another run has done from here, if this one would do the same."""
        known = self._tables.stretches.look(target)
        if known is None or not known[0].fits(self._seen):
            return False
        stretch, seen = known
        self._names.modules.reads.seen |= seen
        if self._recording:
            self._recording[-1].asked.update(stretch.asked)
        self.happenings += stretch.happens(way)
        self._entered += stretch.entered
        self._seen.update(dict.fromkeys(stretch.seen))
        self._waiting.update(stretch.waits(way))
        return True

    def _record(self, target: Target, frame: _Frame) -> None:
        reads = self._names.modules.reads
        marks = len(self.happenings), len(self._entered), len(self._seen)
        self._recording.append(_Recording(target, frame, reads.seen, marks, set()))
        reads.seen = 0
        reads.see(frame.path)  # its events are there already

    def _keep(self, found: _Recording) -> None:
        """Remember what has happened from where a module was entered."""
        reads = self._names.modules.reads
        happenings, entered, seen = found.marks
        if self._recording:
            self._recording[-1].asked.update(found.asked)
        new = tuple(islice(self._seen, seen, None))
        stretch = Stretch(
            frozenset(found.asked),
            frozenset(each for each in found.asked.difference(new) if each in self._seen),
            found.frame.way,
            tuple(self.happenings[happenings:]),
            tuple(self._entered[entered:]),
            new,
            tuple(self._waiting.items()),
        )
        self._tables.stretches.put(found.target, stretch, reads.seen)
        reads.seen |= found.outer

    def _run_the_rest(self) -> None:
        """What was handed over or built, and not seen to be called or iterated, is taken to be so at the end."""
        while True:
            while self._waiting:
                waiting = self._waiting.pop(next(iter(self._waiting)))
                maker = waiting.way[-1].into if waiting.way else self.starts[0]
                self._run_later(waiting.targets, waiting, maker)
            came = [each for each in self._absent if self._is_made(self._class_of(each.name))]
            self._absent = [each for each in self._absent if not any(each is other for other in came)]
            if not came and self._unhanded:
                came = self._unhanded.pop(next(iter(self._unhanded)))
            if not came:
                return
            for each in came:
                self._run_later([*self._followed(*each[:-1])], each.waiting, each.function)

    def _run_later(self, targets: Iterable[Target], waiting: Waiting, maker: str) -> None:
        for target in targets:
            self._entered.append(Entered(target.function, maker, waiting.step.event))
            self._execute(target, (*waiting.way, waiting.step._replace(into=target.function)))

    def _of_this_run(self, found: Sequence[str], *, passed: bool = False) -> Sequence[str]:
        """Without what files define that this run has not come to, where there is anything else: who passes it for a parameter
        runs there, and has imported it. (What is loaded when it is asked for is imported where nobody runs that.)
        """
        if len(found) < 2 or not (self.starts and self.starts[0].endswith(":")):
            return found
        return [name for name in found if not self._is_elsewhere(path_of(name), passed)] or found

    def _is_elsewhere(self, path: str, passed: bool) -> bool:
        """Whether a run has nothing of a file: of another script or test that it has not come to; of what is ``passed``, of any that
        it can not load.
        """
        if any(self._asks(Target(f"{path}:", mode)) for mode in ("", "worker", "loaded")):
            return False
        modules = self._names.modules
        facts = modules.files[path]
        other = facts.summary.guarded or is_test(path, facts)
        # What stretches do hangs on what was entered alone.
        return other or (passed and not self._recording and path not in modules.may_load(path_of(self.starts[0])))

    def _handed_so_far(self, found: Sequence[str], every: bool) -> Sequence[str]:
        """Of what is passed for a parameter somewhere, what has been handed over in this run: who calls it before has got another.
        Where none has, and that is ``every`` thing that may be passed, it comes some other way.
        """
        handed = [name for name in found if name.endswith("()") or self._asks(Target(name, "", _HANDED))]
        return handed or (found if every else [])

    def _first_handed(self, name: str) -> Iterator[Target]:
        """What a function or class runs by being handed over, where that has been called before."""
        if not name.endswith("()"):
            self._seen[Target(name, "", _HANDED)] = None
            for each in self._unhanded.pop(name, ()):
                yield from self._followed(*each[:-1])

    def _present(self, found: Sequence[str]) -> Sequence[str]:
        """Without the objects of classes that this run has not made, where it has made others: another program passes those."""
        if len(found) < 2 or self._recording:  # what stretches do hangs on what was entered alone
            return found
        owners = {name: self._class_of(name) for name in found}
        if len({owner for owner in owners.values() if owner}) < 2:
            return found
        there = [name for name, owner in owners.items() if not owner or self._is_made(owner)]
        return there if any(owners[name] for name in there) else found

    def _class_of(self, name: str) -> str:
        """The class of the project that an object is of, or whose method a name is; empty for anything else."""
        if name.endswith("()"):
            return name[:-2] if self._names.classes(name[:-2]) else ""
        return "" if name.endswith(".__init__") or self._names.classes(name) else self._names.owner(name)

    def _is_made(self, owner: str) -> bool:
        """Whether a class has been called in this run, or one that inherits from it or that it inherits from."""
        related = (owner, *self._names.heirs_of(owner), *self._names.ancestry(owner))
        return any(Target(each, "", _MADE) in self._seen for each in related)

    def _frame(self, target: Target, way: tuple[CallFrame, ...], *, main: bool = False) -> _Frame:
        name = target.function
        found = self._events.of(name, main=main)
        loaded = self._tables.replaced.of((name, main), lambda: self._find_replaced(name, found))
        return _Frame(name, path_of(name), iter(found), way, target.mode, loaded, target.receiver)

    def _find_replaced(self, name: str, found: tuple[Event, ...]) -> frozenset[int]:
        self._names.modules.reads.see(path_of(name))
        return frozenset(replaced(self._names, self._events, name, found))

    def _happen(self, frame: _Frame, event: Event) -> Iterator[Target]:
        """Record an event; yields the functions that it enters."""
        assert event.value is not None
        value = event.value
        if event.kind == "set":
            place = value.value if isinstance(value, Subscript) else value
            found = self._names.names(frame.path, place)
            action = self._tables.action(frame.path, frame.function, event, found, False, frame.mode)
            self.happenings.append(Happening(action, frame.way))
            return
        called = value.func if isinstance(value, Call) and event.kind == "call" else value
        outcome = self._outcome(frame, event, called)
        found, assumed, quiet = outcome.found, outcome.assumed, outcome.quiet
        mode = "loaded" if id(event.statement) in frame.loaded and not frame.mode else frame.mode
        action = self._tables.action(frame.path, frame.function, event, found, assumed, mode)
        self.happenings.append(Happening(action, frame.way))
        if event.kind == "read":
            yield from (Target(target, mode) for target in self._read(frame.path, value))
            return
        if not quiet:
            waiting = Waiting(frame.way, CallFrame(frame.path, event, ""), [])
            receivers = self._receivers(frame, called) if event.kind == "call" else ()
            for name in self._there(frame.function, event.kind, mode, waiting, receivers, outcome):
                yield from self._followed(name, event.kind, mode, waiting, receivers)
            if event.kind == "call" and isinstance(value, Call):
                yield from self._hooks(Handed(frame.path, value, found, receivers), mode)
                given = self._of_this_run(outcome.handed)
                for name in given:
                    yield from self._first_handed(name)
                yield from self._hand_over(frame.path, value, found, given, mode, waiting)
        if event.kind in ("call", "iterate", "index"):
            yield from self._awaited(frame.path, called)

    def _there(
        self, function: str, kind: str, mode: str, waiting: Waiting, receivers: tuple[str, ...], outcome: Outcome
    ) -> Sequence[str]:
        """What an event enters of the project now; what has not been made or handed over yet is noted."""
        every = self._of_this_run([name for name in outcome.found if ":" in name], passed=outcome.assumed)
        own = self._handed_so_far(every, len(every) == len(outcome.found)) if outcome.assumed else every
        if kind == "call":
            self._seen.update((Target(name, "", _MADE), None) for name in own if self._names.classes(name))
        there = self._present(own)
        for name in every if len(there) < len(every) else ():
            if name not in there:
                absent = _Absent(name, kind, mode, waiting, receivers, function)
                if name in own:
                    self._absent.append(absent)
                elif not self._recording:  # what is handed over later is not known to a stretch
                    self._unhanded.setdefault(name, []).append(absent)
        return there

    def _outcome(self, frame: _Frame, event: Event, called: Expression) -> Outcome:
        """What an event calls and hands over; remembered for all runs."""
        key = Happens.of(frame.path, event)
        if frame.receiver:
            return self._tables.on_heirs.of((key, frame.receiver), lambda: self._find_outcome(frame, event, called))
        self._names.modules.reads.recall("outcomes")
        return self._tables.outcomes.of(key, lambda: self._find_outcome(frame, event, called))

    def _find_outcome(self, frame: _Frame, event: Event, called: Expression) -> Outcome:
        self._names.modules.reads.see(frame.path)  # what is remembered by its place goes with its file
        found, assumed = self._found(frame, called)
        handed: tuple[str, ...] = ()
        runs = False
        if event.kind == "call" and isinstance(event.value, Call):
            values = list(handed_values(event.value))
            if runs := _fetch(found):
                lists = [each for each in values if isinstance(each, Ref)]
                values += values_in(item for each in lists for item in self._events.added(frame.path, each))
            names = (name for each in values for name in self._names.names(frame.path, each))
            handed = tuple(dict.fromkeys(name for name in names if ":" in name))
            runs = runs or not _COMMAND_LINES.isdisjoint(found) or any(row.runs or row.calls for row in rows_of(found))
        return Outcome(found, assumed, not (runs or handed or any(":" in name for name in found)), handed)

    def _found(self, frame: _Frame, called: Expression) -> tuple[tuple[str, ...], bool]:
        """What is called: on ``self`` by the class of the object, for a parameter by what the calls of the project pass
        (then true).
        """
        names = self._names
        if isinstance(called, Ref) and (inner := through_loader(names, frame.path, called)):
            return inner, False
        if isinstance(called, Ref) and frame.receiver and _is_self(names, frame.function, called):
            if called.path:
                return names.follow(f"{frame.receiver}()", called.path), False
            if names.names(frame.path, called) == (names.owner(frame.function),):
                return (frame.receiver,), False  # ``cls(...)`` in a class method
        found = names.names(frame.path, called)
        if not isinstance(called, Ref):
            return found, False
        if all(name.endswith("[]") for name in found) and (parts := names.taken_apart(frame.path, called)):
            return parts, False
        if not found:
            return names.through_calls(frame.path, called), True
        if any("()" in name and names.heirs_of(name.partition("()")[0]) for name in found):
            # ``model: nn.Module`` says which class it inherits from; what is passed says which class it is.
            return tuple(sorted({*found, *names.through_calls(frame.path, called)})), False
        if len(called.path) == 1 and all(name[-1] in ")]" and ":" not in name for name in found):
            # ``self.net = wrap(self.net)`` from outside may still be what was passed for it.
            return tuple(sorted({*found, *names.through_calls(frame.path, called)})), False
        return found, False

    def _receivers(self, frame: _Frame, called: Expression) -> tuple[str, ...]:
        """The classes of the project on whose objects a method is called."""
        if isinstance(called, Ref) and called.path and frame.receiver and _is_self(self._names, frame.function, called):
            return (frame.receiver,) if len(called.path) == 1 else ()
        if self._is_of_base(frame, called):
            own = frame.receiver or self._names.owner(frame.function)
            return (own,) if own else ()
        found = sorted(set(self._names.receiver(frame.path, called)))
        return tuple(
            name.removesuffix("()")
            for name in found
            if ":" in name and (name.endswith("()") or self._is_one_of_few(name))
        )

    def _is_one_of_few(self, owner: str) -> bool:
        """Whether a class is one of few that have class methods in common. What those make of hundreds of classes, as those of a
        model zoo, would be run for each of them.
        """
        bases = [each for each in self._names.ancestry(owner)[1:] if ":" in each]
        return bool(self._names.classes(owner)) and all(
            len(self._names.heirs_of(each)) <= _MOST_HEIRS for each in bases
        )

    def _is_of_base(self, frame: _Frame, called: Expression) -> bool:
        """Whether the method of a base class is called on the same object: ``super().m``, ``Base.__init__``."""
        match called:
            case Ref(roots=roots, path=path):
                return any(root.endswith(".<super>") for root in roots) or path[-1:] == ("__init__",)
            case Attribute(value=value):
                return any(name.endswith(".<super>()") for name in self._names.names(frame.path, value))
        return False

    def _followed(
        self, name: str, kind: str, mode: str, waiting: Waiting, receivers: tuple[str, ...]
    ) -> Iterator[Target]:
        """The functions that an event on a value of the project enters; a generator's body waits until it is used."""
        for target, owner, waits in self._tables.entered.of(
            (name, kind, receivers), lambda: tuple(self._find_entered(name, kind, receivers))
        ):
            found = Target(target, mode, owner)
            if waits:
                self._waiting.setdefault(target, waiting._replace(targets=[found]))
            else:
                yield found
        if kind != "call" and name.endswith("()") and name[:-2] in self._waiting:
            yield from self._waiting.pop(name[:-2]).targets

    def _find_entered(self, name: str, kind: str, receivers: tuple[str, ...]) -> Iterator[tuple[str, str, bool]]:
        """The functions, each with the class of the object where that is another than its own, and whether it waits."""
        for target in entered(self._names, name, kind):
            owner = self._names.owner(target)
            if self._names.classes(name):
                objects = [name]
            elif name.endswith("()"):
                objects = [name[:-2]]
            else:
                objects = [each for each in receivers if owner in self._names.ancestry(each)]
            for each in objects or [""]:
                yield target, "" if each == owner else each, kind == "call" and self._names.is_generator(target)

    def _awaited(self, path: str, used: Expression) -> Iterator[Target]:
        """What waits for an object to be iterated or called: a loader's dataset, a container's modules."""
        if any(isinstance(key, int) for key in self._waiting):
            still = isinstance(used, Ref) and not STILL_METHODS.isdisjoint(used.path[-1:])
            for each in (used, None if still else receiver_of(used)):
                # Anything else stands for itself, and no call makes it.
                if isinstance(each, Call) or (isinstance(each, Ref) and len(each.path) < 2):
                    for _, value in self._names.made(path, each):
                        if id(value) in self._waiting:
                            yield from self._waiting.pop(id(value)).targets

    def _hooks(self, handed: Handed, mode: str) -> Iterator[Target]:
        """What a framework runs of the objects and functions that it is handed."""
        for name in run_by(self._names, handed):
            if self._names.classes(name):
                yield from (Target(target, mode) for target in entered(self._names, name, "call"))
            elif self._names.functions(name):
                yield Target(name, mode)

    def _read(self, path: str, value: Expression) -> Iterator[str]:
        """The properties that reading ``a.b.c`` runs."""
        if isinstance(value, Ref):
            for index, word in enumerate(value.path):
                if word in self._names.property_words:
                    owner = value._replace(path=value.path[:index])
                    for name in self._names.names_of(path, owner):
                        if name.endswith("()") and ":" in name:
                            methods = self._names.methods(name[:-2], word)
                            yield from (each for each in methods if self._names.is_property(each))

    def _hand_over(
        self, path: str, call: Call, found: tuple[str, ...], given: Sequence[str], mode: str, waiting: Waiting
    ) -> Iterator[Target]:
        """Functions, generators and callable objects passed as arguments.

        Functions from outside are taken to call them at once, an object of a class from outside when it is used, functions
        of the project when they are seen to; a loader's workers when it is iterated.
        """
        if "functools.partial" in found:
            return  # it stands for what it is given
        if found and all(name in _LOOKING or name.startswith(_SHOWING) or _is_registry(name) for name in found):
            return
        if not given and _COMMAND_LINES.isdisjoint(found) and not _fetch(found):
            return
        inside = "worker" if fetches(self._names, path, call, found) else mode
        followed = any(":" in name for name in found)
        ordering = self._ordering(path, call, found)
        handed = self._wrapped(path, call, inside, mode) if _fetch(found) else []
        if not call.args and _COMMAND_LINES.intersection(found):
            handed += (Target(name, inside) for name in self._names.defined_in(path))
        for name in given:
            if name.endswith("()") and name[:-2] in self._waiting and not followed:
                yield from self._waiting.pop(name[:-2]).targets
            elif self._names.functions(name):
                handed.append(Target(name, inside))
            elif not followed:
                where = mode if name in ordering else inside
                handed += (Target(target, where) for target in self._used(name, found, where))
        if followed:
            for target in handed:
                self._waiting.setdefault(":".join(fields(target)), waiting._replace(targets=[target]))
        elif any(_constructs(name) for name in found) or keeps(found):
            self._waiting.setdefault(id(call), waiting._replace(targets=handed))
        else:
            yield from handed

    def _ordering(self, path: str, call: Call, found: tuple[str, ...]) -> frozenset[str]:
        """What is handed to a loader as its sampler, whose order is drawn before any worker is asked."""
        if loader_names().isdisjoint(found):
            return frozenset()
        return frozenset(name for each in samplers_of(call) for name in self._names.names(path, each))

    def _wrapped(self, path: str, call: Call, inside: str, outside: str) -> list[Target]:
        """What waits for the wrappers that a loader or another wrapper is handed: it fetches in the mode of the outer one,
        but for what gives the order, which runs where the loader does.
        """
        found: list[Target] = []
        if any(isinstance(key, int) for key in self._waiting):
            ordering = samplers_of(call)
            for each in handed_values(call):
                mode = outside if any(each is sampler for sampler in ordering) else inside
                for value in self._made(path, each):
                    if id(value) in self._waiting:
                        found += (target._replace(mode=mode) for target in self._waiting.pop(id(value)).targets)
        return found

    def _made(self, path: str, each: Expression) -> Iterator[Expression]:
        """What makes a value, or what it is a part of."""
        yield from (value for _, value in self._names.made(path, each))
        if isinstance(each, Ref) and not each.path:
            for root in each.roots:
                yield from (value for how, value in self._names.assigned(path + root) if how == "[]")

    def _used(self, name: str, found: tuple[str, ...], mode: str) -> Iterator[str]:
        """What code from outside runs of a class or an object that it is handed."""
        if _COMMAND_LINES.intersection(found):
            yield from self._names.public_methods(name)
        elif name.endswith("()"):
            yield from self._names.call_methods(name)
            if mode == "worker" or _fetch(found):
                yield from entered(self._names, name, "iterate")


# Methods of modules that run no forward pass.
STILL_METHODS = frozenset(
    {"parameters", "named_parameters", "children", "modules", "named_modules", "buffers", "state_dict", "eval", "train"}
    | {"load_state_dict", "to", "cuda", "cpu", "half", "float", "bfloat16", "requires_grad_", "apply", "zero_grad"}
)

# What calls nothing that it is handed, and goes along nothing.
_LOOKING = frozenset(
    f"builtins.{word}"
    for word in (
        "hasattr",
        "isinstance",
        "issubclass",
        "id",
        "type",
        "len",
        "callable",
        "super",
        "setattr",
        "getattr",
        "delattr",
        "repr",
        "print",
        "vars",
        "dir",
    )
)

# Where what is handed over is shown.
_SHOWING = ("inspect.", "logging.", "warnings.", "loguru.")

# What makes a command line of a function, a dictionary of functions, or a class.
_COMMAND_LINES = frozenset({"fire.Fire", "fire.core.Fire"})


# What gives back the function, module or dataset that it is handed, to be run later.
_WRAPPERS = frozenset(
    {"torch.compile", "torch.jit.script", "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "copy.copy", "copy.deepcopy"}
    | {"torch.utils.data.random_split", "torch.utils.data.dataset.random_split"}
)


def _fetch(found: Iterable[str]) -> bool:
    """Whether a call makes a loader, or what it may be given instead of a dataset."""
    return any(name in loader_names() or name.startswith("torch.utils.data.") for name in found)


def _is_registry(name: str) -> bool:
    """Whether a name is of a method by which an object from outside notes a function under a word, until somebody names it."""
    return name.endswith("().register") and not keeps((name,))


def _constructs(name: str) -> bool:
    """Whether calling a name from outside makes an object, by the custom of naming."""
    return (name.rpartition(".")[2][:1].isupper() and name not in _COMMAND_LINES) or name in _WRAPPERS


def _is_self(names: Names, function: str, called: Ref) -> bool:
    """Whether a reference starts at the first parameter of a method."""
    path = path_of(function)
    return any(
        f"{path}{root}" == f"{function}.<locals>.{each.params[0].name}"
        for each in names.functions(function)
        if each.owner and each.params
        for root in called.roots
    )


_FETCHED = re.compile(r"(?i)(?=\w*\Z)(?:collate_fn|\w*transf\w*|(\w*_)?(trans|tfms?|tsfm|aug)(_\w*)?|\w*augment\w*)")


def fetches(names: Names, path: str, call: Call, found: tuple[str, ...]) -> bool:
    """Whether what is handed to a call runs where samples are fetched, in workers as far as can be known."""
    if kind := next((loader_kinds()[name] for name in found if name in loader_names()), None):
        given = {arg.keyword: arg.value for arg in call.args}
        positional = (arg.value for arg in call.args if arg.keyword is None and not arg.star)
        named: dict[str | None, Expression] = dict(zip(kind.parameters, positional, strict=False))
        workers = {**named, **given}.get("num_workers")
        if workers is None:
            return any(arg.star == "**" for arg in call.args)
        return any(not (isinstance(value, Constant) and value.value == 0) for _, value in names.values(path, workers))
    if any(arg.keyword and _FETCHED.fullmatch(arg.keyword) for arg in call.args) or _adds_transforms(call):
        return True
    return any(
        "datasets." in name or "transforms." in name or (name.startswith("torch.utils.data") and name[-7:] != "Sampler")
        for name in found
    )


def _adds_transforms(call: Call) -> bool:
    """``train_transforms.append(RandomErase())``."""
    match call.func:
        case Ref(roots=roots, path=(*words, "append" | "extend" | "insert")):
            return bool(_FETCHED.fullmatch((*roots, *words)[-1].rpartition(".")[2].lstrip(":?")))
    return False


def samplers_of(call: Call) -> list[Expression]:
    """What a loader is given to order its samples or batches by."""
    return [arg.value for arg in call.args if arg.keyword in ("sampler", "batch_sampler")]
