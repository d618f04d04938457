"""The options of a training run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple


class Config(NamedTuple):
    data: Path
    output: Path
    epochs: int
    batch_size: int
    workers: int
    learning_rate: float
    seed: int


def parse() -> Config:
    parser = argparse.ArgumentParser(description="Train the scene classifier.")
    parser.add_argument("data", type=Path, help="a folder with one folder of images per class")
    parser.add_argument("--output", type=Path, default=Path("runs/scenes"))
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    return Config(args.data, args.output, args.epochs, args.batch_size, args.workers, args.learning_rate, args.seed)
