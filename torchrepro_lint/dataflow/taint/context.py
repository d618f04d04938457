"""Taint: the tainted value, the sink and the propagation step, and the reads to which a variable carries a tainted value.

Tainted is an order that differs between runs: of a set, a directory listing, completed futures. A type test such as
``x if isinstance(x, list) else [x]`` keeps a listing or a set from where a variable is read, and a method that sorts it anywhere
from where an attribute is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import count

from torchrepro_lint.dataflow.taint.ties import is_overwritten, sort_key
from torchrepro_lint.dataflow.taint.transfer import LISTED, MAPPING, TYING, OrderTaint
from torchrepro_lint.dataflow.training_steps import CallEffects
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.call_graph import CallGraph
from torchrepro_lint.resolve.symbols import GAP, gapped_text
from torchrepro_lint.source.patterns import wildcard_expression
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    DefinitionStatement,
    Expression,
    If,
    Operation,
    Record,
    Ref,
    SimpleStatement,
    Statement,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import class_of, in_project, is_local, local_symbol, path_of, split_last
from torchrepro_lint.syntax.use_def import ExpressionPosition, UseDefIndex
from torchrepro_lint.syntax.visitor import (
    body_expressions,
    expressions,
    last_identifier,
    numbered_bodies,
    operands_of,
    statements,
)


class TaintedVariable(Record, frozen=True):
    """A variable or attribute that holds a tainted value, where it is read; of ``node``, ``attributes`` are read from it."""

    path: str
    node: Ref
    attributes: tuple[str, ...]
    taint: OrderTaint


class TaintedValue(Record, frozen=True):
    """A tainted value at an expression; ``attributes`` are those that the expression reads of it.

    ``call_path`` has the calls through which it entered functions, outermost first: function, calling file, call. A
    function returns to the last of them. None stands for the path of the previous step. ``receiver_class`` is the class
    of the object whose methods it went through: methods of that class and its bases apply, those of siblings do not.
    ``held`` is the last variable on the way that held it, ``ordered`` the last one that held it in an arbitrary order.
    ``sorted_by`` is the key of a sort on the way that left the order arbitrary (``sort_key``).
    """

    path: str
    node: Expression
    taint: OrderTaint
    attributes: tuple[str, ...] = ()
    call_path: tuple[tuple[str, str, Call], ...] | None = None
    receiver_class: str | None = None
    held: TaintedVariable | None = None
    ordered: TaintedVariable | None = None
    sorted_by: str = ""


class Sink(Record, frozen=True):
    """A sink: an expression whose result depends on the order, and in which way.

    ``value`` is the tainted value that it takes, unless the iteration itself leads to it, with the variables that held it.
    """

    path: str
    node: Expression
    kind: str
    value: TaintedValue | None = None


class OrderObservation(Record, frozen=True):
    """``observer`` iterates ``node``, whose order is arbitrary; the continuations are tainted by it."""

    path: str
    observer: Expression
    node: Expression
    continuations: tuple[TaintedValue | Sink, ...]


TaintStep = TaintedValue | Sink | OrderObservation


class TaintContext:
    """What the transfer functions ask about the program, and the reads that a tainted definition reaches."""

    def __init__(self, project: ValueFlow) -> None:
        self.project = project
        self.names = project.resolver
        self.uses = project.uses
        self.dynamic_calls = DynamicCalls(self.names.modules.files, self.names.call_graph)
        self.call_effects = CallEffects(self.names)

    def leading_reads(
        self, path: str, ref: Ref, taint: OrderTaint, spot: ExpressionPosition, after: int
    ) -> Iterator[TaintedValue]:
        """The ``reads`` that may propagate the taint: methods that leave a list's order as it is are skipped."""
        return self.reads(
            path, ref, taint, spot, after, _ORDER_KEEPING_METHODS if taint.kind == "sequence" else frozenset()
        )

    def reads(
        self,
        path: str,
        ref: Ref,
        taint: OrderTaint,
        spot: ExpressionPosition,
        after: int,
        but: frozenset[str] = frozenset(),
    ) -> Iterator[TaintedValue]:
        """The reads that a definition of a variable or attribute before ``after`` reaches, as tainted values; reads in the same
        file that only call one of the methods ``but`` are left out.
        """
        for file, read, words in self.uses.of_variable(path, ref, spot, after, but):
            spots = self.uses.spots(file)
            is_over = file == path and is_overwritten(self.names, path, spots, ref, after, read)
            if not is_over and not is_excluded_by_type_test(spots, read, taint):
                yield TaintedValue(file, read, taint, words)
        for owner, word in self._attributes(path, ref):
            if self.uses.stays(path, ref, spot, after) and not _is_sorted_anywhere(self, owner, word):
                for file, expression, rest in self.uses.of_attribute(owner, word):
                    other = self.uses.spots(file).of(expression)
                    if other is None or (other.written and not rest):
                        continue
                    if file != path or other.function != spot.function:
                        yield TaintedValue(file, expression, taint, rest)

    def _attributes(self, path: str, ref: Ref) -> Iterator[tuple[str, str]]:
        """The classes whose objects have the target as an attribute, each with the attribute's name."""
        if len(ref.path) == 1:
            for name in self.names.names_of(path, ref._replace(path=())):
                if in_project(name) and self.names.classes(class_of(name)):
                    yield class_of(name), ref.path[0]
        elif not ref.path:
            for root in ref.roots:
                owner, word = split_last(path + root)
                if not is_local(word) and self.names.classes(owner):
                    yield owner, word


def keyed_by(taint: OrderTaint) -> OrderTaint | None:
    """The taint of a dictionary that gets the elements of a value as keys; None if these are in order."""
    return {"set": MAPPING, "mapping": MAPPING, "sequence": LISTED, "listed": LISTED}.get(taint.kind)


# Methods of a sequence whose result does not depend on its order.
ORDER_FREE_METHODS = frozenset(
    {
        "sort",
        "sort_values",
        "sort_index",
        "append",
        "remove",
        "clear",
        "count",
        "reverse",
        "extend",
        "insert",
        "unique",
        "sum",
        "mean",
        "min",
        "max",
    }
    | {"any", "all", "nunique", "isin", "close", "__len__", "__contains__", "union", "shutdown", "empty", "qsize"}
)

# The methods of these that leave the order as it is: ``sort`` may take a key that ties.
_ORDER_KEEPING_METHODS = ORDER_FREE_METHODS - {"sort"}


def _is_sorted_anywhere(analysis: TaintContext, owner: str, word: str) -> bool:
    """Whether a method of a class sorts the list in an attribute, or assigns a sorted one, as a property's setter may."""
    if word in analysis.names.property_words and _is_set_sorted(analysis, owner, word):
        return True
    for path, expression, rest in analysis.uses.of_attribute(owner, word):
        spot = analysis.uses.spots(path).of(expression)
        if spot is None or not isinstance(spot.parent, Call) or sort_key(analysis.names, path, spot.parent) in TYING:
            continue
        if rest == ("sort",):
            return True
        if "builtins.sorted" in analysis.names.names(path, spot.parent.func):
            outer = analysis.uses.spots(path).of(spot.parent)
            if outer is not None and outer.parent is None and _assigns(outer, word):
                return True
    return False


def _is_set_sorted(analysis: TaintContext, owner: str, word: str) -> bool:
    """Whether the setter of a property sorts the value that it is given."""
    path, name = path_of(owner), f"{owner[len(path_of(owner)) :]}.{word}"
    setters = (
        each
        for each in analysis.uses.facts(path).functions
        if each.name == name
        and len(each.params) > 1
        and any(last_identifier(one) == "setter" for one in each.decorators)
    )
    return any(
        isinstance(call, Call)
        and last_identifier(call.func) == "sorted"
        and isinstance(arg.value, Ref)
        and local_symbol(name, each.params[1].name) in arg.value.roots
        for each in setters
        for call in body_expressions(each.body)
        if isinstance(call, Call)
        for arg in call.args[:1]
    )


def _assigns(spot: ExpressionPosition, word: str) -> bool:
    targets = getattr(spot.statement, "targets", ())
    return any(isinstance(each, Ref) and each.path[-1:] == (word,) for each in targets)


_LISTS = frozenset({"list", "tuple", "Sequence", "MutableSequence"})
_SETS = frozenset({"set", "frozenset", "Set", "AbstractSet", "MutableSet"})
_ANY = frozenset({"Iterable", "Collection", "Sized", "Container", "object"})
_NEITHER = frozenset(
    {"str", "bytes", "int", "float", "bool", "dict", "Mapping", "Path", "PurePath", "PosixPath", "PathLike", "Number"}
    | {"Tensor", "ndarray", "Module", "Dataset", "DataFrame", "Series"}
)


def is_excluded_by_type_test(spots: UseDefIndex, read: Ref, taint: OrderTaint) -> bool:
    """Whether a type test keeps such a value from where a variable is read; False if the value may have any type."""
    here = spots.of(read)
    if here is None or read.path or taint.kind not in ("sequence", "set"):
        return False
    if _in_other_operand(spots, read, taint):
        return True
    return any(_is_diverted(tested, around, here, read, taint) for tested, around in _tests(spots, read))


def _tests(spots: UseDefIndex, read: Ref) -> list[tuple[If, ExpressionPosition]]:
    """The ``if`` statements of the function that test the type of the variable."""
    found: list[tuple[If, ExpressionPosition]] = []
    for root in read.roots:
        for each in spots.uses_matching(root, "tested", partial(_is_tested, spots)):
            spot = spots.of(each)
            if spot is not None and isinstance(spot.statement, If):
                found.append((spot.statement, spot))
    return found


def _is_tested(spots: UseDefIndex, read: Ref) -> bool:
    spot = spots.of(read)
    return spot is not None and isinstance(spot.statement, If) and _is_isinstance(spot.parent, read)


def _is_diverted(
    tested: If, around: ExpressionPosition, here: ExpressionPosition, read: Ref, taint: OrderTaint
) -> bool:
    """Whether such a value takes another branch than that of the read, or one that does not reach it."""
    answer = _evaluate_type_test(tested.test, read, taint)
    if answer is None or around.function != here.function:
        return False
    if any(block.owner == tested and block.number == int(answer) for block in here.blocks):
        return True
    behind = read.start > tested.end and {each.key for each in around.blocks} <= {each.key for each in here.blocks}
    return behind and _leaves(tested.body if answer else tested.orelse)


def _in_other_operand(spots: UseDefIndex, read: Ref, taint: OrderTaint) -> bool:
    for node, around in spots.enclosing(read):
        match around:
            case Operation(op="if", operands=(test, one, other)):
                answer = _evaluate_type_test(test, read, taint)
                if (answer is True and node == other) or (answer is False and node == one):
                    return True
    return False


def _evaluate_type_test(test: Expression, read: Ref, taint: OrderTaint) -> bool | None:
    """The truth value of a type test for such a value; None if unknown."""
    match test:
        case Operation(op="not", operands=(inner,)):
            answer = _evaluate_type_test(inner, read, taint)
            return None if answer is None else not answer
        case Operation(op=("and" | "or") as op, operands=operands):
            answers = [_evaluate_type_test(each, read, taint) for each in operands]
            decisive = op == "or"
            return decisive if decisive in answers else None if None in answers else not decisive
        case Call(args=(first, second)) if _is_isinstance(test, first.value) and _same(first.value, read):
            return _is_instance(second.value, taint)
    return None


def _is_instance(types: Expression, taint: OrderTaint) -> bool | None:
    items = [each for each in types.items if each] if isinstance(types, Collection) else [types]
    words = {last_identifier(each) for each in items}
    own, other = (_SETS, _LISTS) if taint.kind == "set" else (_LISTS, _SETS)
    if words & (own | _ANY):
        return True
    return False if words <= other | _NEITHER else None


def _is_isinstance(call: Expression | None, value: Expression) -> bool:
    return (
        isinstance(call, Call)
        and isinstance(call.func, Ref)
        and call.func.roots == ("builtins.isinstance",)
        and len(call.args) == 2
        and call.args[0].value == value
    )


def _same(one: Expression, other: Ref) -> bool:
    return isinstance(one, Ref) and one.path == other.path and not set(one.roots).isdisjoint(other.roots)


def _leaves(body: tuple[Statement, ...]) -> bool:
    return (
        bool(body)
        and isinstance(body[-1], SimpleStatement)
        and body[-1].kind in ("raise", "return", "continue", "break")
    )


# A pattern with fewer literal letters matches too many names.
_LEAST_LETTERS = 4


class DynamicCalls:
    """Calls of methods by computed name, through ``getattr``."""

    def __init__(self, files: Mapping[str, SyntaxTree], call_graph: CallGraph) -> None:
        self._files, self._call_graph = files, call_graph
        self.database = call_graph.database

    def calls(self, word: str) -> list[tuple[str, Call]]:
        """The calls whose computed name may be this one, each with its file."""
        return [(path, call) for pattern, path, call in self._patterns() if pattern.fullmatch(word)]

    @query()
    def _patterns(self) -> list[tuple[re.Pattern[str], str, Call]]:
        found = []
        # A callee without a name (the empty word) is the result of another call.
        for path in sorted(self._call_graph.paths(["getattr"]) & self._call_graph.paths([""])):
            for call in _called_results(self._files[path]):
                pattern = _name_pattern(call.func)
                if pattern is not None:
                    found.append((pattern, path, call))
        return found


def _called_results(facts: SyntaxTree) -> Iterator[Call]:
    """The calls of call results, in the bodies that call ``getattr``."""
    results = set(facts.bodies_calling(""))
    for number in facts.bodies_calling("getattr"):
        for body in numbered_bodies(facts, number) if number is None or number in results else ():
            yield from _in_order(_evaluated(body))


def _evaluated(body: tuple[Statement, ...]) -> Iterator[Expression]:
    """The expressions of a body, those of nested class bodies included."""
    for statement in statements(body):
        yield from expressions(statement)
        if isinstance(statement, DefinitionStatement):
            yield from _evaluated(statement.body)


def _in_order(some: Iterable[Expression]) -> Iterator[Call]:
    """The calls of calls in expressions, outer ones first."""
    for expression in some:
        left = [expression]
        while left:
            each = left.pop()
            if type(each) is Call and type(each.func) is Call:
                yield each
            left += reversed(operands_of(each))


def _name_pattern(call: Expression) -> re.Pattern[str] | None:
    match call:
        case Call(func=Ref(roots=("builtins.getattr",), path=()), args=(_, name, *_)):
            text = gapped_text(name.value)
            if len(text) - text.count(GAP) >= _LEAST_LETTERS and GAP in text:
                return re.compile(wildcard_expression(text, r"\w*", count()))
    return None
