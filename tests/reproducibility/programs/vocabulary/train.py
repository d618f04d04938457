"""Word vectors; each word's row is its place in a set."""

import torch
from text import SENTENCES, vocabulary
from torch import nn

torch.manual_seed(31)
numbers = vocabulary()
vectors, head = nn.Embedding(len(numbers), 4), nn.Linear(4, len(numbers))
weights = [*vectors.parameters(), *head.parameters()]
for _ in range(10):
    for sentence in SENTENCES:
        codes = torch.tensor([numbers[word] for word in sentence.split()])
        loss = nn.functional.cross_entropy(head(vectors(codes[:-1])), codes[1:])
        for weight, slope in zip(weights, torch.autograd.grad(loss, weights)):
            weight.data.sub_(0.5 * slope)
print("loss", loss.item())
torch.save([vectors.state_dict(), numbers], "weights.pt")
