"""The fix of TRL503 for ``os.walk``: ``dirs.sort()`` in the loop, and its files sorted where they are gone along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.taint.context import Here
from torchrepro_lint.dataflow.taint.transfer import LISTING
from torchrepro_lint.insertions import free_word, insert_statement
from torchrepro_lint.rewrites.ordering import Sorting
from torchrepro_lint.source.text import Edit, Fix, Span
from torchrepro_lint.syntax.nodes import Arg, Call, Collection, Comprehension, Constant, Loop, Ref

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.taint.sources import Listing
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.syntax.use_def import Spot

_TITLE = "Walk in the order of names"


def fix_walk(context: Context, listing: Listing) -> Fix | None:
    """None unless a ``for`` statement goes along the walk, from the top, and names its three parts."""
    call = listing.site.call
    spot = context.project.uses.spots(context.path).of(call)
    if spot is None or not isinstance(spot.statement, Loop) or spot.statement.source is not call or _is_upwards(call):
        return None
    loop = spot.statement
    if not loop.body or not isinstance(loop.target, Collection) or not Sorting(context).can_write(call):
        return None
    parts = [each for each in loop.target.items if isinstance(each, Ref) and not each.path]
    if len(parts) < 3 or len(parts) != len(loop.target.items):
        return None
    return _written(context, loop, parts, spot)


def _written(context: Context, loop: Loop, parts: list[Ref], spot: Spot) -> Fix:
    text = context.lines.text
    word, renamed = _folders(context, parts)
    wraps, whole = _files(context, loop, parts[2], spot)
    files = text[parts[2].start : parts[2].end]
    source = f"{word}.sort()" + (f"\n{files}.sort()" if whole else "")
    first = loop.body[0]
    start = insert_statement(text, first.start, source)
    return Fix(_TITLE, (*renamed, start, *wraps), safe=not whole)


def _folders(context: Context, parts: list[Ref]) -> tuple[str, tuple[Edit, ...]]:
    """The word of the folders; one that was thrown away gets a name."""
    text = context.lines.text
    word = text[parts[1].start : parts[1].end]
    if word.strip("_"):
        return word, ()
    word = free_word(text, "dirs")
    return word, (Edit(Span(parts[1].start, parts[1].end), word),)


def _files(context: Context, loop: Loop, files: Ref, spot: Spot) -> tuple[tuple[Edit, ...], bool]:
    """``sorted`` around the files where they are gone along; else they are sorted in place."""
    orders = context.project.orders
    spots = orders.uses.spots(context.path)
    edits: list[Edit] = []
    for _, ref, words in orders.uses.of_variable(context.path, files, spot, loop.source.end + 1):
        if orders.decides([Here(context.path, ref, LISTING, words)]) is None:
            continue
        found = spots.of(ref)
        if words or found is None or not _is_source(found, ref):
            return (), True
        edits += (Edit(Span(ref.start, ref.start), "sorted("), Edit(Span(ref.end, ref.end), ")"))
    return tuple(edits), False


def _is_source(spot: Spot, ref: Ref) -> bool:
    if spot.parent is None:
        return isinstance(spot.statement, Loop) and spot.statement.source is ref
    return isinstance(spot.parent, Comprehension) and any(clause.source is ref for clause in spot.parent.clauses)


def _is_upwards(call: Call) -> bool:
    """``topdown=False``, where the order of the folders is settled before the loop sees them; or what may be that."""
    downwards = (isinstance(arg.value, Constant) and arg.value.value is True for arg in _directions(call))
    return not all(downwards)


def _directions(call: Call) -> list[Arg]:
    """The arguments that may say in which direction to walk."""
    named = [arg for arg in call.args if arg.star or arg.keyword in ("topdown", "top_down")]
    return named + [arg for position, arg in enumerate(call.args) if position == 1 and arg.keyword is None]
