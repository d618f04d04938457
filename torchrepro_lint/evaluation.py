"""Code that only a network runs that is not being trained: the other branch of ``if self.training``, or what comes after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Call, Expression, If, Leave, Operation, Ref, Statement
from torchrepro_lint.syntax.visitor import blocks, last_word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.events import Guard


_FLAGS = frozenset({"inference_mode", "deploy", "exporting", "is_exporting"})
_STEPS = frozenset(
    f"{word}_{part}" for word in ("validation", "test", "predict") for part in ("step", "step_end", "epoch_end")
)
_LIGHTNING = frozenset(
    f"{package}.LightningModule"
    for package in (
        "lightning",
        "pytorch_lightning",
        "lightning.pytorch",
        "lightning.pytorch.core",
        "pytorch_lightning.core",
    )
)
# Questions of torch that are answered by yes where a network is exported. A traced or scripted one may be trained.
_EXPORTING = frozenset({"is_in_onnx_export", "is_exporting"})


def in_evaluation(project: ProgramIndex, function: str, at: int, guards: Iterable[Guard]) -> bool:
    """Whether a call at an offset of a function, under ``guards``, stands where a network can only be that is not being
    trained.
    """
    for guard in guards:
        if guard.kind == "else" and _is_training(guard.value):
            return True
        if guard.kind == "if" and _is_evaluating(guard.value):
            return True
    return is_evaluation_step(project, function) or any(
        _left_by_training(each.body, at) for each in project.resolver.functions(function)
    )


def is_evaluation_step(project: ProgramIndex, function: str) -> bool:
    """Whether Lightning runs a method without gradients, as it does what validates, tests and predicts."""
    outer = function.partition(".<locals>.")[0]
    if outer.rpartition(".")[2] not in _STEPS:
        return False
    owner = project.resolver.owner(outer)
    return bool(owner) and not _LIGHTNING.isdisjoint(project.resolver.ancestry(owner))


def _left_by_training(body: tuple[Statement, ...], offset: int) -> bool:
    """Whether ``if self.training: return ...`` comes before an offset in a body, or in a block around it."""
    for statement in body:
        if statement.start <= offset < statement.end:
            return any(_left_by_training(block, offset) for block in blocks(statement))
        match statement:
            case If(test=test, body=(*_, Leave(kind="return" | "raise"))) if _is_training(test):
                return True
    return False


def _is_training(test: Expression) -> bool:
    """``self.training``, what asks torch whether gradients are kept, and that nothing is exported."""
    match test:
        case Call(func=func):
            return last_word(func) == "is_grad_enabled"
        case Operation(op="not", operands=(Call(func=func),)):
            return last_word(func) in _EXPORTING
    return isinstance(test, Ref) and test.path[-1:] == ("training",)


def _is_evaluating(test: Expression) -> bool:
    """``not self.training``, alone or with more; what is exported; or a flag that is called after what is not training."""
    match test:
        case Call(func=func):
            return last_word(func) in _EXPORTING
        case Ref():
            return last_word(test) in _FLAGS
        case Operation(op="not", operands=(inner,)):
            return _is_training(inner)
        case Operation(op="and", operands=operands):
            return any(map(_is_evaluating, operands))
    return False
