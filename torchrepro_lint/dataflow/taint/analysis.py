"""What becomes of arbitrary orders in a project: the answers that rules ask for.

What an arbitrary order decides, in words.

Taint of arbitrary orders over a linked project: the uppermost layer of data flow, above the types that it asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.taint.arguments import Arguments, is_kept_from
from torchrepro_lint.dataflow.taint.context import Here, Taken
from torchrepro_lint.dataflow.taint.loops import Loops, Returns
from torchrepro_lint.dataflow.taint.methods import QUIET, Methods
from torchrepro_lint.dataflow.taint.prefilter import Barren
from torchrepro_lint.dataflow.taint.propagation import flat, steps
from torchrepro_lint.dataflow.taint.transfer import Shape, Spelled, depth
from torchrepro_lint.dataflow.value_flow import ValueFlow
from torchrepro_lint.syntax.nodes import Ref

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchrepro_lint.source.text import Position
    from torchrepro_lint.syntax.nodes import Expression
    from torchrepro_lint.syntax.use_def import Spot


# A value is followed through so many places and containers; what is left then decides nothing that is known.
_MOST_PLACES = 600
_DEEPEST = 4


class Orders:
    """Follows values through a project."""

    def __init__(self, project: ValueFlow) -> None:
        self.project = project
        self.names = project.resolver
        self.uses = project.uses
        self.barren = Barren(self.names)
        self.methods = Methods(self)
        self.arguments = Arguments(self)
        self.loops = Loops(self)
        self.returns = Returns(self)
        files = project.files
        self.spelled = Spelled(
            self.uses, tuple(path for path in sorted(files) if "getattr" in files[path].summary.calls)
        )

    def decides(self, start: Iterable[Here | Taken]) -> Taken | None:
        """What the order that a value holds decides first; None where it decides nothing that is known."""
        return next(self._followed(start), None)

    def _followed(self, start: Iterable[Here | Taken]) -> Iterator[Taken]:
        queue: list[Here | Taken] = list(start)
        seen: set[tuple[object, ...]] = set()
        while queue:
            here = queue.pop(0)
            if isinstance(here, Taken):
                yield here
                continue
            came = tuple(id(call) for _, _, call in here.came or ())
            key = (here.path, id(here.node), here.shape, here.words, came, here.of)
            if key in seen or len(seen) > _MOST_PLACES or depth(here.shape) > _DEEPEST:
                continue
            seen.add(key)
            queue += (_further(here, step) for step in flat(steps(self, here)))

    def leading(self, path: str, ref: Ref, shape: Shape, spot: Spot, after: int) -> Iterator[Here]:
        """Those of ``reads`` from which it may lead on: where a list is appended to, it stays where it is."""
        return self.reads(path, ref, shape, spot, after, QUIET if shape.kind == "sequence" else frozenset())

    def reads(
        self, path: str, ref: Ref, shape: Shape, spot: Spot, after: int, but: frozenset[str] = frozenset()
    ) -> Iterator[Here]:
        """The reads of what is assigned to a variable, or to an attribute of an object, before ``after``; in the same file
        without those that only call one of its methods ``but``.
        """
        for file, read, words in self.uses.of_variable(path, ref, spot, after, but):
            if not is_kept_from(self.uses.spots(file), read, shape):
                yield Here(file, read, shape, words)
        for owner, word in self._attributes(path, ref):
            if self.uses.stays(path, ref, spot, after) and not self.uses.is_sorted_anywhere(owner, word):
                for file, expression, rest in self.uses.of_attribute(owner, word):
                    other = self.uses.spots(file).of(expression)
                    if other is None or (other.written and not rest):
                        continue
                    if file != path or other.function != spot.function:
                        yield Here(file, expression, shape, rest)

    def _attributes(self, path: str, ref: Ref) -> Iterator[tuple[str, str]]:
        """The classes of the project, with the word, whose objects' attribute a target is."""
        if len(ref.path) == 1:
            for name in self.names.names_of(path, ref._replace(path=())):
                if ":" in name and self.names.classes(name.removesuffix("()")):
                    yield name.removesuffix("()"), ref.path[0]
        elif not ref.path:
            for root in ref.roots:
                owner, _, word = f"{path}{root}".rpartition(".")
                if "<locals>" not in word and self.names.classes(owner):
                    yield owner, word


def _further(here: Here, step: Here | Taken) -> Here | Taken:
    if isinstance(step, Taken):
        return step
    came = here.came if step.came is None else step.came
    return step._replace(came=came, of=here.of if step.of is None else step.of)


_SAID = {
    "passed on": "it is passed on",
    "returned": "it is returned",
    "stored": "it decides what is stored where",
    "drawn from": "a random choice is made from it",
    "drawn for": "random numbers are drawn along it",
    "trained with": "training goes along it",
    "written": "it is written down",
}


def decided(position: Callable[[str, int], Position], path: str, at: Expression, taken: Taken) -> str:
    """``it is passed on in line 12``; the line where it is another one than that of ``at``, with the file where that is not
    ``path``.
    """
    said = _SAID[taken.how]
    row = position(taken.path, taken.node.start).row
    if taken.path != path:
        return f"{said} ({taken.path}:{row})"
    return said if row == position(path, at.start).row else f"{said} (line {row})"


class OrderFlow(ValueFlow):
    """A project of whose values it is known what becomes of them where their order is arbitrary."""

    @cached_property
    def orders(self) -> Orders:
        """What becomes of values whose order is arbitrary."""
        return Orders(self)
