"""Whether code names an accelerator: a program that never does runs on the CPU."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Attribute, Call, Constant, Expression, If, Operation, Ref, Statement
from torchrepro_lint.syntax.visitor import expressions, statements, within
from torchrepro_lint.trace.framework_models import accelerates, matters

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names

_DEVICE = re.compile(r"(cuda|mps|xpu|hpu|npu|gpu|nccl)(:\d*)?")
_OPTION_HOLDER = re.compile(r"args?|opts?|options|cfg|conf|config|hparams|flags|params|hp|settings|self")
# The number of a process, which is the number of its GPU where something is moved to it.
_RANK = re.compile(r"(local_?)?rank|gpu(_?id)?|dev_?id|device_?id")
# What may be asked of CUDA by a program that does not use it.
_HARMLESS = frozenset({"is_available", "manual_seed", "manual_seed_all", "empty_cache", "device_count", "synchronize"})
_HARMLESS_CALLS = _HARMLESS | {"seed", "seed_all", "is_bf16_supported", "get_device_name", "get_device_capability"}
_QUESTION = re.compile(r"torch\.accelerator\.(is_\w+|current_\w+|device_count|manual_seed\w*)")
# What has an accelerator work.
_WORKING = re.compile(
    r"accelerate\.(\w+\.)*Accelerator\(\)\.(prepare\w*|backward)|ultralytics\.\w+\(\)\.(train|val|tune)"
)


def names_accelerator(body: Iterable[Statement]) -> bool:
    """Whether statements name CUDA or another accelerator, or a device from an option; frameworks that pick one aside."""
    return any(
        _names(each)
        for statement in statements(body)
        if not _asks_tensor(statement)
        for expression in expressions(statement)
        for each in within(expression)
    )


def _asks_tensor(statement: Statement) -> bool:
    return isinstance(statement, If) and isinstance(statement.test, Ref) and statement.test.path[-1:] == ("is_cuda",)


def _names(expression: Expression) -> bool:
    match expression:
        case Constant(value=str(text)):
            return bool(_DEVICE.fullmatch(text))
        case Operation(op="f", operands=()):
            return False
        case Ref(roots=roots, path=path):
            return any(_names_ref(".".join((root, *path))) for root in roots)
        case Call(func=Ref(path=(*_, "cuda")) | Attribute(name="cuda")):
            return True
        case Call(func=Ref(path=(*_, "to")) | Attribute(name="to"), args=args):
            return any(_is_option(arg.value) for arg in args)
        case Call(func=Ref(roots=("torch",), path=("device",)), args=args):
            return any(not isinstance(arg.value, Constant) for arg in args)
    return False


def _names_ref(name: str) -> bool:
    return name.startswith("torch.cuda.") and name.split(".")[2] not in _HARMLESS


def _is_option(expression: Expression) -> bool:
    """``args.device``, ``cfg.train.device``: may be anything; a tensor's own ``x.device`` names nothing new."""
    match expression:
        case Ref(roots=roots, path=()):
            return bool(_RANK.fullmatch(roots[0].rpartition(".")[2].lstrip(":?").lower()))
        case Ref(roots=roots, path=(*before, word)) if "device" in word or word == "gpu":
            holder = before[-1] if before else roots[0].rpartition(".")[2].rpartition(":")[2]
            return bool(_OPTION_HOLDER.fullmatch(holder.lower()))
    return False


def starts_accelerator(names: Names, path: str, call: Call, found: tuple[str, ...]) -> bool:
    """Whether a call puts something on an accelerator, or has one work, as far as its arguments tell."""
    for name in found:
        if name.startswith("torch.cuda.") and name.count(".") == 2 and name.split(".")[2] not in _HARMLESS_CALLS:
            return True
        if _WORKING.fullmatch(name):
            return True
    if matters(found) or (accelerates(found, call) and not any(_QUESTION.fullmatch(name) for name in found)):
        return True
    match call.func:
        case Ref(path=(*_, "cuda")) | Attribute(name="cuda"):
            return True
        case Ref(path=(*_, "to")) | Attribute(name="to"):
            return any(_may_be_accelerator(names, path, arg.value) for arg in call.args)
    if any(name.startswith("torch.") for name in found):
        devices = (arg.value for arg in call.args if arg.keyword == "device" or "torch.set_default_device" in found)
        return any(_may_be_accelerator(names, path, device) for device in devices)
    return False


def _may_be_accelerator(names: Names, path: str, device: Expression) -> bool:
    return any(
        _is_option(value) or any(_names(each) for each in within(value)) for _, value in names.made(path, device)
    )
