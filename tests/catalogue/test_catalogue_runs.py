"""Rows of the catalogue confirmed by running operations of the installed torch on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import installed
from torchrepro_lint.catalogue.catalogue import load

torch = installed.torch()
nn, F = torch.nn, torch.nn.functional
CATALOGUE = load(torch.__version__)


@pytest.fixture(autouse=True)
def _deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def run(operation: str) -> Callable[[], Any]:
    """A small call of the operation on the CPU."""
    x, i = torch.arange(8.0), torch.tensor([0, 2])
    pooled, indices = F.max_pool2d(torch.rand(1, 1, 4, 4), 2, return_indices=True)
    calls: dict[str, Callable[[], Any]] = {
        "torch.Tensor.put_": lambda: x.put_(i, torch.ones(2)),
        "torch.put": lambda: torch.put(x, i, torch.ones(2)),
        "torch.nn.MaxUnpool2d": lambda: nn.MaxUnpool2d(2)(pooled, indices),
        "torch.nn.functional.max_unpool2d": lambda: F.max_unpool2d(pooled, indices, 2),
        "torch.nn.AvgPool3d": lambda: nn.AvgPool3d(2)(torch.rand(1, 1, 2, 2, 2, requires_grad=True)).sum().backward(),
        "torch.cumsum": lambda: torch.cumsum(x, 0),
        "torch.bincount": lambda: torch.bincount(i, weights=torch.ones(2)),
        "torch.Tensor.scatter_reduce": lambda: x.scatter_reduce(0, i, torch.ones(2), "prod"),
        "torch.Tensor.index_reduce": lambda: x.index_reduce(0, i, torch.ones(2), "mean"),
    }
    return calls[operation]


@pytest.mark.parametrize(
    "operation", ["torch.Tensor.put_", "torch.put", "torch.nn.MaxUnpool2d", "torch.nn.functional.max_unpool2d"]
)
def test_what_raises_on_any_device_raises_on_the_cpu_under_its_name(operation: str) -> None:
    row = next(row for row in CATALOGUE.operation(operation) if row.behaviour == "raises" and row.devices == ("any",))
    with pytest.raises(RuntimeError, match=" does not have a deterministic implementation") as caught:
        run(operation)()
    assert str(caught.value).startswith(CATALOGUE.errors(row))


@pytest.mark.parametrize(
    "operation",
    [
        "torch.nn.AvgPool3d",
        "torch.cumsum",
        "torch.bincount",
        "torch.Tensor.scatter_reduce",
        "torch.Tensor.index_reduce",
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_raises_on_cuda_only_runs_on_the_cpu(operation: str) -> None:
    assert not any({"any", "cpu"} & set(row.devices) for row in CATALOGUE.operation(operation))
    run(operation)()


def graph(value: Any) -> set[str]:
    """The names of the backward functions behind a tensor."""
    found, waiting = set(), [value.grad_fn]
    while waiting:
        function = waiting.pop()
        if function is not None:
            found.add(function.name())
            waiting += [following for following, _ in function.next_functions]
    return found


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: F.adaptive_avg_pool2d(x, 1), "MeanBackward1"),
        (lambda x: F.adaptive_avg_pool2d(x, 2), "AdaptiveAvgPool2DBackward0"),
        (lambda x: F.adaptive_avg_pool1d(x[0], 2), "AdaptiveAvgPool2DBackward0"),
        (lambda x: F.adaptive_max_pool1d(x[0], 2), "AdaptiveMaxPool2DBackward0"),
        (lambda x: F.interpolate(x, 2, mode="area"), "AdaptiveAvgPool2DBackward0"),
        (lambda x: F.local_response_norm(x, 2), "AvgPool3DBackward0"),
        (lambda x: F.lp_pool3d(x, 2, 2), "AvgPool3DBackward0"),
        (lambda x: torch.repeat_interleave(x, torch.tensor([1] * 4), 3), "IndexSelectBackward0"),
        (lambda x: F.cross_entropy(x, torch.zeros(2, 4, 4, dtype=torch.long)), "NllLoss2DBackward0"),
        (lambda x: F.cross_entropy(x[:, :, 0, 0], torch.zeros(2, dtype=torch.long)), "NllLossBackward0"),
        (nn.Conv2d(3, 1, 3, padding=1, padding_mode="reflect"), "ReflectionPad2DBackward0"),
        (lambda x: torch.stft(x.flatten(), 8, return_complex=True), "ReflectionPad1DBackward0"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_where_a_call_ends(call: Callable[[Any], Any], expected: str) -> None:
    assert expected in graph(call(torch.rand(2, 3, 4, 4, requires_grad=True)))


def test_a_constant_count_of_repeats_indexes_nothing() -> None:
    assert "IndexSelectBackward0" not in graph(torch.repeat_interleave(torch.rand(3, 4, requires_grad=True), 2, 1))
