"""Explanations of torch's run-time errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.catalogue.catalogue import alternatives, error_names, signatures
from torchrepro_lint.catalogue.errors import ATTENTION, CUBLAS, Frame, explain, parse_errors
from torchrepro_lint.source.files import documented_versions

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

NAMES = sorted({one.name for one in error_names()} | {CUBLAS, ATTENTION})
RAISED = "RuntimeError: {} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'."
WARNED = "/site/torch/x.py:83: UserWarning: {} does not have a deterministic implementation, but you set (Triggered internally at a.cpp:8.)"
PRODUCT = (
    "RuntimeError: Deterministic behavior was enabled with either `torch.use_deterministic_algorithms(True)` or "
    "`at::Context::setDeterministicAlgorithms(true)`, but this operation is not deterministic because it uses CuBLAS and "
    "you have CUDA >= 10.2. To enable deterministic behavior in this case, you must set an environment variable before "
    "running your PyTorch application: CUBLAS_WORKSPACE_CONFIG=:4096:8 or CUBLAS_WORKSPACE_CONFIG=:16:8."
)
MODEL = """import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.reflected = nn.Conv1d(3, 4, 3, padding=1, padding_mode="reflect")
        self.plain = nn.Conv1d(3, 4, 3, padding=1)

    def forward(self, x, i, mode):
        x = F.pad(x, (1, 1), mode="reflect")
        x = F.interpolate(x, scale_factor=2, mode="bicubic")
        x = F.interpolate(x, scale_factor=2, mode=mode)
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        with torch.no_grad():
            F.interpolate(x, scale_factor=2, mode="bicubic")
        x = torch.cumprod(x, 0)
        return F.cross_entropy(
            x.index_select(0, i), i
        )
"""


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_an_answer_for_every_torch(name: str) -> None:
    for target in documented_versions():
        one = explain(name, target)
        assert one.read_as in one.releases
        assert one.rows, target
        assert one.calls, target
        assert not one.reached or all(row.behaviour in ("raises", "warns") for row in one.rows)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in (CUBLAS, ATTENTION)])
@pytest.mark.parametrize("message", ["{}", RAISED, WARNED, "RuntimeError: {}", RAISED.replace(" ", "\n", 6)])
def test_a_name_is_found_in_what_was_printed(name: str, message: str) -> None:
    assert parse_errors(message.format(name)).names == (name,)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (PRODUCT, CUBLAS),
        ("UserWarning: Memory Efficient attention defaults to a non-deterministic algorithm. To explicitly", ATTENTION),
        ("UserWarning: Flash Attention defaults to a non-deterministic algorithm.", ATTENTION),
        (RAISED.format("upsample_bilinear2d_backward"), "upsample_{}_backward"),
        (RAISED.format("max_pool2d_with_indices_backward"), "<max_pool backward, name built at run time>"),
    ],
)
def test_messages_without_a_fixed_name(message: str, name: str) -> None:
    assert parse_errors(message).names == (name,)


def test_a_log_of_many_warnings_is_read_once_for_each() -> None:
    log = "\n".join(map(WARNED.format, ("put_", "index_add_cuda_", "put_", "nothing_known")))
    assert parse_errors(f'  File "/a/b.py", line 7, in f\n{log}')[:2] == (
        ("put_", "index_add_cuda_"),
        ("nothing_known",),
    )
    assert parse_errors(f'  File "/a/b.py", line 7, in f\n{log}').frames == (Frame("/a/b.py", 7),)


def test_a_name_within_another_is_not_taken_for_it() -> None:
    assert parse_errors(RAISED.format("index_put_")) == ((), ("index_put_",), ())


@pytest.mark.parametrize(
    ("name", "target", "rows"),
    [
        ("reflection_pad1d_backward_out_cuda", "2.13", [9, 13]),
        ("upsample_bicubic2d_backward_out_cuda", "2.13", [14, 15]),
        ("nll_loss2d_forward_out_cuda_template", "2.13", [20]),
        ("cumsum_cuda_kernel", "2.5", [19]),
        ("index_add_cuda_", "1.8", [21]),
        ("index_add_cuda_", "2.13", [21]),
        ("grid_sampler_2d_backward_cuda", "2.13", []),
    ],
)
def test_the_places_of_an_error(project: Maker, lint: Lint, name: str, target: str, rows: list[int]) -> None:
    project({"net.py": MODEL, "other.py": "x = 1\n"})
    ran = lint("explain", name, "net.py", "--torch-version", target, "--output-format", "json")
    assert ran.status == 0, ran.err
    (found,) = json.loads(ran.out)
    assert [place["location"]["row"] for place in found["places"]] == rows
    assert [place["sure"] for place in found["places"] if place["location"]["row"] == 15] == [False] * (15 in rows)


def test_a_traceback_points_at_its_place(project: Maker, lint: Lint) -> None:
    project({"app/net.py": MODEL})
    error = RAISED.format("nll_loss2d_forward_out_cuda_template")
    trace = (
        f'Traceback (most recent call last):\n  File "/there/app/net.py", line 20, in forward\n    return\n{error}\n'
    )
    for arguments in (("explain",), ("explain", "-"), ("explain", "-", "app")):
        ran = lint(*arguments, stdin=trace.encode())
        assert ran.status == 0
        assert ":20:16: F.cross_entropy( x.index_select(0, i), i )  (in the traceback)\n" in ran.out


def test_the_text_says_what_to_write(project: Maker, lint: Lint) -> None:
    project({"net.py": MODEL, "requirements.txt": "torch==2.4.1\n"})
    out = lint("explain", RAISED.format("cumsum_cuda_kernel")).out
    assert out.splitlines()[0] == "cumsum_cuda_kernel: no deterministic CUDA forward of torch.cumsum"
    assert "torch 2.4, the target (requirements.txt)" in out
    assert "torch 2.6 or newer does not raise for torch.cumsum" in out
    assert "./net.py:19:13: torch.cumprod(x, 0)" in out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("explain", "index_ad_cuda_"),
            "no error of torch about determinism is named 'index_ad_cuda_'; did you mean index_add_cuda_",
        ),
        (("explain", RAISED.format("foo_cuda")), "no error of torch about determinism is named 'foo_cuda'"),
        (("explain", " "), "found no error of torch about determinism in the text"),
        (("explain", "put_", "--torch-version", "two"), '--torch-version: expected a string like "2.1"'),
        (("explain", "put_", "nowhere"), "nowhere: no such file or directory"),
    ],
)
def test_mistakes_are_one_line(project: Maker, lint: Lint, arguments: tuple[str, ...], line: str) -> None:
    project({"a.py": ""})
    ran = lint(*arguments)
    assert ran.status == 2
    assert ran.err.startswith(f"torchrepro-lint: {line}")
    assert ran.err.count("\n") == 1


def test_alternatives_are_of_operations_that_need_one() -> None:
    for one in alternatives():
        assert set(one.operations) <= set(signatures()), one
        assert one.since in documented_versions(), one
