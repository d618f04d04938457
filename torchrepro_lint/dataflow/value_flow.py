"""Context managers of torch that set the default device: where a ``with`` stands on one, tensors are made there.

Gradient modes of context managers and decorators: ``torch.no_grad()``, and what a project makes of it.

Data flow over a linked project: where values come from (value sources), where they go (uses), and with which arguments
functions are entered (calling contexts).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from torchrepro_lint.dataflow.arguments import bind
from torchrepro_lint.dataflow.environment import Scope, Scoped
from torchrepro_lint.dataflow.uses import Uses
from torchrepro_lint.dataflow.value_sources import Origins
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Leave, Operation, Ref, With, parted
from torchrepro_lint.syntax.visitor import bodies, last_word, statements


def is_device(project: ProgramIndex, path: str, value: Expression) -> bool:
    """Whether an expression is a ``torch.device``."""
    if isinstance(value, Call):
        return last_word(value.func) == "device" and "torch.device" in project.names(path, value.func)
    return isinstance(value, Ref) and "torch.device()" in project.names(path, value)


def enters_device(project: ProgramIndex) -> bool:
    """Whether a ``with`` of the project stands on a device: what is called inside it makes its tensors there."""
    modules = project.resolver.modules
    modules.reads.see_word("entered", "")
    return any(
        is_device(project, path, value)
        for path, summary in modules.summaries()
        if any(word == "device()" or not word.endswith("()") for word in summary.entered)
        for body in bodies(project.files[path])
        for statement in statements(body)
        if isinstance(statement, With)
        for value, _ in statement.items
    )


_OFF = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode"}
    | {"torch.autograd.grad_mode.no_grad", "torch.autograd.grad_mode.inference_mode"}
)


def switch_of(project: ProgramIndex, path: str, value: Expression) -> str:
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


def _wraps_in_mode(project: ProgramIndex, name: str) -> bool:
    """Whether a function of the project is a decorator that returns ``torch.no_grad()(function)``, from within too."""
    path, _, own = parted(name)
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


def _applies_mode(project: ProgramIndex, path: str, value: Expression) -> bool:
    match value:
        case Call(func=Call(func=mode)):
            chosen = mode.operands[1:] if isinstance(mode, Operation) and mode.op == "if" else (mode,)
            return all(_OFF.intersection(project.names(path, each)) for each in chosen)
    return False


class ValueFlow(ProgramIndex):
    """A project whose values are known: what type inference and the taint of orders are worked out from.

    It promises the same answers whoever asks first, and nothing of runs.
    """

    @cached_property
    def origins(self) -> Origins:
        """What the expressions of the project stand for."""
        return Origins(self)

    @cached_property
    def uses(self) -> Uses:
        """Where the values of the project go."""
        return Uses(self)

    def scopes_of(self, function: str) -> Iterator[Scope]:
        """What each call of a function passes for its parameters."""
        for definition in self.resolver.functions(function):
            for path, call in self.resolver.calls_of.of(function, definition):
                skip = self.resolver.calls_of.is_bound(path, call.func, definition)
                yield bind(self.origins, Scoped(path, call), function, definition, skip=skip, outer=Scope())

    @property
    def enters_device(self) -> bool:
        """Whether a ``with`` of the project stands on a device: what is called inside it makes its tensors there."""
        return self.of_all("enters device", lambda: enters_device(self))
