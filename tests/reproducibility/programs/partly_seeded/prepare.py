"""Writes the rows that another program learns from: the order is seeded, the noise is not."""

import random

import numpy as np


def noisy_copies(rows, count):
    np.random.seed(0)
    picked = rows[np.random.permutation(len(rows))[:count]]
    return [row * random.gauss(1, 0.1) for row in picked]


def prepare():
    with open("rows.txt", "w", encoding="utf-8") as file:
        for row in noisy_copies(np.arange(20.0), 10):
            file.write(f"{row!r}\n")


if __name__ == "__main__":
    prepare()
