"""Taint of side effects: what the body of a loop, and the functions that it calls, leave behind in the order of the rounds.

A list that is appended to is tainted; a sum of integers or a largest element is not, since it is the same in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from torchrepro_lint.dataflow.taint.alignment import takes_latest
from torchrepro_lint.dataflow.taint.callee_effects import callee_effects, opened_to_append, round_effects, sum_kind
from torchrepro_lint.dataflow.taint.context import Sink, TaintContext, TaintedValue, TaintStep, keyed_by
from torchrepro_lint.dataflow.taint.propagation import ReturnTaint
from torchrepro_lint.dataflow.taint.transfer import (
    LISTING,
    SCALAR,
    OrderTaint,
    argument_effect,
    container_of,
    file_printed_to,
    is_running_extreme,
    keys_put,
    roots_in,
)
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.definitions import bound_references, targets
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    If,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import (
    blocks,
    body_expressions,
    expressions,
    expressions_within,
    last_identifier,
    receiver_of,
    statements,
    subexpressions,
)

_APPENDING = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "put", "put_nowait"})
_WRITING = frozenset({"write", "writelines", "writerow", "writerows", "append_data"})
# Methods that give a module or an optimizer another part, whose number is the key of an optimizer's saved state.
_REGISTERING = frozenset({"add_module", "register_module", "register_parameter", "add_param_group"})
# Methods that put keys into a dictionary.
_KEYING = frozenset({"update", "setdefault"})
# Modules whose ``dump`` writes a value into an open file.
SERIALISERS = r"(json|simplejson|ujson|pickle|cPickle|_pickle|dill|cloudpickle|joblib|yaml|msgpack|marshal)"
_DUMPS = lazy_pattern(rf"{SERIALISERS}\.dump")
_LEAVING = frozenset({"break", "return"})
_COMPARING = frozenset({"<", ">", "<=", ">=", "==", "is"})


def loop_effects(
    analysis: TaintContext, tainted: TaintedValue, loop: Loop, inside: ExpressionPosition
) -> Iterator[TaintStep]:
    """The side effects of a loop's body: reads of what it leaves in the order of its rounds, and sinks inside it."""
    yield from _LoopBody(analysis, tainted, loop, inside).effects()


class Arrival(NamedTuple):
    """A call that takes the next of the values that several workers give, and its statement in the body of a loop."""

    call: Call
    statement: Statement


def arrival_effects(
    analysis: TaintContext, tainted: TaintedValue, loop: Loop, inside: ExpressionPosition, arrival: Arrival
) -> Iterator[TaintStep]:
    """The side effects of a loop each round of which takes a value in the order of arrival."""
    body = _LoopBody(analysis, tainted, loop, inside, arrival)
    yield from body.effects()
    yield from body.numbered()


class _LoopBody:
    """The body of one loop; ``fresh`` are the variables rebound in each round, ``varying`` all that differ between rounds.

    With an ``arrival`` the rounds differ by what that call takes, and not by the loop's own variable.
    """

    def __init__(
        self,
        analysis: TaintContext,
        tainted: TaintedValue,
        loop: Loop,
        inside: ExpressionPosition,
        arrival: Arrival | None = None,
    ) -> None:
        self.analysis, self.tainted, self.loop, self.inside = analysis, tainted, loop, inside
        self.path = tainted.path
        self.spots = analysis.uses.spots(tainted.path)
        self.arrival = arrival
        own = (loop.target,) if arrival is None else _bound_by(arrival)
        self.own = {
            root for target in own if target is not None for ref in bound_references(target) for root in ref.roots
        }
        self.appended: dict[tuple[str, ...], bool] = {}
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
            elif isinstance(statement, SimpleStatement) and statement.kind == "return" and self.arrival is None:
                yield from self._returned(statement, tests)
            for each in expressions_within(statement):
                if isinstance(each, Call):
                    yield from self._called(each)
                elif isinstance(each, Operation) and each.op == "yield" and self._varies(each):
                    yield from self._given(LISTING)

    def _side_effects(self) -> Iterator[Sink]:
        """The first call that trains or draws, so that rounds depend on those before."""
        calls = (each for each in body_expressions(self.loop.body) if isinstance(each, Call))
        yield from round_effects(self.analysis, self.path, list(calls), self._is_outside)

    def _repeats(self, statement: Assign, ref: Ref) -> bool:
        """Whether an assignment reads the variable's previous value: ``x = x + y``, ``x += y``."""
        if statement.op not in ("=", ":"):
            return True
        return statement.value is not None and not roots_in(statement.value).isdisjoint(ref.roots)

    def _varies(self, expression: Expression) -> bool:
        if self.arrival is not None and any(each == self.arrival.call for each in subexpressions(expression)):
            return True
        return not roots_in(expression).isdisjoint(self.varying)

    def numbered(self) -> Iterator[TaintStep]:
        """The containers that get what arrives under the number of the round: ``results[i] = queue.get()``."""
        counters = (
            {root for ref in bound_references(self.loop.target) for root in ref.roots} if self.loop.target else set()
        )
        for statement in statements(self.loop.body):
            if isinstance(statement, Assign) and statement.value is not None and self._varies(statement.value):
                for target in statement.targets:
                    match target:
                        case Subscript(value=Ref() as whole, indices=(Ref(roots=roots, path=()),)) if (
                            not counters.isdisjoint(roots) and self._is_outside(whole)
                        ):
                            yield from self.analysis.reads(
                                self.path, whole, LISTING, self._spot(statement), statement.end
                            )

    def _is_outside(self, ref: Ref) -> bool:
        """Whether an object lives longer than a round."""
        return self.fresh.isdisjoint(ref.roots)

    def _is_appended_to(self, file: Ref) -> bool:
        """Whether a round opens a file to append to it, which is the same in all rounds."""
        if file.path:
            return False
        if file.roots not in self.appended:
            names = self.analysis.names
            bound = (each for root in file.roots for each in names.assigned(self.path + root))
            places = [opened_to_append(names, self.path, made) for how, made in bound if how in ("with", "=")]
            same = bool(places) and all(each is not None and not self._varies(each) for each in places)
            self.appended[file.roots] = same
        return self.appended[file.roots]

    def _given(self, taint: OrderTaint) -> Iterator[TaintStep]:
        yield from ReturnTaint(self.analysis).steps(self.tainted._replace(taint=taint), self.inside.function)

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
                    yield from self._keyed(whole, target.indices, self._spot(statement), statement.end)

    def _keyed(
        self, whole: Ref, keys: Sequence[Expression | None], spot: ExpressionPosition, end: int
    ) -> Iterator[TaintStep]:
        """The reads of a dictionary that was empty, and that only a loop along a set or a listing fills, with new keys."""
        parts = (one for key in keys for one in (key.items if isinstance(key, Collection) else (key,)))
        if (filled := keyed_by(self.tainted.taint)) is None or not any(one and self._is_own(one) for one in parts):
            return
        found = [value for _, value in self.analysis.names.values(self.path, whole)]
        stored = self.analysis.names.events.stored(self.path, whole)
        alone = all(self.loop.start <= each.start < self.loop.end for each in stored)
        if found and alone and all(map(_is_empty_dict, found)):
            yield from self.analysis.reads(self.path, whole, filled, spot, end)

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
                    or is_running_extreme(statement.value, target)
                    or self._turns(statement.value, target, tests)
                ):
                    yield from self._counter(reads, statement)
                else:
                    yield from reads
        elif self.arrival is None and not _COMPARING.intersection(_operators(tests)):
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
        kind = sum_kind(self.analysis, self.tainted, statement.value, target, self.loop)
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
            and all(roots_in(test).isdisjoint(kept) for test in tests)
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

    # --- calls ---------------------------------------------------------------------------------------------------

    def _called(self, call: Call) -> Iterator[TaintStep]:
        word, names = last_identifier(call.func), self.analysis.names.names(self.path, call.func)
        varies = any(self._varies(arg.value) for arg in call.args)
        into = receiver_of(call.func) if word in _WRITING | _REGISTERING else None
        if is_dump := word == "dump" and any(map(_DUMPS.fullmatch, names)):
            into = known_argument(call, 1, "fp") or known_argument(call, None, "file")
        printed = file_printed_to(self.analysis.names, self.path, call)
        into = into or printed
        if word in _APPENDING and varies:
            yield from self._grown(call)
        elif (varies and isinstance(into, Ref) and (self._is_outside(into) or self._is_appended_to(into))) and (
            is_dump or printed is not None or argument_effect(names, word, written=True) != "free"
        ):
            yield Sink(self.path, call, "registered" if word in _REGISTERING else "written")
        elif varies and word in _KEYING and isinstance(ref := receiver_of(call.func), Ref) and self._is_outside(ref):
            yield from self._keyed(ref, keys_put(call), self._spot_of(call), call.end)
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
                reads = self.analysis.leading_reads(self.path, ref, LISTING, spot, call.end)
                kept = partial(takes_latest, self.spots, call, self.loop)
                yield from (each for each in reads if each.path != self.path or not kept(each.node))
            case Attribute(value=Subscript(value=Ref() as whole, indices=(key,))) if self._is_outside(whole):
                if not self._is_own(key):
                    yield from self.analysis.leading_reads(self.path, whole, container_of(LISTING), spot, call.end)
            case Attribute(value=Call(func=Ref(path=(*words, "setdefault")) as func, args=(key, *_))):
                if self._is_outside(func) and not self._is_own(key.value):
                    whole = func._replace(path=tuple(words))
                    yield from self.analysis.leading_reads(self.path, whole, container_of(LISTING), spot, call.end)

    def _is_own(self, key: Expression) -> bool:
        """Whether a key is the loop variable, so that no two rounds share it, and no number that the order gives."""
        return isinstance(key, Ref) and not key.path and not self.own.isdisjoint(key.roots) and not self._counts(key)

    def _counts(self, key: Ref) -> bool:
        """Whether a key counts the rounds: ``for number, name in enumerate(names)``."""
        match self.loop.target, self.loop.source:
            case Collection(items=(Ref(roots=roots), *_)), Call(func=Ref(roots=("builtins.enumerate",), path=())):
                return roots == key.roots
        return False

    def _returned(self, statement: SimpleStatement, tests: tuple[Expression, ...]) -> Iterator[TaintStep]:
        """A search returns the first match; with an equality test there is only one."""
        if any(self._varies(value) for value in statement.values) and "==" not in _operators(tests):
            yield from self._given(SCALAR)


def _bound_by(arrival: Arrival) -> tuple[Expression, ...]:
    """The targets that a statement binds to what arrives: ``item = queue.get()``, ``(item := queue.get())``."""
    call, statement = arrival
    bound = [
        each.operands[0]
        for each in expressions_within(statement)
        if isinstance(each, Operation) and each.op == ":=" and any(one == call for one in subexpressions(each))
    ]
    direct = statement.targets if isinstance(statement, Assign) and statement.op in ("=", ":") else ()
    return (*direct, *bound)


def _guarded(
    body: tuple[Statement, ...], tests: tuple[Expression, ...]
) -> Iterator[tuple[Statement, tuple[Expression, ...]]]:
    for statement in body:
        yield statement, tests
        inner = (*tests, statement.test) if isinstance(statement, If) else tests
        for block in blocks(statement):
            yield from _guarded(block, inner)


def _operators(tests: tuple[Expression, ...]) -> set[str]:
    return {each.op for test in tests for each in subexpressions(test) if isinstance(each, Operation)}


def _is_count(value: Expression) -> bool:
    return isinstance(value, Operation) and any(isinstance(each, Constant) for each in value.operands)


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
