"""Backward passes: which calls run one, and which programs reach one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Attribute, Call, Ref
from torchrepro_lint.trace.trace import in_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchrepro_lint.programs import Program
    from torchrepro_lint.trace.trace import Happening

_BACKWARD = re.compile(
    r"torch\.autograd\.(backward|grad)|torch\.func\.(grad|vjp|jacrev)\w*|"
    r"(lightning|pytorch_lightning|transformers|trl|sentence_transformers|composer|ignite|fastai|detectron2|mmengine|"
    r"ultralytics|torchtune|stable_baselines3|monai)\b.*\.(fit|train|run|learn|fit_one_cycle|backward)|"
    r"(transformers|trl|sentence_transformers)\b.*\.training_step|"
    r"timm\.utils\.(\w+\.)?(NativeScaler|ApexScaler)\(\)"
)


def has_backward(program: Program) -> bool:
    """Whether a program reaches a backward pass, its own or that of a framework's trainer."""
    return any(in_parts(program.run, "has backward", _have_backward))


def _have_backward(_start: int, happenings: Sequence[Happening]) -> bool:
    return any(
        is_backward(happening.event.value, happening.names)
        for happening in happenings
        if happening.event.kind == "call" and isinstance(happening.event.value, Call)
    )


def is_backward(call: Call, names: tuple[str, ...]) -> bool:
    """Whether a call, by its word or by what is called, runs a backward pass."""
    match call.func:
        case Ref(path=(*_, "backward")) | Attribute(name="backward"):
            return True
    return any(_BACKWARD.fullmatch(name) for name in names if ":" not in name)
