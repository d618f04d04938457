"""Conditions hold, fail or stay unknown, as far as a call is known."""

from __future__ import annotations

import ast

import pytest

from torchrepro_lint.catalogue.catalogue import load
from torchrepro_lint.catalogue.conditions import Truth, applicable_rows, argument_reader
from torchrepro_lint.syntax.nodes import Arg, Call, Collection, Constant, Expression, Operation, Ref


def cases(version: str, name: str, call: str, **known: str | float | bool) -> list[tuple[str, str]]:
    """The rows that a call may be a case of: behaviour, and holds or unknown."""
    rows = load(version).operation(name)
    facts = {key.replace("__", "."): value for key, value in known.items()}
    found = []
    for spelling in dict.fromkeys(row.signature for row in rows):
        mine = [row for row in rows if row.signature == spelling]
        found += applicable_rows(mine, argument_reader(spelling, parse(call)), facts)
    return [(row.behaviour, truth.name) for row, truth in found]


def parse(call: str) -> Call:
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    args = [_arg(None, arg) for arg in tree.args] + [_arg(word.arg, word.value, "**") for word in tree.keywords]
    return Call(0, 0, Ref(0, 0, ("f",), (), 0), tuple(args), 0)


def _arg(keyword: str | None, value: ast.expr, double: str = "") -> Arg:
    star = "*" if isinstance(value, ast.Starred) else (double if keyword is None else "")
    return Arg(0, 0, keyword, star, _expression(value.value if isinstance(value, ast.Starred) else value))


def _expression(node: ast.expr) -> Expression:
    match node:
        case ast.Constant():
            return Constant(0, 0, node.value)
        case ast.Tuple() | ast.List():
            return Collection(0, 0, type(node).__name__.lower(), tuple(_expression(item) for item in node.elts))
        case ast.UnaryOp(op=ast.USub()):
            return Operation(0, 0, "-", (_expression(node.operand),))
        case ast.BinOp(op=ast.Mult()):
            return Operation(0, 0, "*", (_expression(node.left), _expression(node.right)))
        case ast.Attribute():
            return Ref(0, 0, ("torch",), (node.attr,), 0)
        case _:
            return Ref(0, 0, (":x",), (), 0)


F = "torch.nn.functional."
N = "torch.nn."
T = "torch.Tensor."


@pytest.mark.parametrize(
    ("version", "name", "call", "expected"),
    [
        ("2.13", N + "AdaptiveAvgPool2d", "f(1)", [("none", "HOLDS")]),
        ("2.13", N + "AdaptiveAvgPool2d", "f((1, 1))", [("none", "HOLDS")]),
        ("2.13", N + "AdaptiveAvgPool2d", "f(output_size=[1, 1])", [("none", "HOLDS")]),
        ("2.13", N + "AdaptiveAvgPool2d", "f((1,) * 2)", [("none", "HOLDS")]),
        ("2.13", N + "AdaptiveAvgPool2d", "f(7)", [("raises", "HOLDS")]),
        ("2.13", N + "AdaptiveAvgPool2d", "f((None, 7))", [("raises", "HOLDS")]),
        ("2.13", N + "AdaptiveAvgPool2d", "f(None)", [("none", "UNKNOWN"), ("raises", "UNKNOWN")]),
        ("2.13", N + "AdaptiveAvgPool2d", "f(size)", [("none", "UNKNOWN"), ("raises", "UNKNOWN")]),
        ("2.13", F + "adaptive_avg_pool2d", "f(x, 1)", [("none", "HOLDS")]),
        ("2.13", F + "adaptive_avg_pool2d", "f(x, 2)", [("raises", "HOLDS")]),
        ("2.13", F + "interpolate", "f(x, 2)", []),
        ("2.0", F + "interpolate", "f(x, 2, mode='bilinear')", [("raises", "HOLDS")]),
        ("2.1", F + "interpolate", "f(x, 2, mode='bilinear')", [("deterministic", "HOLDS")]),
        ("2.13", F + "interpolate", "f(x, 2, None, 'bicubic')", [("raises", "HOLDS")]),
        ("2.15", F + "interpolate", "f(x, 2, None, 'bicubic')", [("deterministic", "HOLDS")]),
        ("2.13", F + "interpolate", "f(x, mode='area', scale_factor=2)", [("raises", "UNKNOWN")]),
        ("2.13", N + "UpsamplingBilinear2d", "f(2)", [("deterministic", "HOLDS")]),
        ("2.0", N + "UpsamplingBilinear2d", "f(2)", [("raises", "HOLDS")]),
        ("2.13", F + "pad", "f(x, (1, 1))", []),
        ("2.13", F + "pad", "f(x, (1, 1), 'reflect')", [("raises", "HOLDS")]),
        ("2.13", F + "pad", "f(x, (1, 1, 1, 1), mode='reflect')", [("deterministic", "HOLDS")]),
        ("2.6", F + "pad", "f(x, (1,) * 4, mode='reflect')", [("raises", "HOLDS")]),
        ("2.13", F + "pad", "f(x, p, mode='reflect')", []),
        ("2.13", N + "EmbeddingBag", "f(9, 3)", []),
        ("2.13", N + "EmbeddingBag", "f(9, 3, mode='max')", [("raises", "HOLDS")]),
        ("1.8", N + "EmbeddingBag", "f(9, 3)", [("raises", "HOLDS")]),
        ("2.13", F + "cross_entropy", "f(x, y)", []),
        ("2.13", T + "put_", "f(i, s)", [("raises", "HOLDS")]),
        ("2.13", T + "put_", "f(i, s, True)", [("raises", "HOLDS"), ("deterministic", "HOLDS")]),
        ("2.13", "torch.bincount", "f(x)", []),
        ("2.13", "torch.bincount", "f(x, weights=w)", [("raises", "UNKNOWN")]),
        ("2.0", "torch.bincount", "f(x)", [("raises", "HOLDS")]),
        ("2.13", T + "cumsum", "f(0)", [("deterministic", "UNKNOWN")]),
        ("2.13", T + "cumsum", "f(0, dtype=torch.int64)", []),
        ("2.5", T + "cumsum", "f(0, dtype=torch.float32)", [("raises", "HOLDS")]),
        ("2.13", "torch.median", "f(x)", []),
        ("2.13", "torch.median", "f(x, 0)", [("raises", "HOLDS")]),
        ("2.13", T + "median", "f(*args)", [("raises", "UNKNOWN")]),
        ("2.13", T + "median", "f(**args)", [("raises", "UNKNOWN")]),
        ("2.13", T + "scatter", "f(0, i, 1.0)", []),
        ("2.13", T + "scatter", "f(0, i, s)", [("deterministic", "UNKNOWN")]),
        ("2.13", "torch.mm", "f(a, b)", []),
        ("2.13", "torch.bmm", "f(a, b)", []),
        ("2.13", N + "Conv1d", "f(3, 4, 3, padding=1, padding_mode='reflect')", [("raises", "HOLDS")]),
        ("2.13", N + "Conv1d", "f(3, 4, 3, padding_mode='reflect')", [("deterministic", "HOLDS")]),
        ("2.13", N + "MaxPool3d", "f(2)", [("raises", "HOLDS")]),
        ("2.13", N + "MaxPool3d", "f(2, return_indices=True)", [("deterministic", "HOLDS")]),
        ("2.13", "torch.repeat_interleave", "f(x, 3)", [("none", "HOLDS")]),
        ("2.13", "torch.repeat_interleave", "f(x, n, 0)", [("none", "UNKNOWN"), ("deterministic", "HOLDS")]),
        ("2.13", T + "sort", "f(stable=True)", []),
    ],
)
def test_a_call_is_a_case_of(version: str, name: str, call: str, expected: list[tuple[str, str]]) -> None:
    assert sorted(_on_cuda_or_cpu(version, name, call)) == sorted(expected)


def _on_cuda_or_cpu(version: str, name: str, call: str) -> set[tuple[str, str]]:
    return {case for device in ("cuda", "cpu") for case in cases(version, name, call, device=device)}


def test_inference_fills_what_arguments_do_not_say() -> None:
    name = F + "cross_entropy"
    assert cases("2.13", name, "f(x, y)", input__ndim=4) == [("raises", "UNKNOWN")]
    assert cases("2.13", name, "f(x, y)", input__ndim=2) == []
    assert cases("2.13", name, "f(x, y, reduction='none')", input__ndim=4) == []
    assert cases("2.13", name, "f(x, y, reduction=how)", input__ndim=4) == [("raises", "UNKNOWN")]
    assert cases("2.5", T + "cumsum", "f(0)", input__dtype="integer") == []
    assert cases("2.13", F + "interpolate", "f(x, 2, mode=m)", mode="bicubic") == [("raises", "HOLDS")]


def test_an_unknown_mode_stays_unknown() -> None:
    found = cases("2.13", F + "interpolate", "f(x, 2, mode=m)")
    assert ("raises", "UNKNOWN") in found
    assert all(truth == "UNKNOWN" for _, truth in found)


def test_a_device_chooses_its_rows() -> None:
    assert cases("2.15", "torch.kthvalue", "f(x, 1)", device="cuda") == []
    assert cases("2.15", "torch.kthvalue", "f(x, 1)", device="mps") == [("raises", "HOLDS")]
    assert cases("2.13", N + "AvgPool3d", "f(2)", device="cpu") == []


def test_the_least_truth_wins() -> None:
    assert min(Truth.HOLDS, Truth.UNKNOWN, Truth.FAILS) is Truth.FAILS
