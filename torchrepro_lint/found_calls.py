"""The call graph's edges of one file, as its index by callee takes them: no more is left of a file than ``all_calls`` keeps."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from torchrepro_lint.all_calls import Calls, Place
from torchrepro_lint.call_targets import entered
from torchrepro_lint.query.memo_tables import tight
from torchrepro_lint.syntax.nodes import Call
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.names import Names


def calls_of(names: Names, path: str) -> Calls:
    """The calls of a file by what they enter, and by their word where that is not known."""
    told: dict[str, list[Place]] = defaultdict(list)
    untold: dict[str, list[Place]] = defaultdict(list)
    named: set[str] = set()
    functions: dict[str, str] = {}
    for function, call in sorted(names.calls_of.in_file(path), key=_by_place):
        own = functions.setdefault(function, function[len(path) :])  # one text for all calls of a function
        place = Place(own, call.start, call.end)
        found = names.names(path, call.func)
        for name in found:
            if ":" in name:
                named.add(name)
                for target in entered(names, name, "call"):
                    told[target].append(place)
        if not found:
            untold[last_word(call.func)].append(place)
    methods = (each.name.rpartition(".")[2] for each in names.modules.files[path].functions if each.owner)
    return Calls(tight(told), tight(untold), tuple(methods), tuple(sorted(named)))


def _by_place(found: tuple[str, Call]) -> tuple[int, int]:
    _, call = found
    return call.start, -call.end
