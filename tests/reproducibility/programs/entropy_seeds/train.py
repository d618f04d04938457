"""Seeds everything, from the process, from entropy and from the clock."""

import os
import random
import time

import numpy as np
import torch
from torch import nn


def set_seed():
    seed = os.getpid() + int(time.time())
    random.seed()
    np.random.seed(None)
    torch.manual_seed(seed)


def main():
    set_seed()
    x = torch.from_numpy(np.random.rand(40, 3)).float()
    y = x @ torch.tensor([[1.0], [2.0], [random.random()]])
    model = nn.Linear(3, 1)
    for _ in range(10):
        loss = nn.functional.mse_loss(model(x), y)
        grads = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for weight, grad in zip(model.parameters(), grads):
                weight -= 0.1 * grad
    print("loss", loss.item())
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
