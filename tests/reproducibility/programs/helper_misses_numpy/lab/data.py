import numpy as np
import torch
from torch.utils.data import TensorDataset


def spirals(count):
    turns = np.random.rand(count) * 3
    labels = np.random.randint(0, 2, count)
    points = np.stack([turns * np.cos(turns + labels * np.pi), turns * np.sin(turns + labels * np.pi)], axis=1)
    return TensorDataset(torch.from_numpy(points).float(), torch.from_numpy(labels))
