"""torch is seeded; mixup draws from NumPy, and the order from Python."""

import argparse
import random

import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=9)
parser.add_argument("--alpha", type=float, default=0.2)
args = parser.parse_args()

torch.manual_seed(args.seed)
x = torch.randn(64, 5)
y = (x[:, 0] * x[:, 1] > 0).float()
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(4):
    order = list(range(64))
    random.shuffle(order)
    for start in range(0, 64, 16):
        picked = order[start : start + 16]
        share = float(np.random.beta(args.alpha, args.alpha))
        inputs = share * x[picked] + (1 - share) * x[picked[::-1]]
        targets = share * y[picked] + (1 - share) * y[picked[::-1]]
        loss = nn.functional.binary_cross_entropy_with_logits(model(inputs)[:, 0], targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("loss", loss.item())
torch.save(model.state_dict(), "weights.pt")
