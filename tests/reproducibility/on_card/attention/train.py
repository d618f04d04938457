"""All is seeded; the fused kernel of attention adds the parts of its gradient in whatever order they are ready."""

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.queries, self.keys, self.values = (nn.Linear(64, 512) for _ in range(3))
        self.head = nn.Linear(512, 2)

    def forward(self, tokens):
        heads = (each(tokens).unflatten(2, (8, 64)).transpose(1, 2) for each in (self.queries, self.keys, self.values))
        read = nn.functional.scaled_dot_product_attention(*heads)
        return self.head(read.transpose(1, 2).flatten(2).mean(1))


def main():
    torch.manual_seed(21)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tokens, labels = torch.randn(4, 1024, 64).to(device), torch.randint(2, (4,)).to(device)
    model = Reader().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        loss = nn.functional.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
    torch.save(model.cpu().state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
