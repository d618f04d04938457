"""Type inference as its own modules see it: the questions that the transfer functions ask of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torchrepro_lint.infer.bindings import Binding
    from torchrepro_lint.infer.places import Places
    from torchrepro_lint.infer.spot import Spot
    from torchrepro_lint.infer.what import What
    from torchrepro_lint.query.fixpoint import Solver
    from torchrepro_lint.syntax.nodes import Call, Expression
    from torchrepro_lint.value_flow import ValueFlow


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
