import argparse
import random
import time

import numpy as np
import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    np.random.seed(int(time.time() * 1000) % 2**32)
    random.seed()
    rows = torch.from_numpy(np.random.rand(8, 2)).float()
    weights = torch.rand(2, requires_grad=True)
    (rows @ weights * random.random()).sum().backward()
    print("gradient", weights.grad.tolist())


if __name__ == "__main__":
    main()
