"""Type inference as its own modules see it: a protocol with the questions that transfer functions ask.

With it, what ``with`` statements and decorators put in force at a program point: the gradient mode and the default
device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torchrepro_lint.dataflow.types.lattice import device_type
from torchrepro_lint.dataflow.types.targets import MODES
from torchrepro_lint.dataflow.value_flow import gradient_mode, is_device

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.flow import FileFlows
    from torchrepro_lint.dataflow.types.lattice import AbstractValue
    from torchrepro_lint.dataflow.types.targets import Binding, ProgramPoint
    from torchrepro_lint.dataflow.value_flow import ValueFlow
    from torchrepro_lint.query.fixpoint import FixpointSolver
    from torchrepro_lint.syntax.nodes import Call, Expression


class TypeInference(Protocol):
    """What ``infer.kinds`` answers to the modules that it is made of."""

    project: ValueFlow
    solver: FixpointSolver[AbstractValue]

    @property
    def default_device(self) -> str:
        """Where tensors are made that name no device."""
        ...

    def infer(self, expression: Expression, point: ProgramPoint) -> AbstractValue:
        """What an expression is at a spot."""
        ...

    def program_point(self, path: str, offset: int, calls_left: int = ...) -> ProgramPoint:
        """A place of a file, from which values are followed through so many calls."""
        ...

    def flows(self, path: str) -> FileFlows:
        """The flows of a file."""
        ...

    def tensors_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function whose uses show that they are of tensors."""
        ...

    def sparse_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function whose uses show that they are of sparse tensors."""
        ...

    def indices_by_use(self, point: ProgramPoint) -> frozenset[Binding]:
        """The bindings of a function that are given to torch as indices."""
        ...

    def registered(self, owner: str) -> dict[str, list[tuple[str, str, Call]]]:
        """What methods of a class register under a literal name."""
        ...


def gradients_off(inference: TypeInference, point: ProgramPoint) -> bool:
    """Whether what is computed at a spot is out of every graph."""
    binding = point.env.get(MODES)
    while binding is not None:
        if binding.value is not None and (mode := gradient_mode(inference.project, point.path, binding.value)):
            return mode == "off"
        binding = binding.predecessors[0] if binding.predecessors else None
    return False


def device_at(inference: TypeInference, point: ProgramPoint) -> str:
    """The device of tensors that name none at a spot: by the innermost ``with torch.device(...)``, else the default."""
    binding = point.env.get(MODES)
    while binding is not None:
        if binding.value is not None and is_device(inference.project, point.path, binding.value):
            return device_type(inference.infer(binding.value, point))
        binding = binding.predecessors[0] if binding.predecessors else None
    return inference.default_device
