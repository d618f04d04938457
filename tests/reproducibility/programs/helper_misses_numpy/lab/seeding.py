import os
import random

import torch


def seed_everything(seed: int, workers: bool = False) -> int:
    """Make a run repeatable."""
    os.environ["LAB_SEED"] = str(seed)
    random.seed(seed)
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
    return seed
