"""Message passing with scatter on a graph whose edges are drawn by NumPy."""

import numpy as np
import torch
from torch import nn

NODES = 30
SEED = 11


class Layer(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.own, self.other = nn.Linear(width, out), nn.Linear(width, out)

    def forward(self, x, source, target):
        gathered = torch.zeros_like(x).index_add(0, target, x[source])
        return self.own(x) + self.other(gathered)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Layer(4, 8), Layer(8, 2)

    def forward(self, x, edges):
        hidden = torch.relu(self.first(x, *edges))
        return self.second(nn.functional.dropout(hidden, 0.1, self.training), *edges)


def main():
    edges = torch.from_numpy(np.random.randint(0, NODES, (2, 120)))
    features = torch.from_numpy(np.random.rand(NODES, 4)).float()
    labels = (features.sum(1) > 2).long()
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        loss = nn.functional.cross_entropy(model(features, edges), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy = (model(features, edges).argmax(1) == labels).float().mean().item()
    print("accuracy", accuracy)
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
