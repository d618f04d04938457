"""Taint sinks in words: what an arbitrary order decides in the end, by the name that the program gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.constants import describe
from torchrepro_lint.source.text import Message, Reference
from torchrepro_lint.syntax.nodes import Assign, Call, Ref, Subscript

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.taint.analysis import TaintFlow
    from torchrepro_lint.dataflow.taint.context import Sink, TaintedVariable
    from torchrepro_lint.dataflow.taint.transfer import OrderTaint
    from torchrepro_lint.syntax.nodes import Expression

# Longer names are not repeated in a message.
_LONGEST_NAME = 40


def describe_sink(project: TaintFlow, path: str, at: Expression, taken: Sink) -> str:
    """What follows "an order, which …": ``decides the order of `vocab`, passed to `json.dump` (train.py:12)``.

    The place is left out where it is the line of ``at``, the expression of ``path`` at which the finding is reported.
    """
    value = taken.value
    if value is not None and value.taint.kind == "scalar" and value.ordered is not None:
        # One element is taken out in the end: what has the order is the list that it is taken out of.
        listed = value.ordered
        said, file, start = f"decides the order of `{_name_of(listed)}`", listed.path, listed.node.start
    else:
        said, file, start = _SinkTexts(project, taken).said(), taken.path, taken.node.start
    line = project.position(file, start).line
    if file == path and line == project.position(path, at.start).line:
        return said
    return Message(said, " (", Reference(file, line), ")")


def _name_of(variable: TaintedVariable) -> str:
    """A variable as the program writes it."""
    words = variable.node.path
    return describe(variable.node._replace(path=words[: len(words) - len(variable.attributes)]))


class _SinkTexts:
    """The texts of one sink; the subject is the variable of the sink's own function that holds the value, if one does."""

    def __init__(self, project: TaintFlow, taken: Sink) -> None:
        self._project, self._taken = project, taken
        self._spots = project.uses.spots(taken.path)
        self._name = self._held_by()
        held = taken.value.held if taken.value is not None else None
        self._subject = f"{_decided(held.taint)} `{self._name}`" if self._name and held is not None else ""

    def said(self) -> str:
        node = self._taken.node
        callee = self._callee(node.func) if isinstance(node, Call) else ""
        match self._taken.kind:
            case "passed on":
                return self._passed(callee)
            case "returned":
                return self._returned()
            case "stored":
                whole = node.value if isinstance(node, Subscript) else node
                return f"decides which elements of `{describe(whole)}` are set"
            case "drawn from":
                return f"decides what `{callee}` draws" + (f" from `{self._name}`" if self._name else "")
            case "drawn for":
                return f"decides the order in which `{callee}` draws"
            case "trained with":
                return f"decides the order in which `{callee}` trains"
        return f"decides the order in which `{callee}` writes"

    def _passed(self, callee: str) -> str:
        whole = self._taken.value is not None and isinstance(self._taken.value.node, Ref)
        if self._subject:
            return f"decides {self._subject}, {'passed to' if whole else 'used in the call to'} `{callee}`"
        verb = "is" if self._is_order() else "decides what is"
        return f"{verb} passed to `{callee}`{self._purpose()}"

    def _returned(self) -> str:
        spot = self._spots.of(self._taken.node)
        function = spot.function.replace(".<locals>", "").lstrip(":") if spot is not None else ""
        if self._subject:
            return f"decides {self._subject}" + (f", returned from `{function}`" if function else "")
        what = "the order of what" if self._is_order() else "what"
        return f"decides {what} `{function}` returns" if function else "is returned"

    def _held_by(self) -> str:
        """The variable that holds the value, as the program writes it, if it is one of the sink's own function."""
        held = self._taken.value.held if self._taken.value is not None else None
        if held is None or held.path != self._taken.path:
            return ""
        there, here = self._spots.of(held.node), self._spots.of(self._taken.node)
        if here is None or there is None or there.function != here.function:
            return ""
        name = _name_of(held)
        return name if len(name) <= _LONGEST_NAME else ""

    def _is_order(self) -> bool:
        return self._taken.value is None or self._taken.value.taint.is_unordered

    def _purpose(self) -> str:
        """`` for `dataset``` of ``dataset = Images(...)``."""
        spot = self._spots.of(self._taken.node)
        match spot.statement if spot is not None else None:
            case Assign(targets=(Ref() as target,), value=value) if value is self._taken.node:
                return f" for `{describe(target)}`"
        return ""

    def _callee(self, func: Expression) -> str:
        """A callee as the program writes it."""
        written = self._project.text(self._taken.path)[func.start : func.end]
        return written if len(written) <= _LONGEST_NAME and written.isprintable() else describe(func)


def _decided(taint: OrderTaint) -> str:
    """What an order decides of a variable."""
    if taint.is_unordered:
        return "the order of"
    if taint.kind in ("plain", "table"):
        return "the order inside" if any(inner.is_unordered for _, inner in taint.contents) else "the values in"
    return "the value of"
