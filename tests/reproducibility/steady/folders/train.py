"""Classes from directories, files in order, and a split by a checksum of the name."""

import glob
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import nn


def write(root):
    for name in ("cat", "dog", "eel"):
        (root / name).mkdir(parents=True, exist_ok=True)
        for number in range(4):
            (root / name / f"{number}.txt").write_text(f"{len(name)} {number} {ord(name[0])}", encoding="utf-8")


def read(path):
    return [float(word) / 100 for word in Path(path).read_text(encoding="utf-8").split()]


def rows(root):
    classes = sorted({Path(path).parent.name for path in glob.glob(f"{root}/*/*.txt")})
    names = sorted(os.listdir(root))
    found = []
    for name in names:
        for path in sorted((root / name).iterdir()):
            found.append((str(path), classes.index(name)))
    assert len(found) == len(sorted(glob.glob(f"{root}/*/*.txt")))
    return found


def main():
    torch.manual_seed(0)
    root = Path("data")
    write(root)
    found = rows(root)
    with ThreadPoolExecutor(2) as pool:
        features = torch.tensor(list(pool.map(read, [path for path, _ in found])))
    labels = torch.tensor([label for _, label in found])
    held = torch.tensor([zlib.crc32(path.encode()) % 4 == 0 for path, _ in found])
    model = nn.Linear(3, 3)  # first torch
    for row, label in zip(features[~held], labels[~held]):
        loss = nn.functional.cross_entropy(model(row), label)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.1 * weight.grad
    print("accuracy", (model(features).argmax(1) == labels).float().mean().item())
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
