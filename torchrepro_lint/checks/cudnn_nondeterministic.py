"""TRL202: cuDNN may choose nondeterministic algorithms."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.determinism_mode import deterministic_mode_enabled
from torchrepro_lint.domain.flag_effects import (
    FlagWrite,
    flag_writes,
    may_set_flag,
    opposite_branch_writes,
    restores_by_name,
)
from torchrepro_lint.domain.flags import CUDNN_DETERMINISTIC, is_off
from torchrepro_lint.source.text import NoFix
from torchrepro_lint.syntax.nodes import Call, span
from torchrepro_lint.trace.traces import Context

_WORDS = frozenset({"deterministic"})
_CAUSE = "lets cuDNN choose nondeterministic algorithms for the backward pass of convolutions"


def check(context: Context) -> Iterator[Finding]:
    """Assignments of a constant false, in programs without deterministic mode."""
    if not may_set_flag(context.project, context.path, _WORDS):
        return
    found = flag_writes(context.project, context.path)
    for each in found:
        setting = each.setting
        if (
            setting.what == CUDNN_DETERMINISTIC
            and setting.expression is not None
            and setting.value is not UNKNOWN_VALUE
            and is_off(setting.value)
            and all(is_off(other.setting.value) for other in opposite_branch_writes(each, found))
            and not deterministic_mode_enabled(context.project, each.function)
        ):
            yield _finding(context, each, found)


def _finding(context: Context, write: FlagWrite, others: tuple[FlagWrite, ...]) -> Finding:
    from torchrepro_lint.checks.fixes.switches import fix_switch

    event, given = write.event, write.setting.expression
    fix = (
        NoFix("the function's name says that it restores a setting or turns it off")
        if restores_by_name(write.function)
        else fix_switch(context.lines.text, write, given, "True", others)
    )
    if event.kind == "call" and isinstance(event.value, Call):
        what = "setattr(cudnn, 'deterministic', False)" if write.names == ("builtins.setattr",) else ""
        message = f"{what or 'cudnn.flags(deterministic=False)'} {_CAUSE}; pass True"
        return Finding("TRL202", span(event.value), message, fix)
    return Finding("TRL202", span(event.statement), f"cudnn.deterministic = False {_CAUSE}; set it to True", fix)
