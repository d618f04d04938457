"""A policy for a bandit that draws from generators of its own."""

import numpy as np
import torch
from arms import Arms
from torch.distributions import Categorical


def main(seed: int = 6) -> None:
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    arms = Arms(4, seed)
    scores = torch.tensor(rng.normal(0, 0.1, 4), requires_grad=True)
    total = 0.0
    for _ in range(30):
        choice = Categorical(logits=scores)
        action = choice.sample()  # first torch
        reward = arms.pull(action.item())
        (-choice.log_prob(action) * reward).backward()
        total += reward
    print("reward", total)
    torch.save(scores.grad, "scores.pt")


if __name__ == "__main__":
    main()
