"""Taint propagation: from a tainted value to the targets of an assignment, to the items of a display, and from a function to its
callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint.dataflow.taint.context import OrderObservation, Sink, TaintContext, TaintedValue, TaintStep
from torchrepro_lint.dataflow.taint.transfer import (
    SCALAR,
    OrderTaint,
    container_of,
    mapping_to,
)
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.syntax.definitions import Rest, bound_references, unpacking_steps
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    ExpressionStatement,
    Loop,
    Operation,
    Ref,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    is_lambda,
    is_module,
    is_nested,
    is_self,
    path_of,
    project_classes,
    simple_name,
)
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import all_statements, is_starred, last_identifier, receiver_of, without_subscripts

# Functions that sort.
_SORTS = frozenset({"sorted", "natsorted", "humansorted"})


def assign_target(
    analysis: TaintContext, tainted: TaintedValue, target: Expression, spot: ExpressionPosition, after: int
) -> Iterator[TaintStep]:
    """The reads of an assignment target; a destructuring target gets the parts of the value."""
    match target:
        case Ref():
            yield from analysis.reads(tainted.path, target, tainted.taint, spot, after)
        case Subscript(value=Ref() as whole, indices=(Operation(op=":"),)):
            yield from analysis.reads(tainted.path, whole, tainted.taint, spot, after)
        case Subscript() if _sorts_elements(analysis, tainted.path, target, after):
            return
        case Subscript(value=Ref() | Subscript() as whole, indices=indices):
            named = len(indices) == 1 and isinstance(indices[0], Constant) and isinstance(indices[0].value, str)
            taint = mapping_to(tainted.taint) if named else container_of(tainted.taint)
            yield from assign_target(analysis, tainted._replace(taint=taint), whole, spot, after)
        case Collection():
            yield from _unpack(analysis, tainted, target, spot, after)


def _sorts_elements(analysis: TaintContext, path: str, stored: Subscript, after: int) -> bool:
    """Whether a file later sorts the elements of a container."""
    base = without_subscripts(stored)
    places = _sorted_elements(analysis.project, path) if isinstance(base, Ref) else {}
    return isinstance(base, Ref) and any(at >= after for at in places.get(_container_key(base), ()))


def _container_key(base: Ref) -> tuple[object, ...]:
    """A variable; an attribute of ``self`` in all methods of a file."""
    return ("self", *base.path) if any(map(is_self, base.roots)) else (base.roots, base.path)


@query()
def _sorted_elements(project: ProgramIndex, path: str) -> dict[tuple[object, ...], list[int]]:
    """Where a file sorts elements of containers: ``rows[key].sort()``, ``rows[key] = sorted(rows[key])``, each of ``rows.items()``."""
    found: dict[tuple[object, ...], list[int]] = {}
    for statement in all_statements(project.files[path]):
        sorted_ones: list[Expression | None] = []
        match statement:
            case ExpressionStatement(value=Call(func=Attribute(value=Subscript() as element, name="sort"))):
                sorted_ones.append(element)
            case Assign(targets=(Subscript() as element,), value=Call(func=func)) if last_identifier(func) in _SORTS:
                sorted_ones.append(element)
            case Loop(target=target, source=Call(func=func), body=body) if last_identifier(func) in ("items", "values"):
                roots = (
                    {root for each in bound_references(target) for root in each.roots} if target is not None else set()
                )
                inner = (each.value for each in body if isinstance(each, ExpressionStatement))
                callees = [each.func for each in inner if isinstance(each, Call)]
                if any(
                    isinstance(each, Ref) and each.path == ("sort",) and roots.issuperset(each.roots)
                    for each in callees
                ):
                    sorted_ones.append(receiver_of(func))
        for each in sorted_ones:
            base = without_subscripts(each) if each is not None else None
            if isinstance(base, Ref):
                found.setdefault(_container_key(base), []).append(statement.start)
    return found


def _unpack(
    analysis: TaintContext, tainted: TaintedValue, target: Collection, spot: ExpressionPosition, after: int
) -> Iterator[TaintStep]:
    """Destructuring an arbitrary order decides which target gets which element, unless there is only one."""
    single = len(target.items) == 1 and not is_starred(target.items[0])
    count = _items_unpacked(tainted.node, target, spot.statement)
    continuations: list[TaintStep] = []
    for step, item in unpacking_steps(target):
        inner: OrderTaint | None
        if isinstance(step, Rest):
            inner = tainted.taint.between(step.before, None if count is None else count - step.after)
        elif tainted.taint.kind == "table":
            inner = None  # the keys
        elif tainted.taint.kind == "plain":
            inner = tainted.taint.item(step if step >= 0 else None if count is None else count + step)
        elif tainted.taint.kind == "scalar":
            inner = SCALAR
        else:
            inner = tainted.taint.item(None) or (None if single else SCALAR)
        if inner is not None:
            continuations += assign_target(analysis, tainted._replace(taint=inner), item, spot, after)
    yield from observe_order(tainted, tainted.node, continuations)


def _items_unpacked(node: Expression, target: Collection, statement: Statement) -> int | None:
    """The number of items of a display that an assignment destructures; None where it is not known."""
    whole = isinstance(statement, Assign) and any(target == each for each in statement.targets)
    known = whole and isinstance(node, Collection) and node.kind != "dict" and not any(map(is_starred, node.items))
    return len(node.items) if known and isinstance(node, Collection) else None


def observe_order(
    tainted: TaintedValue, observer: Expression, continuations: Iterable[TaintStep]
) -> Iterator[TaintStep]:
    """The steps after iterating a value: an observation if its order is arbitrary."""
    if tainted.taint.is_unordered:
        yield OrderObservation(tainted.path, observer, tainted.node, tuple(consequences(continuations)))
    else:
        yield from continuations


def consequences(steps: Iterable[TaintStep]) -> Iterator[TaintedValue | Sink]:
    """The steps behind observations, for an order that was observed before."""
    for step in steps:
        if isinstance(step, OrderObservation):
            yield from step.continuations
        else:
            yield step


def first_constant(indices: tuple[Expression, ...]) -> int | None:
    """The literal index of a subscript."""
    match indices:
        case (Constant(value=int(index)),):
            return index
    return None


class ReturnTaint:
    """Taint transfer from a function to its callers."""

    def __init__(self, analysis: TaintContext) -> None:
        self._analysis = analysis

    def steps(self, tainted: TaintedValue, function: str) -> Iterator[TaintStep]:
        """The calls that receive a returned value; if no caller is known, returning it is a sink."""
        path, taint = tainted.path, tainted.taint
        if is_module(function):
            return
        if is_lambda(function):
            yield from self._from_lambda(path, function, taint)
            return
        name = path + function
        word = simple_name(function)
        if tainted.call_path and tainted.call_path[-1][0] == name:
            _, file, call = tainted.call_path[-1]
            yield TaintedValue(file, call, taint, (), tainted.call_path[:-1])
            return
        of = self._class_of(name, tainted.receiver_class or "")
        callers = [
            TaintedValue(file, call, taint, (), (), of)
            for file, call in (*self._analysis.uses.of_result(name), *self._calls_of_overridden(name, of))
            if self._is_of(of, file, call)
        ]
        if self._analysis.names.is_property(name):
            callers += [
                TaintedValue(*read[:2], taint, read[2], (), of) for read in self._analysis.uses.of_attribute(of, word)
            ]
        if owner := self._analysis.names.owner(name):
            callers += [
                TaintedValue(file, call, taint, (), (), owner)
                for file, call in self._analysis.dynamic_calls.calls(word)
            ]
        yield from callers
        if is_nested(function) and not self._is_named(path, function):
            return
        # A text that only shows an object decides nothing.
        if not callers and taint.is_order_dependent and taint.kind != "ranked" and word != "__repr__":
            yield Sink(path, tainted.node, "returned")

    def _calls_of_overridden(self, method: str, of: str) -> Iterator[tuple[str, Call]]:
        """The calls of the methods of base classes that a method overrides, which run it, too, on an object of its class."""
        names, word = self._analysis.names, simple_name(method)
        for base in filter(in_project, names.ancestry(names.owner(method))[1:] if of else ()):
            for overridden in (name for each in names.classes(base) for short, name in each.methods if short == word):
                for path, call in self._analysis.uses.of_result(path_of(base) + overridden):
                    spot = self._analysis.uses.spots(path).of(call)
                    if spot is not None and self._runs_on(of, path + spot.function):
                        yield path, call

    def _runs_on(self, of: str, function: str) -> bool:
        """Whether a function may run on an object of a class: a method that none of the class's own replaces, or that it calls."""
        names, owner = self._analysis.names, self._analysis.names.owner(function)
        if not owner or owner not in names.ancestry(of) or function in names.methods(of, simple_name(function)):
            return True
        calls = self._analysis.uses.of_result(function)
        return any(path_of(each) == path for path, _ in calls for each in names.ancestry(of))

    def _is_named(self, path: str, function: str) -> bool:
        """Whether a nested function is named in the outer one, or decorated: otherwise nothing can call it."""
        definitions = self._analysis.names.functions(path + function)
        return bool(self._analysis.uses.spots(path).uses(function)) or any(each.decorators for each in definitions)

    def _class_of(self, method: str, known: str) -> str:
        """The class of the receiver whose method returns, if known; empty for a function."""
        names = self._analysis.names
        owner = names.owner(method)
        return known if owner and owner in names.ancestry(known) else owner

    def _is_of(self, of: str, path: str, call: Call) -> bool:
        """Whether a call may have a receiver of that class."""
        names = self._analysis.names
        owners = [*filter(names.classes, project_classes(names.receiver(path, call.func)))]
        if not of or not owners:
            return True
        return any(each in names.ancestry(of) or of in names.ancestry(each) for each in owners)

    def _from_lambda(self, path: str, function: str, taint: OrderTaint) -> Iterator[TaintStep]:
        """The results of a lambda: of ``map(lambda d: os.listdir(d), folders)``, and of calls of the variable it is assigned
        to; others are unknown.
        """
        spots = self._analysis.uses.spots(path)
        expression = spots.lambda_of(function)
        spot = spots.of(expression) if expression is not None else None
        if spot is None:
            return
        if isinstance(spot.parent, Call) and last_identifier(spot.parent.func) in ("map", "imap", "submit"):
            yield TaintedValue(path, spot.parent, container_of(taint))
        elif isinstance(spot.statement, Assign) and spot.statement.value == expression:
            for target in spot.statement.targets:
                if isinstance(target, Ref) and not target.path:
                    yield from self._called(path, target, spot, taint)

    def _called(self, path: str, variable: Ref, spot: ExpressionPosition, taint: OrderTaint) -> Iterator[TaintStep]:
        """The calls of a variable that holds a lambda."""
        for file, read, words in self._analysis.uses.of_variable(path, variable, spot, spot.statement.end):
            there = self._analysis.uses.spots(file).of(read)
            if not words and there is not None and isinstance(there.parent, Call) and there.parent.func == read:
                yield TaintedValue(file, there.parent, taint)
