import argparse
import os
import random

import torch
import torch.distributed as dist
from torch import nn


def augment(rows):
    return rows * random.uniform(0.5, 1.5)


def worker(rank, args):
    dist.init_process_group("gloo", init_method=f"file://{os.path.abspath('store')}", rank=0, world_size=1)
    torch.manual_seed(args.seed + rank)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(augment(torch.rand(4, 3))).mean().backward()
        optimizer.step()
    dist.destroy_process_group()
    if os.path.exists("store"):
        os.remove("store")
    print("rank", model.weight.tolist())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    worker(int(os.environ.get("RANK", "0")), parser.parse_args())
