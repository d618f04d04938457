import argparse
import random
from dataclasses import dataclass, field

import torch
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class System:
    seed: int = 3
    device: str = "cpu"


@dataclass
class Config:
    system: System = field(default_factory=System)
    batch: int = 4


def make_loader(cfg: Config) -> DataLoader:
    rows = TensorDataset(torch.arange(32.0).reshape(16, 2) / 32)
    return DataLoader(rows, batch_size=cfg.batch, shuffle=True)


def train(cfg: Config) -> None:
    weights = torch.rand(2, device=cfg.system.device, requires_grad=True)
    for (rows,) in make_loader(cfg):
        scale = random.uniform(0.9, 1.1)
        loss = (rows * scale @ weights - 1).pow(2).mean()
        (grad,) = torch.autograd.grad(loss, weights)
        weights = (weights - 0.1 * grad).detach().requires_grad_()
    weights.sum().backward()
    print("weights", weights.tolist())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=3)
    cfg = Config(system=System(seed=parser.parse_args().seed))
    torch.manual_seed(cfg.system.seed)
    train(cfg)
