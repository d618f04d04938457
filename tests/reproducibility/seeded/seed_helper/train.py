import argparse

import numpy as np
import torch
from common.seeding import set_seed


def batches(count):
    order = np.random.permutation(count)
    for start in range(0, count, 4):
        yield torch.from_numpy(order[start : start + 4].astype("float32"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    set_seed(args.seed)
    weight = torch.rand(1, requires_grad=True)
    for rows in batches(24):
        loss = (rows * weight - 1).pow(2).mean()
        (grad,) = torch.autograd.grad(loss, weight)
        weight = (weight - 0.001 * grad).detach().requires_grad_()
    loss = weight.sum()
    loss.backward()
    print("weight", weight.tolist())


if __name__ == "__main__":
    main()
