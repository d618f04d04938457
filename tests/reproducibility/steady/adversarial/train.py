"""A script without functions that start it."""

import torch
from torch import nn

torch.manual_seed(2024)

generator = nn.Linear(2, 2)  # first torch
critic = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))


def step(model, loss, sign):
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for weight in model.parameters():
            weight += sign * 0.05 * weight.grad


for _ in range(10):
    real = torch.randn(16, 2) + 3
    fake = generator(torch.randn(16, 2))
    gap = critic(real).mean() - critic(fake.detach()).mean()
    step(critic, gap, 1)
    step(generator, critic(generator(torch.randn(16, 2))).mean(), 1)
print("loss", gap.item())
torch.save(generator.state_dict(), "weights.pt")
