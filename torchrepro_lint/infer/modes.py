"""What is in force at a place by the ``with`` statements and decorators around it: gradients, the default device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.facts import Call, Ref, With
from torchrepro_lint.gradient_switches import switch_of
from torchrepro_lint.infer.bindings import MODES
from torchrepro_lint.infer.dtypes import device_named
from torchrepro_lint.walk import bodies, last_word, statements

if TYPE_CHECKING:
    from torchrepro_lint.facts import Expression
    from torchrepro_lint.infer.context import TypeInference
    from torchrepro_lint.infer.spot import Spot
    from torchrepro_lint.project import Project


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
        if binding.value is not None and _is_device(kinds.project, spot.path, binding.value):
            return device_named(kinds.what(binding.value, spot))
        binding = binding.before[0] if binding.before else None
    return kinds.default_device


def _is_device(project: Project, path: str, value: Expression) -> bool:
    if isinstance(value, Call):
        return last_word(value.func) == "device" and "torch.device" in project.names(path, value.func)
    return isinstance(value, Ref) and "torch.device()" in project.names(path, value)


def enters_device(project: Project) -> bool:
    """Whether a ``with`` of the project stands on a device: what is called inside it makes its tensors there."""
    modules = project.resolver.modules
    modules.reads.see_word("entered", "")
    return any(
        _is_device(project, path, value)
        for path, summary in modules.summaries()
        if any(word == "device()" or not word.endswith("()") for word in summary.entered)
        for body in bodies(project.files[path])
        for statement in statements(body)
        if isinstance(statement, With)
        for value, _ in statement.items
    )
