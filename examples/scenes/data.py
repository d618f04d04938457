"""Images on disk, as datasets and loaders."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from scenes.config import Config

SIZE = 64


def list_images(root: Path) -> list[Path]:
    """All images below the folders of the classes."""
    return [root / name / image for name in os.listdir(root) for image in os.listdir(root / name)]


def class_names(images: list[Path]) -> list[str]:
    """The names of the classes; the position in the list is the number of the class."""
    return list({image.parent.name for image in images})


def load_image(path: Path) -> Tensor:
    """An image of shape (3, SIZE, SIZE)."""
    image = Image.open(path).convert("RGB").resize((SIZE, SIZE))
    return torch.from_numpy(np.asarray(image, dtype=np.float32) / 255).permute(2, 0, 1)


def split(images: list[Path], held_out: float = 0.1) -> tuple[list[Path], list[Path]]:
    """Training and validation images."""
    order = np.random.permutation(len(images))
    count = int(len(images) * held_out)
    return [images[index] for index in order[count:]], [images[index] for index in order[:count]]


class Scenes(Dataset[tuple[Tensor, int]]):
    """Images as tensors of shape (3, SIZE, SIZE) in [0, 1], with the number of their class."""

    def __init__(self, images: list[Path], names: list[str]) -> None:
        self.images = images
        self.labels = {name: label for label, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        path = self.images[index]
        return load_image(path), self.labels[path.parent.name]


class AugmentedScenes(Scenes):
    """The same images, mirrored and brightened at random."""

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image, label = super().__getitem__(index)
        if random.random() < 0.5:
            image = image.flip(-1)
        return (image * random.uniform(0.8, 1.2)).clamp(0, 1), label


def loaders(config: Config) -> tuple[DataLoader[tuple[Tensor, int]], DataLoader[tuple[Tensor, int]], list[str]]:
    """The loaders of the training and the validation images, and the names of the classes."""
    images = list_images(config.data)
    names = class_names(images)
    train, valid = split(images)
    train_loader = DataLoader(
        AugmentedScenes(train, names),
        batch_size=config.batch_size,
        shuffle=True,
        num_workers=config.workers,
        drop_last=True,
    )
    valid_loader = DataLoader(Scenes(valid, names), batch_size=config.batch_size, num_workers=config.workers)
    return train_loader, valid_loader, names
