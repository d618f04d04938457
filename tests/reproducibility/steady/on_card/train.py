"""A convolution that may run on a card, with all that makes one deterministic."""

import os

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.AvgPool2d(4), nn.Flatten())
        self.table = nn.Parameter(torch.rand(5, 16))

    def forward(self, x, index):
        return self.layers(x) + self.table[index]


def main():
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.manual_seed(5)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Network().to(device)  # first torch, convolves
    images = torch.rand(6, 1, 8, 8).to(device)
    index = torch.arange(6).remainder(5).to(device)
    for _ in range(3):
        loss = model(images, index).square().mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.1 * weight.grad
    print("loss", loss.item())
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
