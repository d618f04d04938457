"""Which argument of a call binds to a parameter, and which parameter receives an argument, by one idea of stars."""

from __future__ import annotations

import inspect
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from torchrepro_lint.syntax.binding import (
    UNKNOWN_ARGUMENT,
    bound_argument,
    known_argument,
    launched_call,
    parameter_argument,
    receiving_parameters,
)
from torchrepro_lint.syntax.nodes import Call, Constant, ExpressionStatement
from torchrepro_lint.syntax.parse import parse_module

if TYPE_CHECKING:
    from torchrepro_lint.syntax.nodes import Arg, Function


def _parsed(text: str) -> Call:
    statement = parse_module(text + "\n").body[-1]
    assert isinstance(statement, ExpressionStatement)
    assert isinstance(statement.value, Call)
    return statement.value


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
    call = _parsed(text)
    found = bound_argument(call, position, "k")
    known = None if passed == "*" else found
    assert ("*" if found is UNKNOWN_ARGUMENT else found and text[found.start : found.end]) == passed
    assert known_argument(call, position, "k") is known


_SIGNATURES = [
    "",
    "a",
    "a, b=0",
    "a, /, b, *, c=0",
    "a, b=0, /, c=0",
    "a, b=0, *c",
    "a=0, *b, c=0, **d",
    "a, /, **b",
    "*a, b=0",
    "*, a=0, b=0",
    "**a",
]
_NAMED = [(), ("a",), ("b",), ("c",), ("x",), ("b", "a"), ("c", "a", "x")]


def _function(signature: str) -> Function:
    return parse_module(f"def f({signature}): pass\n").functions[0]


def _value(arg: Arg) -> object:
    assert isinstance(arg.value, Constant)
    return arg.value.value


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("signature", _SIGNATURES)
def test_binding_in_both_directions_is_that_of_python(signature: str, bound: bool) -> None:
    """Each call that Python accepts is bound as ``inspect.signature(f).bind`` does."""
    whole = f"me, {signature}".removesuffix(", ") if bound else signature
    namespace: dict[str, Any] = {}
    exec(f"def f({whole}): pass", namespace)
    function, expected = _function(whole), inspect.signature(namespace["f"])
    accepted = 0
    for count, named in product(range(4), _NAMED):
        positional, keywords = range(count), {word: 10 + number for number, word in enumerate(named)}
        try:
            python = expected.bind(*["self"] * bound, *positional, **keywords).arguments
        except TypeError:
            continue
        accepted += 1
        call = _parsed(
            f"f({', '.join([*map(str, positional), *(f'{word}={value}' for word, value in keywords.items())])})"
        )
        received: dict[str, Any] = {"me": "self"} if bound else {}
        for arg, param in receiving_parameters(function, call, bound=bound):
            match param.kind:
                case "*":
                    received[param.name] = (*received.get(param.name, ()), _value(arg))
                case "**":
                    received[param.name] = {**received.get(param.name, {}), arg.keyword: _value(arg)}
                case _:
                    received[param.name] = _value(arg)
        assert received == python
        for position, param in enumerate(function.params):
            if not param.kind.startswith("*") and (position or not bound):
                passing = parameter_argument(call, function, position, bound=bound)
                assert (None if passing is None else _value(passing)) == python.get(param.name)
    assert accepted


@pytest.mark.parametrize(
    ("text", "received"),
    [
        ("f(1, *rest, 2, c=3)", {"1": "a", "3": "c"}),
        ("f(*rest, b=2)", {"2": "b"}),
        ("f(1, **more)", {"1": "a"}),
        ("f(a=1, *rest)", {"1": "a"}),
        ("f(1, 2, 3, x=4)", {"1": "a", "2": "b", "3": "rest", "4": "more"}),
    ],
)
def test_what_stands_in_or_behind_a_star_has_no_known_receiver(text: str, received: dict[str, str]) -> None:
    found = receiving_parameters(_function("a, b, *rest, c, **more"), _parsed(text), bound=False)
    assert {text[arg.value.start : arg.value.end]: param.name for arg, param in found} == received


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Thread(target=f, args=(a, b), kwargs={'k': c})", "f a b k=c"),
        ("threading.Thread(None, f, 'name', [a])", "f a"),
        ("context.SpawnProcess(target=f)", "f"),
        ("Thread(target=f, args=(a, *rest))", "f a *rest"),
        ("Thread(target=f, args=given, kwargs=named)", "f *given **named"),
        ("Thread(target=f, kwargs={word: a, **named})", "f **a **named"),
        ("Timer(5, f, (a,))", "f a"),
        ("mp.spawn(f, args=(a,), nprocs=2)", "f ? a"),
        ("mp.spawn(f, (a,))", "f ? a"),
        ("pool.submit(f, a, k=b)", "f a k=b"),
        ("pool.apply_async(f, (a,), {'k': b}, callback=g)", "f a k=b"),
        ("pool.map(f, items)", "f *?"),
        ("future.add_done_callback(f)", "f *?"),
        ("Thread()", None),
        ("pool.submit(*given)", None),
    ],
)
def test_the_call_that_a_launch_makes(text: str, made: str | None) -> None:
    found = launched_call(_parsed(text))
    if found is None:
        assert made is None
        return
    args = [
        f"{arg.star}{arg.keyword + '=' if arg.keyword else ''}"
        + ("?" if arg.value is UNKNOWN_ARGUMENT else text[arg.value.start : arg.value.end])
        for arg in found.args
    ]
    assert " ".join([text[found.func.start : found.func.end], *args]) == made
