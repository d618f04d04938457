import torch


def set_seed(seed: int) -> None:
    """Seed what the models draw from."""
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
