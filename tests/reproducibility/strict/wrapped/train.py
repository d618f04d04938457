"""A step that gets its model from a function which wraps it for several cards."""

import torch
from network import Enlarger
from torch import Tensor, nn


def parallel(model: nn.Module, device: torch.device) -> nn.Module:
    return nn.DataParallel(model.to(device).train())


def step(model: nn.Module, optimizer: torch.optim.Optimizer, images: Tensor, wanted: Tensor) -> float:
    optimizer.zero_grad()
    losses = {"pixels": nn.functional.mse_loss(model(images), wanted)}
    losses["pixels"].backward()
    optimizer.step()
    return losses["pixels"].item()


def main() -> None:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = parallel(Enlarger(), device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = torch.linspace(-1, 1, 64, device=device).reshape(1, 1, 8, 8)
    wanted = torch.linspace(-1, 1, 256, device=device).reshape(1, 1, 16, 16)
    print([round(step(model, optimizer, images, wanted), 3) for _ in range(2)])
    print("strict:", torch.are_deterministic_algorithms_enabled())


if __name__ == "__main__":
    main()
