"""Where no gradient flows: modes around a call, detached inputs, functions that only run without a backward pass."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from torchrepro_lint.facts import Attribute, Call, Constant, Expression, Leave, Operation, Ref
from torchrepro_lint.pipelines import prepares_data
from torchrepro_lint.runs import entered
from torchrepro_lint.walk import statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchrepro_lint.events import Event, Guard
    from torchrepro_lint.project import Program, Project, Site
    from torchrepro_lint.runs import Run

_OFF = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode"}
    | {"torch.autograd.grad_mode.no_grad", "torch.autograd.grad_mode.inference_mode"}
)
_CUT = frozenset({"detach", "detach_", "data"})
_BACKWARD = re.compile(
    r"torch\.autograd\.(backward|grad)|torch\.func\.(grad|vjp|jacrev)\w*|"
    r"(lightning|pytorch_lightning|transformers|trl|sentence_transformers|composer|ignite|fastai|detectron2|mmengine|"
    r"ultralytics|torchtune|stable_baselines3|monai)\b.*\.(fit|train|run|learn|fit_one_cycle|backward)"
)


def without_gradient(project: Project, site: Site) -> bool:
    """Whether no gradient can flow: under ``no_grad``, in a function so decorated, or from a detached input."""
    return switched_off(project, site) or _is_cut(_input(site.call))


def switched_off(project: Project, site: Site) -> bool:
    """Whether a call stands where no gradient is kept, by the innermost mode around it."""
    return _mode(project, site.function, site.guards) == "off"


def forward_only(project: Project, function: str) -> bool:
    """Whether all calls of a function of the project stand where no gradient is kept, or in such a function; and whether
    it prepares data.

    False where nothing calls it, where it is passed on as a value (then who calls it is not known), and where a program
    runs it otherwise, as through a parameter.
    """
    if prepares_data(project, function):
        return True
    if "callers" not in project.kept:
        project.kept["callers"] = _Callers(project)
    callers: _Callers = project.kept["callers"]
    return callers.forward_only(function) and all(
        gradient_free(project, program.run, function) for program in project.reaching(function)
    )


def gradient_free(project: Project, run: Run, function: str) -> bool:
    """Whether a run enters a function only where no gradient is kept. False where it does not enter it."""
    known = _FREE.setdefault(run, {})
    if function not in known:
        known[function] = True  # a circle adds no other way in
        entries = run.entries.get(function, ())
        known[function] = bool(entries) and all(_enters_free(project, run, *entry) for entry in entries)
    return known[function]


_FREE: WeakKeyDictionary[Run, dict[str, bool]] = WeakKeyDictionary()


def _enters_free(project: Project, run: Run, caller: str, event: Event) -> bool:
    mode = _mode(project, caller, event.guards)
    if mode or prepares_data(project, caller):
        return mode != "on"
    # A layer that a module makes for itself runs where the module does.
    owner = project.resolver.owner(caller) if caller.endswith(".__init__") else ""
    runners = project.resolver.methods(owner, "forward") if owner else (caller,)
    return any(gradient_free(project, run, each) for each in runners)


def has_backward(program: Program) -> bool:
    """Whether a program reaches a backward pass, its own or that of a framework's trainer."""
    return any(
        is_backward(happening.event.value, happening.names)
        for happening in program.run.happenings
        if happening.event.kind == "call" and isinstance(happening.event.value, Call)
    )


def is_backward(call: Call, names: tuple[str, ...]) -> bool:
    """Whether a call, by its word or by what is called, runs a backward pass."""
    match call.func:
        case Ref(path=(*_, "backward")) | Attribute(name="backward"):
            return True
    return any(_BACKWARD.fullmatch(name) for name in names if ":" not in name)


class _Callers:
    """Who calls which function of a project, under which mode."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._sites: dict[str, list[tuple[str, Site]]] = defaultdict(list)
        self._known: dict[str, bool] = {}
        for path in project.files:
            for site in project.calls(path):
                for name in site.names:
                    for target in entered(project.resolver, name, "call") if ":" in name else ():
                        self._sites[target].append((path, site))

    def forward_only(self, function: str) -> bool:
        if function not in self._known:
            self._known[function] = self._asked(function)
        return self._known[function]

    def _asked(self, function: str) -> bool:
        """Follow the callers until a mode is found on each way; a function that only calls itself is on none."""
        seen, waiting, off = {function}, [function], False
        while waiting:
            current = waiting.pop()
            if prepares_data(self._project, current):
                off = True
                continue
            sites = self._sites.get(current, ())
            if not sites or self._project.resolver.calls_of.hands_on(current):
                return False
            for _, site in sites:
                mode = _mode(self._project, site.function, site.guards)
                if mode == "on":
                    return False
                off = off or mode == "off"
                if not mode and site.function not in seen:
                    seen.add(site.function)
                    waiting.append(site.function)
        return off


def _mode(project: Project, function: str, guards: Iterable[Guard]) -> str:
    """The innermost mode around a call, its function's decorators included: ``off``, ``on``, or nothing."""
    path = function.partition(":")[0]
    modes = [mode for guard in guards if guard.kind == "with" and (mode := switch_of(project, path, guard.value))]
    decorators = (each for one in project.resolver.functions(function) for each in one.decorators)
    modes = [*(mode for each in decorators if (mode := switch_of(project, path, each))), *modes]
    return modes[-1] if modes else ""


def switch_of(project: Project, path: str, value: Expression) -> str:
    """What a context manager or decorator does to gradients: ``off``, ``on``, or nothing."""
    called = value.func if isinstance(value, Call) else value
    argument = value.args[0].value if isinstance(value, Call) and value.args else None
    switched = argument.value if isinstance(argument, Constant) else None
    for name in project.names(path, called):
        word = name.rpartition(".")[2]
        if name in _OFF:
            return "on" if word == "inference_mode" and switched is False else "off"
        if name in ("torch.enable_grad", "torch.autograd.enable_grad"):
            return "on"
        if name in ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled"):
            return "off" if switched is False else "on"
        if ":" in name and _wraps_in_mode(project, name):
            return "off"
    return ""


def _wraps_in_mode(project: Project, name: str) -> bool:
    """Whether a function of the project is a decorator that returns ``torch.no_grad()(function)``, from within too."""
    path, _, own = name.partition(":")
    if not project.resolver.functions(name):
        return False
    return any(
        _applies_mode(project, path, value)
        for function in project.files[path].functions
        if function.name == f":{own}" or function.name.startswith(f":{own}.<locals>.")
        for statement in statements(function.body)
        if isinstance(statement, Leave) and statement.kind == "return"
        for value in statement.values
    )


def _applies_mode(project: Project, path: str, value: Expression) -> bool:
    match value:
        case Call(func=Call(func=mode)):
            chosen = mode.operands[1:] if isinstance(mode, Operation) and mode.op == "if" else (mode,)
            return all(_OFF.intersection(project.names(path, each)) for each in chosen)
    return False


def _input(call: Call) -> Expression | None:
    """The tensor of a call: a method's receiver is unknown as a value, so its attributes are looked at instead."""
    if call.args and not call.args[0].star and call.args[0].keyword in (None, "input"):
        return call.args[0].value
    return None


def _is_cut(expression: Expression | None) -> bool:
    match expression:
        case Call(func=Ref(path=(*_, word)) | Attribute(name=word)) | Ref(path=(*_, word)):
            return word in _CUT
    return False
