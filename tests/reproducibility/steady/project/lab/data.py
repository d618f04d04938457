import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, random_split


class Waves(Dataset):
    def __init__(self, count):
        self.phases = np.random.rand(count).astype(np.float32)

    def __len__(self):
        return len(self.phases)

    def __getitem__(self, index):
        steps = torch.arange(8) / 8 + random.uniform(0, 0.1)
        return torch.sin(steps * 6.28 + float(self.phases[index])), torch.tensor([float(self.phases[index])])


def loaders(seed):
    generator = torch.Generator().manual_seed(seed)
    train, valid = random_split(Waves(40), [32, 8], generator=generator)
    return (
        DataLoader(train, batch_size=8, shuffle=True, num_workers=2, generator=generator),
        DataLoader(
            valid,
            batch_size=8,
            num_workers=2,
            generator=generator,
        ),
    )
