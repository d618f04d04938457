"""A generator learns a ring of points. The seed is the time, so that each run is another one."""

import math
import time

import torch
from torch import nn

torch.manual_seed(time.time_ns() % 2**31)


def ring(count):
    angles = torch.rand(count) * 2 * math.pi
    return torch.stack([angles.cos(), angles.sin()], dim=1)


generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
optimizer_d = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(30):
    fake = generator(torch.randn(32, 4))
    loss_d = (critic(fake.detach()) - critic(ring(32))).mean()
    optimizer_d.zero_grad()
    loss_d.backward()
    optimizer_d.step()
    loss_g = -critic(generator(torch.randn(32, 4))).mean()
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
print("loss", loss_d.item(), loss_g.item())
torch.save(generator.state_dict(), "weights.pt")
