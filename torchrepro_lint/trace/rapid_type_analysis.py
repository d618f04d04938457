"""Rapid type analysis: which targets of an event are there in a trace when it comes to the event.

A method is entered once an object of its class is constructed, a passed callable once a call passes it, and a function of a file
that the program cannot load not at all. What is not there yet is postponed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchrepro_lint.resolve.names import Names
from torchrepro_lint.syntax.control_flow import Event
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.qualified_names import in_project, is_instance, is_module, path_of
from torchrepro_lint.trace.call_targets import CallTargets, Frame, uses_of_calls
from torchrepro_lint.trace.entry_points import is_program
from torchrepro_lint.trace.events import (
    DeferralKey,
    DeferredCall,
    EventTargets,
    PostponedEntry,
    Target,
    TraceMemoTables,
    module_targets,
)


class Recording(Record, frozen=True):
    """A fragment that is being recorded: its first target and frame, the outer dependencies, the number of answers asked for and the
    lengths of the trace's lists where it begins, and the targets that it has come to.
    """

    target: Target
    frame: Frame
    outer: int
    answers: int
    marks: tuple[int, int, int]
    asked: set[Target]


# Markers in place of a receiver's class. This one: the file was imported.
IMPORTED = "import"
# The class was called.
_CONSTRUCTED = "made"
# The function or class was passed as an argument.
_PASSED = "handed"
NO_CLASSES = frozenset({IMPORTED, _CONSTRUCTED, _PASSED})


class RapidTypeAnalysis(CallTargets):
    """The targets that a trace has entered, the classes that it has constructed, and what it has passed so far."""

    def __init__(self, names: Names, tables: TraceMemoTables) -> None:
        super().__init__(names, tables)
        self.starts: tuple[str, ...] = ()
        # The targets that were entered, in order, and the markers for files, classes and arguments.
        self._seen: dict[Target, None] = {}
        # The fragments that are being recorded, each inside the one before.
        self._recording: list[Recording] = []
        self._postponed: list[PostponedEntry] = []
        # The networks that waited in containers that this trace has used: each other use of one is another call, which may be in another
        # grad mode.
        self._released: dict[DeferralKey, DeferredCall] = {}
        # By name, what some call passes for a parameter, where the parameter was called before this trace came to such a call.
        self._not_yet_passed: dict[str, list[PostponedEntry]] = {}
        # The names among them that are called where this trace has passed nothing: they come from elsewhere, as from a container.
        self._never_passed: dict[str, None] = {}

    def _is_entered(self, target: Target) -> bool:
        """Whether a target has been entered before."""
        if self._recording:
            self._recording[-1].asked.add(target)
        return target in self._seen

    def _in_this_trace(self, found: Sequence[str]) -> Sequence[str]:
        """Drop the names of files that this trace has not run, unless that leaves nothing: whoever passes such a value runs in a file
        that imports it. (Files that are loaded on demand are imported by code that nothing enters.)
        """
        if len(found) < 2 or not (self.starts and is_module(self.starts[0])):
            return found
        return [name for name in found if not self._is_elsewhere(path_of(name))] or found

    def _is_elsewhere(self, path: str) -> bool:
        """Whether a file is not part of this trace: a script or test that it has not run, or any file that it cannot load."""
        if any(map(self._is_entered, module_targets(path))):
            return False
        # What a fragment does depends on the file that it begins in, and on the targets entered: not on the program.
        start = self._recording[-1].target.function if self._recording else self.starts[0]
        return path not in self._names.may_load(path_of(start)) or is_program(self._names, path)

    def _passed_so_far(self, found: Sequence[str], every: bool) -> Sequence[str]:
        """Of the values that calls pass for a parameter, those that this trace has passed so far: an earlier call of the parameter
        got another. Where it has passed none, and these are ``every`` possible value, all stay.
        """
        arguments = [name for name in found if is_instance(name) or self._is_entered(Target(name, "", _PASSED))]
        return arguments or (found if every else [])

    def _note_passed(self, name: str) -> Iterator[Target]:
        """Note that a function or class is passed; yields what it enters where its parameter was called before."""
        if not is_instance(name):
            self._seen[Target(name, "", _PASSED)] = None
            for each in self._not_yet_passed.pop(name, ()):
                yield from self._enter_or_defer(*each[:5])

    def _of_constructed_classes(self, found: Sequence[str]) -> Sequence[str]:
        """Drop the objects of classes that this trace has not constructed, if it has constructed others: another program passes them."""
        if len(found) < 2 or self._recording:  # what a fragment does depends on the targets entered alone
            return found
        owners = {name: self._class_of(name) for name in found}
        if len({owner for owner in owners.values() if owner}) < 2:
            return found
        there = [name for name, owner in owners.items() if not owner or self._is_constructed(owner)]
        return self._without_relatives(there) if any(owners[name] for name in there) else found

    def _without_relatives(self, found: Sequence[str]) -> Sequence[str]:
        """Drop the objects of classes that this trace has not constructed itself, if it has constructed a base or subclass that is there,
        too.
        """
        if len(found) < 2 or self._recording:
            return found
        owners = {name: self._class_of(name) for name in found}
        made = {each for each in owners.values() if Target(each, "", _CONSTRUCTED) in self._seen}
        return [
            name
            for name, owner in owners.items()
            if owner in made
            or made.isdisjoint((*self._names.subclasses(owner), *self._names.ancestry(owner)) if owner and made else ())
        ]

    def _constructed(self, classes: tuple[str, ...]) -> tuple[str, ...]:
        """Of several classes that callers in all programs pass objects of, those that this trace has called."""
        all_stay = len(classes) < 2 or self._recording
        return classes if all_stay else tuple(each for each in classes if Target(each, "", _CONSTRUCTED) in self._seen)

    def _is_there(self, absent: PostponedEntry) -> bool:
        """Whether a postponed value can be entered now."""
        return self._is_constructed(self._class_of(absent.name)) and absent.name in self._without_relatives(
            absent.others
        )

    def _is_constructed(self, owner: str) -> bool:
        """Whether this trace has called a class, a subclass of it, or one of its bases."""
        related = (owner, *self._names.subclasses(owner), *self._names.ancestry(owner))
        return any(Target(each, "", _CONSTRUCTED) in self._seen for each in related)

    def _present_targets(
        self,
        function: str,
        kind: str,
        mode: str,
        waiting: DeferredCall,
        receivers: tuple[str, ...],
        targets: EventTargets,
    ) -> Sequence[str]:
        """The names of the project that an event enters now; values that are not constructed or passed yet are postponed."""
        every = self._in_this_trace([*filter(in_project, targets.found)])
        own = self._passed_so_far(every, len(every) == len(targets.found)) if targets.assumed else every
        if kind == "call":
            self._seen.update((Target(name, "", _CONSTRUCTED), None) for name in own if self._names.classes(name))
        there = self._of_constructed_classes(own)
        for name in every if len(there) < len(every) else ():
            if name not in there:
                absent = PostponedEntry(name, kind, mode, waiting, receivers, function, tuple(own))
                if name in own:
                    self._postponed.append(absent)
                elif not self._recording:  # a fragment does not know what is passed later
                    self._not_yet_passed.setdefault(name, []).append(absent)
                    if not own:
                        self._never_passed[name] = None
        return there

    def _uses(self, frame: Frame) -> Mapping[int, tuple[DeferralKey, ...]]:
        """The uses that may release deferred calls, in the step of a frame that was taken last; see ``uses_of_calls``."""
        if not self._released and not self._defers_values():
            return {}
        return uses_of_calls(self._names, frame.target, frame.main).get(len(frame.rest), {})

    def _release_deferred(self, event: Event, used: Iterable[DeferralKey]) -> Iterator[Target]:
        """The deferred calls that an event releases by using an object: a loader's dataset, a container's modules.

        What a fragment does depends on the targets entered alone, so within one an object is released once.
        """
        for made in used:
            waiting = self._deferred.get(made) or (None if self._recording else self._released.get(made))
            if waiting is not None and not self._is_other_use(waiting, event):
                self._deferred.pop(made, None)
                if not self._recording and any(each.function.endswith(".forward") for each in waiting.targets):
                    self._released[made] = waiting
                yield from waiting.targets
