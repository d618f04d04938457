"""Context managers of torch that set the default device: where a ``with`` stands on one, tensors are made there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Call, Ref, With
from torchrepro_lint.syntax.visitor import bodies, last_word, statements

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.nodes import Expression


def is_device(project: ProgramIndex, path: str, value: Expression) -> bool:
    """Whether an expression is a ``torch.device``."""
    if isinstance(value, Call):
        return last_word(value.func) == "device" and "torch.device" in project.names(path, value.func)
    return isinstance(value, Ref) and "torch.device()" in project.names(path, value)


def enters_device(project: ProgramIndex) -> bool:
    """Whether a ``with`` of the project stands on a device: what is called inside it makes its tensors there."""
    modules = project.resolver.modules
    modules.reads.see_word("entered", "")
    return any(
        is_device(project, path, value)
        for path, summary in modules.summaries()
        if any(word == "device()" or not word.endswith("()") for word in summary.entered)
        for body in bodies(project.files[path])
        for statement in statements(body)
        if isinstance(statement, With)
        for value, _ in statement.items
    )
