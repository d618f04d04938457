"""Which argument of a call binds to a parameter, by one idea of stars."""

from __future__ import annotations

import pytest

from torchrepro_lint.syntax.nodes import Call, ExpressionStatement
from torchrepro_lint.syntax.parse import parse_module
from torchrepro_lint.syntax.visitor import UNKNOWN_ARGUMENT, bound_argument, known_argument


@pytest.mark.parametrize(
    ("text", "position", "passed"),
    [
        ("f(a, b)", 1, "b"),
        ("f(a)", 1, None),
        ("f(a, k=b)", 1, "b"),
        ("f(a, other=b)", 1, None),
        ("f(a, b)", None, None),
        ("f(a, *rest)", 0, "a"),
        ("f(*rest, b)", 0, "*"),
        ("f(*rest, b)", 1, "*"),
        ("f(*rest)", None, None),
        ("f(*rest, k=b)", 0, "b"),
        ("f(k=b, *rest)", 0, "b"),
        ("f(other=b, *rest)", 0, "*"),
        ("f(a, **more)", 0, "a"),
        ("f(a, **more)", 1, "*"),
        ("f(**more)", None, "*"),
        ("f(**more, k=b)", None, "b"),
    ],
)
def test_argument_for_a_parameter(text: str, position: int | None, passed: str | None) -> None:
    statement = parse_module(text + "\n").body[0]
    assert isinstance(statement, ExpressionStatement)
    call = statement.value
    assert isinstance(call, Call)
    found = bound_argument(call, position, "k")
    known = None if passed == "*" else found
    assert ("*" if found is UNKNOWN_ARGUMENT else found and text[found.start : found.end]) == passed
    assert known_argument(call, position, "k") is known
