"""What values are: ``kinds_of(project).of(path, expression)`` is a ``What``."""

from torchrepro_lint.dataflow.types.inference import Kinds, kinds_of
from torchrepro_lint.dataflow.types.lattice import UNKNOWN, What

__all__ = ["UNKNOWN", "Kinds", "What", "kinds_of"]
