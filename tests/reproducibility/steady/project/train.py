"""A project with a seed helper, loaders in another module, and workers."""

import random

import torch
from lab.data import loaders
from lab.model import Head
from lab.seeding import seed_everything
from torch import nn

SEED = 3


def main():
    seed_everything(SEED)
    width = random.choice([8, 16])  # first python
    train, valid = loaders(SEED)  # first numpy
    model = Head(width)  # first torch
    for inputs, targets in train:
        loss = nn.functional.mse_loss(model(inputs), targets)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.1 * weight.grad
    model.eval()
    print("mse", [nn.functional.mse_loss(model(inputs), targets).item() for inputs, targets in valid])
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
