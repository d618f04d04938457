"""Taint sources: calls that list a directory, calls that give results as they complete, and iterations of sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.dataflow.taint.class_hashes import has_repeated_hash
from torchrepro_lint.dataflow.taint.context import OrderObservation, Sink, TaintedValue
from torchrepro_lint.dataflow.taint.numeric_sets import becomes_tensor, has_stable_elements
from torchrepro_lint.dataflow.taint.prefilter import (
    iterated_arguments,
    iterates_operand,
    iterates_value,
    iteration_sites,
    may_be_set,
    popped,
    receiver,
)
from torchrepro_lint.dataflow.taint.propagation import transfer
from torchrepro_lint.dataflow.taint.transfer import LISTING, SET, WALK, OrderTaint
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import AbstractValue
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
from torchrepro_lint.syntax.visitor import last_identifier

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.taint.analysis import TaintFlow
    from torchrepro_lint.dataflow.value_sources import ValueFlow
    from torchrepro_lint.resolve.program_index import CallSite, ProgramIndex
    from torchrepro_lint.syntax.use_def import ExpressionPosition


_LISTINGS = {
    "os.listdir": "os.listdir",
    "os.scandir": "os.scandir",
    "os.walk": "os.walk",
    "os.fwalk": "os.fwalk",
    "glob.glob": "glob.glob",
    "glob.iglob": "glob.iglob",
}
_PATH_METHODS = frozenset({"iterdir", "glob", "rglob", "walk"})
_LISTS = frozenset({"os.listdir", "glob.glob"})


class Listing(NamedTuple):
    """A call that lists a directory: its label for messages, its taint, and whether it is a list (else an iterator)."""

    site: CallSite
    label: str
    taint: OrderTaint
    is_list: bool


def listings(project: ValueFlow, path: str) -> Iterator[Listing]:
    """The directory listings of a module."""
    for site in project.calls(path):
        label = _label(project, path, site)
        if label:
            walks = label.rpartition(".")[2] in ("walk", "fwalk")
            yield Listing(site, label, WALK if walks else LISTING, label in _LISTS)


def _label(project: ValueFlow, path: str, site: CallSite) -> str:
    for name in site.names:
        if name in _LISTINGS:
            return _LISTINGS[name]
    return _of_path(project, path, site) if last_identifier(site.call.func) in _PATH_METHODS else ""


def _of_path(project: ValueFlow, path: str, site: CallSite) -> str:
    match site.call.func:
        case Ref(path=(*words, word)):
            receiver: Expression = site.call.func._replace(path=tuple(words))
        case Attribute(value=value, name=word):
            receiver = value
        case _:
            return ""
    return f"Path.{word}" if _is_path(project, path, receiver) else ""


def _is_path(project: ValueFlow, path: str, receiver: Expression) -> bool:
    """Whether type inference finds a path; if it finds nothing, whether one of the value sources is a path."""
    inference = type_inference(project)
    known = inference.of(path, receiver).kind
    if known or not isinstance(receiver, Ref):
        return known == "path"
    found = project.resolver.values(path, receiver)
    return any(inference.of(file, value).kind == "path" for file, value in found if value != receiver)


_COMPLETIONS = frozenset(
    {
        "concurrent.futures.as_completed",
        "asyncio.as_completed",
        "asyncio.tasks.as_completed",
        "dask.distributed.as_completed",
        "distributed.as_completed",
    }
)


def completions(project: ProgramIndex, path: str) -> Iterator[tuple[CallSite, str]]:
    """The calls of a module that give results in completion order, with the name that they are written as."""
    for site in project.calls(path):
        word = last_identifier(site.call.func)
        if not _COMPLETIONS.isdisjoint(site.names) or (
            word == "imap_unordered" and not any(":" in n for n in site.names)
        ):
            yield site, word


_SETS = frozenset({"set", "frozenset"})
# Calls that do not return sets.
_ELSEWHERE = frozenset(
    {"range", "enumerate", "zip", "sorted", "items", "values", "list", "tuple", "tqdm", "glob", "split", "listdir"}
)


class SetOrder(NamedTuple):
    """An observation of a set's order, the type of its elements, and the sink that it reaches.

    ``in_table`` says that a table holds the set; other code may put other elements into it.
    """

    order: OrderObservation
    elements: AbstractValue
    taken: Sink
    in_table: bool


def set_orders(project: TaintFlow, path: str) -> Iterator[SetOrder]:
    """The iterations of sets whose elements hash differently in each run, if a sink depends on them."""
    inference = type_inference(project)
    analysis = project.taint
    likely = _candidates(project, path)
    for node, spot in analysis.uses.spots(path).items() if likely else ():
        if id(node) not in likely or not may_iterate(node, spot):
            continue
        whole = _set_of(node)
        what = inference.of(path, whole)
        held = analysis.set_tables.elements(path, whole) if what.kind not in _SETS else None
        what = what if held is None else AbstractValue("set", contents=held)
        if what.kind not in _SETS or has_repeated_hash(project, what.element):
            continue
        if has_stable_elements(project, path, whole) or becomes_tensor(project, path, spot):
            continue
        if isinstance(whole, Ref) and _is_passed_lists(project, path, whole):
            continue
        for step in transfer(analysis, TaintedValue(path, node, SET, ("pop",) if whole is not node else ())):
            if isinstance(step, OrderObservation) and (taken := analysis.first_sink(step.continuations)) is not None:
                yield SetOrder(step, what.element, taken, held is not None)


def _set_of(node: Expression) -> Expression:
    """The set whose order an expression takes: that of which the method ``pop`` is read."""
    return receiver(node) if isinstance(node, Ref | Attribute) and last_identifier(node) == "pop" else node


def _candidates(project: TaintFlow, path: str) -> set[int]:
    """The identities of iterated expressions that may be sets: few files have any."""
    non_sets = project.taint.non_sets
    return {
        id(node)
        for node in iteration_sites(project.files[path])
        for whole in [_set_of(node)]
        if _may_give_set(whole)
        and (
            (not non_sets.is_never_set(path, whole) and may_be_set(project.resolver, path, whole))
            or project.taint.set_tables.elements(path, whole) is not None
        )
    }


def _may_give_set(node: Expression) -> bool:
    """Whether an expression may be a set, by its syntax."""
    match node:
        case Constant() | Lambda():
            return False
        case Collection(kind=kind) | Comprehension(kind=kind):
            return kind == "set"
        case Call(func=func):
            return last_identifier(func) not in _ELSEWHERE
    return True


def _is_passed_lists(project: TaintFlow, path: str, ref: Ref) -> bool:
    """Whether all calls of a private function pass lists for the parameter, whatever its annotation says."""
    for root in ref.roots if not ref.path else ():
        found = project.resolver.parameter(path + root)
        if found is None or not found.function.name.rpartition(".")[2].rpartition(":")[2].startswith("_"):
            return False
        kinds = [type_inference(project).of(file, value).kind for file, value in project.resolver.passed(path + root)]
        if not kinds or not all(kind in ("list", "tuple") for kind in kinds):
            return False
    return not ref.path


def may_iterate(node: Expression, spot: ExpressionPosition) -> bool:
    """Whether an expression stands where it may be iterated."""
    if spot.written:
        return False
    match spot.parent:
        case None:
            return isinstance(spot.statement, Loop) or _is_unpacked(spot)
        case Call():
            return popped(spot.parent) is node or any(each is node for each in iterated_arguments(spot.parent))
        case Comprehension(clauses=clauses):
            return any(clause.source is node for clause in clauses)
        case Operation():
            return iterates_operand(spot.parent)
    return False


def _is_unpacked(spot: ExpressionPosition) -> bool:
    return isinstance(spot.statement, Assign) and iterates_value(spot.statement)
