"""A character model. There is an option for the seed, and nothing reads it."""

import argparse

import torch
from torch import nn

TEXT = "the quick brown fox jumps over the lazy dog " * 8


class Characters(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding = nn.Embedding(size, 8)
        self.rnn = nn.GRU(8, 16, num_layers=2, dropout=0.3)
        self.head = nn.Linear(16, size)

    def forward(self, x):
        out, _ = self.rnn(self.embedding(x))
        return self.head(out)


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seed", type=int, default=None)
    return parser.parse_args()


def train(args):
    letters = sorted(TEXT)
    letters = sorted(set(letters))
    codes = torch.tensor([letters.index(letter) for letter in TEXT])
    model = Characters(len(letters))
    for _ in range(args.steps):
        start = torch.randint(0, len(codes) - 33, (4,))
        rows = torch.stack([codes[s : s + 33] for s in start], dim=1)
        loss = nn.functional.cross_entropy(model(rows[:-1]).flatten(0, 1), rows[1:].flatten())
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.5 * weight.grad
    print("loss", loss.item())
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    # Read what was asked for.
    args = get_args()
    train(args)
