"""TRL202: cuDNN is told that it may take nondeterministic algorithms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import OPEN
from torchrepro_lint.checks.fixes.switches import fix_switch
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.determinism_mode import enabled
from torchrepro_lint.domain.flag_effects import may_set, other_branches, undoes
from torchrepro_lint.domain.flags import CUDNN_DETERMINISTIC, is_off
from torchrepro_lint.syntax.nodes import Call, span

if TYPE_CHECKING:
    from torchrepro_lint.domain.flag_effects import Placed
    from torchrepro_lint.domain.project import Context

_WORDS = frozenset({"deterministic"})
_CAUSE = "lets cuDNN take nondeterministic algorithms for the backward pass of convolutions"


def check(context: Context) -> Iterator[Finding]:
    """Where the switch is set to a constant false, and the programs that come there do not ask torch as a whole."""
    if not may_set(context.project, context.path, _WORDS):
        return
    found = context.project.settings(context.path)
    for each in found:
        setting = each.setting
        if (
            setting.what == CUDNN_DETERMINISTIC
            and setting.given is not None
            and setting.value is not OPEN
            and is_off(setting.value)
            and all(is_off(other.setting.value) for other in other_branches(each, found))
            and not enabled(context.project, each.function)
        ):
            yield _finding(context, each, found)


def _finding(context: Context, placed: Placed, others: tuple[Placed, ...]) -> Finding:
    event, given = placed.event, placed.setting.given
    fix = None if undoes(placed.function) else fix_switch(context.lines.text, placed, given, "True", others)
    if event.kind == "call" and isinstance(event.value, Call):
        what = "setattr(cudnn, 'deterministic', False)" if placed.names == ("builtins.setattr",) else ""
        message = f"{what or 'cudnn.flags(deterministic=False)'} {_CAUSE}; pass True"
        return Finding("TRL202", span(event.value), message, fix)
    return Finding("TRL202", span(event.statement), f"cudnn.deterministic = False {_CAUSE}; set it to True", fix)
