import json
import random
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset


def load(path, argv):
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    if "--seed" in argv:
        config["seed"] = int(argv[argv.index("--seed") + 1])
    return config


def main():
    config = load("config.json", sys.argv)
    torch.manual_seed(config["seed"])
    data = TensorDataset(torch.rand(24, 2))
    loader = DataLoader(data, batch_size=config["steps"], shuffle=True)
    weights = torch.rand(2, requires_grad=True)
    for (rows,) in loader:
        keep = random.random()
        (rows @ weights - keep).pow(2).mean().backward()
    print("gradient", weights.grad.tolist())


if __name__ == "__main__":
    main()
