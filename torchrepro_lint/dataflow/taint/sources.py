"""Taint sources: calls that list a directory, calls that give results as they complete, and iterations of sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint import limits
from torchrepro_lint.dataflow.taint.analysis import TaintFlow, transfer
from torchrepro_lint.dataflow.taint.context import OrderObservation, Sink, TaintedValue
from torchrepro_lint.dataflow.taint.loops import (
    iterated_arguments,
    iterates_operand,
    iterates_value,
    iteration_sites,
    popped,
)
from torchrepro_lint.dataflow.taint.sinks import decisive_sink
from torchrepro_lint.dataflow.taint.stable_hashes import becomes_numbers, has_repeated_hash, has_stable_elements
from torchrepro_lint.dataflow.taint.transfer import COMPLETION, FRESH, LISTING, SET, WALK, OrderTaint, container_of
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import AbstractValue
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.resolve.program_index import CallSite, ProgramIndex
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
    Record,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import PROGRESS_BARS, in_project, simple_name, top_package
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of

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


class Listing(Record, frozen=True):
    """A call that lists a directory: its label for messages, its taint, and whether it is a list (else an iterator).

    ``maker`` is what makes the names of its files anew in each run, such as ``uuid4``; empty if nothing is known to.
    """

    site: CallSite
    label: str
    taint: OrderTaint
    is_list: bool
    maker: str = ""


def listings(project: ValueFlow, path: str) -> Iterator[Listing]:
    """The directory listings of a module."""
    for site in project.calls(path):
        label = _label(project, path, site)
        if label:
            walks = simple_name(label) in ("walk", "fwalk")
            maker = "" if walks else _maker_of_names(project, path, site.call)
            yield Listing(site, label, WALK if walks else FRESH if maker else LISTING, label in _LISTS, maker)


def _label(project: ValueFlow, path: str, site: CallSite) -> str:
    for name in site.names:
        if name in _LISTINGS:
            return _LISTINGS[name]
    return _of_path(project, path, site) if last_identifier(site.call.func) in _PATH_METHODS else ""


def _of_path(project: ValueFlow, path: str, site: CallSite) -> str:
    func = site.call.func
    receiver = receiver_of(func)
    return f"Path.{last_identifier(func)}" if receiver is not None and _is_path(project, path, receiver) else ""


def _is_path(project: ValueFlow, path: str, receiver: Expression) -> bool:
    """Whether type inference finds a path; if it finds nothing, whether one of the value sources is a path, or an option of that type."""
    inference = type_inference(project)
    known = inference.of(path, receiver).kind
    if known or not isinstance(receiver, Ref):
        return known == "path"
    found = project.resolver.values(path, receiver)
    if any(inference.of(file, value).kind == "path" for file, value in found if value != receiver):
        return True
    options = ((each.path, each.converter) for each in project.resolver.options.of(path, receiver))
    return any(one is not None and "pathlib.Path" in project.names(file, one) for file, one in options)


# Calls that make another name in each run, and those that create a file under one in a directory.
_NAME_MAKERS = frozenset({"uuid.uuid1", "uuid.uuid4", "secrets.token_hex", "secrets.token_urlsafe", "tempfile.mktemp"})
_FILE_MAKERS = frozenset({"tempfile.mkstemp", "tempfile.NamedTemporaryFile", "tempfile.mkdtemp"})
_FILE_MAKING = frozenset(map(simple_name, _FILE_MAKERS))
_MAKING_MODULES = frozenset({"uuid", "secrets", "tempfile"})


class FreshSort(NamedTuple):
    """A sort of names that are made anew in each run, and the call that makes them."""

    call: Call
    maker: str


def fresh_sorts(project: ValueFlow, path: str) -> Iterator[FreshSort]:
    """The sorts of a module whose elements, or keys, are names that are made anew in each run."""
    if not _makes_names(project, path):
        return
    for site in project.calls_by(path, frozenset({"sorted"})):
        if "builtins.sorted" in site.names and len(site.call.args) == 1:
            for file, value in project.values(path, site.call.args[0].value):
                match value:
                    case Comprehension(elements=(element, *_)) if maker := _maker(project, file, element):
                        yield FreshSort(site.call, maker)


def _makes_names(project: ValueFlow, path: str) -> bool:
    imports = project.resolver.modules.summary(path).imports
    return not _MAKING_MODULES.isdisjoint(map(top_package, imports))


def _maker_of_names(project: ValueFlow, path: str, call: Call) -> str:
    """What makes the names of the files in a listed directory anew in each run; empty if the module is not seen to."""
    if not _makes_names(project, path) or (listed := _directory(call)) is None:
        return ""
    positions = project.uses.spots(path).items()
    for expression in (each for each, _ in positions if isinstance(each, Call | Operation)):
        match expression:
            case Call(args=args, func=func) if last_identifier(func) in _FILE_MAKING and (
                made := _FILE_MAKERS.intersection(project.names(path, func))
            ):
                if any(arg.keyword == "dir" and _key_of(arg.value) == listed for arg in args):
                    return min(made)
            case _ if (parts := _joined(expression)) is not None and _key_of(parts[0]) == listed:
                if maker := _maker(project, path, parts[1]):
                    return maker
    return ""


def _joined(expression: Call | Operation) -> tuple[Expression, Expression] | None:
    """The folder and the name of a path: ``os.path.join(folder, name)``, ``folder / name``, ``f"{folder}/{name}"``."""
    match expression:
        case Call(func=func, args=(first, second, *_)) if last_identifier(func) == "join":
            return first.value, second.value
        case (
            Operation(op="/", operands=(folder, name))
            | Operation(op="f", operands=(folder, Constant(value="/"), name, *_))
        ):
            return folder, name
    return None


def _directory(call: Call) -> object:
    """The directory that a call lists, as it is written; None where it is not a name or a literal."""
    match call.func:
        case Ref(path=(*words, word)) as func if word in _PATH_METHODS and func.roots != ("glob",):
            return _key_of(func._replace(path=tuple(words)))
    listed = call.args[0].value if call.args else None
    match listed:
        case Call(func=joined, args=(first, *_)) if last_identifier(joined) == "join":
            return _key_of(first.value)
        case Operation(op="/" | "f" | "+", operands=(folder, *_)):
            return _key_of(folder)
    return _key_of(listed) if listed is not None else None


def _key_of(place: Expression) -> object:
    """A key that is equal for places that are written alike; an attribute of ``self`` is the same in all methods."""
    match place:
        case Call(func=func, args=(arg,)) if last_identifier(func) in ("str", "Path"):
            return _key_of(arg.value)
        case Constant(value=str(text)):
            return text.partition("*")[0].rstrip("/")
        case Ref(roots=roots, path=path):
            return tuple("self" if root.endswith(".self") else root for root in roots), path
    return None


def _maker(project: ValueFlow, path: str, name: Expression, depth: int = 0) -> str:
    """The call that makes anew in each run what a name begins with; empty if it begins otherwise."""
    if depth > limits.MAX_FRESH_NAME_DEPTH:
        return ""
    for file, inner in _beginnings(project, path, name):
        match inner:
            case Call(func=func) if made := _NAME_MAKERS.intersection(project.names(file, func)):
                return min(made)
        if found := _maker(project, file, inner, depth + 1) if (file, inner) != (path, name) else "":
            return found
    return ""


def _beginnings(project: ValueFlow, path: str, name: Expression) -> Iterator[tuple[str, Expression]]:
    """What a text begins with, besides literals: ``str(x)``, ``x.hex``, ``f"{x}.pt"``, ``x + ".pt"``, the values of a variable."""
    match name:
        case Call(func=func, args=args):
            yield path, name
            if last_identifier(func) in ("str", "Path", "basename") and args:
                yield path, args[0].value
        case Attribute(value=value) | Subscript(value=value):
            yield path, value
        case Operation(op="f" | "+" | "%", operands=operands):
            yield from [(path, each) for each in operands if not isinstance(each, Constant)][:1]
        case Ref():
            yield from (each for each in project.values(path, name._replace(path=())) if not isinstance(each[1], Ref))


_COMPLETIONS = frozenset(
    {
        "concurrent.futures.as_completed",
        "asyncio.as_completed",
        "asyncio.tasks.as_completed",
        "dask.distributed.as_completed",
        "distributed.as_completed",
    }
)


_WAITS = frozenset({"concurrent.futures.wait", "concurrent.futures._base.wait", "asyncio.wait", "asyncio.tasks.wait"})


class Completion(NamedTuple):
    """A call that gives results in completion order, the name that it is written as, and its taint."""

    site: CallSite
    word: str
    taint: OrderTaint


def completions(project: ProgramIndex, path: str) -> Iterator[Completion]:
    """The calls of a module that give results in completion order; ``wait`` gives a set of those that are done."""
    for site in project.calls(path):
        word = last_identifier(site.call.func)
        if not _COMPLETIONS.isdisjoint(site.names) or (
            word == "imap_unordered" and not any(map(in_project, site.names))
        ):
            yield Completion(site, word, COMPLETION)
        elif not _WAITS.isdisjoint(site.names):
            yield Completion(site, word, container_of(COMPLETION, 0))


_SETS = frozenset({"set", "frozenset"})
# Calls that do not return sets.
_ELSEWHERE = PROGRESS_BARS.union(
    ("range", "enumerate", "zip", "sorted", "items", "values", "list", "tuple", "glob", "split", "listdir")
)


class SetOrder(Record, frozen=True):
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
        if node not in likely or not may_iterate(node, spot):
            continue
        whole = _set_of(node)
        what = inference.of(path, whole)
        held = analysis.set_tables.elements(path, whole) if what.kind not in _SETS else None
        what = what if held is None else AbstractValue("set", contents=held)
        if what.kind not in _SETS or has_repeated_hash(project, what.element):
            continue
        if has_stable_elements(project, path, whole) or becomes_numbers(project, path, spot):
            continue
        if isinstance(whole, Ref) and _is_passed_lists(project, path, whole):
            continue
        for step in transfer(analysis, TaintedValue(path, node, SET, ("pop",) if whole != node else ())):
            if (
                isinstance(step, OrderObservation)
                and (taken := decisive_sink(project, path, step.continuations)) is not None
            ):
                yield SetOrder(step, what.element, taken, held is not None)


def _set_of(node: Expression) -> Expression:
    """The set whose order an expression takes: that of which the method ``pop`` is read."""
    return (receiver_of(node) if last_identifier(node) == "pop" else None) or node


def _candidates(project: TaintFlow, path: str) -> set[Expression]:
    """The iterated expressions that may be sets: few files have any."""
    non_sets = project.taint.non_sets
    return {
        node
        for node in iteration_sites(project.files[path])
        for whole in [_set_of(node)]
        if _may_give_set(whole)
        and (not non_sets.is_never_set(path, whole) or project.taint.set_tables.elements(path, whole) is not None)
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
        if found is None or not simple_name(found.function.name).startswith("_"):
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
            return popped(spot.parent) == node or any(each == node for each in iterated_arguments(spot.parent))
        case Comprehension(clauses=clauses):
            return any(clause.source == node for clause in clauses)
        case Operation():
            return iterates_operand(spot.parent)
    return False


def _is_unpacked(spot: ExpressionPosition) -> bool:
    return isinstance(spot.statement, Assign) and iterates_value(spot.statement)
