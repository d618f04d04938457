from dataclasses import dataclass, field


@dataclass
class Optim:
    lr: float = 0.05
    steps: int = 10


@dataclass
class Config:
    width: int = 12
    seed: int = 17
    optim: Optim = field(default_factory=Optim)
