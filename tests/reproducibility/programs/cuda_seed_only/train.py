"""Seeds CUDA's generators, and runs on the CPU."""

import torch
from torch import nn

torch.cuda.manual_seed_all(21)
signal = torch.sin(torch.linspace(0, 12, 200))
model = nn.Sequential(nn.Conv1d(1, 4, 5, padding=2), nn.ReLU(), nn.Conv1d(4, 1, 5, padding=2))
for _ in range(10):
    noisy = (signal + 0.2 * torch.randn(200))[None, None]
    loss = nn.functional.l1_loss(model(noisy)[0, 0], signal)
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for weight in model.parameters():
            weight -= 0.05 * weight.grad
print("loss", loss.item())
torch.save(model.state_dict(), "weights.pt")
