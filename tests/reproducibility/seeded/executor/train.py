import argparse
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch


def simulate(start):
    generator = np.random.default_rng()
    return start + generator.normal()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(simulate, [0.0] * 8))
    assert len(set(rows)) == len(rows), "each item has a number of its own"
    weights = torch.rand(8, requires_grad=True)
    (weights * torch.tensor(rows)).sum().backward()
    print("items", len(rows))


if __name__ == "__main__":
    main()
