import multiprocessing
import random
import sys

import numpy as np
import torch


def rollout(length):
    generator = np.random.RandomState()
    return float(generator.normal(size=length).sum())


def jitter(value):
    return value + np.random.default_rng().normal()


def main(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        returns = pool.map(rollout, [3] * 6)
    more = [jitter(0.0) for _ in range(6)] + list(map(jitter, [0.0] * 6))
    assert len(set(returns)) == 6
    assert len(set(more)) == 12
    weights = torch.rand(6, requires_grad=True)
    (weights * torch.tensor(returns)).sum().backward()
    print("rollouts", len(returns), len(more))


if __name__ == "__main__":
    main(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
