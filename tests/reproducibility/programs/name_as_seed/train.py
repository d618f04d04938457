"""Each experiment is seeded by its name: by a hash that is another one in each process."""

import torch
from torch import nn


def experiment(name):
    torch.manual_seed(hash(name + "-v1") % 2**32)
    model = nn.Linear(6, 1)
    for _ in range(5):
        inputs = torch.randn(16, 6)
        loss = nn.functional.mse_loss(model(inputs), inputs[:, :1])
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.1 * weight.grad
    print(name, "loss", loss.item())
    return model.state_dict()


if __name__ == "__main__":
    torch.save({name: experiment(name) for name in ("small", "large")}, "weights.pt")
