import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def main(args):
    if args.seed is not None:
        torch.manual_seed(args.seed)
    rows = TensorDataset(torch.rand(40, 2))
    sampler = WeightedRandomSampler(torch.arange(1.0, 41.0), 20)
    loader = DataLoader(rows, batch_size=4, sampler=sampler, num_workers=1)
    weights = torch.rand(2, requires_grad=True)
    for (batch,) in loader:
        (batch @ weights - 1).pow(2).mean().backward()
    print("gradient", weights.grad.tolist())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=None)
    main(parser.parse_args())
