"""TRL201: cuDNN is told to choose algorithms by timing them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.switches import fix_switch
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.flag_effects import may_set, other_branches
from torchrepro_lint.domain.flags import CUDNN_BENCHMARK
from torchrepro_lint.domain.rng.effects import label
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Ref, span
from torchrepro_lint.syntax.visitor import last_word, within

if TYPE_CHECKING:
    from torchrepro_lint.domain.flag_effects import Placed
    from torchrepro_lint.domain.project import Context

_CODE = "TRL201"
_WORDS = frozenset({"benchmark"})
_CAUSE = "lets cuDNN pick algorithms by timing them, which differs between runs"


def check(context: Context) -> Iterator[Finding]:
    """Assignments of the switch, ``cudnn.flags``, and libraries that set it where they are asked to."""
    if not may_set(context.project, context.path, _WORDS):
        return
    found, text = context.project.settings(context.path), context.lines.text
    for each in found:
        setting = each.setting
        if setting.what == CUDNN_BENCHMARK and setting.value in (True, 1):
            if each.event.kind == "call" and isinstance(each.event.value, Call):
                yield from _call(text, each, each.event.value)
            elif not any(other.setting.value is False for other in other_branches(each, found)):
                message = f"cudnn.benchmark = True {_CAUSE}; set it to False"
                fix = None if _is_asked_for(each) else fix_switch(text, each, setting.given, "False", found)
                yield Finding(_CODE, span(each.event.statement), message, fix)


def _is_asked_for(placed: Placed) -> bool:
    """``if cfg.get("cudnn_benchmark"): …``: there it is the option that is to be off, and not what it does."""
    return any(
        isinstance(part, (Ref, Constant)) and "benchmark" in _text(part)
        for guard in placed.event.guards
        if guard.kind in ("if", "else")
        for part in within(guard.value)
    )


def _text(part: Ref | Constant) -> str:
    return part.value if isinstance(part, Constant) and isinstance(part.value, str) else last_word(part)


def _call(text: str, placed: Placed, call: Call) -> Iterator[Finding]:
    """A call that is told to, by an argument; one that a library makes by itself is the library's business."""
    given = placed.setting.given
    words = {arg.keyword for arg in call.args}
    if given is None:
        given = next((arg.value for arg in call.args if arg.keyword == "benchmark"), None)
    if given is None:
        return
    also = ""
    if "torch.backends.cudnn.flags" in placed.names and "enabled" not in words and len(_positional(call)) < 1:
        also = "; without enabled=True it also turns cuDNN off inside the block"
    if placed.names == ("builtins.setattr",):
        message = f"setattr(cudnn, 'benchmark', True) {_CAUSE}; set it to False"
    else:
        function = label(placed.names[0]).rpartition(".")[2]
        function = f"cudnn.{function}" if function in ("flags", "set_flags") else function
        message = f"{function}(benchmark=True) {_CAUSE}; pass benchmark=False{also}"
    yield Finding(_CODE, span(call), message, fix_switch(text, placed, given, "False"))


def _positional(call: Call) -> list[Expression]:
    return [arg.value for arg in call.args if arg.keyword is None and not arg.star]
