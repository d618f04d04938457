"""Taint propagation through control flow: into loops and comprehensions, and from a function to its callers. Also here: what may be
iterated, by its syntax.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torchrepro_lint.dataflow.taint.callee_effects import round_effects
from torchrepro_lint.dataflow.taint.context import TaintContext, TaintedValue, TaintStep, keyed_by
from torchrepro_lint.dataflow.taint.effects import loop_effects
from torchrepro_lint.dataflow.taint.propagation import assign_target, observe_order
from torchrepro_lint.dataflow.taint.ties import KEYED_WORDS, takes_key
from torchrepro_lint.dataflow.taint.transfer import (
    FRESH,
    LISTING,
    RANKED,
    SCALAR,
    OrderTaint,
    container_of,
    mapping_to,
)
from torchrepro_lint.syntax.definitions import bound_references
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    DefinitionStatement,
    Expression,
    ExpressionStatement,
    If,
    Loop,
    Match,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    SyntaxTree,
    Try,
    With,
)
from torchrepro_lint.syntax.qualified_names import PROGRESS_BARS
from torchrepro_lint.syntax.use_def import Block, ExpressionPosition
from torchrepro_lint.syntax.visitor import (
    blocks,
    bodies,
    expressions,
    expressions_within,
    last_identifier,
    operands_of,
    subexpressions,
)


class LoopTaint:
    """Taint transfer of loops and comprehensions."""

    def __init__(self, analysis: TaintContext) -> None:
        self._analysis = analysis

    def steps(self, tainted: TaintedValue, loop: Statement, spot: ExpressionPosition) -> Iterator[TaintStep]:
        """The reads of the loop's variables, and the side effects of its body."""
        assert isinstance(loop, Loop)
        assert loop.target is not None
        inside = spot._replace(blocks=(*spot.blocks, Block(loop, 0, loop.end, "")))
        then: list[TaintStep] = []
        if element := _element(tainted.taint):
            then += assign_target(
                self._analysis, tainted._replace(taint=element), loop.target, inside, loop.source.end + 1
            )
        if tainted.taint.kind == "walk" and self._sorts_folders(tainted.path, loop):
            yield from then
            return
        if tainted.taint.is_unordered:
            then += (
                step for step in loop_effects(self._analysis, tainted, loop, inside) if not _is_choice(tainted, step)
            )
        yield from observe_order(tainted, tainted.node, then)

    def numbered(self, tainted: TaintedValue, item: Subscript, loop: Loop) -> Iterator[TaintStep]:
        """The steps of a list where a loop along its numbers reads an item: those of a loop along the list."""
        spot = self._analysis.uses.spots(tainted.path).of(loop.source)
        element, then = _element(tainted.taint), list[TaintStep]()
        if element is not None:
            then.append(TaintedValue(tainted.path, item, element))
        if spot is not None:
            inside = spot._replace(blocks=(*spot.blocks, Block(loop, 0, loop.end, "")))
            then += loop_effects(self._analysis, tainted, loop, inside)
        yield from observe_order(tainted, item, (step for step in then if not _is_choice(tainted, step)))

    def _sorts_folders(self, path: str, loop: Loop) -> bool:
        """Whether the body sorts the folders of ``os.walk``, ``dirs.sort()``: then the walk is in order."""
        parts = [each for each in getattr(loop.target, "items", ()) if isinstance(each, Ref)]
        if len(parts) < 3:
            return not any(self._analysis.uses.spots(path).uses(root) for ref in parts[1:2] for root in ref.roots)
        spots = self._analysis.uses.spots(path)
        return any(
            loop.start <= each.at < loop.end and "sort" in _words(each.statement)
            for root in parts[1].roots
            for each in spots.kills(root, ())
        )

    def comprehended(self, tainted: TaintedValue, parent: Comprehension) -> Iterator[TaintStep]:
        """The steps of a value that a comprehension iterates, or that its elements contain."""
        clause = next((each for each in parent.clauses if each.source == tainted.node), None)
        if clause is None:
            yield from _contained(tainted, parent)
            return
        then: list[TaintStep] = []
        if element := _element(tainted.taint):
            spot = self._analysis.uses.spots(tainted.path).of(clause.target)
            if spot is not None:
                then += assign_target(
                    self._analysis, tainted._replace(taint=element), clause.target, spot, parent.start
                )
        names = {root for ref in bound_references(clause.target) for root in ref.roots}
        if tainted.taint.is_unordered and _mentions(parent, names):
            then += _result_of_comprehension(tainted, parent)
        if tainted.taint.is_unordered:
            then += self._rounds(tainted.path, parent, names)
        yield from observe_order(tainted, tainted.node, then)

    def _rounds(self, path: str, parent: Comprehension, own: set[str]) -> Iterator[TaintStep]:
        """The draws for the elements of a comprehension."""
        calls = [each for one in parent.elements for each in subexpressions(one) if isinstance(each, Call)]
        yield from round_effects(self._analysis, path, calls, lambda ref: own.isdisjoint(ref.roots))


def _result_of_comprehension(tainted: TaintedValue, parent: Comprehension) -> Iterator[TaintStep]:
    if parent.kind in ("list", "generator"):
        yield TaintedValue(
            tainted.path,
            parent,
            tainted.taint if tainted.taint in (RANKED, FRESH) and _is_path(parent.elements[0]) else LISTING,
        )
    elif parent.kind == "dict" and (filled := keyed_by(tainted.taint)) is not None:
        yield TaintedValue(tainted.path, parent, filled)


# Calls that make a path of a path.
_PATH_CALLS = frozenset({"join", "str", "Path", "basename", "abspath", "realpath", "normpath", "relative_to", "fspath"})


def _is_path(element: Expression) -> bool:
    """Whether the element that a comprehension makes of a path is a path again."""
    match element:
        case Call(func=func):
            return last_identifier(func) in _PATH_CALLS
        case Operation(op=op):
            return op in ("/", "+", "f", "%")
    return isinstance(element, Ref | Attribute)


def _contained(tainted: TaintedValue, parent: Comprehension) -> Iterator[TaintStep]:
    places = [index for index, element in enumerate(parent.elements) if element == tainted.node]
    if not places or parent.kind == "set":
        return  # it is in a test, or the result is a set
    if parent.kind == "dict" and places == [0] and tainted.taint.kind != "scalar":
        return
    yield TaintedValue(
        tainted.path,
        parent,
        mapping_to(tainted.taint) if parent.kind == "dict" and places == [1] else container_of(tainted.taint),
    )


def _is_choice(tainted: TaintedValue, step: TaintStep) -> bool:
    """Whether a loop along a ranked list only chooses an element: the latest file that fits."""
    return tainted.taint.kind == "ranked" and isinstance(step, TaintedValue) and step.taint.kind == "scalar"


def _element(taint: OrderTaint) -> OrderTaint | None:
    return SCALAR if taint.kind == "scalar" else taint.element()


def _mentions(parent: Comprehension, names: set[str]) -> bool:
    """Whether the elements depend on the variable: those of ``[0 for _ in x]`` do not."""
    inner = [clause.source for clause in parent.clauses[1:]]
    return any(
        isinstance(each, Ref) and not names.isdisjoint(each.roots)
        for element in (*parent.elements, *inner)
        for each in subexpressions(element)
    )


def _words(statement: Statement) -> str:
    """The names that a statement calls, joined, to search for one that sorts."""
    calls = (each for each in expressions_within(statement) if isinstance(each, Call))
    return " ".join(last_identifier(each.func) for each in calls)


# --- iteration sites -------------------------------------------------------------------------------------------------

# Names of calls that may iterate their arguments.
_ITERATING_WORDS = frozenset(
    {"list", "tuple", "enumerate", "iter", "zip", "map", "imap", "starmap", "filter", "reversed", "next", "chain"}
    | {"from_iterable", "islice", "cycle", "product", "permutations", "combinations", "join", "deque", "array"}
    | {"asarray", "fromiter", "tensor", "as_tensor", "stack", "cat", "concat", "concatenate", "Series", "Index"}
    | {"DataFrame", "choice", "choices", "sample", "shuffle", "permutation", "fromkeys", "dict"}
    | {"OrderedDict", "extend", "dumps", "ModuleList", "Sequential", "Parallel", "gather", "Subset", "Counter"}
)
_BY_KEYWORDS = frozenset({"dict", "OrderedDict"})


def iteration_sites(facts: SyntaxTree) -> list[Expression]:
    """All expressions that may be iterated (a superset), in no order."""
    found: list[Expression] = []
    left: list[Any] = [statement for body in bodies(facts) for statement in body]
    take, look = left.pop, _CHILDREN.get
    while left:
        it = take()
        inside = look(type(it))
        if inside is not None:  # names and constants have no children
            left += inside(it, found)
    return found


def iterates_operand(operation: Operation) -> bool:
    """Whether an operation iterates its operand: ``yield from``, and a star (a product has two operands)."""
    return operation.op == "yield from" or (operation.op == "*" and len(operation.operands) == 1)


def iterated_arguments(call: Call) -> list[Expression]:
    """The arguments that a call may iterate; keyword arguments of ``dict`` are stored as they are."""
    word = last_identifier(call.func)
    if word in _BY_KEYWORDS:
        return [arg.value for arg in call.args if arg.keyword is None]
    if word == "iter" and len(call.args) > 1:
        return []  # it calls the first until it returns the second
    if word in KEYED_WORDS:
        return [arg.value for arg in call.args if arg.star == "*" or (arg.keyword is None and takes_key(call))]
    if word == "update" and len(call.args) == 1:
        return [call.args[0].value]  # of a counter
    iterates = word in _ITERATING_WORDS or word in PROGRESS_BARS
    return [arg.value for arg in call.args if iterates or arg.star == "*"]


def popped(call: Call) -> Expression | None:
    """The expression whose method ``pop`` a call without arguments runs; it stands for the method of the set."""
    return call.func if not call.args and last_identifier(call.func) == "pop" else None


def iterates_value(statement: Assign) -> bool:
    """Whether an assignment may iterate its value."""
    return statement.op == "+=" or any(type(target) is Collection for target in statement.targets)


def _of_call(it: Call, found: list[Expression]) -> Sequence[Expression]:
    func, args = it.func, it.args
    if not args:
        if popped(it) is not None:
            found.append(func)
        return () if type(func) is Ref else (func,)
    found += iterated_arguments(it)
    values = [arg.value for arg in args]
    return values if type(func) is Ref else (func, *values)


def _of_comprehension(it: Comprehension, found: list[Expression]) -> Sequence[Expression]:
    found += [clause.source for clause in it.clauses]
    return operands_of(it)


def _of_operation(it: Operation, found: list[Expression]) -> Sequence[Expression]:
    if iterates_operand(it):
        found += it.operands
    return it.operands


def _of_assign(it: Assign, found: list[Expression]) -> Sequence[Expression]:
    if it.value is None:
        return it.targets
    if iterates_value(it):
        found.append(it.value)
    return (it.value, *it.targets)


def _of_loop(it: Loop, found: list[Expression]) -> Sequence[Expression | Statement]:
    found.append(it.source)
    return _of_statement(it, found)


def _of_statement(it: Statement, _: list[Expression]) -> Sequence[Expression | Statement]:
    return [*expressions(it), *[each for block in blocks(it) for each in block]]


# The children of each kind of node; a handler adds the expressions that the node may iterate to the result.
_CHILDREN: Mapping[type, Callable[[Any, list[Expression]], Sequence[Any]]] = {
    Call: _of_call,
    Comprehension: _of_comprehension,
    Operation: _of_operation,
    Attribute: lambda it, _: (it.value,),
    Subscript: lambda it, _: (it.value, *it.indices),
    Collection: lambda it, _: it.items,
    Assign: _of_assign,
    ExpressionStatement: lambda it, _: (it.value,),
    If: lambda it, _: (it.test, *it.body, *it.orelse),
    Loop: _of_loop,
    SimpleStatement: lambda it, _: it.values,
    DefinitionStatement: lambda it, _: it.values,
    **dict.fromkeys((With, Try, Match), _of_statement),
}
