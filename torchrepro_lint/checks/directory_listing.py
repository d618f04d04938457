"""TRL503: the file system's order of a directory decides something."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.taint.context import TaintedValue
from torchrepro_lint.dataflow.taint.sinks import decisive_sink, describe_sink, is_followed_in
from torchrepro_lint.dataflow.taint.sources import Listing, fresh_sorts, listings
from torchrepro_lint.dataflow.taint.transfer import LISTING
from torchrepro_lint.source.text import Fix, Message, NoFix
from torchrepro_lint.syntax.nodes import span
from torchrepro_lint.trace.traces import Context

# Of a sort that leaves the order arbitrary: what a message says of it, and what to write instead.
_SORTS = {
    "clock": "and their times differ between machines, ",
    "size": "and sorting by size leaves equal ones in it, ",
}
_KEY_CURES = {"clock": "sort by name"}
_FRESH_CURE = "make names of the inputs or their numbers"
_NO_NAMES = NoFix("sorting does not help where the names themselves differ")


def check(context: Context) -> Iterator[Finding]:
    """Each listing whose order decides something."""
    if not is_followed_in(context.project, context.path):
        return
    yield from _fresh(context)
    for listing in listings(context.project, context.path):
        taken = decisive_sink(
            context.project, context.path, [TaintedValue(context.path, listing.site.call, listing.taint)]
        )
        if taken is not None:
            what = describe_sink(context.project, context.path, listing.site.call, taken)
            key = taken.value.sorted_by if taken.value is not None else ""
            cause = f"{listing.label} lists entries in the order of the file system, {_SORTS.get(key, '')}which "
            if listing.maker:
                cause = f"{listing.label} lists names that {listing.maker} makes anew in each run, and their order "
            cure = _FRESH_CURE if listing.maker else _KEY_CURES.get(key) or _cure(listing)
            message = Message(cause, what, f"; {cure}")
            yield Finding("TRL503", span(listing.site.call), message, _fix(context, listing, key))


def _fresh(context: Context) -> Iterator[Finding]:
    """Each sort of names that are made anew in each run."""
    for call, maker in fresh_sorts(context.project, context.path):
        taken = decisive_sink(context.project, context.path, [TaintedValue(context.path, call, LISTING)])
        if taken is not None:
            what = describe_sink(context.project, context.path, call, taken)
            cause = f"{maker} makes these names anew in each run, and their sorted order "
            yield Finding("TRL503", span(call), Message(cause, what, f"; {_FRESH_CURE}"), _NO_NAMES)


def _fix(context: Context, listing: Listing, key: str) -> Fix | NoFix:
    if listing.maker:
        return _NO_NAMES
    if key == "clock":
        return NoFix("the program sorts by time, and by which other key is not known")
    from torchrepro_lint.checks.fixes.ordering import SortFixes, fix_walk

    return fix_walk(context, listing) if listing.taint.kind == "walk" else SortFixes(context).listing(listing)


def _cure(listing: Listing) -> str:
    if listing.label == "os.scandir":
        return "write sorted(..., key=lambda entry: entry.name)"
    if listing.taint.kind == "walk":
        return "sort the folders in place with dirs.sort(), and iterate sorted(files)"
    return f"write sorted({listing.label}(...))"
