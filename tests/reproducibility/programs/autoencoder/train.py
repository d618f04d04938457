"""A variational autoencoder that asks torch for a fresh seed."""

import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(16, 6), nn.Linear(3, 16)

    def forward(self, x):
        mean, spread = self.encode(x).chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return self.decode(code), mean, spread


def main():
    torch.seed()
    data = torch.eye(16).repeat(4, 1)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(15):
        out, mean, spread = model(data[torch.randperm(64)[:32]])
        loss = ((out - out.detach().mean()) ** 2).mean() + 0.01 * (mean**2 + spread.exp() - spread).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
