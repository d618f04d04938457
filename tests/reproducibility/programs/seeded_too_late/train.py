"""The split and the model come before the seed."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def main():
    x = torch.linspace(-1, 1, 80).unsqueeze(1)
    train, valid = random_split(TensorDataset(x, x**2), [64, 16])
    model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))

    # Now everything is repeatable.
    torch.manual_seed(42)
    torch.backends.cudnn.deterministic = True

    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        for inputs, targets in DataLoader(train, batch_size=16, shuffle=True):
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    total = sum(nn.functional.mse_loss(model(a), b).item() for a, b in DataLoader(valid))
    print("mse", total)
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
