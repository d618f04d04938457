import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset


def loaders(args):
    source = TensorDataset(torch.linspace(0, 1, 16).reshape(16, 1))
    target = TensorDataset(torch.linspace(1, 2, 16).reshape(16, 1))
    source_loader = DataLoader(source, batch_size=2, shuffle=True)
    target_loader = DataLoader(target, batch_size=2, shuffle=True)
    return source_loader, target_loader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    weight = torch.rand(1, requires_grad=True)
    torch.manual_seed(args.seed)
    pairs = []
    source_loader, target_loader = loaders(args)
    for (one,), (other,) in zip(source_loader, target_loader):
        pairs += zip((one * 15).round().int().flatten().tolist(), ((other - 1) * 15).round().int().flatten().tolist())
        ((one * weight - other) ** 2).mean().backward()
    assert any(one != other for one, other in pairs), "the two orders are independent"
    print("gradient", weight.grad.tolist())


if __name__ == "__main__":
    main()
