"""Type inference as its own modules see it: a protocol with the questions that transfer functions ask.

With it, what ``with`` statements and decorators put in force at a program point: the gradient mode and the default
device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torchrepro_lint.dataflow.types.bindings import MODES
from torchrepro_lint.dataflow.types.lattice import device_type
from torchrepro_lint.dataflow.value_sources import gradient_mode, is_device

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import Binding, ProgramPoint
    from torchrepro_lint.dataflow.types.flow import FileFlows
    from torchrepro_lint.dataflow.types.lattice import AbstractValue
    from torchrepro_lint.dataflow.value_sources import ValueFlow
    from torchrepro_lint.query.fixpoint import FixpointSolver
    from torchrepro_lint.syntax.nodes import Call, Expression


class TypeInference(Protocol):
    """The protocol of type inference, for the modules that implement it."""

    @property
    def project(self) -> ValueFlow:
        """The project."""
        ...

    @property
    def solver(self) -> FixpointSolver[AbstractValue]:
        """The solver of recursive questions."""
        ...

    @property
    def default_device(self) -> str:
        """The device of tensors that name none."""
        ...

    def infer(self, expression: Expression, point: ProgramPoint) -> AbstractValue:
        """The abstract value of an expression at a program point."""
        ...

    def program_point(self, path: str, offset: int, calls_left: int = ...) -> ProgramPoint:
        """The program point at an offset, from which so many calls are followed."""
        ...

    def flows(self, path: str) -> FileFlows:
        """The type environments of a file."""
        ...

    def tensors_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function whose uses imply a tensor."""
        ...

    def sparse_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function whose uses imply a sparse tensor."""
        ...

    def indices_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function that torch takes as indices."""
        ...

    def registered(self, owner: str) -> dict[str, list[tuple[str, str, Call]]]:
        """The buffers, parameters and modules that a class registers under a literal name."""
        ...


def gradients_off(inference: TypeInference, point: ProgramPoint) -> bool:
    """Whether gradients are off at a program point."""
    binding = point.env.get(MODES)
    while binding is not None:
        if binding.value is not None and (mode := gradient_mode(inference.project, point.path, binding.value)):
            return mode == "off"
        binding = binding.predecessors[0] if binding.predecessors else None
    return False


def device_at(inference: TypeInference, point: ProgramPoint) -> str:
    """The device of tensors that name none: of the innermost ``with torch.device(...)``, else the default."""
    binding = point.env.get(MODES)
    while binding is not None:
        if binding.value is not None and is_device(inference.project, point.path, binding.value):
            return device_type(inference.infer(binding.value, point))
        binding = binding.predecessors[0] if binding.predecessors else None
    return inference.default_device
