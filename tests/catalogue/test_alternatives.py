"""The replacement that the catalogue suggests for an operation gives the same result."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

import installed

torch = installed.torch()

import torch.nn.functional as F  # noqa: E402, N812  as everybody writes it
from torch import Tensor  # noqa: E402

X3, X4, X5 = (torch.arange(float(2 * 3 * 4**n)).reshape(2, 3, *[4] * n).sin() for n in (1, 2, 3))
CLASSES = torch.tensor([0, 2, 1, 1, 0, 2, 2, 1]).repeat(4).reshape(2, 4, 4)
INDEX = torch.tensor([3, 0, 3, 1])


def unpooled(
    pool: Callable[..., tuple[Tensor, Tensor]], unpool: Callable[..., Tensor], x: Tensor
) -> tuple[Tensor, Tensor]:
    values, indices = pool(x, 2, return_indices=True)
    size = x[0, 0].numel()
    flat = values.new_zeros(2, 3, size).scatter(2, indices.flatten(2), values.flatten(2))
    return unpool(values, indices, 2), flat.reshape(x.shape)


def averaged() -> tuple[Tensor, Tensor]:
    values = X3[0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # index_reduce says that it is in beta
        mean = torch.zeros(4).index_reduce_(0, INDEX, values, "mean", include_self=False)
    total, count = (torch.zeros(4).index_add_(0, INDEX, each) for each in (values, torch.ones(4)))
    return mean, total / count.clamp(min=1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        unpooled(F.max_pool1d, F.max_unpool1d, X3),
        unpooled(F.max_pool2d, F.max_unpool2d, X4),
        unpooled(F.max_pool3d, F.max_unpool3d, X5),
        (F.max_pool3d(X5, 2), F.max_pool3d(X5, 2, return_indices=True)[0]),
        (
            F.interpolate(X3, size=7, mode="linear"),
            F.interpolate(X3.unsqueeze(-2), size=(1, 7), mode="bilinear").squeeze(-2),
        ),
        (F.interpolate(X4, size=2, mode="area"), X4.reshape(2, 3, 2, 2, 2, 2).mean((3, 5))),
        (F.avg_pool3d(X5, 2), X5.reshape(2, 3, 2, 2, 2, 2, 2, 2).mean((3, 5, 7))),
        (F.pad(X3, (2, 1), mode="reflect"), F.pad(X3.unsqueeze(-2), (2, 1, 0, 0), mode="reflect").squeeze(-2)),
        (F.cross_entropy(X4, CLASSES), F.cross_entropy(X4.movedim(1, -1).reshape(-1, X4.size(1)), CLASSES.reshape(-1))),
        (F.nll_loss(X4, CLASSES), F.nll_loss(X4.movedim(1, -1).reshape(-1, X4.size(1)), CLASSES.reshape(-1))),
        (
            F.cross_entropy(X4, CLASSES, reduction="sum", ignore_index=1),
            F.cross_entropy(
                X4.movedim(1, -1).reshape(-1, X4.size(1)), CLASSES.reshape(-1), reduction="sum", ignore_index=1
            ),
        ),
        (torch.take(X4, INDEX), X4.reshape(-1)[INDEX]),
        (X4.clone().put_(INDEX[:2], X3[0, 0, :2]).flatten(), X4.flatten().index_put((INDEX[:2],), X3[0, 0, :2])),
        (torch.kthvalue(X4, 2, 1).values, torch.sort(X4, 1).values.select(1, 1)),
        (torch.median(X4, 1).values, torch.sort(X4, 1).values.select(1, 1)),
        (
            torch.bincount(INDEX, X3[0, 0].double(), minlength=4),
            torch.zeros(4, dtype=torch.double).index_add_(0, INDEX, X3[0, 0].double()),
        ),
        averaged(),
    ],
)
def test_the_replacement_gives_the_same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(other, one)
