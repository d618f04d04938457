import random


class Arms:
    """Arms that pay with probabilities of their own."""

    def __init__(self, count, seed):
        self.rng = random.Random(seed)
        self.shares = [self.rng.random() for _ in range(count)]

    def pull(self, arm):
        return float(self.rng.random() < self.shares[arm])
