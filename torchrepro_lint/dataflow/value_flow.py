"""Data flow over a linked project: value sources, def-use, and the argument environments of functions.

Two context managers of torch are read here, since values depend on them: the default device and the gradient mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from torchrepro_lint.dataflow.arguments import bind_arguments
from torchrepro_lint.dataflow.environment import Closure, Environment
from torchrepro_lint.dataflow.uses import DefUse
from torchrepro_lint.dataflow.value_sources import ValueSourceAnalysis
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Operation, Ref, SimpleStatement, With
from torchrepro_lint.syntax.visitor import bodies, last_identifier, split_name, statements


def is_device(project: ProgramIndex, path: str, value: Expression) -> bool:
    """Whether an expression is a ``torch.device``."""
    if isinstance(value, Call):
        return last_identifier(value.func) == "device" and "torch.device" in project.names(path, value.func)
    return isinstance(value, Ref) and "torch.device()" in project.names(path, value)


def has_device_context(project: ProgramIndex) -> bool:
    """Whether the project enters a device as a context: calls inside it make their tensors there."""
    modules = project.resolver.modules
    modules.reads.record_word("entered", "")
    return any(
        is_device(project, path, value)
        for path, summary in modules.summaries()
        if any(word == "device()" or not word.endswith("()") for word in summary.entered)
        for body in bodies(project.files[path])
        for statement in statements(body)
        if isinstance(statement, With)
        for value, _ in statement.items
    )


_NO_GRADIENT = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode"}
    | {"torch.autograd.grad_mode.no_grad", "torch.autograd.grad_mode.inference_mode"}
)


def gradient_mode(project: ProgramIndex, path: str, value: Expression) -> str:
    """The gradient mode that a context manager or decorator sets: ``off``, ``on``, or empty for neither."""
    called = value.func if isinstance(value, Call) else value
    argument = value.args[0].value if isinstance(value, Call) and value.args else None
    switched = argument.value if isinstance(argument, Constant) else None
    for name in project.names(path, called):
        word = name.rpartition(".")[2]
        if name in _NO_GRADIENT:
            return "on" if word == "inference_mode" and switched is False else "off"
        if name in ("torch.enable_grad", "torch.autograd.enable_grad"):
            return "on"
        if name in ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled"):
            return "off" if switched is False else "on"
        if ":" in name and _is_no_gradient_decorator(project, name):
            return "off"
    return ""


def _is_no_gradient_decorator(project: ProgramIndex, name: str) -> bool:
    """Whether a function is a decorator that returns ``torch.no_grad()(function)``, possibly from a nested one."""
    path, _, own = split_name(name)
    if not project.resolver.functions(name):
        return False
    return any(
        _applies_mode(project, path, value)
        for function in project.files[path].functions
        if function.name == f":{own}" or function.name.startswith(f":{own}.<locals>.")
        for statement in statements(function.body)
        if isinstance(statement, SimpleStatement) and statement.kind == "return"
        for value in statement.values
    )


def _applies_mode(project: ProgramIndex, path: str, value: Expression) -> bool:
    match value:
        case Call(func=Call(func=mode)):
            chosen = mode.operands[1:] if isinstance(mode, Operation) and mode.op == "if" else (mode,)
            return all(_NO_GRADIENT.intersection(project.names(path, each)) for each in chosen)
    return False


class ValueFlow(ProgramIndex):
    """A project with data flow, on which type inference and taint analysis are built.

    Answers do not depend on the order of questions, nor on traces.
    """

    @cached_property
    def value_sources(self) -> ValueSourceAnalysis:
        """The value sources of the project's expressions."""
        return ValueSourceAnalysis(self)

    @cached_property
    def uses(self) -> DefUse:
        """The forward def-use of the project."""
        return DefUse(self)

    def environments_of(self, function: str) -> Iterator[Environment]:
        """The argument environment of each call of a function."""
        for definition in self.resolver.functions(function):
            for path, call in self.resolver.call_graph.of(function, definition):
                skip = self.resolver.call_graph.is_bound(path, call.func, definition)
                yield bind_arguments(
                    self.value_sources, Closure(path, call), function, definition, skip=skip, outer=Environment()
                )

    @property
    def has_device_context(self) -> bool:
        """Whether the project enters a device as a context: calls inside it make their tensors there."""
        return self.of_all("enters device", lambda: has_device_context(self))
