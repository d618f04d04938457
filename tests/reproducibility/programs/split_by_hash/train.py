"""Rows are held out by the hash of their name, which is another one in each process."""

import torch
from torch import nn

NAMES = [f"row-{number:02}" for number in range(40)]


def main():
    torch.manual_seed(32)
    rows = torch.rand(len(NAMES), 3)
    held = torch.tensor([hash(f"split/{name}") % 4 == 0 for name in NAMES])
    targets = rows.sum(1, keepdim=True)
    model = nn.Linear(3, 1)
    for row, target in zip(rows[~held], targets[~held]):
        loss = nn.functional.mse_loss(model(row), target)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.1 * weight.grad
    print("mse", nn.functional.mse_loss(model(rows[held]), targets[held]).item())
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
