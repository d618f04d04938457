"""All is seeded; the rows that meet in a node are summed up in whatever order a card takes them."""

import torch
from torch import nn

NODES, EDGES = 64, 200_000


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(NODES, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, source, target):
        sums = torch.zeros(NODES, 16, device=source.device)
        return self.head(sums.index_add_(0, target, self.embedding(source)) / EDGES)


def main():
    torch.manual_seed(5)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    source, target = (torch.randint(NODES, (EDGES,)).to(device) for _ in range(2))
    labels = torch.randint(2, (NODES,)).to(device)
    model = Network().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(30):
        loss = nn.functional.cross_entropy(model(source, target), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
    torch.save(model.cpu().state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
