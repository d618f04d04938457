"""Whether gradients are recorded at a place: by the innermost ``with`` around it, or a decorator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.gradients import switch_of
from torchrepro_lint.infer.bindings import MODES

if TYPE_CHECKING:
    from torchrepro_lint.infer.kinds import Kinds
    from torchrepro_lint.infer.spot import Spot


def gradients_off(kinds: Kinds, spot: Spot) -> bool:
    """Whether what is computed at a spot is out of every graph."""
    binding = spot.env.get(MODES)
    while binding is not None:
        if binding.value is not None and (mode := switch_of(kinds.project, spot.path, binding.value)):
            return mode == "off"
        binding = binding.before[0] if binding.before else None
    return False
