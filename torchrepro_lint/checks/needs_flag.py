"""TRL403: an operation that is deterministic only in deterministic mode."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.constants import display_name
from torchrepro_lint.domain.determinism_mode import cudnn_deterministic_enabled, deterministic_mode_enabled
from torchrepro_lint.domain.operations.cases import Case
from torchrepro_lint.domain.operations.reached_operations import runs_only_without_gradient
from torchrepro_lint.domain.operations.verdicts import verdicts
from torchrepro_lint.domain.programs import has_backward, programs_reaching
from torchrepro_lint.syntax.nodes import span
from torchrepro_lint.trace.traces import Context

_FLAG = "torch.use_deterministic_algorithms(True)"


def check(context: Context) -> Iterator[Finding]:
    """Each call whose programs, if there are any, leave the flag off and run the phase that needs it."""
    for code, case in verdicts(context):
        if (
            code == "TRL403"
            and not deterministic_mode_enabled(context.project, case.site.function)
            and _needs_flag(context, case)
        ):
            yield Finding("TRL403", span(case.site.call), _message(case))


def _needs_flag(context: Context, case: Case) -> bool:
    project, function = context.project, case.site.function
    if case.row.operation.startswith("torch.nn.Conv") and cudnn_deterministic_enabled(project, function):
        return False
    if runs_only_without_gradient(context, case):
        return False
    programs = programs_reaching(project, function)
    return case.row.phase != "backward" or not programs or any(has_backward(program) for program in programs)


def _message(case: Case) -> str:
    device = case.row.devices[0].upper() if len(case.row.devices) == 1 and "any" not in case.row.devices else ""
    what = " ".join(filter(None, (device, case.row.phase)))
    return f"{display_name(case.row.signature.name)} has a nondeterministic {what} by default; call {_FLAG}"
