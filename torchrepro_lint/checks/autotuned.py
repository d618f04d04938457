"""TRL206: torch.compile chooses kernels by timing them."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.determinism_mode import flag_writes_in, programs_reaching_or_importing
from torchrepro_lint.domain.flag_effects import FlagWrite, flag_writes, may_set_environment, may_set_flag
from torchrepro_lint.domain.flags import DEBUG_MODE, DETERMINISTIC, INDUCTOR_DETERMINISTIC, MAX_AUTOTUNE, is_off
from torchrepro_lint.domain.programs import Program
from torchrepro_lint.source.files import release
from torchrepro_lint.syntax.nodes import Call, span
from torchrepro_lint.trace.call_paths import first_line
from torchrepro_lint.trace.traces import Context

_CAUSE = "chooses kernels by timing them, which differs between runs"
_WORDS = frozenset({"max_autotune", "max_autotune_gemm", "max_autotune_pointwise"})
_VARIABLES = {
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM",
    "TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE",
}
# From this release on, deterministic mode keeps inductor from timing.
_OVERRIDDEN_SINCE = (2, 10)
_OVERRIDING = (INDUCTOR_DETERMINISTIC, "TORCHINDUCTOR_DETERMINISTIC", "TORCHINDUCTOR_BATCH_INVARIANT")


def check(context: Context) -> Iterator[Finding]:
    """Writes that certainly turn timing on, in programs without a mode that overrides it."""
    project, path = context.project, context.path
    for each in (
        flag_writes(project, path) if may_set_flag(project, path, _WORDS) or may_set_environment(project, path) else ()
    ):
        setting = each.setting
        if setting.value is UNKNOWN_VALUE or _is_off(setting.value):
            continue
        if (setting.what == MAX_AUTOTUNE or setting.what in _VARIABLES) and not _is_overridden(context, each.function):
            yield _finding(context, each)


def _is_off(value: object) -> bool:
    return value in (None, False, 0, "0", "")


def _is_overridden(context: Context, function: str) -> bool:
    if release(context.catalogue.version) < _OVERRIDDEN_SINCE:
        return False
    programs = programs_reaching_or_importing(context.project, function)
    return bool(programs) and all(_overrides(context, program) for program in programs)


def _overrides(context: Context, program: Program) -> bool:
    """The debug mode does not reach inductor."""
    project = context.project
    return any(
        not is_off(effect.value) and DEBUG_MODE not in effect.trace_event.names
        for effect in flag_writes_in(project, program, DETERMINISTIC)
    ) or any(not _is_off(effect.value) for what in _OVERRIDING for effect in flag_writes_in(project, program, what))


def _finding(context: Context, write: FlagWrite) -> Finding:
    event, setting = write.event, write.setting
    what = setting.what if setting.what in _VARIABLES else "max_autotune"
    if "torch.compile" in write.names and isinstance(setting.value, bool) and event.kind == "call":
        what = "max-autotune"
    cure = "leave it out"
    if release(context.catalogue.version) >= _OVERRIDDEN_SINCE:
        cure += ", or call torch.use_deterministic_algorithms(True), which turns it off"
    place = span(event.value) if isinstance(event.value, Call) and event.kind == "call" else None
    return Finding("TRL206", place or first_line(context.lines, event.statement), f"{what} {_CAUSE}; {cure}")
