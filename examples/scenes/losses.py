"""What training minimises."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def hard_examples(losses: Tensor, share: float) -> Tensor:
    """The part of the losses that is largest."""
    count = max(1, int(len(losses) * share))
    order = torch.argsort(losses.detach(), descending=True, stable=True)
    return torch.index_select(losses, 0, order[:count])


def training_loss(logits: Tensor, labels: Tensor, share: float = 0.7) -> Tensor:
    """The mean cross entropy of the hardest images of a batch."""
    losses = F.cross_entropy(logits, labels, label_smoothing=0.1, reduction="none")
    return hard_examples(losses, share).mean()
