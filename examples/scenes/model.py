"""The network."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """A residual block that halves the image."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(channels_out),
            nn.ReLU(),
            nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels_out),
        )
        self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride=2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class SceneNet(nn.Module):
    """Map images of shape (batch, 3, height, width) to the logits of the classes."""

    def __init__(self, classes: int, width: int = 32, regions: int = 4) -> None:
        super().__init__()
        self.stem = nn.Sequential(Block(3, width), Block(width, 2 * width), Block(2 * width, 4 * width))
        self.pool = nn.AdaptiveAvgPool2d(regions)
        self.score = nn.Linear(4 * width, 1)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(4 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        regions = self.pool(self.stem(x)).flatten(2).transpose(1, 2)
        weights = self.score(regions).softmax(dim=1)
        return self.out(self.drop((weights * regions).sum(dim=1)))
