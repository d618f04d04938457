"""Diffusion; the network is made when its module is imported, before the seed."""

import torch

from denoiser import STEPS, kept, network

torch.manual_seed(1234)

data = torch.stack([torch.linspace(-1, 1, 64), torch.linspace(-1, 1, 64) ** 2], dim=1)
optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
for _ in range(20):
    step = torch.randint(0, STEPS, (64, 1))
    noise = torch.randn_like(data)
    noisy = kept[step].sqrt() * data + (1 - kept[step]).sqrt() * noise
    loss = ((network(torch.cat([noisy, step / STEPS], dim=1)) - noise) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
torch.save(network.state_dict(), "weights.pt")
