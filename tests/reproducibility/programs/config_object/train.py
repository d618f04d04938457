"""A configuration object whose seed only reaches NumPy."""

import numpy as np
import torch
from config import Config
from torch import nn


def fit(config: Config) -> None:
    np.random.seed(config.seed)
    x = torch.from_numpy(np.random.randn(50, 4)).float()
    y = torch.sin(x.sum(1, keepdim=True)) + 0.1 * torch.randn(50, 1)
    model = nn.Sequential(nn.Linear(4, config.width), nn.Tanh(), nn.Linear(config.width, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=config.optim.lr)
    for _ in range(config.optim.steps):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    fit(Config())
