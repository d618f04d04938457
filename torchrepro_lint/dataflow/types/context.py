"""Type inference as its own modules see it: the questions that the transfer functions ask of the whole.

What is in force at a place by the ``with`` statements and decorators around it: gradients, the default device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torchrepro_lint.dataflow.types.lattice import device_named
from torchrepro_lint.dataflow.types.targets import MODES
from torchrepro_lint.dataflow.value_flow import is_device, switch_of

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.flow import Places
    from torchrepro_lint.dataflow.types.lattice import What
    from torchrepro_lint.dataflow.types.targets import Binding, Spot
    from torchrepro_lint.dataflow.value_flow import ValueFlow
    from torchrepro_lint.query.fixpoint import Solver
    from torchrepro_lint.syntax.nodes import Call, Expression


class TypeInference(Protocol):
    """What ``infer.kinds`` answers to the modules that it is made of."""

    project: ValueFlow
    solver: Solver[What]

    @property
    def default_device(self) -> str:
        """Where tensors are made that name no device."""
        ...

    def what(self, expression: Expression, spot: Spot) -> What:
        """What an expression is at a spot."""
        ...

    def spot(self, path: str, offset: int, hops: int = ...) -> Spot:
        """A place of a file, from which values are followed through so many calls."""
        ...

    def places(self, path: str) -> Places:
        """The flows of a file."""
        ...

    def shown(self, spot: Spot) -> frozenset[Binding]:
        """The bindings of a function whose uses show that they are of tensors."""
        ...

    def sparse(self, spot: Spot) -> frozenset[Binding]:
        """The bindings of a function whose uses show that they are of sparse tensors."""
        ...

    def indices(self, spot: Spot) -> frozenset[Binding]:
        """The bindings of a function that are given to torch as indices."""
        ...

    def registered(self, owner: str) -> dict[str, list[tuple[str, str, Call]]]:
        """What methods of a class register under a literal name."""
        ...


def gradients_off(kinds: TypeInference, spot: Spot) -> bool:
    """Whether what is computed at a spot is out of every graph."""
    binding = spot.env.get(MODES)
    while binding is not None:
        if binding.value is not None and (mode := switch_of(kinds.project, spot.path, binding.value)):
            return mode == "off"
        binding = binding.before[0] if binding.before else None
    return False


def device_around(kinds: TypeInference, spot: Spot) -> str:
    """The device of tensors that name none at a spot: by the innermost ``with torch.device(...)``, else the default."""
    binding = spot.env.get(MODES)
    while binding is not None:
        if binding.value is not None and is_device(kinds.project, spot.path, binding.value):
            return device_named(kinds.what(binding.value, spot))
        binding = binding.before[0] if binding.before else None
    return kinds.default_device
