"""What is known of the tensor that an expression gives: gradient, dtype, dimensions, layout. Unknown is never yes."""

from __future__ import annotations

from torchrepro_lint.infer.kinds import kinds_of
from torchrepro_lint.infer.what import What
from torchrepro_lint.syntax.nodes import Constant, Expression
from torchrepro_lint.value_flow import ValueFlow

_UNUSUAL = ("sparse", "quantized", "nested")


class Tensors:
    """Answers for the expressions of one file."""

    def __init__(self, project: ValueFlow, path: str) -> None:
        self._kinds = kinds_of(project)
        self._path = path
        self._resolver = project.resolver

    def what(self, expression: Expression) -> What:
        """All that is known of it."""
        return self._kinds.of(self._path, expression)

    def without_gradient(self, expression: Expression) -> bool:
        """Whether nothing flows back into it: made without, detached, loaded from a file, or of integers or booleans."""
        what = self.what(expression)
        return what.grad is False or what.integral

    def integral(self, expression: Expression) -> bool:
        """Whether it holds integers or booleans."""
        return self.what(expression).integral

    def int32(self, expression: Expression) -> bool:
        """Whether it holds 32-bit integers."""
        return self.what(expression).dtype == "int32"

    def scalar(self, expression: Expression) -> bool:
        """Whether it is known that it may have no dimensions: it, or what one of several ways there gives, has none."""
        return self.what(expression).may_be_scalar

    def unusual(self, expression: Expression) -> bool:
        """Whether it is sparse, quantised or nested, which indexing does not take."""
        return self.what(expression).layout in _UNUSUAL

    def contiguous(self, expression: Expression) -> bool:
        """Whether its elements lie in their order without gaps."""
        return self.what(expression).layout == "contiguous"

    def is_number_by_default(self, expression: Expression) -> bool:
        """Whether it is a parameter that is a number where nothing is given."""
        default = self._resolver.default(self._path, expression)
        return isinstance(default, Constant) and isinstance(default.value, int | float)
