"""Images of two kinds of stripes, told apart by a small network; crops and noise are drawn in two workers."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Stripes(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        image = np.zeros((8, 8), dtype=np.float32)
        image[:: 2 + index % 2] = 1.0
        image = np.roll(image, random.randrange(8), axis=0)
        image += np.random.normal(0, 0.3, image.shape).astype(np.float32)
        return torch.from_numpy(image), index % 2


def main():
    loader = DataLoader(Stripes(), batch_size=16, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
