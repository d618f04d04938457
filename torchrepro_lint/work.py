"""When a run begins to compute on an accelerator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.touches import ACCELERATOR, BACKWARD
from torchrepro_lint.trace.framework_models import matters

if TYPE_CHECKING:
    from torchrepro_lint.programs import Program
    from torchrepro_lint.project import Project
    from torchrepro_lint.trace.trace import Happening

# Calls that end in cuBLAS; moving things to a device does not.
_MULTIPLIES = re.compile(
    r"torch\.(Tensor\.)?(matmul|mm|bmm|addmm|baddbmm|addmv|mv|dot|einsum|tensordot|chain_matmul)|torch\.linalg\.\w+|"
    r"torch\.nn\.functional\.(linear|bilinear|multi_head_attention_forward|scaled_dot_product_attention)"
)


def first_work(project: Project, program: Program) -> tuple[int, Happening] | None:
    """The first thing that a program computes after it has put something on an accelerator: a module that is called, a
    product of matrices, a backward pass, a trainer. Its order in the run, and where; None where there is none.
    """
    placed = next((touch for touch in project.switching(program) if touch.kind == ACCELERATOR), None)
    if placed is None:
        return None
    backward = {touch.order for touch in project.switching(program) if touch.kind == BACKWARD}
    for order, happening in enumerate(program.run.happenings[placed.order :], placed.order):
        if happening.event.kind == "call" and (
            order in backward or any(_computes(project, name) for name in happening.names)
        ):
            return order, happening
    return None


def _computes(project: Project, name: str) -> bool:
    if ":" not in name:
        is_module = name.startswith("torch.nn.") and name.endswith("()") and "." not in name.rpartition("()")[2]
        return is_module or bool(_MULTIPLIES.fullmatch(name.replace("().", "."))) or matters([name])
    return name.endswith("()") and "torch.nn.Module" in project.resolver.ancestry(name[:-2])
