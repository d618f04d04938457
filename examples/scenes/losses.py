"""The loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TrainingLoss(nn.Module):
    """The mean cross entropy of a batch, with a learned temperature for each class, as some labels are noisy."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.temperatures = nn.Parameter(torch.ones(classes))

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        temperatures = torch.index_select(self.temperatures, 0, labels)
        return F.cross_entropy(logits / temperatures[:, None], labels, label_smoothing=0.1)
