"""What constants are."""

from __future__ import annotations

from torchrepro_lint.infer.what import NONE, UNKNOWN, What


def literal(value: object) -> What:
    """What a constant is."""
    if value is None:
        return NONE
    kind = type(value).__name__
    if isinstance(value, str | int | float | bool):
        return What(kind, value=value) if kind != "str" else What("str", value=value, of=What("str"))
    return What(kind) if kind == "bytes" else UNKNOWN
