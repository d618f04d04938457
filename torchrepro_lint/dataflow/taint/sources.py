"""Calls that list a directory in the order that the file system gives.

Calls that hand out results in the order in which they are finished.

Where the order of a set is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.dataflow.taint.context import Here, Order, Taken
from torchrepro_lint.dataflow.taint.numeric_sets import becomes_tensor, holds_numbers, is_steady
from torchrepro_lint.dataflow.taint.prefilter import goings, is_giving, is_unpacking, may_be_set, taken_by
from torchrepro_lint.dataflow.taint.propagation import steps
from torchrepro_lint.dataflow.taint.transfer import LISTING, SET, WALK, Shape
from torchrepro_lint.dataflow.types.inference import kinds_of
from torchrepro_lint.dataflow.types.lattice import What
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Loop,
    Operation,
    Ref,
)
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.taint.analysis import OrderFlow
    from torchrepro_lint.dataflow.value_flow import ValueFlow
    from torchrepro_lint.resolve.program_index import ProgramIndex, Site
    from torchrepro_lint.syntax.use_def import Spot


_LISTINGS = {
    "os.listdir": "os.listdir",
    "os.scandir": "os.scandir",
    "os.walk": "os.walk",
    "os.fwalk": "os.fwalk",
    "glob.glob": "glob.glob",
    "glob.iglob": "glob.iglob",
}
_METHODS = frozenset({"iterdir", "glob", "rglob", "walk"})
_LISTS = frozenset({"os.listdir", "glob.glob"})


class Listing(NamedTuple):
    """A listing: how people write it, what it holds, and whether it is a list (else an iterator)."""

    site: Site
    label: str
    shape: Shape
    is_list: bool


def listings(project: ValueFlow, path: str) -> Iterator[Listing]:
    """The listings of a module."""
    for site in project.calls(path):
        label = _label(project, path, site)
        if label:
            walks = label.rpartition(".")[2] in ("walk", "fwalk")
            yield Listing(site, label, WALK if walks else LISTING, label in _LISTS)


def _label(project: ValueFlow, path: str, site: Site) -> str:
    for name in site.names:
        if name in _LISTINGS:
            return _LISTINGS[name]
    return _of_path(project, path, site) if last_word(site.call.func) in _METHODS else ""


def _of_path(project: ValueFlow, path: str, site: Site) -> str:
    match site.call.func:
        case Ref(path=(*words, word)):
            receiver: Expression = site.call.func._replace(path=tuple(words))
        case Attribute(value=value, name=word):
            receiver = value
        case _:
            return ""
    return f"Path.{word}" if _is_path(project, path, receiver) else ""


def _is_path(project: ValueFlow, path: str, receiver: Expression) -> bool:
    """Whether inference knows a path, or where it knows nothing, whether something of the project passes one."""
    kinds = kinds_of(project)
    known = kinds.of(path, receiver).kind
    if known or not isinstance(receiver, Ref):
        return known == "path"
    found = project.resolver.values(path, receiver)
    return any(kinds.of(file, value).kind == "path" for file, value in found if value != receiver)


_COMPLETIONS = frozenset(
    {
        "concurrent.futures.as_completed",
        "asyncio.as_completed",
        "asyncio.tasks.as_completed",
        "dask.distributed.as_completed",
        "distributed.as_completed",
    }
)


def completions(project: ProgramIndex, path: str) -> Iterator[tuple[Site, str]]:
    """The calls of a module, with the word that people write."""
    for site in project.calls(path):
        word = last_word(site.call.func)
        if not _COMPLETIONS.isdisjoint(site.names) or (
            word == "imap_unordered" and not any(":" in n for n in site.names)
        ):
            yield site, word


_SETS = frozenset({"set", "frozenset"})
# Calls that are not looked at for sets: they make none.
_ELSEWHERE = frozenset(
    {"range", "enumerate", "zip", "sorted", "items", "values", "list", "tuple", "tqdm", "glob", "split", "listdir"}
)


class SetOrder(NamedTuple):
    """An expression that takes the order of a set, the set, what its elements are, and what that order decides."""

    order: Order
    elements: What
    taken: Taken


def set_orders(project: OrderFlow, path: str) -> Iterator[SetOrder]:
    """The places of a module that take the order of a set whose elements' hashes differ between runs."""
    kinds = kinds_of(project)
    orders = project.orders
    likely = _likely(project, path)
    for node, spot in orders.uses.spots(path).items() if likely else ():
        if id(node) not in likely or not may_take(node, spot):
            continue
        what = kinds.of(path, node)
        if what.kind not in _SETS or is_steady(what.element) or holds_numbers(project, path, node):
            continue
        if isinstance(node, Ref) and _is_passed_lists(project, path, node):
            continue
        if becomes_tensor(project, path, spot):
            continue
        for step in steps(orders, Here(path, node, SET)):
            if isinstance(step, Order) and (taken := orders.decides(step.then)) is not None:
                yield SetOrder(step, what.element, taken)


def _likely(project: OrderFlow, path: str) -> set[int]:
    """The identities of what the file may go along and that may be a set: few files have any."""
    barren = project.orders.barren
    return {
        id(node)
        for node in goings(project.files[path])
        if _may_make(node) and not barren.holds(path, node) and may_be_set(project.resolver, path, node)
    }


def _may_make(node: Expression) -> bool:
    """Whether an expression, by what it is, may give a set."""
    match node:
        case Constant() | Lambda():
            return False
        case Collection(kind=kind) | Comprehension(kind=kind):
            return kind == "set"
        case Call(func=func):
            return last_word(func) not in _ELSEWHERE
    return True


def _is_passed_lists(project: OrderFlow, path: str, ref: Ref) -> bool:
    """Whether a parameter of a private function is given lists by all that call it, whatever its annotation says."""
    for root in ref.roots if not ref.path else ():
        found = project.resolver.parameter(path + root)
        if found is None or not found.function.name.rpartition(".")[2].rpartition(":")[2].startswith("_"):
            return False
        kinds = [kinds_of(project).of(file, value).kind for file, value in project.resolver.passed(path + root)]
        if not kinds or not all(kind in ("list", "tuple") for kind in kinds):
            return False
    return not ref.path


def may_take(node: Expression, spot: Spot) -> bool:
    """Whether an expression stands where an order can be taken."""
    if spot.written:
        return False
    match spot.parent:
        case None:
            return isinstance(spot.statement, Loop) or _is_unpacked(spot)
        case Call():
            return any(each is node for each in taken_by(spot.parent))
        case Comprehension(clauses=clauses):
            return any(clause.source is node for clause in clauses)
        case Operation():
            return is_giving(spot.parent)
    return False


def _is_unpacked(spot: Spot) -> bool:
    return isinstance(spot.statement, Assign) and is_unpacking(spot.statement)
