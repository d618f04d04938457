"""Sets that are no taint source: their elements are numbers, or tuples of them, whose hashes are the same in every run.

Elements are followed through containers to ``tolist`` and ``numpy`` of tensors, arithmetic, and annotations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from torchrepro_lint.dataflow.types.annotations import annotated
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.query import limits
from torchrepro_lint.query.database import query
from torchrepro_lint.query.memo_tables import with_tuples
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Loop,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import in_project, is_local, path_of
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import bodies, last_identifier, receiver_of, statements

_NUMBER_TYPES = frozenset({"int", "float", "bool"})
_ARITHMETIC = frozenset({"+", "-", "/", "//", "%", "**"})
# Methods that only tensors have.
_OF_TENSORS = frozenset({"cpu", "numpy", "detach", "argmax", "long", "cuda", "nonzero"})
_ADDING = ("add", "append")
# Methods of a set that give a subset.
SUBSET_METHODS = frozenset({"intersection", "difference", "copy"})
_EXTENDING = ("update", "symmetric_difference_update", "extend")
# Arrays of whole numbers, whatever they are made of.
_INDICES = lazy_pattern(
    r"numpy\.(argsort|argpartition|lexsort|arange|flatnonzero|digitize|searchsorted|random\.randint)|"
    r"scipy\.signal\.(find_peaks_cwt|argrelextrema|argrelmax|argrelmin)"
)

_ElementPath: TypeAlias = "tuple[int | None, ...]"


def elements_are_numbers(project: ValueFlow, path: str, expression: Expression) -> bool:
    """Whether all elements of a container are numbers. Elements of ``tolist`` are taken to be numbers, since nested lists
    could not be elements of a set.
    """
    return _ElementSearch(project, path).at(expression, (None,))


def is_number(project: ValueFlow, path: str, expression: Expression) -> bool:
    """Whether an expression is a number."""
    return _ElementSearch(project, path).number(expression)


def is_tensor_method(project: ValueFlow, path: str, func: Expression) -> bool:
    """Whether a function is a method of a tensor, or of an array made from one."""
    if (receiver := receiver_of(func)) is None:
        return False
    if isinstance(receiver, Call):
        return last_identifier(receiver.func) in _OF_TENSORS or is_tensor_method(project, path, receiver.func)
    return type_inference(project).of(path, receiver).is_tensor


@query()
def element_writes(project: ValueFlow, path: str) -> dict[str, tuple[Expression, ...]]:
    """What is written under the keys of a file's variables: ``numbers[word] = len(numbers)``."""
    found: dict[str, list[Expression]] = {}
    for body in bodies(project.files[path]):
        for each in statements(body):
            match each:
                case Assign(targets=(Subscript(value=Ref(roots=(root,), path=())),), value=value) if value is not None:
                    found.setdefault(root, []).append(value)
    return with_tuples(found)


class _ElementSearch:
    """A search in one file; a variable that depends on itself is decided by its other definitions."""

    def __init__(self, project: ValueFlow, path: str, hops: int = 0) -> None:
        self._project, self._path, self._hops = project, path, hops
        self._assignments = project.value_sources.assignments(path)
        self._seen: set[tuple[str, _ElementPath]] = set()

    def number(self, expression: Expression) -> bool:
        match expression:
            case Operation(op="if", operands=(_, one, other)):
                return self.number(one) and self.number(other)
            case Operation(op="*", operands=(one, other)):
                return self.number(one) and self.number(other)
            case Operation(op=op, operands=operands) if op in _ARITHMETIC:
                return any(self.number(each) for each in operands) and all(self._may_be(each) for each in operands)
            case Collection(kind="tuple", items=items):
                return all(item is not None and self.number(item) for item in items)
            case Subscript() if (found := _subscript_path(expression)) is not None:
                return self.at(*found)
            case Ref(roots=roots, path=()) if self._of_variable(roots, ()):
                return True
        return type_inference(self._project).of(self._path, expression).kind in _NUMBER_TYPES

    def _may_be(self, operand: Expression) -> bool:
        """Whether an operand may be a number: unless it is known to be something else (an array, a tensor)."""
        made_up = isinstance(operand, Subscript) and _subscript_path(operand) is not None
        return made_up or type_inference(self._project).of(self._path, operand).kind in ("", *_NUMBER_TYPES)

    def _of_variable(self, roots: tuple[str, ...], places: _ElementPath) -> bool:
        """Whether all definitions of a function's variables, and all that is added to them, have numbers at ``places``."""
        if not all(map(is_local, roots)) or len(self._seen) > limits.MAX_NUMERIC_VARIABLES:
            return False
        known = [root for root in roots if (root, places) not in self._seen]
        if any(is_given_unseen(self._project, self._path + root) for root in roots if root not in known):
            return False  # its first value is read, which is unknown
        self._seen.update((root, places) for root in known)
        parts = [(each.value, places) for root in known for each in self._assignments.get(root, ())]
        parts += [(value, rest) for root in known for value, rest in self._put_into(root, places)]
        filled = [(value, rest) for value, rest in parts if not (places and _is_empty(value))]
        return (bool(filled) or not known) and all(self.at(value, rest) for value, rest in filled)

    def _put_into(self, root: str, places: _ElementPath) -> Iterator[tuple[Expression, _ElementPath]]:
        """What methods and operators add to a container, with the rest of the path."""
        if not places:
            return
        for how, value in self._project.resolver.assigned(self._path + root):
            if how in ("|=", "^=", "+="):
                yield value, places
        spots = self._project.uses.spots(self._path)
        for read in (each for each in spots.uses(root) if len(each.path) == 1):
            spot = spots.of(read)
            if spot is not None and isinstance(spot.parent, Call) and spot.parent.func is read:
                rest = {**dict.fromkeys(_ADDING, places[1:]), **dict.fromkeys(_EXTENDING, places)}.get(read.path[0])
                yield from ((arg.value, rest) for arg in spot.parent.args if rest is not None)
        written = element_writes(self._project, self._path)
        yield from ((value, places[1:]) for value in written.get(root, ()))

    def at(self, whole: Expression, places: _ElementPath) -> bool:
        """Whether there are numbers at a path into nested containers; None in the path stands for any element."""
        if not places:
            return self.number(whole)
        match whole:
            case Call(func=func) if last_identifier(func) == "tolist":
                return is_tensor_method(self._project, self._path, func)
            case Call(func=Ref(path=(*_, _)) | Attribute() as func) if last_identifier(func) == "numpy":
                # An array made from a tensor: a set can only hold its numbers, as with ``tolist``.
                return not any(map(in_project, self._project.names(self._path, func)))
            case Call(func=Attribute(value=value, name=word)) if word in SUBSET_METHODS:
                return self.at(value, places)
            case Call():
                return self._called(whole, places)
            case Operation(op="&" | "|" | "-" | "^" | "+" | "or" | "and", operands=operands):
                return all(self.at(each, places) for each in operands)
            case Operation(op="if", operands=(_, one, other)):
                return self.at(one, places) and self.at(other, places)
            case Comprehension(kind="list" | "set" | "generator", elements=(element,)):
                return self.at(element, places[1:])
            case Collection(kind="tuple" | "list" | "set", items=items):
                kept = items if places[0] is None else items[places[0] :][:1]
                return all(item is not None and self.at(item, places[1:]) for item in kept)
            case Subscript() if (found := _subscript_path(whole)) is not None:
                return self.at(found[0], (*found[1], *places))
            case Ref(roots=roots, path=()):
                return self._of_variable(roots, places)
        return False

    def _called(self, call: Call, places: _ElementPath) -> bool:
        args = [arg.value for arg in call.args]
        if (kept := _of_sets(call)) is not None:
            return all(self.at(each, places) for each in kept)
        match last_identifier(call.func), places:
            case ("range", _) | ("enumerate", (_, 0, *_)):
                return True
            case ("enumerate", (_, 1, *rest)) if args:
                return self.at(args[0], (None, *rest))
            case ("zip", (_, int(index), *rest)) if index < len(args):
                return self.at(args[index], (None, *rest))
            case ("tqdm" | "list" | "tuple" | "sorted" | "set" | "reversed", _) if args:
                return self.at(args[0], places)
        names = self._project.names(self._path, call.func)
        if places[0] == 0 and "scipy.signal.find_peaks" in names:
            return True  # the other is a dictionary
        return any(_INDICES.fullmatch(name) for name in names) or self._returned(names, places)

    def _returned(self, names: tuple[str, ...], places: _ElementPath) -> bool:
        """Whether functions of the project return numbers at that path."""
        resolver = self._project.resolver
        returned = [(name, each) for name in names for each in resolver.return_expressions(name)]
        if not returned or self._hops > limits.MAX_NUMERIC_CALLS:
            return False
        looks = {name: _ElementSearch(self._project, path_of(name), self._hops + 1) for name, _ in returned}
        return all(looks[name].at(each, places) for name, each in returned)


def is_given_unseen(project: ValueFlow, variable: str) -> bool:
    """Whether a variable is a parameter that no call is seen to pass, so that its first value is unknown."""
    resolver = project.resolver
    return resolver.parameter(variable) is not None and not resolver.passed(variable)


def _of_sets(call: Call) -> list[Expression] | None:
    """The sets whose elements a set method returns; None for another call."""
    match call.func:
        case Ref(path=(*words, "union" | "symmetric_difference")) as func:
            return [func._replace(path=tuple(words)), *(arg.value for arg in call.args)]
        case Ref(path=(*words, word)) as func if word in SUBSET_METHODS:
            return [func._replace(path=tuple(words))]
    return None


def _is_empty(value: Expression) -> bool:
    match value:
        case Call(func=func, args=()):
            return last_identifier(func) in ("set", "frozenset", "list", "dict")
        case Collection(kind="list" | "dict", items=()):
            return True
    return False


def _subscript_path(expression: Subscript) -> tuple[Expression, _ElementPath] | None:
    """The innermost value of nested subscripts, and the path of indices; an empty subscript stands for any element, as in
    the definitions of loop variables.
    """
    inner: Expression = expression
    places: list[int | None] = []
    while isinstance(inner, Subscript):
        match inner.indices:
            case ():
                places.append(None)
            case (Constant(value=int(index)),):
                places.append(index)
            case (Operation(op=":"),):
                return None
            case (_,):
                places.append(None)
            case _:
                return None
        inner = inner.value
    return inner, tuple(reversed(places))


def becomes_tensor(project: ValueFlow, path: str, spot: ExpressionPosition) -> bool:
    """Whether the list made from an expression becomes a tensor: torch takes only numbers."""
    taken = spot.parent
    if not isinstance(taken, Call) or not _LISTS.issuperset(project.names(path, taken.func)):
        return False
    statement = spot.statement
    roots = {
        root
        for target in (statement.targets if isinstance(statement, Assign) and statement.value is taken else ())
        if isinstance(target, Ref) and not target.path
        for root in target.roots
    }
    return any(
        (_TENSORS.intersection(site.names) or _makes_numbers(site)) and _is_given(site.call, taken, roots)
        for site in project.calls_by(path, _TENSOR_WORDS | _ARRAY_WORDS)
    )


def _makes_numbers(site: CallSite) -> bool:
    """Whether a call makes an array of numbers: ``numpy.array(list(found), dtype=numpy.int32)``."""
    if _ARRAYS.isdisjoint(site.names):
        return False
    dtypes = (last_identifier(arg.value) for arg in site.call.args if arg.keyword == "dtype")
    return any(_NUMBER_DTYPE.fullmatch(word) for word in dtypes)


def _is_given(call: Call, taken: Call, roots: set[str]) -> bool:
    value = call.args[0].value if call.args else None
    return value is taken or (isinstance(value, Ref) and not value.path and not roots.isdisjoint(value.roots))


_LISTS = frozenset({"builtins.list", "builtins.tuple"})
_ARRAY_WORDS = frozenset({"array", "asarray"})
_ARRAYS = frozenset({"numpy.array", "numpy.asarray"})
_NUMBER_DTYPE = lazy_pattern(r"u?int\d*|long|float\d*|double|half")
_TENSOR_WORDS = frozenset(
    {"tensor", "as_tensor", "LongTensor", "IntTensor", "FloatTensor", "DoubleTensor", "Tensor", "ShortTensor"}
)
_TENSORS = frozenset(f"torch.{word}" for word in _TENSOR_WORDS)


def worker_counts(project: ValueFlow, path: str, source: Expression, value: Expression, loop: Loop) -> bool:
    """Whether a value of a loop is the result of a worker that returns integers: ``for count in pool.imap_unordered(f, x)``,
    ``future.result()`` of ``for future in as_completed([pool.submit(f, x) …])``.
    """
    word = last_identifier(source.func) if isinstance(source, Call) else ""
    if word == "imap_unordered":
        same = isinstance(value, Ref) and isinstance(loop.target, Ref) and value.roots == loop.target.roots
        return same and not value.path and _returns_integers(project, path, source.args[0].value)  # type: ignore[union-attr]
    if word != "as_completed" or not source.args:  # type: ignore[union-attr]
        return False
    for statement in loop.body if isinstance(value, Ref) and not value.path else ():
        match statement:
            case Assign(targets=(Ref() as target,), value=Call() as given) if target.roots == value.roots:  # type: ignore[union-attr]
                value = given
    if not isinstance(value, Call) or last_identifier(value.func) != "result":
        return False
    jobs = [each for _, each in project.resolver.values(path, source.args[0].value)]  # type: ignore[union-attr]
    submitted = [each.elements[0] for each in jobs if isinstance(each, Comprehension)]
    return bool(submitted) and all(
        isinstance(each, Call)
        and last_identifier(each.func) == "submit"
        and bool(each.args)
        and _returns_integers(project, path, each.args[0].value)
        for each in submitted
    )


def _returns_integers(project: ValueFlow, path: str, worker: Expression) -> bool:
    """Whether a function is known to return integers alone."""
    names, inference = project.resolver, type_inference(project)
    found = project.names(path, worker)
    if not found or not all(in_project(name) and names.functions(name) for name in found):
        return bool(found) and all(name in ("builtins.len", "builtins.int", "builtins.ord") for name in found)
    for name in found:
        declared = [each.returns for each in names.functions(name)]
        kinds = [annotated(inference, path_of(name), each).kind for each in declared if each is not None]
        kinds = kinds or [inference.of(path_of(name), each).kind for each in names.return_expressions(name)]
        if not kinds or not all(kind in ("int", "bool") for kind in kinds):
            return False
    return True
