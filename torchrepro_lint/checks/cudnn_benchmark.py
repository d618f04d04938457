"""TRL201: cuDNN chooses algorithms by timing them."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.constants import display_name
from torchrepro_lint.domain.flag_effects import FlagWrite, flag_writes, may_set_flag, opposite_branch_writes
from torchrepro_lint.domain.flags import CUDNN_BENCHMARK
from torchrepro_lint.source.text import NoFix
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.nodes import Call, Constant, Ref, span
from torchrepro_lint.syntax.qualified_names import last_word
from torchrepro_lint.syntax.visitor import last_identifier, subexpressions
from torchrepro_lint.trace.traces import Context

_CODE = "TRL201"
_WORDS = frozenset({"benchmark"})
_CAUSE = "lets cuDNN choose algorithms by timing them, which differs between runs"


def check(context: Context) -> Iterator[Finding]:
    """Assignments of the flag, ``cudnn.flags``, and library calls with an argument that sets it."""
    if not may_set_flag(context.project, context.path, _WORDS):
        return
    found, text = flag_writes(context.project, context.path), context.lines.text
    for each in found:
        setting = each.setting
        if setting.what == CUDNN_BENCHMARK and setting.value in (True, 1):
            if each.event.kind == "call" and isinstance(each.event.value, Call):
                yield from _call_findings(text, each, each.event.value)
            elif not any(other.setting.value is False for other in opposite_branch_writes(each, found)):
                from torchrepro_lint.checks.fixes.switches import fix_switch

                message = f"cudnn.benchmark = True {_CAUSE}; set it to False"
                fix = (
                    NoFix("an option of the program sets it; turn that option off")
                    if _is_user_option(each)
                    else fix_switch(text, each, setting.expression, "False", found)
                )
                yield Finding(_CODE, span(each.event.statement), message, fix)


def _is_user_option(write: FlagWrite) -> bool:
    """``if cfg.get("cudnn_benchmark"): …``: the option should be off, not the assignment."""
    return any(
        isinstance(part, (Ref, Constant)) and "benchmark" in _text(part)
        for guard in write.event.guards
        if guard.kind in ("if", "else")
        for part in subexpressions(guard.value)
    )


def _text(part: Ref | Constant) -> str:
    return part.value if isinstance(part, Constant) and isinstance(part.value, str) else last_identifier(part)


def _call_findings(text: str, write: FlagWrite, call: Call) -> Iterator[Finding]:
    """A call that sets the flag by an argument. A library that sets it without one is not reported."""
    from torchrepro_lint.checks.fixes.switches import fix_switch

    given = write.setting.expression
    if given is None:
        given = known_argument(call, None, "benchmark")
    if given is None:
        return
    also = ""
    if "torch.backends.cudnn.flags" in write.names and known_argument(call, 0, "enabled") is None:
        also = "; without enabled=True it also turns cuDNN off inside the block"
    if write.names == ("builtins.setattr",):
        message = f"setattr(cudnn, 'benchmark', True) {_CAUSE}; set it to False"
    else:
        function = last_word(display_name(write.names[0]))
        function = f"cudnn.{function}" if function in ("flags", "set_flags") else function
        message = f"{function}(benchmark=True) {_CAUSE}; pass benchmark=False{also}"
    yield Finding(_CODE, span(call), message, fix_switch(text, write, given, "False"))
