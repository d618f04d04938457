"""Calls that exercise each operation of the catalogue: inputs that show its races, the call, and its case."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from torchrepro_lint.catalogue.rows import Scalar

F = torch.nn.functional
Inputs = tuple[Any, ...]


class Case(NamedTuple):
    """``inputs`` makes the tensors for a scale (1 is small) on the CPU; ``call`` gets them on the device.

    The first ``leaves`` of them are differentiated where the row speaks of backward. ``known`` chooses the row.
    """

    operation: str
    inputs: Callable[[int], Inputs]
    call: Callable[..., Any]
    known: Mapping[str, Scalar] = {}
    leaves: int = 1
    cpu: bool = True

    @property
    def title(self) -> str:
        return " ".join(
            [self.operation.removeprefix("torch."), *(f"{key}={value}" for key, value in self.known.items())]
        )


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def index(high: int, *shape: int) -> torch.Tensor:
    """Indices among few, so that many of them are equal."""
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(1))


def image(dimensions: int, each: int = 4, more: int = 3) -> Callable[[int], Inputs]:
    """Two samples of four channels in so many dimensions of size ``each * scale + more``."""
    return lambda n: (randn(2, 4, *[each * n + more] * dimensions),)


def target(n: int) -> Inputs:
    return randn(8 * n, 16).softmax(1).log(), index(16, 8 * n)


def targets(n: int) -> Inputs:
    return randn(2, 5, 8 * n, 8 * n).softmax(1).log(), index(5, 2, 8 * n, 8 * n)


def into(n: int) -> Inputs:
    """A few elements, and many values with indices of where they go."""
    return randn(64), index(64, 4096 * n), randn(4096 * n)


def rows(n: int) -> Inputs:
    return randn(16, 33), index(16, 128 * n), randn(128 * n, 33)


def cells(n: int) -> Inputs:
    return randn(16, 33), index(16, 128 * n, 33), randn(128 * n, 33)


def flat(n: int) -> Inputs:
    return (randn(40_000 * n),)


def table(n: int) -> Inputs:
    return (index(9, 33, 64 * n).float(),)


def numbers(n: int) -> Inputs:
    return (index(9, 4096 * n).float(),)


def convolution(kind: Callable[..., nn.Module], mode: str = "zeros") -> Callable[..., Any]:
    def call(x: torch.Tensor, weight: torch.Tensor) -> Any:
        module = kind(4, 4, 3, padding=1, padding_mode=mode, bias=False)
        del module.weight
        module.weight = weight
        return module(x)

    return call


def convolutions() -> list[Case]:
    found = []
    for number in (1, 2, 3):
        for name in (f"Conv{number}d", f"ConvTranspose{number}d"):
            kind, modes = getattr(nn, name), ("zeros", "reflect", "replicate")
            for mode in modes if "Transpose" not in name else modes[:1]:
                known = {"padding": 1, "padding_mode": mode}
                found.append(Case(f"torch.nn.{name}", weighted(number), convolution(kind, mode), known, 2))
    return found


def weighted(dimensions: int) -> Callable[[int], Inputs]:
    return lambda n: (*image(dimensions, 1 if dimensions == 3 else 4)(n), randn(4, 4, *[3] * dimensions))


def paddings() -> list[Case]:
    names = [f"{kind}Pad{number}d" for kind in ("Reflection", "Replication") for number in (1, 2, 3)]
    return [Case(f"torch.nn.{name}", image(int(name[-2]), 1), getattr(nn, name)(3)) for name in names]


def resized(mode: str, dimensions: int, **more: Any) -> Case:
    return Case(
        "torch.nn.functional.interpolate",
        image(dimensions, 1 if dimensions == 3 else 4, 1),
        lambda x: F.interpolate(x, scale_factor=3, mode=mode, **more),
        {"mode": mode, "antialias": more.get("antialias", False)},
    )


def interpolations() -> list[Case]:
    area = {"mode": "area", "size": 7}
    return [
        resized("linear", 1),
        resized("bilinear", 2),
        resized("bicubic", 2),
        resized("trilinear", 3),
        resized("bilinear", 2, antialias=True),
        resized("bicubic", 2, antialias=True),
        Case("torch.nn.functional.interpolate", image(2), lambda x: F.interpolate(x, 7, mode="area"), area),
    ]


def pooled(dimensions: int) -> Callable[[int], Inputs]:
    def make(n: int) -> Inputs:
        pool = getattr(F, f"max_pool{dimensions}d")
        return tuple(pool(randn(2, 4, *[2 * n + 3] * dimensions), 3, 1, return_indices=True))

    return make


def poolings() -> list[Case]:
    found = [
        Case("torch.nn.AvgPool3d", image(3, 1), lambda x: F.avg_pool3d(x, 3, 1)),
        Case("torch.nn.LPPool3d", lambda n: (image(3, 1)(n)[0].abs(),), lambda x: F.lp_pool3d(x, 2, 3, 1)),
        Case("torch.nn.LocalResponseNorm", image(2), nn.LocalResponseNorm(3), {"input.ndim": 4}),
        Case("torch.nn.MaxPool3d", image(3, 1), lambda x: F.max_pool3d(x, 3, 1), {"return_indices": False}),
        Case("torch.nn.MaxPool3d", image(3, 1), nn.MaxPool3d(3, 1, return_indices=True), {"return_indices": True}),
        Case(
            "torch.nn.FractionalMaxPool2d",
            lambda n: (*image(2, 4, 7)(n), torch.full((2, 4, 2), 0.5)),
            lambda x, samples: F.fractional_max_pool2d(x, 3, output_ratio=(0.5, 0.5), _random_samples=samples),
        ),
        Case(
            "torch.nn.FractionalMaxPool3d",
            lambda n: (*image(3, 1, 7)(n), torch.full((2, 4, 3), 0.5)),
            lambda x, samples: F.fractional_max_pool3d(x, 3, output_ratio=(0.5, 0.5, 0.5), _random_samples=samples),
        ),
    ]
    for number in (1, 2, 3):
        sized = image(number, 1 if number == 3 else 4, 6)
        for kind in ("Avg", "Max"):
            for size in (1, 7) if kind == "Avg" and number > 1 else (7,):
                name = f"Adaptive{kind}Pool{number}d"
                known = {"output_size": size, "input.divisible": size == 1}
                found.append(Case(f"torch.nn.{name}", sized, getattr(nn, name)(size), known))
        unpool = getattr(nn, f"MaxUnpool{number}d")(3, 1)
        found.append(Case(f"torch.nn.MaxUnpool{number}d", pooled(number), unpool))
    return found


def vision() -> list[Case]:
    """Only where torchvision is there; the boxes overlap."""

    def boxes(channels: int) -> Callable[[int], Inputs]:
        corner = torch.tensor([0.0, 1.0, 1.0, 6.0, 6.0])
        return lambda n: (randn(1, channels, 8, 8), corner.repeat(8 * n, 1))

    def offsets(n: int) -> Inputs:
        return randn(1, 4, 4 * n, 4 * n), 3 * randn(1, 18, 4 * n, 4 * n), randn(4, 4, 3, 3)

    def of(name: str) -> Callable[..., Any]:
        return lambda x, b: getattr(importlib.import_module("torchvision.ops"), name)(x, b, 7)

    def deformed(x: Any, offset: Any, weight: Any) -> Any:
        return importlib.import_module("torchvision.ops").deform_conv2d(x, offset, weight, padding=1)

    return [
        Case("torchvision.ops.roi_pool", boxes(4), of("roi_pool")),
        Case("torchvision.ops.roi_align", boxes(4), of("roi_align")),
        Case("torchvision.ops.ps_roi_pool", boxes(98), of("ps_roi_pool")),
        Case("torchvision.ops.ps_roi_align", boxes(98), of("ps_roi_align")),
        Case("torchvision.ops.deform_conv2d", offsets, deformed, {}, 3),
    ]
