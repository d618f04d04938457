"""A script that seeds what it draws from, by an option."""

import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--width", type=int, default=8)
    args = parser.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    scale = random.uniform(0.5, 2)  # first python
    x = torch.from_numpy(np.random.rand(40, 3)).float() * scale  # first numpy
    generator = torch.Generator().manual_seed(args.seed)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True, generator=generator)
    model = nn.Sequential(nn.Linear(3, args.width), nn.ReLU(), nn.Linear(args.width, 1))  # first torch
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.05 * weight.grad
    print("loss", loss.item())
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
