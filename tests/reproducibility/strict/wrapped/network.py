from torch import Tensor, nn
from torch.nn import functional


class Enlarger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        return functional.interpolate(self.filters(images), scale_factor=2, mode="bicubic")
