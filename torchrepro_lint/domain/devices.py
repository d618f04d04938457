"""Device effects: whether a body names an accelerator, and whether a call puts something on one.

A program that never names an accelerator runs on the CPU. The test is syntactic; options such as ``args.device`` may be
any.
"""

from __future__ import annotations

from collections.abc import Iterable

from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import Attribute, Call, Constant, Expression, If, Operation, Ref, Statement
from torchrepro_lint.syntax.qualified_names import simple_name
from torchrepro_lint.syntax.visitor import expressions_within, statements, subexpressions
from torchrepro_lint.trace.library_models import accelerates, trains_or_measures

_DEVICE = lazy_pattern(r"(cuda|mps|xpu|hpu|npu|gpu|nccl)(:\d*)?")
_OPTION_HOLDER = lazy_pattern(r"args?|opts?|options|cfg|conf|config|hparams|flags|params|hp|settings|self")
# The rank of a process, which is the index of its GPU where something is moved to it.
_RANK = lazy_pattern(r"(local_?)?rank|gpu(_?id)?|dev_?id|device_?id")
# Functions of CUDA that a program may call without using CUDA.
_HARMLESS = frozenset({"is_available", "manual_seed", "manual_seed_all", "empty_cache", "device_count", "synchronize"})
_HARMLESS_CALLS = _HARMLESS | {"seed", "seed_all", "is_bf16_supported", "get_device_name", "get_device_capability"}
_DEVICE_QUERIES = lazy_pattern(r"torch\.accelerator\.(is_\w+|current_\w+|device_count|manual_seed\w*)")
# Methods that run something on an accelerator.
_ACCELERATOR_WORK = lazy_pattern(
    r"accelerate\.(\w+\.)*Accelerator\(\)\.(prepare\w*|backward)|ultralytics\.\w+\(\)\.(train|val|tune)"
)


def names_accelerator(body: Iterable[Statement]) -> bool:
    """Whether statements name CUDA or another accelerator, or a device from an option. Frameworks that pick one do not
    count.
    """
    return any(
        _names_device(each)
        for statement in statements(body)
        if not _tests_is_cuda(statement)
        for each in expressions_within(statement)
    )


def _tests_is_cuda(statement: Statement) -> bool:
    return isinstance(statement, If) and isinstance(statement.test, Ref) and statement.test.path[-1:] == ("is_cuda",)


def _names_device(expression: Expression) -> bool:
    match expression:
        case Constant(value=str(text)):
            return bool(_DEVICE.fullmatch(text))
        case Operation(op="f", operands=()):
            return False
        case Ref(roots=roots, path=path):
            return any(_names_cuda(".".join((root, *path))) for root in roots)
        case Call(func=Ref(path=(*_, "cuda")) | Attribute(name="cuda")):
            return True
        case Call(func=Ref(path=(*_, "to")) | Attribute(name="to"), args=args):
            return any(_is_device_option(arg.value) for arg in args)
        case Call(func=Ref(roots=("torch",), path=("device",)), args=args):
            return any(not isinstance(arg.value, Constant) for arg in args)
    return False


def _names_cuda(name: str) -> bool:
    return name.startswith("torch.cuda.") and name.split(".")[2] not in _HARMLESS


def _is_device_option(expression: Expression) -> bool:
    """``args.device`` or ``cfg.train.device``, which may be any device. A tensor's own ``x.device`` does not count."""
    match expression:
        case Ref(roots=roots, path=()):
            return bool(_RANK.fullmatch(simple_name(roots[0]).lower()))
        case Ref(roots=roots, path=(*before, word)) if "device" in word or word == "gpu":
            holder = before[-1] if before else simple_name(roots[0])
            return bool(_OPTION_HOLDER.fullmatch(holder.lower()))
    return False


def uses_accelerator(names: Names, path: str, call: Call, found: tuple[str, ...]) -> bool:
    """Whether a call puts something on an accelerator, or runs something there, as far as its arguments tell."""
    for name in found:
        if name.startswith("torch.cuda.") and name.count(".") == 2 and name.split(".")[2] not in _HARMLESS_CALLS:
            return True
        if _ACCELERATOR_WORK.fullmatch(name):
            return True
    if trains_or_measures(found) or (
        accelerates(found, call) and not any(_DEVICE_QUERIES.fullmatch(name) for name in found)
    ):
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
        _is_device_option(value) or any(_names_device(each) for each in subexpressions(value))
        for _, value in names.values_through_calls(path, device)
    )
