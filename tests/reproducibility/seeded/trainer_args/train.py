import argparse

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, args):
        self.args = args
        self.weights = torch.rand(2, requires_grad=True)

    def loader(self):
        rows = np.random.rand(32, 2).astype("float32")
        return DataLoader(TensorDataset(torch.from_numpy(rows)), batch_size=4, shuffle=True)

    def fit(self):
        optimizer = torch.optim.SGD([self.weights], lr=self.args.lr)
        for (rows,) in self.loader():
            optimizer.zero_grad()
            (rows @ self.weights - 1).pow(2).mean().backward()
            optimizer.step()
        print(self.weights.tolist())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    Trainer(args).fit()


if __name__ == "__main__":
    main()
