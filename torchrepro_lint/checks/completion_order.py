"""TRL505: results are taken in the order in which they finish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.taint.context import TaintedValue
from torchrepro_lint.dataflow.taint.sinks import describe_sink
from torchrepro_lint.dataflow.taint.sources import completions
from torchrepro_lint.dataflow.taint.transfer import COMPLETION
from torchrepro_lint.source.text import Message
from torchrepro_lint.syntax.nodes import span

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Context

_CURES = {"imap_unordered": "use imap, which keeps the order"}
_CURE = "take the results in the order of submission, as map does"


def check(context: Context) -> Iterator[Finding]:
    """Each such call whose order decides something."""
    for site, word in completions(context.project, context.path):
        taken = context.project.taint.first_sink([TaintedValue(context.path, site.call, COMPLETION)])
        if taken is not None:
            cause = f"{word} gives results in the order in which they finish, which "
            what = describe_sink(context.project, context.path, site.call, taken)
            message = Message(cause, what, f"; {_CURES.get(word, _CURE)}")
            yield Finding("TRL505", span(site.call), message)
