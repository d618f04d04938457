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
from torchrepro_lint.dataflow.uses import table_mates
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
    path_of,
    project_classes,
    simple_name,
)
from torchrepro_lint.syntax.scopes import functions_around
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import (
    blocks,
    expressions_within,
    is_same_reference,
    is_starred,
    last_identifier,
    receiver_of,
    without_subscripts,
)

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
        case Subscript() if _sorts_elements(analysis, tainted.path, target, spot):
            return
        case Subscript(value=Ref() | Subscript() as whole, indices=indices):
            named = len(indices) == 1 and isinstance(indices[0], Constant) and isinstance(indices[0].value, str)
            taint = mapping_to(tainted.taint) if named else container_of(tainted.taint)
            yield from assign_target(analysis, tainted._replace(taint=taint), whole, spot, after)
        case Collection():
            yield from _unpack(analysis, tainted, target, spot, after)


def _sorts_elements(analysis: TaintContext, path: str, stored: Subscript, spot: ExpressionPosition) -> bool:
    """Whether the block that stores an element sorts it: ``rows[key].sort()``, ``rows[key] = sorted(rows[key])``; or a loop of the
    function sorts each element, before anything else reads the container.
    """
    base, after = without_subscripts(stored), spot.statement.end
    tree = analysis.project.files[path]
    bodies = (each.body for each in functions_around(tree, stored.start))
    function = next(bodies, tree.body)
    around = (each for block in _blocks_around(function, spot.statement) for each in block if each.start >= after)
    if any(_sorts(each, stored) for each in around):
        return True
    later = [each for each in function if each.start >= after]
    loop = next((at for at, each in enumerate(later) if isinstance(base, Ref) and _sorts_each(each, base)), None)
    before = (part for each in later[:loop] for part in expressions_within(each)) if loop is not None else ()
    return loop is not None and not any(isinstance(each, Ref) and is_same_reference(each, base) for each in before)


def _blocks_around(body: tuple[Statement, ...], statement: Statement) -> Iterator[tuple[Statement, ...]]:
    """The blocks of a body that have a statement, outermost first."""
    for each in body:
        if each.start <= statement.start < each.end:
            yield body
            for block in blocks(each):
                yield from _blocks_around(block, statement)


def _sorts(statement: Statement, element: Subscript) -> bool:
    """``rows[key].sort()``, ``rows[key] = sorted(rows[key])``; with a key equal elements may stay as they were."""
    match statement:
        case ExpressionStatement(value=Call(func=Attribute(value=Subscript() as place, name="sort"), args=())):
            return _is_same_element(place, element)
        case Assign(op="=", targets=(Subscript() as place,), value=Call(func=func, args=(only,))):
            same = isinstance(only.value, Subscript) and _is_same_element(only.value, element)
            return same and _is_same_element(place, element) and last_identifier(func) in _SORTS
    return False


def _sorts_each(statement: Statement, base: Ref) -> bool:
    """A loop over the elements of a container, or over its keys, that sorts each."""
    match statement:
        case Loop(target=target, source=Call(func=func), body=body) if target is not None:
            held, roots = receiver_of(func), {root for each in bound_references(target) for root in each.roots}
            whole = held is not None and without_subscripts(held)
            if (
                last_identifier(func) in ("items", "values")
                and isinstance(whole, Ref)
                and is_same_reference(whole, base)
            ):
                calls = [each.value for each in body if isinstance(each, ExpressionStatement)]
                sorts = [each.func for each in calls if isinstance(each, Call) and not each.args]
                return any(
                    isinstance(each, Ref) and each.path == ("sort",) and roots.issuperset(each.roots) for each in sorts
                )
        case Loop(target=Ref(), source=source, body=body):
            held = without_subscripts(source)
            places = [target for each in body if isinstance(each, Assign) for target in each.targets]
            sorts_one = any(isinstance(each, Subscript) and _sorts(one, each) for one in body for each in places)
            goes_through = isinstance(held, Ref) and is_same_reference(held, base)
            return goes_through and (sorts_one or any(_sorts_each(each, base) for each in body))
    return False


def _is_same_element(one: Expression, other: Expression) -> bool:
    """Whether two expressions name the same element of the same container."""
    if isinstance(one, Subscript) and isinstance(other, Subscript):
        same = len(one.indices) == len(other.indices) and all(map(_is_same_element, one.indices, other.indices))
        return same and _is_same_element(one.value, other.value)
    if isinstance(one, Constant) and isinstance(other, Constant):
        return one.value == other.value
    return isinstance(one, Ref) and isinstance(other, Ref) and is_same_reference(one, other)


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
        mates = table_mates(self._analysis.project, of)
        return any(each in mates or each in names.ancestry(of) or of in names.ancestry(each) for each in owners)

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
