"""Train the classifier and keep the best weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from scenes.config import Config, parse
from scenes.data import loaders
from scenes.losses import TrainingLoss
from scenes.model import SceneNet
from scenes.seeding import seed_everything


def train_epoch(
    model: nn.Module,
    criterion: TrainingLoss,
    loader: DataLoader[tuple[Tensor, int]],
    optimizer: torch.optim.Optimizer,
    device: torch.device,
) -> float:
    """One pass over the training images; returns the mean loss."""
    model.train()
    total = 0.0
    for images, labels in loader:
        loss = criterion(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader[tuple[Tensor, int]], device: torch.device) -> float:
    """The share of the validation images that are classified correctly."""
    model.eval()
    right = count = 0
    for images, labels in loader:
        predicted = model(images.to(device)).argmax(dim=1)
        right += int((predicted == labels.to(device)).sum())
        count += len(labels)
    return right / count


def run(config: Config) -> None:
    seed_everything(config.seed)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, valid_loader, names = loaders(config)
    model = SceneNet(len(names)).to(device)
    criterion = TrainingLoss(len(names)).to(device)
    optimizer = torch.optim.AdamW([*model.parameters(), *criterion.parameters()], lr=config.learning_rate)
    config.output.mkdir(parents=True, exist_ok=True)
    best = 0.0
    for epoch in range(config.epochs):
        loss = train_epoch(model, criterion, train_loader, optimizer, device)
        score = accuracy(model, valid_loader, device)
        print(f"epoch {epoch + 1}: loss {loss:.4f}, accuracy {score:.3f}")
        if score > best:
            best = score
            torch.save({"model": model.state_dict(), "names": names}, config.output / "best.pt")


def main() -> None:
    run(parse())


if __name__ == "__main__":
    main()
