"""TRL505: results are taken in the order in which they finish."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.arrival_orders import arrival_orders
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.taint.context import Sink, TaintedValue
from torchrepro_lint.dataflow.taint.sinks import describe_sink
from torchrepro_lint.dataflow.taint.sources import completions
from torchrepro_lint.dataflow.taint.transfer import OrderTaint
from torchrepro_lint.source.text import Message
from torchrepro_lint.syntax.nodes import span
from torchrepro_lint.trace.traces import Context

_RESULTS = "results in the order in which they finish"
_GIVEN = {"wait": "a set of the futures that are done, whose order differs between runs"}
_CURES = {"imap_unordered": "use imap, which keeps the order"}
_CURE = "take the results in the order of submission, as map does"


def check(context: Context) -> Iterator[Finding]:
    """Each such call whose order decides something."""
    for site, word, taint in completions(context.project, context.path):
        taken = context.project.taint.first_sink([TaintedValue(context.path, site.call, taint)])
        if taken is not None:
            cause = f"{word} gives {_GIVEN.get(word, _RESULTS)}, which "
            what = describe_sink(context.project, context.path, site.call, taken)
            message = Message(cause, what, f"; {_CURES.get(word, _CURE)}")
            yield Finding("TRL505", span(site.call), message)
    for order in arrival_orders(context.project, context.path):
        taken = context.project.taint.first_sink(order.tainted, _is_taken)
        if taken is not None:
            what = describe_sink(context.project, context.path, order.node, taken)
            yield Finding("TRL505", span(order.node), Message(order.said, what, f"; {order.cure}"))


def _is_taken(taken: Sink) -> bool:
    """Whether a sink takes an order: code that gets a whole dict may only look things up in it."""
    return taken.value is None or not _only_looked_up(taken.value.taint)


def _only_looked_up(taint: OrderTaint) -> bool:
    if taint.kind in ("plain", "table") and taint.contents:
        return all(_only_looked_up(inner) for _, inner in taint.contents)
    return taint.kind == "mapping"
