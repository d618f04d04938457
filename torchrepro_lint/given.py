"""What a call gives for the parameters of a function of the project."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from torchrepro_lint.facts import Call, Expression, Function


def given(function: Function, call: Call) -> Iterator[tuple[str, Expression]]:
    """What a call passes for the parameters of a function, by their words; what stands behind a star is not known."""
    words = [param.name for param in function.params if param.kind in ("", "/")][bool(function.owner) :]
    placed = takewhile(lambda arg: arg.keyword is None and not arg.star, call.args)
    yield from zip(words, (arg.value for arg in placed), strict=False)
    yield from ((arg.keyword, arg.value) for arg in call.args if arg.keyword)
