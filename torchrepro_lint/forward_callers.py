"""Who calls which function of a project, and whether a gradient is kept there."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.evaluation import in_evaluation
from torchrepro_lint.gradient_modes import mode_at
from torchrepro_lint.pipelines import trains_nothing
from torchrepro_lint.runs import entered
from torchrepro_lint.walk import last_word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchrepro_lint.project import Project, Site


# A name that more methods have says little of whose it is.
_MOST_METHODS = 8


class Calls(NamedTuple):
    """The calls of a file by the functions of the project that they enter, those of which nothing is known by their last
    words, and the words of its methods.
    """

    told: dict[str, list[Site]]
    untold: dict[str, list[Site]]
    methods: tuple[str, ...]


class ForwardCallers:
    """The calls of a project by what they run. A method is also run by a call of its name on what can not be told, and
    by one of the method that it overrides.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._sites: dict[str, list[Site]] = defaultdict(list)
        self._untold: dict[str, list[Site]] = defaultdict(list)
        self._known: dict[str, bool] = {}
        self._methods = Counter[str]()
        for path in sorted(project.files):
            calls = project.link.calls.of(path, lambda path=path: _calls_of(project, path))  # type: ignore[misc]
            self._methods.update(calls.methods)
            for target, sites in calls.told.items():
                self._sites[target] += sites
            for word, sites in calls.untold.items():
                self._untold[word] += sites

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
            sites = list(self._calls(current))
            if not sites or self._project.resolver.calls_of.hands_on(current, kept=False):
                return False
            for site in sites:
                mode = mode_at(self._project, site.function, site.guards)
                mode = mode or ("off" if in_evaluation(self._project, site) else "")
                if mode == "on":
                    return False
                off = off or mode == "off"
                if not mode and site.function not in seen:
                    seen.add(site.function)
                    waiting.append(site.function)
        return off

    def _calls(self, function: str) -> Iterator[Site]:
        """What may run a function. A network's ``forward`` is run by torch, so that no name says who calls it."""
        yield from self._sites.get(function, ())
        resolver = self._project.resolver
        owner, word = resolver.owner(function), function.rpartition(".")[2]
        if owner and not word.startswith(("__", "forward")):
            yield from self._untold.get(word, ()) if self._is_telling(word) else ()
            for above in resolver.ancestry(owner)[1:]:
                for method in resolver.methods(above, word) if ":" in above else ():
                    yield from self._sites.get(method, ()) if ":" in method else ()

    def _is_telling(self, word: str) -> bool:
        """Whether a call by this word on what can not be told is likely one of a certain method: few classes share it."""
        return self._methods[word] <= _MOST_METHODS


def _calls_of(project: Project, path: str) -> Calls:
    told: dict[str, list[Site]] = defaultdict(list)
    untold: dict[str, list[Site]] = defaultdict(list)
    for site in project.calls(path):
        for name in site.names:
            for target in entered(project.resolver, name, "call") if ":" in name else ():
                told[target].append(site)
        if not site.names:
            untold[last_word(site.call.func)].append(site)
    methods = (each.name.rpartition(".")[2] for each in project.files[path].functions if each.owner)
    return Calls(dict(told), dict(untold), tuple(methods))
