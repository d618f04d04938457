"""A trainer that says of its model only that it is a module, over a network that enlarges images."""

import torch
from network import Enlarger
from torch import Tensor, nn


class Trainer:
    def __init__(self, model: nn.Module, device: torch.device) -> None:
        self.model = model.to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, images: Tensor, wanted: Tensor) -> float:
        loss = nn.functional.mse_loss(self.model(images), wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main() -> None:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trainer = Trainer(Enlarger(), device)
    images = torch.linspace(-1, 1, 64, device=device).reshape(1, 1, 8, 8)
    wanted = torch.linspace(-1, 1, 256, device=device).reshape(1, 1, 16, 16)
    print([round(trainer.fit(images, wanted), 3) for _ in range(2)])
    print("strict:", torch.are_deterministic_algorithms_enabled())


if __name__ == "__main__":
    main()
