"""The calls of a project by what they enter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from torchrepro_lint.query.memo_tables import Together
from torchrepro_lint.syntax.nodes import Small


class Place(Small, frozen=True):
    """A call of a file: its function (the name in the file), and its offsets."""

    function: str
    start: int
    end: int


class Calls(NamedTuple):
    """The calls of a file by the functions of the project that they enter, those of which nothing is known by their last
    words, the words of its methods, and the names of the project that are called.
    """

    told: Mapping[str, Sequence[Place]]
    untold: Mapping[str, Sequence[Place]]
    methods: Sequence[str]
    named: Sequence[str]


class AllCalls:
    """Those of all files, each with its file; ``methods`` says how many methods have a word."""

    def __init__(self) -> None:
        self._named: Together[None] = Together()
        self.told: Together[Place] = Together()
        self.untold: Together[Place] = Together()
        self.methods = Counter[str]()
        self._known: dict[str, Calls] = {}

    def update(self, files: Sequence[tuple[str, Calls]]) -> None:
        """Take over what there is now, of the same files each time; what is the same object is not looked into."""
        for path, calls in files:
            before = self._known.get(path)
            if before is not calls:
                self.methods.subtract(before.methods if before else ())
                self.methods.update(calls.methods)
                self._known[path] = calls
        self.told.update((path, each.told) for path, each in files)
        self.untold.update((path, each.untold) for path, each in files)
        self._named.update((path, dict.fromkeys(each.named, ())) for path, each in files)

    def naming(self, name: str) -> Iterator[str]:
        """The files that call what has a name, sorted."""
        return (path for path, _ in self._named.of(name))
