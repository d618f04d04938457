import torch

from .utils import fix_seed


class Trainer:
    """Fit a model, with mixup."""

    def __init__(self, model, lr=0.1, seed=1):
        fix_seed(seed)
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)

    def step(self, inputs, targets):
        share = torch.distributions.Beta(0.4, 0.4).sample()
        order = torch.randperm(len(inputs))
        mixed = share * inputs + (1 - share) * inputs[order]
        out = self.model(mixed)
        loss = share * self.criterion(out, targets) + (1 - share) * self.criterion(out, targets[order])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def criterion(self, out, targets):
        return torch.nn.functional.cross_entropy(out, targets)

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            losses = [self.step(*batch) for batch in loader]
            print(f"epoch {epoch} loss {sum(losses)}")
