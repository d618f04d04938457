"""Taint propagation into calls: what a call does with a tainted argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint import limits
from torchrepro_lint.dataflow.taint.context import Sink, TaintContext, TaintedValue, TaintStep, is_excluded_by_type_test
from torchrepro_lint.dataflow.taint.methods import is_single
from torchrepro_lint.dataflow.taint.propagation import observe_order
from torchrepro_lint.dataflow.taint.ties import breaks_ties_by_order, sort_key
from torchrepro_lint.dataflow.taint.transfer import (
    FRESH,
    JOINED,
    LISTING,
    MAPPING,
    RANKABLE,
    RANKED,
    SCALAR,
    SET,
    TYING,
    OrderTaint,
    argument_effect,
    container_of,
    file_printed_to,
    is_counted,
    is_edit_distance,
    is_membership_name,
    is_regex,
    is_set_of_words,
    looks_up,
    makes_tensor,
    mapping_of_pairs,
    mapping_to,
    roots_in,
)
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Comprehension,
    Expression,
    Function,
    Param,
    Ref,
)
from torchrepro_lint.syntax.qualified_names import in_project, is_instance, path_of
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of, subexpressions

# Classes that sort the items of a plain dictionary by key (torch/nn/modules/container.py, 1.7 to 2.13).
_SORTING_CLASSES = frozenset({"torch.nn.ParameterDict", "torch.nn.modules.container.ParameterDict"})
# Calls that give numbers, or rows that stand for them.
_NUMBERING = frozenset({"range", "count", "arange", "eye", "identity", "linspace"})


class ArgumentTaint:
    """Taint transfer through call arguments."""

    def __init__(self, analysis: TaintContext) -> None:
        self._analysis = analysis

    def steps(self, tainted: TaintedValue, call: Call, spot: ExpressionPosition) -> Iterator[TaintStep]:
        """The steps of a value that is an argument of a call."""
        star = next((arg.star for arg in call.args if arg.value == tainted.node), "")
        if star:
            yield from self.starred(tainted, call) if star == "*" else ()
            return
        names = self._analysis.names.names(tainted.path, call.func)
        if _SORTING_CLASSES.intersection(names) and _is_display(tainted.node):
            return
        word = last_identifier(call.func)
        what = self._effect(tainted.path, call, names)
        if what == "project":
            yield from self._passed(tainted, call, names)
        elif what == "unknown" and (
            is_counted(names, _position(tainted, call))
            or is_set_of_words(names, word, _position(tainted, call), _keyword(call, tainted.node))
            or (tainted.taint == MAPPING and looks_up(word, _position(tainted, call)))
            or (tainted.taint.is_keyed and (_keyword(call, tainted.node) or "").endswith("kwargs"))
            or (tainted.taint.has_picked and tainted.taint != JOINED and is_edit_distance(names))
        ):
            return
        elif tainted.taint.is_unordered and (then := self._taken(tainted, call, spot, what)) is not None:
            yield from observe_order(tainted, call, then)
        else:
            yield from self._known(tainted, call, spot, what)

    def _taken(
        self, tainted: TaintedValue, call: Call, spot: ExpressionPosition, what: str
    ) -> Iterable[TaintStep] | None:
        """What follows where a counter is made of an order, or ties are broken by it; None for another call."""
        path, counter = tainted.path, receiver_of(call.func)
        if what == "count":
            return [TaintedValue(path, call, MAPPING)]
        if what == "counted":
            return self._analysis.reads(path, counter, MAPPING, spot, call.end) if isinstance(counter, Ref) else ()
        if what in ("free", "sorted") and breaks_ties_by_order(
            self._analysis.names, path, call, of_set=tainted.taint.kind == "set"
        ):
            result = SCALAR if last_identifier(call.func) in ("max", "min") else LISTING
            return [TaintedValue(path, call, result)]
        return None

    def _known(self, tainted: TaintedValue, call: Call, spot: ExpressionPosition, what: str) -> Iterator[TaintStep]:
        path, taint = tainted.path, tainted.taint
        match what:
            case "keep" if taint.has_picked and makes_tensor(self._analysis.names.names(path, call.func)):
                yield Sink(path, call, "passed on")
            case "same":
                yield TaintedValue(path, call, taint)
            case "sorted":
                yield from self._sorted(tainted, call)
            case "free":
                yield from _through_sanitiser(tainted, call)
            case "enumerate" | "zip" | "mapping" | "keep":
                yield from self._along(tainted, call, what)
            case "collate":
                yield from self._collated(tainted, call)
            case "next":
                yield from self._next(tainted, call)
            case "text" if not is_regex(self._analysis.names.names(path, call.func), _position(tainted, call)):
                joined = taint.kind != "scalar" and last_identifier(call.func) == "join"
                pieces = JOINED if taint.is_unordered else OrderTaint("scalar", ((None, taint),))
                yield from observe_order(tainted, call, [TaintedValue(path, call, pieces if joined else SCALAR)])
            case "draw" | "load":
                yield from self._drawn(tainted, call) if what == "draw" else [Sink(path, call, "passed on")]
            case "extend" | "append":
                yield from self._received(tainted, call, spot, what)
            case "unknown" if _depends(taint) and not is_membership_name(_keyword(call, tainted.node)):
                yield Sink(path, call, "passed on")
                made_by_pool = last_identifier(call.func) in ("submit", "apply_async")
                yield from [TaintedValue(path, call, SCALAR)] if made_by_pool else ()

    def _drawn(self, tainted: TaintedValue, call: Call) -> Iterator[TaintStep]:
        """What is drawn from an order: with the same numbers, what stands at other places."""
        drawn = SCALAR if last_identifier(call.func) == "choice" else container_of(SCALAR)
        steps: list[TaintStep] = [Sink(tainted.path, call, "drawn from")]
        steps += [TaintedValue(tainted.path, call, drawn)] if tainted.taint.is_unordered else []
        yield from observe_order(tainted, call, steps) if tainted.taint.kind == "set" else steps

    def _sorted(self, tainted: TaintedValue, call: Call) -> Iterator[TaintStep]:
        """What stays tainted after a sort: all if its key ties or differs between machines, else what the elements contain."""
        if tainted.taint.kind == "fresh":
            yield TaintedValue(tainted.path, call, FRESH)
        elif tainted.taint.kind in RANKABLE and (key := sort_key(self._analysis.names, tainted.path, call)) in TYING:
            yield TaintedValue(tainted.path, call, RANKED, sorted_by=key)
        elif inner := tainted.taint.sorted_items():
            yield TaintedValue(tainted.path, call, inner)

    def _along(self, tainted: TaintedValue, call: Call, what: str) -> Iterator[TaintStep]:
        path, taint = tainted.path, tainted.taint
        position = _position(tainted, call)
        if taint.kind == "scalar":
            yield TaintedValue(path, call, container_of(SCALAR))
            return
        if what == "mapping" and not _is_first(call, tainted.node):
            if not is_membership_name(_keyword(call, tainted.node)):
                yield TaintedValue(path, call, mapping_to(taint))
            return
        if taint.kind == "table" and (what == "mapping" or self._makes_columns(tainted.path, call)):
            yield TaintedValue(path, call, taint)
            return
        element = taint.element()
        inner: OrderTaint
        if what == "mapping":
            inner = mapping_of_pairs(taint)
        elif what == "enumerate":
            pair = ((0, SCALAR),) if taint.is_unordered else ()
            inner = taint.as_sequence()._replace(
                contents=((None, OrderTaint("plain", (*pair, *(((1, element),) if element else ())))),)
            )
        elif what == "zip":
            pairs = self._paired(tainted, call, position, element)
            inner = taint.as_sequence()._replace(contents=((None, OrderTaint("plain", pairs)),) if pairs else ())
        elif last_identifier(call.func) in ("map", "imap", "starmap"):
            inner = taint.as_sequence()._replace(contents=())
        else:
            inner = taint if taint.kind == "walk" else taint.as_sequence()
        if inner.kind == "plain" and not inner.contents:
            return
        yield from observe_order(tainted, call, [TaintedValue(path, call, inner)])

    def _paired(
        self, tainted: TaintedValue, call: Call, position: int, element: OrderTaint | None
    ) -> tuple[tuple[int | None, OrderTaint], ...]:
        """The contents of the tuples that ``zip`` gives: what comes beside an arbitrary order belongs to no element of it."""
        own = ((position, element),) if element else ()
        if not tainted.taint.is_unordered:
            return own
        others = [(at, arg.value) for at, arg in enumerate(call.args) if at != position and arg.keyword is None]
        return (*own, *((at, SCALAR) for at, value in others if self._is_independent(tainted, value)))

    def _is_independent(self, tainted: TaintedValue, other: Expression) -> bool:
        """Whether a value does not follow the order of a set: numbers, or what is made of something else."""
        if isinstance(other, Call) and last_identifier(other.func) in _NUMBERING:
            return True
        if (
            tainted.taint.kind != "set"
            or not isinstance(other, Ref | Collection)
            or self._may_be_in_order(tainted, other)
        ):
            return False
        values = [value for _, value in self._analysis.names.values(tainted.path, other)]
        return not any(
            (isinstance(each, Collection) and not each.items) or self._may_be_in_order(tainted, each) for each in values
        )

    def _may_be_in_order(self, tainted: TaintedValue, value: Expression) -> bool:
        """Whether a value mentions what a set is made of, or its variable."""
        roots = roots_in(tainted.node)
        return any(isinstance(each, Ref) and not roots.isdisjoint(each.roots) for each in subexpressions(value))

    def _makes_columns(self, path: str, call: Call) -> bool:
        """Whether a call takes a dictionary for its values, as ``pandas.DataFrame(columns)`` does."""
        return any(name.startswith("pandas.") for name in self._analysis.names.names(path, call.func))

    def _collated(self, tainted: TaintedValue, call: Call) -> Iterator[TaintStep]:
        """Collating a batch of dictionaries gives one dictionary in their order."""
        inner = tainted.taint.item(None) if tainted.taint.kind == "plain" else None
        if inner is not None and inner.kind in ("mapping", "listed"):
            yield TaintedValue(tainted.path, call, inner)
        else:
            yield from self._along(tainted, call, "keep")

    def _next(self, tainted: TaintedValue, call: Call) -> Iterator[TaintStep]:
        taint = tainted.taint
        if call.args[0].value != tainted.node:
            return  # the default for an exhausted iterator
        if taint.kind in ("walk", "plain", "table"):
            if inner := taint.element():
                yield TaintedValue(tainted.path, call, inner)
        elif taint.kind == "scalar" or (taint.kind != "ranked" and not is_single(self._analysis, tainted)):
            yield from observe_order(tainted, call, [TaintedValue(tainted.path, call, SCALAR)])

    def _received(self, tainted: TaintedValue, call: Call, spot: ExpressionPosition, what: str) -> Iterator[TaintStep]:
        """``items.extend(listing)``: the receiver holds the value from here on."""
        receiver = receiver_of(call.func)
        taint = (
            tainted.taint.as_sequence()
            if what == "extend" and tainted.taint.kind != "scalar"
            else container_of(tainted.taint)
        )
        if isinstance(receiver, Ref):
            then = self._analysis.reads(tainted.path, receiver, taint, spot, call.end)
            yield from observe_order(tainted, tainted.node, then) if what == "extend" else then
        elif tainted.taint.is_order_dependent:
            yield Sink(tainted.path, call, "passed on")

    def _effect(self, path: str, call: Call, names: tuple[str, ...]) -> str:
        """What a call does to the order of an argument; what it prints into a file is written as it is."""
        if file_printed_to(self._analysis.names, path, call) is not None:
            return "unknown"
        return argument_effect(names, last_identifier(call.func), receiver_of(call.func) is not None)

    def starred(self, tainted: TaintedValue, call: Call) -> Iterator[TaintStep]:
        """The steps of a starred argument: ``f(*listing)``."""
        names = self._analysis.names.names(tainted.path, call.func)
        what = self._effect(tainted.path, call, names)
        if what in ("free", "sorted", "same") or tainted.taint.kind == "table":
            return
        if what in ("keep", "zip", "text"):
            result = SCALAR if what == "text" else LISTING
            yield from observe_order(tainted, call, [TaintedValue(tainted.path, call, result)])
        else:
            yield from observe_order(tainted, call, [Sink(tainted.path, call, "passed on")])

    def _passed(self, tainted: TaintedValue, call: Call, names: tuple[str, ...]) -> Iterator[TaintStep]:
        """Into a function of the project: the reads of the parameter."""
        for name in names:
            if self._wraps(name):
                yield from self._along(tainted, call, "keep")
                continue
            target = self._constructor(name)
            path = path_of(target)
            for function in self._analysis.names.functions(target):
                param = self._parameter(tainted, call, function)
                if param is not None and function.body:
                    call_path = (*(tainted.call_path or ())[-limits.MAX_TAINT_CALLS :], (target, tainted.path, call))
                    taint = mapping_to(tainted.taint) if param.kind == "**" else tainted.taint
                    taint = container_of(taint) if param.kind == "*" else taint
                    for file, ref, words in self._analysis.uses.of_parameter(path, function, param.name):
                        if not is_excluded_by_type_test(self._analysis.uses.spots(file), ref, taint):
                            yield TaintedValue(file, ref, taint, words, call_path)
            if in_project(name) and self._analysis.names.classes(name) and not self._analysis.names.functions(target):
                yield from self._to_outside(tainted, call)

    def _parameter(self, tainted: TaintedValue, call: Call, function: Function) -> Param | None:
        """The parameter that receives a value."""
        found = self._analysis.names.call_graph.receiving(tainted.path, call, function)
        return next((param for arg, param in found if arg.value == tainted.node), None)

    def _wraps(self, name: str) -> bool:
        """Whether an object of the class iterates the argument of its constructor, as a progress bar does."""
        found = self._analysis.names.methods(name, "__iter__") if self._analysis.names.classes(name) else ()
        return any(self._analysis.names.is_generator(each) for each in found) and not self._analysis.names.methods(
            name, "__getitem__"
        )

    def _constructor(self, name: str) -> str:
        if self._analysis.names.classes(name):
            return next(iter(self._analysis.names.methods(name, "__init__")), name)
        if is_instance(name):
            return next(iter(self._analysis.names.call_methods(name)), name)
        return name

    def _to_outside(self, tainted: TaintedValue, call: Call) -> Iterator[TaintStep]:
        if tainted.taint.is_order_dependent and not last_identifier(call.func).endswith(
            ("Error", "Warning", "Exception")
        ):
            yield Sink(tainted.path, call, "passed on")


def _through_sanitiser(tainted: TaintedValue, call: Call) -> Iterator[TaintStep]:
    """What stays tainted after a sanitiser: a sum of lists, a union with a set, the largest of tainted values."""
    word, taint = last_identifier(call.func), tainted.taint
    if word == "sum" and len(call.args) > 1:
        yield from observe_order(tainted, call, [TaintedValue(tainted.path, call, taint.as_sequence())])
    elif taint.kind == "set" and word in ("union", "symmetric_difference", "intersection"):
        yield TaintedValue(tainted.path, call, SET)
    elif taint.kind == "scalar" and word in ("min", "max", "sum", "set", "sorted", "index", "get"):
        yield TaintedValue(tainted.path, call, taint if word == "get" else SCALAR)


def _depends(taint: OrderTaint) -> bool:
    """Whether code that is not followed depends on the order; a ranked list may be passed for its first element."""
    return taint.is_order_dependent and taint.kind != "ranked"


def _position(tainted: TaintedValue, call: Call) -> int:
    return next((index for index, arg in enumerate(call.args) if arg.value == tainted.node), 0)


def _is_first(call: Call, node: Expression) -> bool:
    """Whether a mapping is made from it, ``dict(pairs)``, ``dict.fromkeys(keys)``, rather than holding it as a value."""
    return call.args[0].value == node and call.args[0].keyword is None


def _keyword(call: Call, node: Expression) -> str | None:
    return next((arg.keyword for arg in call.args if arg.value == node), None)


def _is_display(node: Expression) -> bool:
    """Whether an expression is a dictionary display."""
    return isinstance(node, (Collection, Comprehension)) and node.kind == "dict"
