"""Whether programs ask torch for its deterministic algorithms."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from torchrepro_lint.facts import Call, Constant, Expression
from torchrepro_lint.project import Program, Project
from torchrepro_lint.runs import Run

_SWITCHES = frozenset({"torch.use_deterministic_algorithms", "torch.set_deterministic", "torch._set_deterministic"})
_DEBUG_MODE = "torch.set_deterministic_debug_mode"
_WHOLE = re.compile(
    r"(transformers\.(trainer_utils\.|utils\.)?)enable_full_determinism|monai\.utils\.(misc\.)?set_determinism"
)
_TRAINER = re.compile(r"(lightning|pytorch_lightning|lightning\.pytorch)\b.*\.Trainer")
_OPTIONS = {"deterministic": _TRAINER, "full_determinism": re.compile(r"transformers\..*TrainingArguments")}


def enabled(project: Project, function: str) -> bool:
    """Whether every program that reaches a function asks for them; a condition around the switch does not count.

    Where none reaches it, the programs are asked that import its module. False where there are no programs.
    """
    top = function.partition(":")[0] + ":"
    programs = project.reaching(function) or project.reaching(top)
    return bool(programs) and all(_enables(program) for program in programs)


_KNOWN: WeakKeyDictionary[Run, bool] = WeakKeyDictionary()


def _enables(program: Program) -> bool:
    """Remembered for as long as the run is: each call of a rule asks it of the same programs."""
    if program.run not in _KNOWN:
        _KNOWN[program.run] = _has_switch(program)
    return _KNOWN[program.run]


def _has_switch(program: Program) -> bool:
    return any(
        _is_switch(name, happening.event.value)
        for happening in program.run.happenings
        if isinstance(happening.event.value, Call) and happening.event.kind == "call"
        for name in happening.names
    )


def _is_switch(name: str, call: Call) -> bool:
    if name in _SWITCHES:
        return _given(call, "mode", True) not in (False, 0)
    if name == _DEBUG_MODE:
        return _given(call, "debug_mode", 0) not in (0, "default")
    if _WHOLE.fullmatch(name):
        return True
    return any(
        pattern.fullmatch(name.removesuffix("()")) and arg.keyword == word and not _is_off(arg.value)
        for word, pattern in _OPTIONS.items()
        for arg in call.args
    )


def _given(call: Call, keyword: str, default: object) -> object:
    """The constant that a call gives first or by keyword; anything else is not known to be off."""
    for arg in call.args[:1]:
        if arg.keyword in (None, keyword) and not arg.star:
            return arg.value.value if isinstance(arg.value, Constant) else True
    return default


def _is_off(value: Expression) -> bool:
    return isinstance(value, Constant) and value.value in (False, None)
