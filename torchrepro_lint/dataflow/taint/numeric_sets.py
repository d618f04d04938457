"""Sets that are no taint source: their elements are numbers, or tuples of them, whose hashes are the same in every run.

Elements are followed through containers to ``tolist`` and ``numpy`` of tensors, arithmetic, and annotations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from torchrepro_lint import limits
from torchrepro_lint.dataflow.environment import Closure
from torchrepro_lint.dataflow.types.annotations import annotated, annotations_of
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import AbstractValue
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.query.database import query
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import PROGRESS_BARS, in_project, is_local, is_own, path_of, simple_name
from torchrepro_lint.syntax.visitor import bodies, last_identifier, receiver_of, statements

# Kinds with the same hash in every run. The hash of None is its address before Python 3.12, but a set has only one; that of a
# device is made of the numbers of its type and index.
_STABLE_KINDS = frozenset({"int", "float", "bool", "none", "device"})
_NUMBER_TYPES = frozenset({"int", "float", "bool"})
_ARITHMETIC = frozenset({"+", "-", "/", "//", "%", "**"})
# Methods that only tensors have.
_OF_TENSORS = frozenset({"cpu", "numpy", "detach", "argmax", "long", "cuda", "nonzero"})
_ADDING = ("add", "append")
# Methods of a set that give a subset.
SUBSET_METHODS = frozenset({"intersection", "difference", "copy"})
_MAPPINGS = ("dict", "OrderedDict", "Counter")
_EXTENDING = ("update", "symmetric_difference_update", "extend")
# Arrays of whole numbers, whatever they are made of.
_INDICES = lazy_pattern(
    r"numpy\.(argsort|argpartition|lexsort|arange|flatnonzero|digitize|searchsorted|random\.randint)|"
    r"scipy\.signal\.(find_peaks_cwt|argrelextrema|argrelmax|argrelmin)"
)
# Calls that give the elements of what they get, or some of them; of a number, numbers below it.
_CHOOSING = lazy_pattern(r"numpy\.(array|asarray|unique|sort|random\.(permutation|choice))|random\.(sample|choices)")
# Calls that return a number.
_NUMBER_MAKERS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "builtins.len", "builtins.ord"})
_DATASETS = frozenset({"torch.utils.data.Dataset", "torch.utils.data.dataset.Dataset"})
# Calls that give the elements of what they get, perhaps in another order.
_REORDERING = PROGRESS_BARS | {"list", "tuple", "sorted", "reversed", "set", "frozenset"}
# Calls that give, for each axis, where an array is not zero, and of a sparse one its values, too.
_PLACES = frozenset({"numpy.where", "numpy.nonzero", "scipy.sparse.find"})

_ElementPath: TypeAlias = "tuple[int | None, ...]"
_KEYS = -1  # in such a path: the keys of a dictionary
# Types with two parameters, of which the first is that of the keys.
_TABLES = frozenset({"dict", "Dict", "defaultdict", "DefaultDict", "OrderedDict", "Mapping", "MutableMapping"})


def elements_are_numbers(project: ValueFlow, path: str, expression: Expression) -> bool:
    """Whether all elements of a container are numbers. Elements of ``tolist`` are taken to be numbers, since nested lists
    could not be elements of a set.
    """
    return _ElementSearch(project, path).iterated(expression, ())


def is_number(project: ValueFlow, path: str, expression: Expression) -> bool:
    """Whether an expression is a number."""
    return _ElementSearch(project, path).number(expression)


def is_tensor_method(project: ValueFlow, path: str, func: Expression) -> bool:
    """Whether a function is a method of a tensor, or of an array made from one."""
    if (receiver := receiver_of(func)) is None:
        return False
    if isinstance(receiver, Call) and (
        last_identifier(receiver.func) in _OF_TENSORS or is_tensor_method(project, path, receiver.func)
    ):
        return True
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
    return {key: tuple(each) for key, each in found.items()}


class _ElementSearch:
    """A search in one file; a variable that depends on itself is decided by its other definitions."""

    def __init__(self, project: ValueFlow, path: str, hops: int = 0) -> None:
        self._project, self._path, self._hops = project, path, hops
        self._assignments = project.value_sources.assignments(path)
        self._seen: set[tuple[str, _ElementPath]] = set()

    def number(self, expression: Expression) -> bool:
        match expression:
            case Operation(op="if", operands=(_, one, other)) | Operation(op="*", operands=(one, other)):
                return self.number(one) and self.number(other)
            case Operation(op=op, operands=operands) if op in _ARITHMETIC:
                return any(self.number(each) for each in operands) and all(self._may_be(each) for each in operands)
            case Collection(kind="tuple", items=items):
                return all(item is not None and self.number(item) for item in items)
            case Subscript() if (found := subscript_path(expression)) is not None:
                return self.at(*found)
            case Ref(roots=roots, path=()) if self._of_variable(roots, ()) or all(map(self._is_index, roots)):
                return True
        return type_inference(self._project).of(self._path, expression).kind in _STABLE_KINDS - {"none"}

    def _is_index(self, root: str) -> bool:
        """Whether a variable is the index of a sample: samplers draw numbers, which a loader passes to ``__getitem__``."""
        found = self._project.resolver.parameter(self._path + root)
        if found is None or found.is_receiver or simple_name(found.function.name) != "__getitem__":
            return False
        above = self._project.resolver.ancestry(f"{self._path}{found.function.owner}") if found.function.owner else ()
        return root not in self._assignments and not _DATASETS.isdisjoint(above)

    def _may_be(self, operand: Expression) -> bool:
        """Whether an operand may be a number: unless it is known to be something else (an array, a tensor)."""
        made_up = isinstance(operand, Subscript) and subscript_path(operand) is not None
        return made_up or type_inference(self._project).of(self._path, operand).kind in ("", *_NUMBER_TYPES)

    def _of_variable(self, roots: tuple[str, ...], places: _ElementPath) -> bool:
        """Whether all definitions of variables of a function, or of a script, and all that is added to them, have numbers at ``places``."""
        of_script = self._project.files[self._path].summary.has_main_guard and all(map(is_own, roots))
        if not (of_script or all(map(is_local, roots))) or len(self._seen) > limits.MAX_NUMERIC_VARIABLES:
            return False
        known = [root for root in roots if (root, places) not in self._seen]
        unassigned = (root for root in known if root not in self._assignments)
        if any(is_given_unseen(self._project, self._path + root) for root in unassigned):
            return False
        if any(self._project.resolver.parameter(self._path + root) for root in roots if root not in known):
            return False  # its first value is read, too, which is not searched
        self._seen.update((root, places) for root in known)
        parts = [(each.value, places) for root in known for each in self._assignments.get(root, ())]
        parts += [(value, rest) for root in known for value, rest in self._put_into(root, places)]
        filled = [(value, rest) for value, rest in parts if not (rest and _is_empty(value, rest))]
        return (bool(filled) or not known) and all(self.at(value, rest) for value, rest in filled)

    def _put_into(self, root: str, places: _ElementPath) -> Iterator[tuple[Expression, _ElementPath]]:
        """What methods, operators and subscripts add to a container, with the rest of the path."""
        if not places:
            return
        keys = places[0] == _KEYS
        for how, value in self._project.resolver.assigned(self._path + root):
            if how in ("|=", "^=", "+="):
                yield value, places
        spots = self._project.uses.spots(self._path)
        for read in spots.uses(root):
            match spots.of(read).parent, read.path:  # type: ignore[union-attr]  # a use has a position
                case Call(args=args) as item, ("setdefault",) if not keys and len(places) > 1:
                    yield from ((arg.value, places[1:]) for arg in args[1:])
                    yield from self._put_into_element(item, places)
                case Call(func=func, args=args), (word,) if func == read:
                    adding = ("setdefault",) if keys else _ADDING
                    rest = {**dict.fromkeys(adding, places[1:]), **dict.fromkeys(_EXTENDING, places)}.get(word)
                    yield from ((arg.value, rest) for arg in (args[:1] if keys else args) if rest is not None)
                case Subscript(value=value, indices=indices) as item, () if keys and value == read:
                    # A read of a ``defaultdict`` adds its key, too.
                    if spots.of(item).written or self._is_made_table(read):  # type: ignore[union-attr]
                        yield from ((each, places[1:]) for each in indices)
                case Subscript(value=value) as item, () if value == read and not keys and len(places) > 1:
                    yield from self._put_into_element(item, places)
        written = {} if keys else element_writes(self._project, self._path)
        yield from ((value, places[1:]) for value in written.get(root, ()))

    def _put_into_element(self, item: Expression, places: _ElementPath) -> Iterator[tuple[Expression, _ElementPath]]:
        """What a method adds to an element: ``groups[key].append(row)``, ``groups.setdefault(key, []).append(row)``."""
        spots = self._project.uses.spots(self._path)
        spot = spots.of(item)
        call = spot and spot.parent and spots.of(spot.parent)
        match spot and spot.parent, call and call.parent:
            case Attribute(name=word), Call(args=args):
                rest = {**dict.fromkeys(_ADDING, places[2:]), **dict.fromkeys(_EXTENDING, places[1:])}.get(word)
                yield from ((arg.value, rest) for arg in args if rest is not None)

    def iterated(self, whole: Expression, rest: _ElementPath) -> bool:
        """Whether there are numbers at the rest of a path into what iteration gives: elements, or a dictionary's keys."""
        what = type_inference(self._project).of(self._path, whole)
        if what.kind == "dict" or self._is_made_table(whole):
            return self.at(whole, (_KEYS, *rest))
        return self.at(whole, (None, *rest)) or (not rest and has_stable_hash(what.element))

    def _is_made_table(self, whole: Expression) -> bool:
        """Whether an expression, or a definition of its variable, makes a dictionary of a type that inference does not know."""
        if isinstance(whole, Ref) and not whole.path:
            made = (each.value for root in whole.roots for each in self._assignments.get(root, ()))
            return any(isinstance(each, Call) and self._is_made_table(each) for each in made)
        return isinstance(whole, Call) and last_identifier(whole.func) == "defaultdict"

    def _keys(self, table: Expression, rest: _ElementPath) -> bool:
        """Whether there are numbers at a path into the keys of a dictionary."""
        match table:
            case Comprehension(kind="dict", elements=(key, _)):
                return self.at(key, rest)
            case Collection(kind="dict", items=items):
                return bool(items) and all(key is not None and self.at(key, rest) for key in items[::2])
            case Call(func=func, args=(arg, *_)) if last_identifier(func) in ("Counter", "fromkeys"):
                return self.iterated(arg.value, rest)
            case Call(func=func, args=(arg,)) if last_identifier(func) in _MAPPINGS:
                return arg.keyword is None and self.at(arg.value, (None, 0, *rest))
            case Call():
                return self._returned(self._project.names(self._path, table.func), (_KEYS, *rest))
            case Ref() if not rest and _has_declared_keys(self._project, self._path, table):
                return True
            case Ref(roots=roots, path=()):
                return self._of_variable(roots, (_KEYS, *rest))
        return False

    def at(self, whole: Expression, places: _ElementPath) -> bool:
        """Whether there are numbers at a path into nested containers; None in the path stands for any element."""
        if not places:
            return self.number(whole)
        if places[0] == _KEYS:
            return self._keys(whole, places[1:])
        match whole:
            case Call(func=func) if last_identifier(func) == "tolist":
                return is_tensor_method(self._project, self._path, func)
            case Call(func=Ref(path=(*_, _)) | Attribute() as func) if last_identifier(func) == "numpy":
                # An array made from a tensor: a set can only hold its numbers, as with ``tolist``.
                return not any(map(in_project, self._project.names(self._path, func)))
            case Call():
                return self._called(whole, places)
            case Operation(op="&" | "|" | "-" | "^" | "+" | "or" | "and", operands=operands):
                return all(self.at(each, places) for each in operands)
            case Operation(op="if", operands=(_, one, other)):
                return self.at(one, places) and self.at(other, places)
            case Comprehension(elements=(*_, element)):
                return self.at(element, places[1:])
            case Collection(kind="tuple" | "list" | "set", items=items):
                kept = items if places[0] is None else items[places[0] :][:1]
                return all(item is not None and self.at(item, places[1:]) for item in kept)
            case Subscript():
                return self._subscripted(whole, places)
            case Ref(roots=roots, path=()):
                left = self._reaching(whole, roots[0], places) if len(roots) == 1 else None
                return self._of_variable(roots, places) if left is None else all(self.at(each, places) for each in left)
        return False

    def _reaching(self, use: Ref, root: str, places: _ElementPath) -> list[Expression] | None:
        """The values of a variable that reach a use, where it has others, too, and nothing is added to it: ``x = set(x.tolist())``."""
        every = [each.value for each in self._assignments.get(root, ())]
        is_parameter = self._project.resolver.parameter(self._path + root) is not None
        if len(every) + is_parameter < 2 or not is_local(root) or any(True for _ in self._put_into(root, places)):
            return None
        if (visit := (f"{root} {use.start}", places)) in self._seen:
            return []
        found = [*self._project.value_sources.reaching_definitions(Closure(self._path, use))]
        values = [each.value.value for each in found if isinstance(each.value, Closure) and each.value.value in every]
        if not len(found) == len(values) < len(every) + is_parameter:
            return None
        self._seen.add(visit)
        return values

    def _subscripted(self, part: Subscript, places: _ElementPath) -> bool:
        match part.indices:
            case (Operation(op=":"),) if places[0] is None:
                return self.at(part.value, places)
        found = subscript_path(part)
        return found is not None and self.at(found[0], (*found[1], *places))

    def _called(self, call: Call, places: _ElementPath) -> bool:
        args = [arg.value for arg in call.args]
        if (kept := _of_sets(call)) is not None:
            return all(self.at(each, places) for each in kept)
        if (of_table := self._of_table(call, args, places)) is not None:
            return of_table
        match last_identifier(call.func), places:
            case ("range", _) | ("enumerate", (_, 0, *_)):
                return True
            case ("enumerate", (_, 1, *rest)) if args:
                return self.iterated(args[0], tuple(rest))
            case ("zip", (_, int(index), *rest)) if index < len(args):
                return self.iterated(args[index], tuple(rest))
            case ("map", (_,)) if args:
                return _NUMBER_MAKERS.issuperset(self._project.names(self._path, args[0]) or ("",))
            case ("chain" | "from_iterable" as word, (_, *rest)) if args:
                inner = [(None, *rest) if each.star or word == "from_iterable" else tuple(rest) for each in call.args]
                return all(map(self.iterated, args, inner))
            case (word, (at, *rest)) if args and word in _REORDERING:
                return self.iterated(args[0], tuple(rest)) if at is None else self.at(args[0], places)
        names = self._project.names(self._path, call.func)
        is_plain = len(places) == 1 and bool(args) and call.args[0].keyword is None
        if is_plain and names and all(map(_CHOOSING.fullmatch, names)):
            return self.iterated(args[0], ()) or self.number(args[0])
        gives_places = len(args) == 1 and len(places) > 1 and not _PLACES.isdisjoint(names)
        peaks = places[0] == 0 and "scipy.signal.find_peaks" in names  # the other is a dictionary
        return gives_places or peaks or any(map(_INDICES.fullmatch, names)) or self._returned(names, places)

    def _of_table(self, call: Call, args: list[Expression], places: _ElementPath) -> bool | None:
        """The answer for a method of a dictionary; None for another call."""
        match call.func:
            case Attribute(value=table, name="keys"):
                return self.at(table, (_KEYS, *places[1:]))
            case Ref(path=(*words, "keys")) as func:
                return self.at(func._replace(path=tuple(words)), (_KEYS, *places[1:]))
            case Ref(path=(*words, "values")) as func if places[0] is None:
                return self.at(func._replace(path=tuple(words)), places)
            case Ref(path=(*words, "items")) as func if places[1:2] in ((0,), (1,)):
                return self.at(func._replace(path=tuple(words)), (None if places[1] else _KEYS, *places[2:]))
            case Ref(path=(*words, "get" | "setdefault")) as func if args:
                found = self.at(func._replace(path=tuple(words)), (None, *places))
                return found and all(_is_empty(each, places) or self.at(each, places) for each in args[1:])
        return None

    def _returned(self, names: tuple[str, ...], places: _ElementPath) -> bool:
        """Whether functions of the project return numbers at that path."""
        resolver = self._project.resolver
        returned = [(name, each) for name in names for each in resolver.return_expressions(name)]
        if not returned or self._hops > limits.MAX_NUMERIC_CALLS:
            return False
        looks = {name: _ElementSearch(self._project, path_of(name), self._hops + 1) for name, _ in returned}
        return all(looks[name].at(each, places) for name, each in returned)


def _has_declared_keys(project: ValueFlow, path: str, ref: Ref) -> bool:
    """Whether a dictionary is annotated with keys that are numbers: ``table: dict[int, str]``."""
    parameters = [project.resolver.parameter(path + root) for root in ref.roots if not ref.path]
    of_parameters = [(path, each.param.annotation) for each in parameters if each is not None]
    for file, said in (*of_parameters, *annotations_of(project.resolver, path, ref)):
        match said:
            case Subscript(value=table, indices=(key, _)) if last_identifier(table) in _TABLES:
                return has_stable_hash(annotated(type_inference(project), file, key))
    return False


def has_stable_hash(element: AbstractValue) -> bool:
    """Whether values have the same hash in every run: numbers, and tuples of them."""
    if element.kind == "tuple":
        parts = element.items or ((element.contents,) if element.contents else ())
        return bool(parts) and all(has_stable_hash(each) for each in parts)
    return element.kind in _STABLE_KINDS


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
        case Attribute(value=value, name=word) if word in SUBSET_METHODS:
            return [value]
    return None


def _is_empty(value: Expression, places: _ElementPath) -> bool:
    match value:
        case Call(func=func, args=args) if places[0] == _KEYS and len(args) < 2:
            return last_identifier(func) == "defaultdict" or (last_identifier(func) in _MAPPINGS and not args)
        case Call(func=func, args=()):
            return last_identifier(func) in ("set", "frozenset", "list", *_MAPPINGS)
        case Call(func=func, args=(Arg(value=Ref()),)):
            return last_identifier(func) == "defaultdict"
        case Collection(kind="list" | "dict", items=()):
            return True
        case Comprehension(kind="list", elements=(element,)) if len(places) > 1:
            return _is_empty(element, places[1:])
    return False


def subscript_path(expression: Subscript) -> tuple[Expression, _ElementPath] | None:
    """The innermost value of nested subscripts, and the path of indices; an empty one stands for any element, as for loop variables."""
    inner: Expression = expression
    places: list[int | None] = []
    while isinstance(inner, Subscript):
        match inner.indices:
            case (Constant(value=int(index)),):
                places.append(index)
            case (Operation(op=":"),) if places:
                places[-1] = None
            case (Operation(op=":"),):
                return None
            case () | (_,):
                places.append(None)
            case _:
                return None
        inner = inner.value
    return inner, tuple(reversed(places))
