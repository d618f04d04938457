"""TRL502: the iteration order of a set, which differs between runs, decides something."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.taint.sinks import describe_sink, may_decide
from torchrepro_lint.dataflow.taint.sources import set_orders
from torchrepro_lint.source.text import Message
from torchrepro_lint.syntax.nodes import span
from torchrepro_lint.trace.traces import Context

_TYPE_WORDS = {"str": "of strings ", "bytes": "of bytes ", "path": "of paths "}


def check(context: Context) -> Iterator[Finding]:
    """Each expression that takes the iteration order of a set, where that decides something."""
    if not may_decide(context.project, context.path):
        return
    for found in set_orders(context.project, context.path):
        from torchrepro_lint.checks.fixes.ordering import SortFixes

        of = _TYPE_WORDS.get(found.elements.kind, "")
        what = describe_sink(context.project, context.path, found.order.observer, found.taken)
        remedy, cure = SortFixes(context).of_set(found.order, found.elements, found.in_table)
        message = Message(f"a set {of}has another order in each run, which ", what, f"; {cure}")
        yield Finding("TRL502", span(found.order.observer), message, remedy)
