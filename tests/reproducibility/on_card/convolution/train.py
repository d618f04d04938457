"""All is seeded; a frame around images is learned, and cuDNN sums up its gradient in whatever order its blocks end."""

import torch
from torch import nn


class Framed(nn.Module):
    def __init__(self):
        super().__init__()
        self.frame = nn.Parameter(torch.zeros(3, 224, 224))
        self.filters = nn.Conv2d(3, 64, 7, stride=2, padding=3)
        self.head = nn.Linear(64, 4)

    def forward(self, images):
        return self.head(self.filters(images + self.frame).relu().mean((2, 3)))


def main():
    torch.manual_seed(11)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images, labels = torch.randn(32, 3, 224, 224).to(device), torch.randint(4, (32,)).to(device)
    model = Framed().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
    torch.save(model.cpu().state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
