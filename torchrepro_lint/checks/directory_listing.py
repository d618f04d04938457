"""TRL503: the file system's order of a directory decides something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.ordering import SortFixes, fix_walk
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.taint.context import TaintedValue
from torchrepro_lint.dataflow.taint.sinks import describe_sink
from torchrepro_lint.dataflow.taint.sources import Listing, listings
from torchrepro_lint.source.text import Fix, Message, NoFix
from torchrepro_lint.syntax.nodes import span

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Context


def check(context: Context) -> Iterator[Finding]:
    """Each listing whose order decides something."""
    if context.path not in context.project.torch_modules:
        return
    orders = context.project.taint
    for listing in listings(context.project, context.path):
        taken = orders.first_sink([TaintedValue(context.path, listing.site.call, listing.taint)])
        if taken is not None:
            what = describe_sink(context.project, context.path, listing.site.call, taken)
            message = Message(
                f"{listing.label} lists entries in the order of the file system, which ", what, f"; {_cure(listing)}"
            )
            yield Finding("TRL503", span(listing.site.call), message, _fix(context, listing))


def _fix(context: Context, listing: Listing) -> Fix | NoFix:
    return fix_walk(context, listing) if listing.taint.kind == "walk" else SortFixes(context).listing(listing)


def _cure(listing: Listing) -> str:
    if listing.label == "os.scandir":
        return "write sorted(..., key=lambda entry: entry.name)"
    if listing.taint.kind == "walk":
        return "sort the folders in place with dirs.sort(), and iterate sorted(files)"
    return f"write sorted({listing.label}(...))"
