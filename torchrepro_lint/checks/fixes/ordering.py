"""The fixes of TRL502 and TRL503: ``sorted`` around a set or a directory listing.

For ``os.walk`` the directories are sorted in the loop with ``dirs.sort()``, and the files where they are iterated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.checks.fixes.element_order import sorting_obstacle
from torchrepro_lint.checks.fixes.escapes import is_followed
from torchrepro_lint.checks.fixes.insertions import free_word, insert_statement, means_builtin
from torchrepro_lint.dataflow.taint.context import OrderObservation, TaintedValue
from torchrepro_lint.dataflow.taint.sources import Listing
from torchrepro_lint.dataflow.taint.transfer import LISTING, argument_effect
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import AbstractValue
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Fix, NoFix, Span
from torchrepro_lint.syntax.binding import bound_argument
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    If,
    Loop,
    Operation,
    Ref,
    Subscript,
    With,
)
from torchrepro_lint.syntax.qualified_names import in_project
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import last_identifier
from torchrepro_lint.trace.traces import Context

# Kinds of values with an order that every run repeats.
_ORDERED_KINDS = frozenset({"list", "tuple", "str", "bytes", "dict", "ndarray", "series"})
_LISTING_TITLE, _SET_TITLE = "Sort the listing", "Sort the set"
_NOWHERE = NoFix("the fix cannot edit the expression where it is written")
_POP_CURE = "choose the element by an order of your own, such as min(...)"
# Libraries whose functions tell sets, dictionaries and lists apart.
_TELLING_APART = ("numpy.", "pandas.", "torch.")
# Calls that only iterate an argument, whatever it is.
_ITERATING = lazy_pattern(
    r"builtins\.(list|tuple|enumerate|iter|zip|map|filter|sorted|max|min|any|all|dict\.fromkeys)|"
    r"(itertools|more_itertools|tqdm)\..+|collections\.deque|torch\.nn\.(ModuleList|ParameterList)"
)


class SetRemedy(NamedTuple):
    """The fix for a set's order or why there is none, and what a message says to write."""

    remedy: Fix | NoFix
    cure: str


class SortFixes:
    """The fixes of one module."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._path = context.path
        self._uses = context.project.uses
        self._spots = self._uses.spots(context.path)

    def listing(self, listing: Listing) -> Fix | NoFix:
        """``sorted(os.listdir(d))``; entries are sorted by name, and ``next`` gets an iterator again."""
        call = listing.site.call
        position = self._spots.of(call)
        if position is None:
            return _NOWHERE
        if blocked := self._blocked(call, "sorted", "iter" if _is_next(position) else "sorted"):
            return blocked
        if isinstance(position.statement, With) and position.parent is None:
            return NoFix("it is used in a with statement, which a list does not allow")
        iterated = self._is_only_iterated(call, position)
        if not listing.is_list and not iterated:
            return NoFix("the code that gets the iterator may call next, which a list does not allow")
        by_name = ", key=lambda entry: entry.name" if listing.label == "os.scandir" else ""
        edits = self._wrap_in_sorted(call, position, by_name)
        for twin, spot in self._listed_again(listing):
            if self._blocked(twin, "sorted") or not (listing.is_list or self._is_only_iterated(twin, spot)):
                return NoFix(
                    "the function lists the same folder again, in the same order, and the fix cannot sort that"
                )
            edits += self._wrap_in_sorted(twin, spot, by_name)
        return Fix(_LISTING_TITLE, edits, iterated)

    def _listed_again(self, listing: Listing) -> Iterator[tuple[Call, ExpressionPosition]]:
        """The other calls of a function that list the same folder for a variable, such as the labels of the files: their orders belong
        together, so that none may be sorted alone.
        """
        text, own = self._context.lines.text, listing.site
        written = _without_spaces(text, own.call)
        for site in self._context.project.calls(self._path):
            other = site.function == own.function and site.call != own.call
            spot = self._spots.of(site.call) if other and _without_spaces(text, site.call) == written else None
            if spot is not None and isinstance(spot.statement, Assign) and not self._is_order_free(site.call, spot):
                yield site.call, spot

    def _is_order_free(self, node: Expression, position: ExpressionPosition) -> bool:
        """Whether what takes a value where it stands ignores its order, sorts it, or takes one element."""
        match position.parent:
            case Call(func=func) as call if func != node:
                names = self._context.project.names(self._path, func)
                what = argument_effect(names, last_identifier(func), isinstance(func, Ref) and bool(func.path))
                return what in ("free", "sorted", "next") and call != node
            case Operation(op=op):
                return op in ("in", "not in", "not")
        return False

    def of_set(self, order: OrderObservation, elements: AbstractValue, in_table: bool) -> SetRemedy:
        """``sorted(names)`` where elements compare; ``dict.fromkeys(names)`` where they come in a fixed order.

        ``in_table``: a table holds the set, and code that is not seen may put other elements into it.
        """
        node = order.node
        position = self._spots.of(node)
        obstacle = sorting_obstacle(self._context.project, elements)
        cure = "write sorted(...)" if obstacle is None else obstacle.cure
        if position is None:
            return SetRemedy(_NOWHERE, cure)
        if not _iterates_node(order.observer, node):
            return SetRemedy(NoFix("pop takes an element out of the set, so it must stay a set"), _POP_CURE)
        if obstacle is None:
            found = self._sorted_set(node, position)
            return SetRemedy(found._replace(safe=False) if in_table and isinstance(found, Fix) else found, cure)
        if (kept := self._kept_order(node, position)) is not None:
            return SetRemedy(kept, "write dict.fromkeys(...)" if isinstance(kept, Fix) else cure)
        return SetRemedy(NoFix(obstacle.reason), cure)

    def _sorted_set(self, node: Expression, position: ExpressionPosition) -> Fix | NoFix:
        """``sorted(names)``, safe where nothing but these elements can be in the set."""
        if blocked := self._blocked(node, "sorted", "iter" if _is_next(position) else "sorted"):
            return blocked
        safe = (
            self._is_only_iterated(node, position)
            and not self._tells_sets_apart(node, position)
            and is_followed(self._context.project, self._path, node)
        )
        return Fix(_SET_TITLE, self._wrap_in_sorted(node, position, ""), safe)

    def _kept_order(self, node: Expression, position: ExpressionPosition) -> Fix | NoFix | None:
        """``dict.fromkeys(names)`` for ``set(names)``; None where the set is not made of something in order."""
        match node:
            case Call(func=Ref(roots=("builtins.set" | "builtins.frozenset",)) as func, args=(arg,)) if not arg.star:
                if not self._has_order(arg.value):
                    return None
                if not self._takes_any_iterable(node, position):
                    return NoFix("the code that takes the set may treat a dict differently")
                edits = (Edit(Span(func.start, func.end), "dict.fromkeys"),)
                return self._blocked(node, "dict") or Fix("Use a dict, which keeps the order", edits, safe=False)
        return None

    def _has_order(self, value: Expression) -> bool:
        """Whether the elements of a value come in the same order in each run: of a list, but not of one made of a set."""
        match value:
            case Call(func=Ref(roots=("builtins.list" | "builtins.tuple",), path=()), args=(arg,)):
                return self._has_order(arg.value)
        return type_inference(self._context.project).of(self._path, value).kind in _ORDERED_KINDS

    def _tells_sets_apart(self, node: Expression, position: ExpressionPosition) -> bool:
        """Whether a library takes the set as such: ``numpy.array`` makes one object of it."""
        match position.parent:
            case Call(func=func, args=args) if not _is_starred(node, args):
                return any(name.startswith(_TELLING_APART) for name in self._context.project.names(self._path, func))
        return False

    def _takes_any_iterable(self, node: Expression, position: ExpressionPosition) -> bool:
        """Whether a value is only iterated where it stands, so that a dict does as well as a set."""
        match position.parent:
            case Call(func=func, args=args) if func != node:
                names = self._context.project.names(self._path, func)
                method = last_identifier(func) in ("join", "extend") and not any(map(in_project, names))
                return _is_starred(node, args) or method or (bool(names) and all(map(_ITERATING.fullmatch, names)))
            case None:
                return isinstance(position.statement, Loop | Assign)
            case Operation(op=op):
                return op in ("*", "yield from")
        return isinstance(position.parent, Comprehension)

    def can_write(self, node: Expression) -> bool:
        """Whether ``sorted`` means the builtin here, and the node is not inside an f-string."""
        return self._blocked(node, "sorted") is None

    def _blocked(self, node: Expression, *words: str) -> NoFix | None:
        """Why calls of builtins cannot be written at a place: another meaning of their names, or an f-string."""
        for word in words:
            if not means_builtin(self._context.project, self._path, word):
                return NoFix(f"this module redefines {word}")
        above: Expression | None = node
        while above is not None:
            if isinstance(above, Operation) and above.op == "f":
                return NoFix("the expression is inside an f-string")
            here = self._spots.of(above)
            above = here.parent if here else None
        return None

    def _wrap_in_sorted(self, node: Expression, position: ExpressionPosition, by_name: str) -> tuple[Edit, ...]:
        """``list(x)`` becomes ``sorted(x)``; everything else is put between parentheses."""
        match position.parent:
            case Call(func=Ref(roots=("builtins.list",), path=()) as func, args=(arg,)) if arg.value == node:
                ends = (Edit(Span(node.end, node.end), by_name),) if by_name else ()
                return (Edit(Span(func.start, func.end), "sorted"), *ends)
            case _ if _is_next(position):
                return self._wrap(node, "iter(sorted(", f"{by_name}))")
        return self._wrap(node, "sorted(", f"{by_name})")

    def _wrap(self, node: Expression, before: str, after: str) -> tuple[Edit, ...]:
        text = self._context.lines.text[node.start : node.end]
        return (Edit(Span(node.start, node.end), f"{before}{text}{after}"),)

    def _is_only_iterated(self, node: Expression, position: ExpressionPosition, depth: int = 0) -> bool:
        """Whether a value is only iterated or indexed where it stands."""
        match position.parent:
            case None if isinstance(position.statement, Loop):
                return True
            case None if isinstance(position.statement, Assign) and depth == 0:
                return self._is_variable_only_iterated(position.statement, position)
            case Comprehension(clauses=clauses):
                return any(clause.source == node for clause in clauses)
            case Subscript(value=value):
                return value == node
            case Operation(op=op):
                return op in ("*", "yield from", "in", "not in", "not")
            case Call(func=func) as call if func != node:
                names = self._context.project.names(self._path, func)
                what = argument_effect(names, last_identifier(func), isinstance(func, Ref) and bool(func.path))
                return (
                    what in ("keep", "enumerate", "zip", "next", "free", "sorted", "mapping", "text") and call != node
                )
        return False

    def _is_variable_only_iterated(self, statement: Assign, position: ExpressionPosition) -> bool:
        match statement.targets:
            case (Ref(path=()) as target,) if statement.op == "=":
                reads = list(self._uses.of_variable(self._path, target, position, statement.end))
                return bool(reads) and all(self._is_read_only_iterated(path, ref, words) for path, ref, words in reads)
        return False

    def _is_read_only_iterated(self, path: str, ref: Ref, words: tuple[str, ...]) -> bool:
        if words:
            return words in (("sort",), ("index",), ("count",), ("append",), ("remove",), ("copy",))
        found = self._spots.of(ref) if path == self._path else None
        if found is None:
            return False
        is_next = isinstance(found.parent, Call) and last_identifier(found.parent.func) == "next"
        return not is_next and (self._is_tested(found) or self._is_only_iterated(ref, found, 1))

    def _is_tested(self, position: ExpressionPosition) -> bool:
        return position.parent is None and isinstance(position.statement, If)


def _is_starred(node: Expression, args: tuple[Arg, ...]) -> bool:
    """Whether a value is an argument whose elements are passed one by one: ``f(*values)``."""
    return any(arg.value == node and arg.star == "*" for arg in args)


def _is_next(position: ExpressionPosition) -> bool:
    """Whether a value is the argument of ``next``."""
    match position.parent:
        case Call(func=Ref(roots=("builtins.next",), path=())):
            return True
    return False


def _iterates_node(taker: Expression, node: Expression) -> bool:
    """Whether the set itself is iterated, and not an element that ``pop`` takes out."""
    return not (isinstance(taker, Call) and last_identifier(taker.func) == "pop" and taker.func == node)


_WALK_TITLE = "Walk the folders in sorted order"


def fix_walk(context: Context, listing: Listing) -> Fix | NoFix:
    """Sort an ``os.walk`` where a top-down ``for`` statement iterates it and names its three parts."""
    call = listing.site.call
    position = context.project.uses.spots(context.path).of(call)
    if position is None or not isinstance(position.statement, Loop) or position.statement.source != call:
        return NoFix("no for loop iterates it, so there is no place to sort the folders")
    if _may_be_bottom_up(call):
        return NoFix("it may walk bottom-up, and then the folders are read before the loop can sort them")
    loop = position.statement
    targets = loop.target.items if isinstance(loop.target, Collection) else ()
    parts = [each for each in targets if isinstance(each, Ref) and not each.path]
    if not loop.body or len(parts) < 3 or len(parts) != len(targets):
        return NoFix("the loop does not name the folders and the files separately")
    if not SortFixes(context).can_write(call):
        return NoFix("this module redefines sorted")
    return _walk_fix(context, loop, parts, position)


def _walk_fix(context: Context, loop: Loop, parts: list[Ref], position: ExpressionPosition) -> Fix:
    text = context.lines.text
    word, renamed = _directories_name(context, parts)
    wraps, whole = _sorted_files(context, loop, parts[2], position)
    files = text[parts[2].start : parts[2].end]
    source = f"{word}.sort()" + (f"\n{files}.sort()" if whole else "")
    first = loop.body[0]
    start = insert_statement(text, first.start, source)
    return Fix(_WALK_TITLE, (*renamed, start, *wraps), safe=not whole)


def _directories_name(context: Context, parts: list[Ref]) -> tuple[str, tuple[Edit, ...]]:
    """The name of the directories; ``_`` is replaced by a fresh name."""
    text = context.lines.text
    word = text[parts[1].start : parts[1].end]
    if word.strip("_"):
        return word, ()
    word = free_word(text, "dirs")
    return word, (Edit(Span(parts[1].start, parts[1].end), word),)


def _sorted_files(
    context: Context, loop: Loop, files: Ref, position: ExpressionPosition
) -> tuple[tuple[Edit, ...], bool]:
    """``sorted`` around the files where they are iterated; else they are sorted in place."""
    orders = context.project.taint
    spots = orders.uses.spots(context.path)
    edits: list[Edit] = []
    for _, ref, words in orders.uses.of_variable(context.path, files, position, loop.source.end + 1):
        if orders.first_sink([TaintedValue(context.path, ref, LISTING, words)]) is None:
            continue
        found = spots.of(ref)
        if words or found is None or not _is_iterated(found, ref):
            return (), True
        edits += (Edit(Span(ref.start, ref.start), "sorted("), Edit(Span(ref.end, ref.end), ")"))
    return tuple(edits), False


def _is_iterated(position: ExpressionPosition, ref: Ref) -> bool:
    if position.parent is None:
        return isinstance(position.statement, Loop) and position.statement.source == ref
    return isinstance(position.parent, Comprehension) and any(
        clause.source == ref for clause in position.parent.clauses
    )


def _may_be_bottom_up(call: Call) -> bool:
    """Whether ``topdown`` may be false, so that the order of directories is fixed before the loop sees them."""
    topdown = bound_argument(call, 1, "topdown", "top_down")
    return topdown is not None and not (isinstance(topdown, Constant) and topdown.value is True)


def _without_spaces(text: str, node: Expression) -> str:
    """The text of an expression on one line."""
    return "".join(text[node.start : node.end].split())
