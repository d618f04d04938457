"""Whether programs ask torch for its deterministic algorithms."""

from __future__ import annotations

import re
from collections.abc import Callable
from weakref import WeakKeyDictionary

from torchrepro_lint.facts import Arg, Assign, Call, Constant, Expression
from torchrepro_lint.project import Program, Project
from torchrepro_lint.runs import Run
from torchrepro_lint.walk import statements

_SWITCHES = frozenset({"torch.use_deterministic_algorithms", "torch.set_deterministic", "torch._set_deterministic"})
_CUDNN_SWITCH = "torch.backends.cudnn.deterministic"
_DEBUG_MODE = "torch.set_deterministic_debug_mode"
_WHOLE = re.compile(r"(transformers|diffusers)\.(\w+\.)*enable_full_determinism")
_TRAINER = re.compile(r"(lightning|pytorch_lightning|lightning\.pytorch)\b.*\.Trainer")
_OPTIONS = {
    "deterministic": _TRAINER,
    "full_determinism": re.compile(r"transformers\..*TrainingArguments"),
    "use_deterministic_algorithms": re.compile(r"monai\.utils\.(misc\.)?set_determinism"),
}


def enabled(project: Project, function: str) -> bool:
    """Whether every program that reaches a function asks for them; a condition around the switch does not count.

    Where none reaches it, the programs are asked that import its module. False where there are no programs.
    """
    programs = programs_of(project, function)
    return bool(programs) and all(_says(program, _is_switch) for program in programs)


def warns_only(project: Project, function: str) -> bool:
    """Whether every such program asks for warnings, and none for more than that."""
    programs = programs_of(project, function)
    return bool(programs) and all(
        _says(program, _is_warning) and not _says(program, _is_strict) for program in programs
    )


def cudnn_deterministic(project: Project, function: str) -> bool:
    """Whether every such program sets ``torch.backends.cudnn.deterministic``, by whatever value but a literal False."""
    programs = programs_of(project, function)
    return bool(programs) and all(_sets_cudnn(project, program) for program in programs)


def programs_of(project: Project, function: str) -> tuple[Program, ...]:
    """The programs that reach a function, else those that import its module."""
    return project.reaching(function) or project.reaching(function.partition(":")[0] + ":")


def _sets_cudnn(project: Project, program: Program) -> bool:
    if program.run not in _CUDNN:
        _CUDNN[program.run] = any(_assigns_cudnn(project, each) for each in sorted(program.run.functions))
    return _CUDNN[program.run]


def _assigns_cudnn(project: Project, function: str) -> bool:
    path, _, own = function.partition(":")
    bodies = [each.body for each in project.resolver.functions(function)] if own else [project.files[path].body]
    return any(
        isinstance(statement, Assign)
        and statement.value is not None
        and not _is_off(statement.value)
        and any(_CUDNN_SWITCH in project.names(path, target) for target in statement.targets)
        for body in bodies
        for statement in statements(body)
    )


_CUDNN: WeakKeyDictionary[Run, bool] = WeakKeyDictionary()

_Test = Callable[[str, Call], bool]
_KNOWN: WeakKeyDictionary[Run, dict[_Test, bool]] = WeakKeyDictionary()


def _says(program: Program, test: _Test) -> bool:
    """Whether a call of a program fits; remembered for as long as its run is, since many calls of rules ask."""
    known = _KNOWN.setdefault(program.run, {})
    if test not in known:
        known[test] = any(
            test(name, happening.event.value)
            for happening in program.run.happenings
            if isinstance(happening.event.value, Call) and happening.event.kind == "call"
            for name in happening.names
        )
    return known[test]


def _is_strict(name: str, call: Call) -> bool:
    return _is_switch(name, call) and not _is_warning(name, call)


def _is_warning(name: str, call: Call) -> bool:
    """``warn_only=True``, or what comes to the same: Lightning's ``"warn"``, and the debug mode of that name."""
    if name in _SWITCHES:
        return _is_switch(name, call) and any(_is(arg, "warn_only", True) for arg in call.args)
    if name == _DEBUG_MODE:
        return _given(call, "debug_mode", 0) in (1, "warn")
    return bool(_TRAINER.fullmatch(name)) and any(_is(arg, "deterministic", "warn") for arg in call.args)


def _is(arg: Arg, keyword: str, value: object) -> bool:
    return arg.keyword == keyword and isinstance(arg.value, Constant) and arg.value.value == value


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
