"""Families of dtypes, and what operations on several tensors have in common: dtype, device, gradient."""

from __future__ import annotations

from torchrepro_lint.infer.what import What

_ORDER = ("bool", "integer", "floating", "complex")
_OF_NUMBERS = {"bool": "bool", "int": "integer", "float": "floating"}


def family(what: What) -> str:
    """The family of a tensor, an array or a number; empty where it is not known."""
    return _OF_NUMBERS.get(what.kind, what.family)


def promoted(operands: list[What]) -> tuple[str, str]:
    """The dtype and the family that operands give together; empty where they are not known."""
    families = [family(each) for each in operands]
    if "" in families or not families:
        return "", ""
    highest = max(families, key=_ORDER.index)
    exact = {each.dtype for each in operands if each.is_tensor and each.family == highest}
    others = any(not each.is_tensor and family(each) == highest for each in operands)
    tensors = [each for each in operands if each.is_tensor]
    alone = len(exact) == 1 and (not others or all(each.family == highest for each in tensors))
    return (exact.pop() if alone else "", highest)


def common_device(operands: list[What]) -> str:
    """The device of a result; a tensor on the CPU without dimensions goes with any other."""
    tensors = [each for each in operands if each.is_tensor or each.kind == ""]
    known = {each.device for each in tensors}
    if len(known) == 1:
        return known.pop()
    if "" in known and len(known) == 2:
        known.discard("")
        sure = next(iter(sorted(known)))
        if sure != "cpu" or any(each.device == "cpu" and each.low > 0 for each in tensors):
            return sure
    return ""


def common_gradient(operands: list[What]) -> bool | None:
    """False where no operand can need a gradient."""
    needing = [each for each in operands if each.kind not in _OF_NUMBERS and each.kind not in ("none", "str")]
    return False if all(each.grad is False for each in needing) else None


def device_named(what: What) -> str:
    """The kind of device that a text, a number or a device names."""
    if what.kind == "device":
        return what.device
    if what.kind == "int":
        return "cuda"
    return what.value.partition(":")[0] if isinstance(what.value, str) else ""
