import random

import click
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@click.command()
@click.option("--seed", type=int, default=1)
@click.option("--epochs", type=int, default=2)
def train(seed, epochs):
    np.random.seed(seed)
    rows = torch.from_numpy(np.random.rand(16, 2)).float()
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        for (batch,) in DataLoader(TensorDataset(rows), batch_size=4, shuffle=True):
            optimizer.zero_grad()
            (model(batch) * random.choice([1.0, 2.0])).mean().backward()
            optimizer.step()
    click.echo(str(model[0].weight.tolist()))


if __name__ == "__main__":
    train()
