"""Type inference, its public side: ``type_inference(project).of(path, expression)`` is an abstract value.

It is demand-driven, dispatches by the kind of the expression, follows calls to a bounded depth, and solves
recursion as a fixpoint.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types import attributes, calls, containers, elementwise, transfer_functions, variables
from torchrepro_lint.dataflow.types import containers as indexing
from torchrepro_lint.dataflow.types.attributes import registrations
from torchrepro_lint.dataflow.types.flow import BodyFlow, FileFlows
from torchrepro_lint.dataflow.types.lattice import BOTTOM, UNKNOWN, AbstractValue, join, join_all, widen
from torchrepro_lint.dataflow.types.targets import Binding, ProgramPoint, TypeEnvironment, literal_value
from torchrepro_lint.dataflow.types.usage import indices_by_use, sparse_by_use, tensors_by_use
from torchrepro_lint.query.fixpoint import FixpointSolver
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
_MOST_CALLS = 3
# So many files are known at once: the flows of a thousand, and what was found there, take an eighth of the memory of their facts.
_MOST_FILES = 100
# Expressions are taken apart to this depth; what is deeper stays unknown.
_DEEPEST = 60


class TypeInferenceEngine:
    """Answers for all modules of a project, worked out when first asked for; use ``kinds_of``."""

    def __init__(self, project: ValueFlow) -> None:
        self.project = project
        self._forget()

    def rest(self) -> None:
        """To be told between two files: once much is remembered it is forgotten. All at once, since answers are remembered
        by the identity of others.
        """
        if len(self._flows) > _MOST_FILES:
            self._forget()

    def _forget(self) -> None:
        self.solver = FixpointSolver(BOTTOM, join, widen)
        self._flows: dict[str, FileFlows] = {}
        self._depth = 0
        # What answers are remembered by, so that no other takes its identity.
        self._environments: dict[int, TypeEnvironment] = {}
        self._tensors_by_use: dict[BodyFlow, frozenset[Binding]] = {}
        self._sparse_by_use: dict[BodyFlow, frozenset[Binding]] = {}
        self._indices_by_use: dict[BodyFlow, frozenset[Binding]] = {}
        self._registered: dict[str, dict[str, list[tuple[str, str, Call]]]] = {}

    def of(self, path: str, expression: Expression, at: int | None = None) -> AbstractValue:
        """What an expression of a file is where it stands, or where it would stand at the offset ``at``."""
        try:
            found = self.infer(expression, self.program_point(path, expression.start if at is None else at))
        except RecursionError:
            self.solver.reset()
            self._depth = 0
            return UNKNOWN
        return UNKNOWN if found.kind == "nothing" else found

    def unpacked(self, path: str, offset: int, variable: str, place: int) -> list[Expression | None]:
        """What a variable is unpacked from at an offset, where it is element ``place`` of it on every way; else nothing."""
        ways = self._ways(path, offset, variable)
        plain = all(each.kind == "[i]" and each.at[0] == place for each in ways)
        return [each.predecessors[0].value for each in ways] if plain else []

    def assigned(self, path: str, offset: int, variable: str) -> list[Expression]:
        """What a variable of the function is assigned at an offset, on each way that leads there; nothing where it got its
        value otherwise on one of them.
        """
        ways = self._ways(path, offset, variable)
        found = [each.value for each in ways if each.value is not None]
        return found if all(each.kind == "=" for each in ways) else []

    def _ways(self, path: str, offset: int, variable: str) -> list[Binding]:
        """The bindings that a variable may have at an offset."""
        binding = self.flows(path).environment_at(offset).get(variable)
        found, waiting = [], [] if binding is None else [binding]
        while waiting:
            each = waiting.pop()
            if each.kind == "join":
                waiting += each.predecessors
            else:
                found.append(each)
        return found

    def program_point(self, path: str, offset: int, calls_left: int = _MOST_CALLS) -> ProgramPoint:
        """A place of a file, from which values are followed through so many calls."""
        return ProgramPoint(path, self.flows(path).environment_at(offset), calls_left)

    def flows(self, path: str) -> FileFlows:
        """The flows of a file."""
        if path not in self._flows:
            self._flows[path] = FileFlows(self.project.files[path])
        return self._flows[path]

    def tensors_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function whose uses show that they are of tensors."""
        flow = self.flows(point.path).flow_of(point.env)
        if flow is None:
            return frozenset()
        if flow not in self._tensors_by_use:
            self._tensors_by_use[flow] = tensors_by_use(self, point.path, flow)
        return self._tensors_by_use[flow]

    def sparse_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function whose uses show that they are of sparse tensors."""
        flow = self.flows(point.path).flow_of(point.env)
        if flow is None:
            return frozenset()
        if flow not in self._sparse_by_use:
            self._sparse_by_use[flow] = sparse_by_use(flow)
        return self._sparse_by_use[flow]

    def indices_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function that are given to torch as indices."""
        flow = self.flows(point.path).flow_of(point.env)
        if flow is None:
            return frozenset()
        if flow not in self._indices_by_use:
            self._indices_by_use[flow] = indices_by_use(flow)
        return self._indices_by_use[flow]

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
        return "" if changed or self.project.has_device_context else "cpu"

    def infer(self, expression: Expression, point: ProgramPoint) -> AbstractValue:
        """What an expression is at a spot; for the other modules of the inference."""
        if self._depth > _DEEPEST:
            return UNKNOWN
        self._depth += 1
        try:
            return self._dispatch(expression, point)
        finally:
            self._depth -= 1

    def _dispatch(self, expression: Expression, point: ProgramPoint) -> AbstractValue:
        match expression:
            case Constant(value=value):
                return literal_value(value)
            case Ref():
                return self._reference(expression, point)
            case Call():
                # Asked for as a receiver, as what is called, as an argument: once is enough.
                self._environments[id(point.env)] = point.env
                key = (id(expression), id(point.env), point.calls_left)
                return self.solver.solve(key, lambda: calls.call_value(self, expression, point))
            case Attribute(value=value, name=word):
                return attributes.attribute_value(self, self.infer(value, point), word, point)
            case Subscript(value=value, indices=indices):
                return indexing.subscript_value(self, self.infer(value, point), indices, point)
            case Collection():
                return containers.display_value(self, expression, point)
            case Operation():
                return transfer_functions.operator_value(
                    self, elementwise.operation_value(self, expression, point), point
                )
            case Comprehension(kind=kind, elements=elements):
                inside = point._replace(env=self.flows(point.path).inside(expression, point.env))
                found = self.infer(elements[-1], inside)
                return AbstractValue("iterator" if kind == "generator" else kind, contents=found)
            case Lambda(function=function):
                return AbstractValue("function", name=f"{point.path}{function}")

    def _reference(self, ref: Ref, point: ProgramPoint) -> AbstractValue:
        found = []
        for root in ref.roots:
            if (binding := point.env.get(root)) is not None:
                each = variables.variable_value(self, binding, point)
                for word in ref.path:
                    each = attributes.attribute_value(self, each, word, point)
                found.append(each)
            else:
                found.append(variables.global_value(self, point, root, ref.path))
        return join_all(*found) if found else UNKNOWN


def type_inference(project: ValueFlow) -> TypeInferenceEngine:
    """The answers for a project."""
    if "kinds" not in project.revision_cache:
        project.revision_cache["kinds"] = TypeInferenceEngine(project)
    inference: TypeInferenceEngine = project.revision_cache["kinds"]
    return inference
