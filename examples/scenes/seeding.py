"""The one place that seeds a run."""

from __future__ import annotations

import random

import torch


def seed_everything(seed: int) -> None:
    """Seed the generators of a run, so that it can be repeated."""
    random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
