"""Who calls which function of a project, and whether a gradient is kept there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.evaluation import in_evaluation
from torchrepro_lint.gradient_modes import mode_at
from torchrepro_lint.pipelines import trains_nothing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchrepro_lint.resolve.call_sites import Place
    from torchrepro_lint.resolve.program_index import ProgramIndex


# A name that more methods have says little of whose it is.
_MOST_METHODS = 8


class ForwardCallers:
    """The calls of a project by what they run. A method is also run by a call of its name on what can not be told, and
    by one of the method that it overrides.
    """

    def __init__(self, project: ProgramIndex) -> None:
        self._project = project
        self._known: dict[str, bool] = {}

    def forward_only(self, function: str) -> bool:
        """Whether some call of a function stands where no gradient is kept, and each does, on each way that leads there."""
        if function not in self._known:
            self._known[function] = self._asked(function)
        return self._known[function]

    def _asked(self, function: str) -> bool:
        """Follow the callers until a mode is found on each way; a function that only calls itself is on none."""
        seen, waiting, off = {function}, [function], False
        while waiting:
            current = waiting.pop()
            if trains_nothing(self._project, current):
                off = True
                continue
            if self._project.resolver.calls_of.hands_on(current, kept=False):
                return False
            places = [(path, place) for path, some in self._calls(current) for place in some]
            if not places:
                return False
            for path, place in places:
                caller = path + place.function
                guards = self._project.called_at(caller, place.start, place.end).event.guards
                mode = mode_at(self._project, caller, guards)
                mode = mode or ("off" if in_evaluation(self._project, caller, place.start, guards) else "")
                if mode == "on":
                    return False
                off = off or mode == "off"
                if not mode and caller not in seen:
                    seen.add(caller)
                    waiting.append(caller)
        return off

    def _calls(self, function: str) -> Iterator[tuple[str, Sequence[Place]]]:
        """What may run a function, by file. A network's ``forward`` is run by torch, so that no name says who calls it."""
        yield from self._project.all_calls.told.of(function)
        resolver = self._project.resolver
        owner, word = resolver.owner(function), function.rpartition(".")[2]
        if owner and not word.startswith(("__", "forward")):
            yield from self._project.all_calls.untold.of(word) if self._is_telling(word) else ()
            for above in resolver.ancestry(owner)[1:]:
                for method in resolver.methods(above, word) if ":" in above else ():
                    yield from self._project.all_calls.told.of(method) if ":" in method else ()

    def _is_telling(self, word: str) -> bool:
        """Whether a call by this word on what can not be told is likely one of a certain method: few classes share it."""
        return self._project.all_calls.methods[word] <= _MOST_METHODS
