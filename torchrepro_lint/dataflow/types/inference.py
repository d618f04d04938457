"""Type inference, its public side: ``type_inference(project).of(path, expression)`` is an abstract value.

It is demand-driven, dispatches by the kind of the expression, follows calls to a bounded depth, and solves
recursion as a fixpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.call_stack import has_deep_stack
from torchrepro_lint.dataflow.types import attributes, calls, containers, operators, transfer_functions, variables
from torchrepro_lint.dataflow.types.attributes import registrations
from torchrepro_lint.dataflow.types.bindings import Binding, ProgramPoint, is_given, literal_value
from torchrepro_lint.dataflow.types.context import has_device_context
from torchrepro_lint.dataflow.types.flow import BodyFlow, FileFlows
from torchrepro_lint.dataflow.types.lattice import TYPES, UNKNOWN, AbstractValue, join_all, not_none
from torchrepro_lint.dataflow.types.usage import indices_by_use, sparse_by_use, tensors_by_use
from torchrepro_lint.query.cycles import FixpointSolver
from torchrepro_lint.query.database import query
from torchrepro_lint.query.memo_tables import MemoTable
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
    from torchrepro_lint.dataflow.value_sources import ValueFlow

# The flows and answers of so many files are kept: those of a thousand take an eighth of the memory of the syntax trees.
_CACHED_FILES = 100


class TypeInferenceEngine:
    """Type inference of a project, on demand; get it by ``type_inference``."""

    def __init__(self, project: ValueFlow) -> None:
        database = self.database = project.database
        # Under early cutoff the engine is kept with its answers, and outlives the project.
        self._project = None if database.reads.early_cutoff else project
        self._flows: MemoTable[str, FileFlows] = database.table("type environments")
        self._used: MemoTable[tuple[str, str, BodyFlow], frozenset[Binding]]
        self._used = database.table("types by use", compare=False)
        # What a class registers under a literal name: name → (file, ``register_buffer`` or the like, call).
        self._registered: MemoTable[str, dict[str, list[tuple[str, str, Call]]]]
        self._registered = database.table("registered attributes", compare=False)
        # The types that may depend on themselves, and their solver.
        self.solver: FixpointSolver[AbstractValue] = database.solver(TYPES)
        self.types: MemoTable[Hashable, AbstractValue] = database.table("types", compare=True, cycle=TYPES)
        self._depth = 0

    @property
    def project(self) -> ValueFlow:
        """The project, as it is in this revision."""
        return self._project or self.database.asker

    def rest(self) -> None:
        """Drop all answers if they are many; to be called between two files. Where files change, they are needed again. All are dropped
        together, since environments are keys of answers.
        """
        if len(self._flows.entries()) > _CACHED_FILES and not self.database.reads.early_cutoff:
            for each in (self.solver, self._flows, self._used, self._registered):
                each.clear()

    def of(self, path: str, expression: Expression, at: int | None = None) -> AbstractValue:
        """The abstract value of an expression of a file, at its position or at the offset ``at``.

        Raises ``RecursionError`` where the call stack is too small, but for the largest one.
        """
        try:
            found = self.infer(expression, self.program_point(path, expression.start if at is None else at))
        except RecursionError:
            if not has_deep_stack():
                raise
            return UNKNOWN
        return UNKNOWN if found.kind == "nothing" else found

    def unpacked(self, path: str, offset: int, variable: str, place: int) -> list[Expression | None]:
        """The values that a variable is unpacked from at an offset, if it is element ``place`` on every path; else none."""
        bindings = self._reaching_bindings(path, offset, variable)
        plain = all(each.kind == "[i]" and each.at[0] == place for each in bindings)
        return [each.predecessors[0].value for each in bindings] if plain else []

    def unpackings(self, path: str, offset: int, variable: str) -> list[tuple[Expression, int, int]]:
        """The values that a variable is unpacked from at an offset, each with its place and the number of targets; none if
        a path binds it otherwise.
        """
        bindings = self._reaching_bindings(path, offset, variable)
        found = [(each.predecessors[0].value, *each.at) for each in bindings if each.kind == "[i]"]
        known = [(value, place, count) for value, place, count in found if value is not None]
        return known if len(known) == len(bindings) else []

    def assigned(self, path: str, offset: int, variable: str) -> list[Expression]:
        """The values assigned to a local variable at an offset, on every path; none if a path binds it otherwise than by an
        assignment.
        """
        bindings = self._reaching_bindings(path, offset, variable)
        found = [each.value for each in bindings if each.value is not None]
        return found if all(each.kind == "=" for each in bindings) else []

    def _reaching_bindings(self, path: str, offset: int, variable: str) -> list[Binding]:
        """The bindings of a variable that reach an offset."""
        binding = self.flows(path).environment_at(offset).get(variable)
        found, waiting = [], [] if binding is None else [binding]
        while waiting:
            each = waiting.pop()
            if each.kind == "join":
                waiting += each.predecessors
            else:
                found.append(each)
        return found

    def program_point(self, path: str, offset: int, calls_left: int = limits.MAX_TYPE_CALLS) -> ProgramPoint:
        """The program point at an offset, from which so many calls are followed."""
        return ProgramPoint(path, self.flows(path).environment_at(offset), calls_left)

    def flows(self, path: str) -> FileFlows:
        """The type environments of a file."""
        return self._flows.of(path, lambda: FileFlows(self.project.files[path]))

    def tensors_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function whose uses imply a tensor."""
        return self._by_use("tensors", point, lambda flow: tensors_by_use(self, point.path, flow))

    def sparse_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function whose uses imply a sparse tensor."""
        return self._by_use("sparse", point, sparse_by_use)

    def indices_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function that torch takes as indices."""
        return self._by_use("indices", point, indices_by_use)

    def _by_use(
        self, what: str, point: ProgramPoint, found: Callable[[BodyFlow], frozenset[Binding]]
    ) -> frozenset[Binding]:
        """What the uses in the function around a point imply."""
        flow = self.flows(point.path).flow_of(point.env)
        if flow is None:
            return frozenset()
        return self._used.of((what, point.path, flow), lambda: self._found_by_use(point, flow, found))

    def _found_by_use(
        self, point: ProgramPoint, flow: BodyFlow, found: Callable[[BodyFlow], frozenset[Binding]]
    ) -> frozenset[Binding]:
        self.project.resolver.modules.reads.record_read(point.path)  # the key is an identity in this file
        return found(flow)

    def registered(self, owner: str) -> dict[str, list[tuple[str, str, Call]]]:
        """What a class registers under a literal name: name → (file, ``register_buffer`` or the like, call)."""
        return self._registered.of(owner, lambda: self._find_registered(owner))

    def _find_registered(self, owner: str) -> dict[str, list[tuple[str, str, Call]]]:
        found: dict[str, list[tuple[str, str, Call]]] = {}
        for path, method, call in registrations(self.project, owner):
            word = call.args[0].value
            if isinstance(word, Constant) and isinstance(word.value, str):
                found.setdefault(word.value, []).append((path, method, call))
        return found

    @property
    def default_device(self) -> str:
        """The device of tensors that name none: the CPU, unless the project changes the default somewhere."""
        return _default_device(self.project)

    def infer(self, expression: Expression, point: ProgramPoint) -> AbstractValue:
        """The abstract value of an expression at a program point; for the modules of type inference."""
        if self._depth > limits.MAX_TYPE_DEPTH:
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
                # Cached: the same call is evaluated as a receiver, a callee and an argument.
                key = point.path, expression, point.env, point.calls_left
                return self.types.of(key, lambda: self._call(expression, point))
            case Attribute(value=value, name=word):
                return attributes.attribute_value(self, self.infer(value, point), word, point)
            case Subscript(value=value, indices=indices):
                return containers.subscript_value(self, self.infer(value, point), indices, point)
            case Collection():
                return containers.display_value(self, expression, point)
            case Operation():
                found = operators.operation_value(self, expression, point)
                return transfer_functions.under_gradient_mode(self, found, point)
            case Comprehension(kind=kind, elements=elements):
                inside = point._replace(env=self.flows(point.path).inside(expression, point.env))
                found = self.infer(elements[-1], inside)
                return AbstractValue("iterator" if kind == "generator" else kind, contents=found)
            case Lambda(function=function):
                return AbstractValue("function", name=f"{point.path}{function}")

    def _call(self, call: Call, point: ProgramPoint) -> AbstractValue:
        self.project.resolver.modules.reads.record_read(point.path)  # the key is an identity in this file
        return calls.call_value(self, call, point)

    def _reference(self, ref: Ref, point: ProgramPoint) -> AbstractValue:
        found = []
        for root in ref.roots:
            if (binding := point.env.get(root)) is not None:
                each = variables.variable_value(self, binding, point)
                each = not_none(each) if is_given(point.env, binding) else each
                for word in ref.path:
                    each = attributes.attribute_value(self, each, word, point)
                found.append(each)
            else:
                found.append(variables.global_value(self, point, root, ref.path))
        return join_all(*found) if found else UNKNOWN


@query()
def _default_device(project: ValueFlow) -> str:
    changed = any(project.is_called(word) for word in ("set_default_device", "set_default_tensor_type"))
    return "" if changed or has_device_context(project) else "cpu"


def type_inference(project: ValueFlow) -> TypeInferenceEngine:
    """The type inference of a project."""
    return project.part(TypeInferenceEngine)
