"""The calls of a project as they are found, file by file; of each file no more is left than what ``all_calls`` keeps."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from torchrepro_lint.all_calls import AllCalls, Calls, Place
from torchrepro_lint.facts import Call
from torchrepro_lint.runs import entered
from torchrepro_lint.tight import tight
from torchrepro_lint.walk import last_word

if TYPE_CHECKING:
    from torchrepro_lint.project import Project


def all_calls(project: Project) -> AllCalls:
    """All calls of the project; whoever has to know them asks last."""
    link = project.link
    if "all calls" not in project.kept:
        link.names.modules.reads.recall("calls")
        files = sorted(project.files)
        link.all_calls.update([(path, link.calls.of(path, partial(_calls_of, project, path))) for path in files])
        project.kept["all calls"] = link.all_calls
    return link.all_calls


def _calls_of(project: Project, path: str) -> Calls:
    told: dict[str, list[Place]] = defaultdict(list)
    untold: dict[str, list[Place]] = defaultdict(list)
    named: set[str] = set()
    functions: dict[str, str] = {}
    for function, call in sorted(project.resolver.calls_of.in_file(path), key=_by_place):
        own = functions.setdefault(function, function[len(path) :])  # one text for all calls of a function
        place = Place(own, call.start, call.end)
        names = project.names(path, call.func)
        for name in names:
            if ":" in name:
                named.add(name)
                for target in entered(project.resolver, name, "call"):
                    told[target].append(place)
        if not names:
            untold[last_word(call.func)].append(place)
    methods = (each.name.rpartition(".")[2] for each in project.files[path].functions if each.owner)
    return Calls(tight(told), tight(untold), tuple(methods), tuple(sorted(named)))


def _by_place(found: tuple[str, Call]) -> tuple[int, int]:
    _, call = found
    return call.start, -call.end
