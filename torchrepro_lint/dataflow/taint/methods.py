"""Taint propagation through methods, attributes and subscripts of a tainted value."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.dataflow.taint.alignment import is_index_aligned
from torchrepro_lint.dataflow.taint.context import (
    ORDER_FREE_METHODS,
    OrderObservation,
    Sink,
    TaintContext,
    TaintedValue,
    TaintStep,
)
from torchrepro_lint.dataflow.taint.propagation import first_constant, observe_order
from torchrepro_lint.dataflow.taint.ties import has_tying_key, sort_key
from torchrepro_lint.dataflow.taint.transfer import (
    FRESH,
    LISTING,
    RANKABLE,
    RANKED,
    SCALAR,
    SET,
    TYING,
    OrderTaint,
    container_of,
    returns_set,
)
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.visitor import (
    is_starred,
    last_identifier,
    receiver_of,
    subexpressions,
)

# Calls that apply a function to each of some elements.
_MAPPING_WORDS = frozenset({"map", "imap", "starmap", "apply", "applymap", "transform", "map_async"})
# Attributes that are alike for all elements.
_UNIFORM_ATTRIBUTES = frozenset(
    {"shape", "dtype", "device", "ndim", "size", "dim", "suffix", "is_cuda", "requires_grad", "layout", "attrs"}
    | {"__class__"}
)
_WITHOUT_ORDER = ORDER_FREE_METHODS | _UNIFORM_ATTRIBUTES
# The fields of named tuples by place: of what ``concurrent.futures.wait`` returns.
_FIELDS = {"done": 0, "not_done": 1}

# Methods and attributes of tensors and arrays that give the whole content in another form.
_WHOLE_VALUE_METHODS = frozenset(
    {"transpose", "permute", "t", "view", "reshape", "flatten", "ravel", "unsqueeze", "squeeze", "expand", "repeat"}
    | {"contiguous", "clone", "detach", "requires_grad_", "to", "cuda", "cpu", "numpy", "tolist", "type", "astype"}
    | {"float", "long", "int", "half", "double", "bool", "byte", "pin_memory", "T", "mT", "data", "tobytes", "item"}
)


# Methods that write their object into a file.
_WRITING_METHODS = frozenset(
    {"to_csv", "to_json", "to_parquet", "to_pickle", "to_feather", "to_hdf", "tofile", "write_csv", "write_parquet"}
    | {"save_to_disk"}
)
# What makes a mask of a table or array: a truth value for each of its elements.
_MASKING = frozenset({"==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "~", "not"})
_TESTING = frozenset(
    {
        "isin",
        "isna",
        "isnull",
        "notna",
        "notnull",
        "duplicated",
        "contains",
        "startswith",
        "endswith",
        "isnan",
        "isfinite",
    }
)
_WILDCARDS = frozenset("*?[")


class MethodTaint:
    """Taint transfer of attributes, methods and subscripts."""

    def __init__(self, analysis: TaintContext) -> None:
        self._analysis = analysis

    def steps(self, tainted: TaintedValue) -> Iterator[TaintStep]:
        """The steps of a value whose attributes are read, and perhaps called."""
        spot = self._analysis.uses.spots(tainted.path).of(tainted.node)
        word, rest = tainted.attributes[0], tainted.attributes[1:]
        if spot is None:
            return
        if not rest and isinstance(spot.parent, Call) and spot.parent.func == tainted.node:
            if word in _WRITING_METHODS and tainted.taint.is_order_dependent:
                yield Sink(tainted.path, spot.parent, "written")
                return
            yield from self._called(tainted, word, spot.parent)
        elif spot.written:
            return
        elif not rest and isinstance(spot.parent, Call) and (result := _by_method(tainted.taint, word)) is not None:
            yield from self._handed_on(tainted, result, spot.parent)
        elif tainted.taint.kind == "sequence" and word in _UNIFORM_ATTRIBUTES:
            return  # of an array
        elif tainted.taint.kind in ("sequence", "ranked", "fresh"):
            yield TaintedValue(tainted.path, tainted.node, tainted.taint, ())
        elif tainted.taint.kind == "plain" and word in _FIELDS and (inner := tainted.taint.item(_FIELDS[word])):
            yield TaintedValue(tainted.path, tainted.node, inner, rest)
        elif (
            word in _WHOLE_VALUE_METHODS
            if tainted.taint.kind in ("plain", "table")
            else tainted.taint.kind == "scalar" and word not in _UNIFORM_ATTRIBUTES
        ):
            yield TaintedValue(tainted.path, tainted.node, SCALAR, ())

    def _called(self, tainted: TaintedValue, word: str, call: Call) -> Iterator[TaintStep]:
        path, taint = tainted.path, tainted.taint
        match taint.kind:
            case "set":
                if word == "pop" and not self._is_single_receiver(path, call):
                    yield OrderObservation(path, call, tainted.node, (TaintedValue(path, call, SCALAR),))
                elif returns_set(word):
                    yield TaintedValue(path, call, SET)
            case "mapping" | "listed":
                yield from self._mapping(tainted, word, call)
            case kind if word == "sort":
                yield from self._sorted_in_place(tainted, call) if kind in RANKABLE | {"plain", "fresh"} else ()
            case "plain" | "table":
                if (inner := SCALAR if word in _WHOLE_VALUE_METHODS else _element_by_method(taint, word)) is not None:
                    yield TaintedValue(path, call, inner)
            case "scalar":
                part = taint.item(None) if word == "split" else None
                yield from () if word in _UNIFORM_ATTRIBUTES else (TaintedValue(path, call, part or SCALAR),)
            case "ranked" if word in ("pop", "index", "popleft"):
                return
            case _ if word in ("pop", "index", "popleft"):
                yield TaintedValue(path, call, SCALAR)
            case _ if word not in _WITHOUT_ORDER:
                yield TaintedValue(path, call, taint)

    def _handed_on(self, tainted: TaintedValue, result: OrderTaint, call: Call) -> Iterator[TaintStep]:
        """A bound method as an argument: ``map(table.get, labels)``, ``sorted(labels, key=table.get)``."""
        word = last_identifier(call.func)
        keyed = any(arg.value == tainted.node and arg.keyword == "key" for arg in call.args)
        if keyed and not (tainted.taint.kind == "sequence" and tainted.attributes == ("__getitem__",)):
            # Sorting positions by what a list has there gives that in order.
            yield TaintedValue(tainted.path, call, SCALAR if word in ("max", "min") else LISTING)
        elif word in _MAPPING_WORDS and not keyed:
            yield TaintedValue(tainted.path, call, container_of(result))
        elif word == "vectorize":
            spot = self._analysis.uses.spots(tainted.path).of(call)
            if spot is not None and isinstance(spot.parent, Call) and spot.parent.func == call:
                yield TaintedValue(tainted.path, spot.parent, container_of(result))

    def _sorted_in_place(self, tainted: TaintedValue, call: Call) -> Iterator[TaintStep]:
        """The reads of a list after ``files.sort(key=os.path.getmtime)``, which leaves its order arbitrary, or of one whose elements an
        order picked, which no sort changes.
        """
        taint, spot = tainted.taint, self._analysis.uses.spots(tainted.path).of(call)
        key = sort_key(self._analysis.names, tainted.path, call) if taint.kind in RANKABLE else ""
        tied = taint.kind in RANKABLE and key not in TYING and has_tying_key(self._analysis.names, tainted.path, call)
        kept = LISTING if tied else RANKED if key in TYING else FRESH if taint == FRESH else taint.sorted_items()
        if kept is not None and spot is not None and isinstance(call.func, Ref):
            receiver = call.func._replace(path=call.func.path[:-1])
            for read in self._analysis.reads(tainted.path, receiver, kept, spot, call.end):
                yield read._replace(sorted_by=key) if key in TYING else read

    def _mapping(self, tainted: TaintedValue, word: str, call: Call) -> Iterator[TaintStep]:
        inner = tainted.taint.item(None)
        if word in ("keys", "values", "copy"):
            yield TaintedValue(tainted.path, call, tainted.taint)
        elif word == "items":
            yield TaintedValue(
                tainted.path,
                call,
                OrderTaint(tainted.taint.kind, ((None, container_of(inner, 1)),)) if inner else tainted.taint,
            )
        elif word in ("get", "pop", "setdefault") and inner:
            yield TaintedValue(tainted.path, call, inner)
        elif word in ("most_common", "elements"):
            yield TaintedValue(tainted.path, call, LISTING)
        elif word == "popitem":
            yield OrderObservation(tainted.path, call, tainted.node, (TaintedValue(tainted.path, call, SCALAR),))

    def picked(self, tainted: TaintedValue, subscript: Subscript) -> Iterator[TaintStep]:
        """The steps of ``value[index]`` where it is read."""
        outer = self._analysis.uses.spots(tainted.path).of(subscript)
        if outer is None or outer.written:
            return
        taint, path = tainted.taint, tainted.path
        index = first_constant(subscript.indices)
        sliced = any(isinstance(each, Operation) and each.op == ":" for each in subscript.indices)
        if taint.kind not in ("scalar", "set") and self._is_filtered(path, subscript):
            yield TaintedValue(path, subscript, taint)
        elif taint.kind in ("plain", "table", "mapping", "listed"):
            inner = taint.item(index)
            whole = TaintedValue(path, subscript, taint) if sliced and taint.kind == "plain" else None
            if whole or inner:
                yield whole or TaintedValue(path, subscript, inner)  # type: ignore[arg-type]  # one of them is there
        elif taint.kind == "scalar":
            yield TaintedValue(path, subscript, SCALAR)
        elif taint.kind == "ranked" and _is_literal(subscript) and not _is_whole(subscript):
            return  # the latest, or the largest
        elif taint.kind == "walk" and index == 0 and (inner := taint.item(None)):
            yield TaintedValue(path, subscript, inner)
        elif (
            taint.kind != "set"
            and not is_single(self._analysis, tainted)
            and not is_index_aligned(self._analysis.project, path, subscript)
        ):
            result = (RANKED if taint.kind == "ranked" else LISTING) if _is_whole(subscript) else SCALAR
            yield from observe_order(tainted, subscript, [TaintedValue(path, subscript, result)])

    def _is_filtered(self, path: str, subscript: Subscript) -> bool:
        """Whether a subscript takes the elements for which a mask holds, in their order: ``rows[rows.split == "train"]``."""
        given = subscript.indices[0] if len(subscript.indices) == 1 else None
        found = [given] if not isinstance(given, Ref) else [v for _, v in self._analysis.names.values(path, given)]
        return bool(found) and all(map(_is_mask, found))

    def _is_single_receiver(self, path: str, call: Call) -> bool:
        """Whether the program ensures that the set has one element of which a call runs a method."""
        func = call.func
        if isinstance(func, Attribute) and _is_complement(func.value):
            return True
        return isinstance(func, Ref) and self._analysis.uses.single(path, func._replace(path=func.path[:-1]), func)


def is_single(analysis: TaintContext, tainted: TaintedValue) -> bool:
    """Whether the program ensures that there is one element."""
    node = tainted.node
    while isinstance(node, Call) and node.args and last_identifier(node.func) in ("iter", "list", "tuple"):
        node = node.args[0].value
    if _finds_one_name(node):
        return True
    return isinstance(node, Ref) and (
        analysis.uses.single(tainted.path, node)
        or any(_finds_one_name(each) for _, each in analysis.names.values(tainted.path, node))
    )


def _is_mask(expression: Expression | None) -> bool:
    """Whether an expression is a truth value for each element of a table or array."""
    match expression:
        case Operation(op=op, operands=operands) if op in _MASKING:
            return op[0] in "=!<>" or any(map(_is_mask, operands))
        case Call(func=func):
            return receiver_of(func) is not None and last_identifier(func) in _TESTING
    return False


def _is_literal(subscript: Subscript) -> bool:
    """Whether a subscript names a place or a range of places by constants."""
    inner = (each for index in subscript.indices for each in subexpressions(index))
    return all(isinstance(each, Constant | Operation) for each in inner)


def _by_method(taint: OrderTaint, word: str) -> OrderTaint | None:
    """The taint of what a bound method returns for one argument: of ``table.get``, ``classes.index``."""
    if taint.kind in ("sequence", "ranked"):
        return SCALAR if word in ("index", "__getitem__") else None
    inner = taint.item(None) if taint.kind in ("plain", "table", "mapping", "listed") else None
    return inner if word in ("get", "__getitem__", "pop") else None


def _element_by_method(taint: OrderTaint, word: str) -> OrderTaint | None:
    """The taint of what a method of an ordered container returns."""
    if word in ("values", "copy"):
        return OrderTaint("plain", taint.contents) if word == "values" else taint
    inner = taint.item(None)
    if inner is not None and word == "items":
        return container_of(container_of(inner, 1))
    return inner if word in ("get", "pop", "setdefault", "popleft") else None


def _finds_one_name(expression: Expression) -> bool:
    """``folder.rglob("model.pt")``, also as a list: who picks one of what has this very name has one."""
    match expression:
        case Call(func=func, args=(Arg(value=inner),)) if last_identifier(func) in ("iter", "list", "tuple"):
            return _finds_one_name(inner)
        case Call(func=func, args=(Arg(value=Constant(value=str(name))),)) if receiver_of(func) is not None:
            return last_identifier(func) in ("glob", "rglob") and _WILDCARDS.isdisjoint(name)
    return False


def _is_complement(expression: Expression) -> bool:
    """``{a, b} - {c}``: the one element that is left of a display."""
    match expression:
        case Operation(op="-", operands=(Collection(kind="set", items=all_of), Collection(kind="set", items=taken))):
            return len(all_of) == len(taken) + 1 and not any(map(is_starred, (*all_of, *taken)))
    return False


def _is_whole(subscript: Subscript) -> bool:
    """Whether a subscript selects all elements: ``x[:]``, ``x[::-1]``."""
    match subscript.indices:
        case (Operation(op=":", operands=(low, high, _)),):
            return all(getattr(each, "value", ...) is None for each in (low, high))
    return False
