"""TRL403: operations that are deterministic only where torch is asked for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.determinism_mode import cudnn_deterministic, enabled
from torchrepro_lint.domain.gradients.modes import has_backward
from torchrepro_lint.domain.operations.verdicts import verdicts
from torchrepro_lint.domain.rng.effects import label
from torchrepro_lint.syntax.nodes import span

if TYPE_CHECKING:
    from torchrepro_lint.domain.operations.cases import Case
    from torchrepro_lint.domain.project import Context

_FLAG = "torch.use_deterministic_algorithms(True)"


def check(context: Context) -> Iterator[Finding]:
    """Each call whose programs, where there are any, leave the flag off and run it in the phase that needs it."""
    for code, case in verdicts(context):
        if code == "TRL403" and not enabled(context.project, case.site.function) and _matters(context, case):
            yield Finding("TRL403", span(case.site.call), _message(case))


def _matters(context: Context, case: Case) -> bool:
    project, function = context.project, case.site.function
    if case.row.operation.startswith("torch.nn.Conv") and cudnn_deterministic(project, function):
        return False
    programs = project.reaching(function)
    return case.row.phase != "backward" or not programs or any(has_backward(program) for program in programs)


def _message(case: Case) -> str:
    device = case.row.devices[0].upper() if len(case.row.devices) == 1 and "any" not in case.row.devices else ""
    what = " ".join(filter(None, (device, case.row.phase)))
    return f"{label(case.row.spelling.name)} has a deterministic {what} only with {_FLAG}"
