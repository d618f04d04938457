"""TRL503: the order of a directory's entries, which the file system decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.ordering import Sorting, fix_walk
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.taint.analysis import decided
from torchrepro_lint.dataflow.taint.context import Here
from torchrepro_lint.dataflow.taint.sources import Listing, listings
from torchrepro_lint.source.text import Fix
from torchrepro_lint.syntax.nodes import span

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Context


def check(context: Context) -> Iterator[Finding]:
    """Each listing whose order decides something."""
    if context.path not in context.project.torch_modules:
        return
    orders = context.project.orders
    for listing in listings(context.project, context.path):
        taken = orders.decides([Here(context.path, listing.site.call, listing.shape)])
        if taken is not None:
            what = decided(context.project.position, context.path, listing.site.call, taken)
            message = f"{listing.label} gives the order of the file system, and {what}; {_cure(listing)}"
            yield Finding("TRL503", span(listing.site.call), message, _fix(context, listing))


def _fix(context: Context, listing: Listing) -> Fix | None:
    return fix_walk(context, listing) if listing.shape.kind == "walk" else Sorting(context).listing(listing)


def _cure(listing: Listing) -> str:
    if listing.label == "os.scandir":
        return "write sorted(..., key=lambda entry: entry.name)"
    if listing.shape.kind == "walk":
        return "sort the folders in place, dirs.sort(), and go along sorted(files)"
    return f"write sorted({listing.label}(...))"
