"""Escape analysis of containers: whether something may be put into one by a way that type inference does not follow.

Type inference follows the statements of one function. It does not see what is added under another name, by a nested
function, or to an attribute. A safe fix that relies on the elements of a container asks here.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint import limits
from torchrepro_lint.dataflow.taint.stable_hashes import declared_types
from torchrepro_lint.dataflow.types.bindings import ADDING, EXTENDING, OTHER_MUTATORS
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Collection,
    Comprehension,
    Expression,
    ExpressionStatement,
    Operation,
    Ref,
    Subscript,
    With,
)
from torchrepro_lint.syntax.qualified_names import (
    MODULE_ROOT,
    enclosing_function,
    in_project,
    instance_value,
    is_local,
    path_of,
)
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import last_identifier, subexpressions
from torchrepro_lint.trace.traces import Traces

_MUTABLE = frozenset({"set", "list", "dict"})
_FOLLOWED = ADDING | EXTENDING | OTHER_MUTATORS
# Methods of containers that add nothing.
_READING = frozenset(
    {"union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset", "isdisjoint", "copy"}
    | {"discard", "remove", "pop", "clear", "intersection_update", "difference_update"}
    | {"index", "count", "sort", "reverse", "keys", "values", "items", "get", "join"}
)
# Operators whose result is another object than their operands.
_COPYING = frozenset(
    {"|", "&", "-", "^", "+", "*", "in", "not in", "not", "is", "is not", "==", "!=", "<", "<=", ">", ">="}
)
# Functions of libraries that neither keep an argument nor add to it; ``set.add`` is one that does.
_READERS = lazy_pattern(
    r"builtins\.(?!setattr)\w+|dict\.fromkeys|(copy|itertools|json|numpy|os|random|shutil|torch|tqdm)\..+"
)


def is_followed(project: Traces, path: str, expression: Expression) -> bool:
    """Whether all that may be in a container is seen by type inference, or declared."""
    return _Search(project).whole(path, expression)


class _Search:
    """A search over the variables from which a value is made; each is looked at once."""

    def __init__(self, project: Traces) -> None:
        self._project = project
        self._inference = type_inference(project)
        self._seen: set[str] = set()

    def whole(self, path: str, expression: Expression) -> bool:
        """Whether all variables, attributes and calls in an expression are followed."""
        return all(self._part(path, each) for each in subexpressions(expression))

    def _part(self, path: str, part: Expression) -> bool:
        match part:
            case Call(func=func):
                return self._callee(path, func)
            case Ref(path=()):
                return all(self._variable(path, part, root) for root in part.roots)
            case Ref():
                return self._attribute(path, part)
        return True

    def _callee(self, path: str, func: Expression) -> bool:
        """Whether functions of the project say what they return, or return what is followed."""
        resolver = self._project.resolver
        for name in self._project.names(path, func):
            functions = resolver.functions(name) if in_project(name) else ()
            if all(each.returns is not None for each in functions) or instance_value(name) in self._seen:
                continue
            self._seen.add(instance_value(name))
            if not all(self.whole(path_of(name), each) for each in resolver.return_expressions(name)):
                return False
        return True

    def _attribute(self, path: str, ref: Ref) -> bool:
        """Whether each attribute of a reference is declared, or holds no container and is assigned by its own class alone."""
        known = all(self._variable(path, ref._replace(path=()), root) for root in ref.roots)
        parts = (ref._replace(path=ref.path[: at + 1]) for at in range(len(ref.path)))
        return known and all(self._is_settled(path, each) for each in parts)

    def _is_settled(self, path: str, ref: Ref) -> bool:
        if any(each.kind for each in declared_types(self._project, path, ref)):
            return True
        what = self._inference.of(path, ref)
        stored = self._project.value_sources.set_attributes
        files = sorted(self._project.files) if what.kind not in ("function", "class", "") else ()
        return what.kind not in _MUTABLE and not any(stored(file, ref.path[-1:]) for file in files)

    def _variable(self, path: str, ref: Ref, root: str) -> bool:
        """Whether what a variable is bound to is followed, and it gets nothing elsewhere."""
        if path + root in self._seen:
            return True
        self._seen.add(path + root)
        project = self._project
        mutable = self._inference.of(path, ref).kind in _MUTABLE
        if not in_project(root):  # of a library, or of another file
            return not mutable
        if len(self._seen) > limits.MAX_ESCAPE_VARIABLES:
            return False
        param = project.resolver.parameter(path + root)
        assigned = project.resolver.assigned(path + root)
        declared = any(how == ":" for how, _ in assigned) or (param is not None and param.param.annotation is not None)
        if mutable and not declared and (param is not None or not self._are_additions_followed(path, root)):
            return False
        values = [each.value for each in project.value_sources.assignments(path).get(root, ())]
        values += [value for how, value in assigned if how != ":"]
        return all(self.whole(path, each) for each in values)

    def _are_additions_followed(self, path: str, root: str) -> bool:
        """Whether nothing is added to the container of a variable but where type inference follows it."""
        return all(self._adds_nothing(path, root, each) for each in self._uses(path, root))

    def _uses(self, path: str, root: str) -> Iterator[tuple[str, Ref, tuple[str, ...]]]:
        if is_local(root):
            yield from ((path, each, each.path) for each in self._project.uses.spots(path).uses(root))
        else:
            yield from self._project.uses.of_definition(path, root)

    def _adds_nothing(self, path: str, root: str, use: tuple[str, Ref, tuple[str, ...]]) -> bool:
        """Whether a use of a container adds nothing to it but where type inference follows it."""
        file, ref, words = use
        spot = self._project.uses.spots(file).of(ref)
        if spot is None:
            return False
        home = file == path and spot.function == (enclosing_function(root) or MODULE_ROOT)
        if spot.written:
            return home
        if words:
            return self._is_method_followed(file, ref, words, spot, home=home)
        return self._is_read(file, ref, spot)

    def _is_method_followed(
        self, path: str, ref: Ref, words: tuple[str, ...], spot: ExpressionPosition, *, home: bool
    ) -> bool:
        if not isinstance(spot.parent, Call) or spot.parent.func != ref or len(words) != 1:
            return False
        if words[0] in _READING:
            return True
        around = self._project.uses.spots(path).of(spot.parent)
        alone = around is not None and around.parent is None and isinstance(around.statement, ExpressionStatement)
        known = home and alone and words[0] in _FOLLOWED
        return known and all(self.whole(path, arg.value) for arg in spot.parent.args)

    def _is_read(self, path: str, ref: Ref, spot: ExpressionPosition) -> bool:
        """Whether a container is only read where it stands, so that it gets no second name."""
        match spot.parent:
            case None:
                unpacked = isinstance(spot.statement, Assign) and _is_copied(spot.statement)
                return unpacked or not isinstance(spot.statement, Assign | With)
            case Comprehension(elements=elements):
                return not any(each == ref for each in elements)
            case Subscript(value=value):
                return value != ref or self._inference.of(path, ref).element.kind not in _MUTABLE
            case Operation(op=op):
                return op in _COPYING or op in ("f", "yield from")
            case Call() as call:
                names = self._project.names(path, call.func)
                copied = last_identifier(call.func) in EXTENDING | _READING
                return copied or (bool(names) and all(map(_READERS.fullmatch, names)))
        return False


def _is_copied(statement: Assign) -> bool:
    """Whether an assignment takes the elements, and not the container itself."""
    return statement.op not in ("=", ":") or all(isinstance(target, Collection) for target in statement.targets)
