"""What is in force at a place by the ``with`` statements and decorators around it: gradients, the default device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.device_contexts import is_device
from torchrepro_lint.gradient_switches import switch_of
from torchrepro_lint.infer.bindings import MODES
from torchrepro_lint.infer.dtypes import device_named

if TYPE_CHECKING:
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot


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
