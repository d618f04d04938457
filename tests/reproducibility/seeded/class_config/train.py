import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split


class CFG:
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 42
    lr = 0.1
    epochs = 2


def seed_everything(seed):
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def make_loaders():
    data = TensorDataset(torch.linspace(-1, 1, 64).reshape(32, 2))
    train, valid = random_split(data, [24, 8])
    return DataLoader(train, batch_size=4, shuffle=True), DataLoader(valid, batch_size=8)


def run():
    train_loader, valid_loader = make_loaders()
    weights = torch.zeros(2, requires_grad=True)
    for _ in range(CFG.epochs):
        for (rows,) in train_loader:
            noise = torch.from_numpy(np.random.normal(size=rows.shape)).float()
            (rows @ weights + noise.mean() - 1).pow(2).mean().backward()
            with torch.no_grad():
                weights -= CFG.lr * weights.grad
                weights.grad = None
    print("valid", [float((rows @ weights).mean()) for (rows,) in valid_loader])
    torch.save(weights.detach(), "weights.pt")


seed_everything(CFG.seed)
run()
