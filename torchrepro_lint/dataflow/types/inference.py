"""What the expressions of a project are: the public side of the inference, and its dispatch by expression."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types import attributes, calls, containers, elementwise, transfer_functions, variables
from torchrepro_lint.dataflow.types import containers as indexing
from torchrepro_lint.dataflow.types.attributes import registrations
from torchrepro_lint.dataflow.types.flow import Flow, Places
from torchrepro_lint.dataflow.types.lattice import NOTHING, UNKNOWN, What, join, joined, widened
from torchrepro_lint.dataflow.types.targets import Binding, Env, Spot, literal
from torchrepro_lint.dataflow.types.usage import shown_indices, shown_sparse, shown_tensors
from torchrepro_lint.query.fixpoint import Solver
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Operation,
    Ref,
    Subscript,
)

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.value_flow import ValueFlow

# Through so many calls of the project a value is followed, outwards and inwards.
_HOPS = 3
# So many files are known at once: the flows of a thousand, and what was found there, take an eighth of the memory of their facts.
_MOST_FILES = 100
# Expressions are taken apart to this depth; what is deeper stays unknown.
_DEEPEST = 60


class Kinds:
    """Answers for all modules of a project, worked out when first asked for; use ``kinds_of``."""

    def __init__(self, project: ValueFlow) -> None:
        self.project = project
        self._forget()

    def rest(self) -> None:
        """To be told between two files: once much is remembered it is forgotten. All at once, since answers are remembered
        by the identity of others.
        """
        if len(self._places) > _MOST_FILES:
            self._forget()

    def _forget(self) -> None:
        self.solver = Solver(NOTHING, join, widened)
        self._places: dict[str, Places] = {}
        self._depth = 0
        # What answers are remembered by, so that no other takes its identity.
        self._kept: dict[int, Env] = {}
        self._shown: dict[Flow, frozenset[Binding]] = {}
        self._sparse: dict[Flow, frozenset[Binding]] = {}
        self._indices: dict[Flow, frozenset[Binding]] = {}
        self._registered: dict[str, dict[str, list[tuple[str, str, Call]]]] = {}

    def of(self, path: str, expression: Expression, at: int | None = None) -> What:
        """What an expression of a file is where it stands, or where it would stand at the offset ``at``."""
        try:
            found = self.what(expression, self.spot(path, expression.start if at is None else at))
        except RecursionError:
            self.solver.reset()
            self._depth = 0
            return UNKNOWN
        return UNKNOWN if found.kind == "nothing" else found

    def unpacked(self, path: str, offset: int, variable: str, place: int) -> list[Expression | None]:
        """What a variable is unpacked from at an offset, where it is element ``place`` of it on every way; else nothing."""
        ways = self._ways(path, offset, variable)
        plain = all(each.how == "[i]" and each.at[0] == place for each in ways)
        return [each.before[0].value for each in ways] if plain else []

    def assigned(self, path: str, offset: int, variable: str) -> list[Expression]:
        """What a variable of the function is assigned at an offset, on each way that leads there; nothing where it got its
        value otherwise on one of them.
        """
        ways = self._ways(path, offset, variable)
        found = [each.value for each in ways if each.value is not None]
        return found if all(each.how == "=" for each in ways) else []

    def _ways(self, path: str, offset: int, variable: str) -> list[Binding]:
        """The bindings that a variable may have at an offset."""
        binding = self.places(path).env(offset).get(variable)
        found, waiting = [], [] if binding is None else [binding]
        while waiting:
            each = waiting.pop()
            if each.how == "join":
                waiting += each.before
            else:
                found.append(each)
        return found

    def spot(self, path: str, offset: int, hops: int = _HOPS) -> Spot:
        """A place of a file, from which values are followed through so many calls."""
        return Spot(path, self.places(path).env(offset), hops)

    def places(self, path: str) -> Places:
        """The flows of a file."""
        if path not in self._places:
            self._places[path] = Places(self.project.files[path])
        return self._places[path]

    def shown(self, spot: Spot) -> frozenset[Binding]:
        """The bindings of a function whose uses show that they are of tensors."""
        flow = self.places(spot.path).owner(spot.env)
        if flow is None:
            return frozenset()
        if flow not in self._shown:
            self._shown[flow] = shown_tensors(self, spot.path, flow)
        return self._shown[flow]

    def sparse(self, spot: Spot) -> frozenset[Binding]:
        """The bindings of a function whose uses show that they are of sparse tensors."""
        flow = self.places(spot.path).owner(spot.env)
        if flow is None:
            return frozenset()
        if flow not in self._sparse:
            self._sparse[flow] = shown_sparse(flow)
        return self._sparse[flow]

    def indices(self, spot: Spot) -> frozenset[Binding]:
        """The bindings of a function that are given to torch as indices."""
        flow = self.places(spot.path).owner(spot.env)
        if flow is None:
            return frozenset()
        if flow not in self._indices:
            self._indices[flow] = shown_indices(flow)
        return self._indices[flow]

    def registered(self, owner: str) -> dict[str, list[tuple[str, str, Call]]]:
        """What methods of a class register under a literal name: word → (file, ``register_buffer`` or the like, call)."""
        if owner not in self._registered:
            found: dict[str, list[tuple[str, str, Call]]] = {}
            self._registered[owner] = found
            for path, method, call in registrations(self.project, owner):
                word = call.args[0].value
                if isinstance(word, Constant) and isinstance(word.value, str):
                    found.setdefault(word.value, []).append((path, method, call))
        return self._registered[owner]

    @cached_property
    def default_device(self) -> str:
        """Where tensors are made that name no device: on the CPU, unless the project says otherwise somewhere."""
        changed = any(self.project.is_called(word) for word in ("set_default_device", "set_default_tensor_type"))
        return "" if changed or self.project.enters_device else "cpu"

    def what(self, expression: Expression, spot: Spot) -> What:
        """What an expression is at a spot; for the other modules of the inference."""
        if self._depth > _DEEPEST:
            return UNKNOWN
        self._depth += 1
        try:
            return self._dispatch(expression, spot)
        finally:
            self._depth -= 1

    def _dispatch(self, expression: Expression, spot: Spot) -> What:
        match expression:
            case Constant(value=value):
                return literal(value)
            case Ref():
                return self._reference(expression, spot)
            case Call():
                # Asked for as a receiver, as what is called, as an argument: once is enough.
                self._kept[id(spot.env)] = spot.env
                key = (id(expression), id(spot.env), spot.hops)
                return self.solver.solve(key, lambda: calls.result(self, expression, spot))
            case Attribute(value=value, name=word):
                return attributes.read(self, self.what(value, spot), word, spot)
            case Subscript(value=value, indices=indices):
                return indexing.picked(self, self.what(value, spot), indices, spot)
            case Collection():
                return containers.display(self, expression, spot)
            case Operation():
                return transfer_functions.computed(self, elementwise.result(self, expression, spot), spot)
            case Comprehension(kind=kind, elements=elements):
                inside = spot._replace(env=self.places(spot.path).inside(expression, spot.env))
                found = self.what(elements[-1], inside)
                return What("iterator" if kind == "generator" else kind, of=found)
            case Lambda(function=function):
                return What("function", name=f"{spot.path}{function}")

    def _reference(self, ref: Ref, spot: Spot) -> What:
        found = []
        for root in ref.roots:
            if (binding := spot.env.get(root)) is not None:
                each = variables.bound(self, binding, spot)
                for word in ref.path:
                    each = attributes.read(self, each, word, spot)
                found.append(each)
            else:
                found.append(variables.named(self, spot, root, ref.path))
        return joined(*found) if found else UNKNOWN


def kinds_of(project: ValueFlow) -> Kinds:
    """The answers for a project."""
    if "kinds" not in project.kept:
        project.kept["kinds"] = Kinds(project)
    kinds: Kinds = project.kept["kinds"]
    return kinds
