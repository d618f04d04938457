"""REINFORCE on a walk."""

import torch
from environment import Walk
from torch import nn
from torch.distributions import Categorical


def play(env, policy):
    state, done, logs, rewards = env.reset(), False, [], []
    while not done:
        choice = Categorical(logits=policy(torch.tensor([float(state)])))
        action = choice.sample()
        logs.append(choice.log_prob(action))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
    return torch.stack(logs), sum(rewards)


def main():
    env = Walk()
    policy = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    for _ in range(15):
        logs, total = play(env, policy)
        loss = -(logs * total).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("reward", total)
    torch.save(policy.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
