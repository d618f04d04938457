"""Taint of side effects: what the body of a loop, and the functions that it calls, leave behind in the order of the
rounds.

A list that is appended to is tainted; a sum of integers or a largest element is not, since it is the same in any
order.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint.dataflow.taint.context import Sink, TaintedValue, TaintStep
from torchrepro_lint.dataflow.taint.transfer import LISTING, MAPPING, SCALAR, OrderTaint, container_of
from torchrepro_lint.dataflow.training_steps import BACKWARD, DRAWS, OPTIMIZER, SEEDS, STEPS
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Function,
    If,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.use_def import bound_references, targets
from torchrepro_lint.syntax.visitor import blocks, expressions, last_identifier, path_of, statements, subexpressions

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.taint.context import TaintContext
    from torchrepro_lint.syntax.use_def import ExpressionPosition


# A reference compared by value: its roots and its path.
_RefKey: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


def callee_effects(
    analysis: TaintContext,
    path: str,
    call: Call,
    names: tuple[str, ...],
    spot: ExpressionPosition,
    is_outside: Callable[[Ref], bool],
) -> Iterator[TaintStep]:
    """The side effects of a callee: reads of what it appends to its receiver, its arguments or module variables."""
    for name in names:
        file = path_of(name)
        for function in analysis.names.functions(name) if ":" in name else ():
            for ref, taint in _containers_filled(function):
                yield from _read(analysis, path, file, call, function, ref, taint, spot, is_outside)


def _read(
    analysis: TaintContext,
    path: str,
    file: str,
    call: Call,
    function: Function,
    ref: Ref,
    taint: OrderTaint,
    spot: ExpressionPosition,
    is_outside: Callable[[Ref], bool],
) -> Iterator[TaintStep]:
    start = f"{function.name}.<locals>."
    params = [param.name for param in function.params]
    for root in ref.roots:
        word = root[len(start) :] if root.startswith(start) else ""
        if function.owner and params and word == params[0] and len(ref.path) == 1:
            receiver = call.func
            if isinstance(receiver, Ref) and is_outside(receiver):
                inside = analysis.uses.spots(file).of(ref) or spot
                yield from analysis.reads(file, ref, taint, inside, ref.end)
        elif word in params and not ref.path and not function.owner:
            position = params.index(word)
            given = call.args[position].value if position < len(call.args) else None
            if isinstance(given, Ref) and is_outside(given):
                yield from analysis.reads(path, given, taint, spot, call.end)
        elif not word and root.startswith(":"):
            inside = analysis.uses.spots(file).of(ref) or spot
            yield from analysis.reads(file, ref, taint, inside, ref.end)


def _containers_filled(function: Function) -> Iterator[tuple[Ref, OrderTaint]]:
    """The containers that a function appends to, or in which it numbers something, each with its taint."""
    filled = {_ref_key(whole) for _, whole, _ in _element_assignments(function)}
    numbers = set(_counters(function, filled))
    for statement, whole, keys in _element_assignments(function):
        said = [*subexpressions(statement.value), *keys] if statement.value is not None else []
        if any(_is_length(each, filled) or _ref_key(each) in numbers for each in said):
            yield whole, container_of(SCALAR)
    for body in statements(function.body):
        for expression in expressions(body):
            for each in subexpressions(expression):
                match each:
                    case Call(func=Ref(path=(*words, "append" | "extend" | "insert")) as func):
                        yield func._replace(path=tuple(words)), LISTING


def _element_assignments(function: Function) -> Iterator[tuple[Assign, Ref, tuple[Expression, ...]]]:
    """The assignments ``whole[keys] = …`` of a function."""
    for each in statements(function.body):
        if isinstance(each, Assign):
            for target in each.targets:
                if isinstance(target, Subscript) and isinstance(target.value, Ref):
                    yield each, target.value, target.indices


def _counters(function: Function, filled: Container[_RefKey | None]) -> Iterator[_RefKey]:
    """The counters of a function: ``number = len(self.ids)``, ``self.size += 1``."""
    for statement in statements(function.body):
        if isinstance(statement, Assign) and statement.value is not None:
            counts = statement.op == "+=" and isinstance(statement.value, Constant) and statement.value.value == 1
            if counts or (statement.op == "=" and _is_length(statement.value, filled)):
                yield from (found for target in statement.targets if (found := _ref_key(target)) is not None)


def _ref_key(expression: Expression) -> _RefKey | None:
    return (expression.roots, expression.path) if isinstance(expression, Ref) else None


def _is_length(expression: Expression, filled: Container[_RefKey | None]) -> bool:
    """Whether an expression is ``len(self.ids)`` of a container that the function fills."""
    if not isinstance(expression, Call) or last_identifier(expression.func) != "len":
        return False
    return any(_ref_key(arg.value) in filled for arg in expression.args if isinstance(arg.value, Ref))


_APPENDING = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "put", "put_nowait"})
_WRITING = frozenset({"write", "writelines", "writerow", "writerows"})
# The larger and the smaller of two values.
_EXTREMES = frozenset(
    {("builtins.max", ()), ("builtins.min", ())}
    | {("torch", (word,)) for word in ("max", "min", "maximum", "minimum", "fmax", "fmin")}
    | {("numpy", (word,)) for word in ("maximum", "minimum", "fmax", "fmin")}
)
_LEAVING = frozenset({"break", "return"})
_COMPARING = frozenset({"<", ">", "<=", ">=", "==", "is"})


def round_effects(
    analysis: TaintContext, path: str, calls: list[Call], is_outside: Callable[[Ref], bool]
) -> Iterator[Sink]:
    """The first of a round's calls that trains an older model or draws from an older generator, as a sink.

    A round that seeds the generators draws the same in any order. One that makes its own optimizer trains a model of its own.
    """
    effects = [(call, analysis.call_effects.of(path, call, is_outside)) for call in calls]
    done = frozenset(effect for _, each in effects for effect in each)
    trains = {STEPS} if OPTIMIZER not in done else set()
    if BACKWARD in done and trains and (STEPS in done or analysis.has_optimizer(path)):
        trains.add(BACKWARD)
    if SEEDS in done:
        trains.discard(BACKWARD)
    for call, each in effects:
        if not trains.isdisjoint(each):
            yield Sink(path, call, "trained with")
            return
    yield from (Sink(path, call, "drawn for") for call, each in effects if DRAWS in each and SEEDS not in done)


def loop_effects(
    analysis: TaintContext, tainted: TaintedValue, loop: Loop, inside: ExpressionPosition
) -> Iterator[TaintStep]:
    """The side effects of a loop's body: reads of what it leaves in the order of its rounds, and sinks inside it."""
    yield from _LoopBody(analysis, tainted, loop, inside).effects()


class _LoopBody:
    """The body of one loop; ``fresh`` are the variables rebound in each round, ``varying`` all that differ between rounds."""

    def __init__(self, analysis: TaintContext, tainted: TaintedValue, loop: Loop, inside: ExpressionPosition) -> None:
        self.analysis, self.tainted, self.loop, self.inside = analysis, tainted, loop, inside
        self.path = tainted.path
        self.spots = analysis.uses.spots(tainted.path)
        assert loop.target is not None
        self.own = {root for ref in bound_references(loop.target) for root in ref.roots}
        self.fresh = set(self.own)
        self.varying = set(self.own)
        for statement in statements(loop.body):
            for target in targets(statement):
                for ref in bound_references(target):
                    if ref.path:
                        continue
                    self.varying.update(ref.roots)
                    if not isinstance(statement, Assign) or not self._repeats(statement, ref):
                        self.fresh.update(ref.roots)

    def effects(self) -> Iterator[TaintStep]:
        yield from self._side_effects()
        for statement, tests in _guarded(self.loop.body, ()):
            if isinstance(statement, Assign) and statement.value is not None:
                yield from self._assigned(statement, tests)
            elif isinstance(statement, SimpleStatement) and statement.kind == "return":
                yield from self._returned(statement, tests)
            for expression in expressions(statement):
                for each in subexpressions(expression):
                    if isinstance(each, Call):
                        yield from self._called(each)
                    elif isinstance(each, Operation) and each.op == "yield" and self._varies(each):
                        yield from self._given(LISTING)

    def _side_effects(self) -> Iterator[Sink]:
        """The first call that trains or draws, so that rounds depend on those before."""
        calls = (
            each
            for statement in statements(self.loop.body)
            for expression in expressions(statement)
            for each in subexpressions(expression)
            if isinstance(each, Call)
        )
        yield from round_effects(self.analysis, self.path, list(calls), self._is_outside)

    def _repeats(self, statement: Assign, ref: Ref) -> bool:
        """Whether an assignment reads the variable's previous value: ``x = x + y``, ``x += y``."""
        if statement.op not in ("=", ":"):
            return True
        return statement.value is not None and not _roots_in(statement.value).isdisjoint(ref.roots)

    def _varies(self, expression: Expression) -> bool:
        return not _roots_in(expression).isdisjoint(self.varying)

    def _is_outside(self, ref: Ref) -> bool:
        """Whether an object lives longer than a round."""
        return self.fresh.isdisjoint(ref.roots)

    def _given(self, taint: OrderTaint) -> Iterator[TaintStep]:
        yield from self.analysis.returns.results(self.path, self.inside.function, taint, self.tainted)

    def _spot(self, statement: Statement) -> ExpressionPosition:
        """The position of a statement of the body."""
        for expression in expressions(statement):
            if (spot := self.spots.of(expression)) is not None:
                return spot
        return self.inside

    # --- assignments ---------------------------------------------------------------------------------------------

    def _assigned(self, statement: Assign, tests: tuple[Expression, ...]) -> Iterator[TaintStep]:
        assert statement.value is not None
        for target in statement.targets:
            match target:
                case Ref(path=()) if statement.op in ("=", ":"):
                    yield from self._plain(statement, target, tests)
                case Ref() if statement.op == "+=" and self._is_outside(target):
                    yield from self._added(statement, target)
                case Subscript(value=Ref() as whole) if self._is_outside(whole):
                    if _counts(statement.value, whole):
                        yield from self.analysis.reads(
                            self.path, whole, container_of(SCALAR), self._spot(statement), statement.end
                        )
                    if self._orders_keys(whole, target):
                        yield from self.analysis.reads(self.path, whole, MAPPING, self._spot(statement), statement.end)

    def _orders_keys(self, whole: Ref, target: Subscript) -> bool:
        """Whether a loop along a set puts new keys into a dictionary that was empty."""
        if self.tainted.taint.kind not in ("set", "mapping") or not any(map(self._is_own, target.indices)):
            return False
        found = [value for _, value in self.analysis.names.values(self.path, whole)]
        return bool(found) and all(map(_is_empty_dict, found))

    def _plain(self, statement: Assign, target: Ref, tests: tuple[Expression, ...]) -> Iterator[TaintStep]:
        """An accumulated value is a list in the order of the rounds; of another the last round decides."""
        assert statement.value is not None
        if not self._varies(statement.value):
            return
        spot = self._spot(statement)
        reads = list(self.analysis.reads(self.path, target, LISTING, spot, statement.end))
        if self._repeats(statement, target):
            if self._is_outside(target):
                if (
                    _is_count(statement.value)
                    or _is_extreme(statement.value, target)
                    or self._turns(statement.value, target, tests)
                ):
                    yield from self._counter(reads, statement)
                else:
                    yield from reads
        elif not _COMPARING.intersection(_operators(tests)):
            for read in reads:
                if read.path == self.path and read.node.start > self.loop.end and not self._is_bound_again(read):
                    yield read._replace(taint=SCALAR)

    def _is_bound_again(self, read: TaintedValue) -> bool:
        """Whether a read after the loop is in a comprehension or function with a variable of the same name."""
        spot = self.spots.of(read.node)
        return spot is None or spot.function != self.inside.function

    def _added(self, statement: Assign, target: Ref) -> Iterator[TaintStep]:
        assert statement.value is not None
        if not self._varies(statement.value) and not isinstance(statement.value, Constant):
            return
        kind = self._sum_of(statement.value, target)
        reads = list(self.analysis.reads(self.path, target, LISTING, self._spot(statement), statement.end))
        if kind == "list":
            yield from reads
        elif kind == "count":
            yield from self._counter(reads, statement)
        elif kind == "float":
            yield from (read._replace(taint=SCALAR) for read in reads)

    def _turns(self, value: Expression, target: Ref, tests: tuple[Expression, ...]) -> bool:
        """Whether each round applies the same update, ``sign = -sign``: then the number of rounds decides, not their order."""
        others = self.varying.difference(target.roots)
        kept = self.varying - self.fresh
        leaves = any(isinstance(each, SimpleStatement) and each.kind in _LEAVING for each in statements(self.loop.body))
        return (
            not leaves
            and all(_roots_in(test).isdisjoint(kept) for test in tests)
            and all(
                (isinstance(each, Ref) and not each.path and others.isdisjoint(each.roots))
                or isinstance(each, Constant | Operation)
                for each in subexpressions(value)
            )
        )

    def _counter(self, reads: list[TaintedValue], statement: Assign) -> Iterator[TaintStep]:
        """A counter depends on the order inside the loop, but not after it."""
        for read in reads:
            inside = read.path == self.path and self.loop.start <= read.node.start < self.loop.end
            own = statement.start <= read.node.start < statement.end
            if inside and not own:
                yield read._replace(taint=SCALAR)

    def _sum_of(self, value: Expression, target: Ref) -> str:
        if isinstance(value, Collection | Comprehension):
            return "list"
        if isinstance(value, Constant):
            return "count" if isinstance(value.value, int) else "list" if isinstance(value.value, str) else ""
        if isinstance(value, Operation) and value.op == "f":
            return "list"
        found = [each for _, each in self.analysis.names.values(self.path, target)]
        if any(isinstance(each, Collection | Comprehension) for each in found):
            return "list"
        if any(isinstance(each, Constant) and isinstance(each.value, str) for each in found):
            return "list"
        if any(isinstance(each, Constant) and type(each.value) is float for each in found):
            return "float"
        return "float" if self.tainted.taint.kind == "completion" else ""

    # --- calls ---------------------------------------------------------------------------------------------------

    def _called(self, call: Call) -> Iterator[TaintStep]:
        word, names = last_identifier(call.func), self.analysis.names.names(self.path, call.func)
        varies = any(self._varies(arg.value) for arg in call.args)
        if word in _APPENDING and varies:
            yield from self._grown(call)
        elif word in _WRITING and varies and (ref := _receiver(call.func)) is not None and self._is_outside(ref):
            yield Sink(self.path, call, "written")
        elif varies:
            yield from callee_effects(self.analysis, self.path, call, names, self._spot_of(call), self._is_outside)

    def _spot_of(self, call: Call) -> ExpressionPosition:
        return self.spots.of(call) or self.inside

    def _grown(self, call: Call) -> Iterator[TaintStep]:
        """``items.append(x)``, ``groups[key].append(x)``, ``groups.setdefault(key, []).append(x)``."""
        spot = self._spot_of(call)
        match call.func:
            case Ref(path=(*words, _)) if self._is_outside(call.func):
                ref = call.func._replace(path=tuple(words))
                yield from self.analysis.leading_reads(self.path, ref, LISTING, spot, call.end)
            case Attribute(value=Subscript(value=Ref() as whole, indices=(key,))) if self._is_outside(whole):
                if not self._is_own(key):
                    yield from self.analysis.leading_reads(self.path, whole, container_of(LISTING), spot, call.end)
            case Attribute(value=Call(func=Ref(path=(*words, "setdefault")) as func, args=(key, *_))):
                if self._is_outside(func) and not self._is_own(key.value):
                    whole = func._replace(path=tuple(words))
                    yield from self.analysis.leading_reads(self.path, whole, container_of(LISTING), spot, call.end)

    def _is_own(self, key: Expression) -> bool:
        """Whether a key is the loop variable, so that no two rounds share it."""
        return isinstance(key, Ref) and not key.path and not self.own.isdisjoint(key.roots)

    def _returned(self, statement: SimpleStatement, tests: tuple[Expression, ...]) -> Iterator[TaintStep]:
        """A search returns the first match; with an equality test there is only one."""
        if any(self._varies(value) for value in statement.values) and "==" not in _operators(tests):
            yield from self._given(SCALAR)


def _guarded(
    body: tuple[Statement, ...], tests: tuple[Expression, ...]
) -> Iterator[tuple[Statement, tuple[Expression, ...]]]:
    for statement in body:
        yield statement, tests
        inner = (*tests, statement.test) if isinstance(statement, If) else tests
        for block in blocks(statement):
            yield from _guarded(block, inner)


def _roots_in(expression: Expression) -> set[str]:
    return {root for each in subexpressions(expression) if isinstance(each, Ref) for root in each.roots}


def _operators(tests: tuple[Expression, ...]) -> set[str]:
    return {each.op for test in tests for each in subexpressions(test) if isinstance(each, Operation)}


def _is_count(value: Expression) -> bool:
    return isinstance(value, Operation) and any(isinstance(each, Constant) for each in value.operands)


def _is_extreme(value: Expression, target: Ref) -> bool:
    """Whether a value is a running extreme, ``last = max(last, step)``: the same in any order."""
    match value:
        case Operation(op="if", operands=(Operation(op="<" | ">" | "<=" | ">=", operands=compared), *sides)):
            return any(_is_variable(each, target) for each in compared) and any(
                _is_variable(each, target) for each in sides
            )
        case Call(func=Ref(roots=(root,), path=path), args=args) if (root, path) in _EXTREMES and len(args) > 1:
            given = [arg.value for arg in args if arg.keyword is None and not arg.star]
            others = [each for each in given if not _is_variable(each, target)]
            return len(others) < len(given) == len(args) and all(
                _roots_in(each).isdisjoint(target.roots) for each in others
            )
    return False


def _is_variable(expression: Expression, target: Ref) -> bool:
    return isinstance(expression, Ref) and expression.roots == target.roots and not expression.path


def _is_empty_dict(value: Expression) -> bool:
    match value:
        case Collection(kind="dict", items=()):
            return True
        case Call(func=func, args=args):
            word = last_identifier(func)
            return word == "defaultdict" or (word in ("dict", "OrderedDict", "Counter") and not args)
    return False


def _counts(value: Expression, whole: Ref) -> bool:
    """Whether the value stored into ``index`` contains ``len(index)``."""
    for each in subexpressions(value):
        match each:
            case Call(func=Ref(roots=("builtins.len",)), args=(arg,)):
                inner = arg.value
                if isinstance(inner, Ref) and inner.path == whole.path and set(inner.roots) & set(whole.roots):
                    return True
    return False


def _receiver(func: Expression) -> Ref | None:
    return func._replace(path=func.path[:-1]) if isinstance(func, Ref) and func.path else None
