"""Random search over learning rates."""

import math
import random

import torch
from torch import nn


def trial(lr, width):
    model = nn.Sequential(nn.Linear(1, width), nn.ReLU(), nn.Linear(width, 1))
    x = torch.linspace(-2, 2, 40)[:, None]
    for _ in range(10):
        loss = nn.functional.mse_loss(model(x), x.abs())
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= lr * weight.grad
    return loss.item(), model.state_dict()


def main():
    best, kept = math.inf, None
    for number in range(4):
        lr, width = 10 ** random.uniform(-3, -1), random.choice([4, 8, 16])
        loss, state = trial(lr, width)
        print(f"trial {number}: lr {lr} width {width} loss {loss}")
        if loss < best:
            best, kept = loss, state
    torch.save(kept, "weights.pt")


if __name__ == "__main__":
    main()
