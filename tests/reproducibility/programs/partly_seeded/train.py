"""Prepares, then learns."""

import torch
from prepare import prepare


def main():
    prepare()
    with open("rows.txt", encoding="utf-8") as file:
        rows = torch.tensor([float(line) for line in file.read().replace("np.float64(", "").replace(")", "").split()])
    weight = torch.zeros(1, requires_grad=True)
    for row in rows:
        (weight * row - 1).square().sum().backward()
    print("loss", weight.grad.item())


if __name__ == "__main__":
    main()
