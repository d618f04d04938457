from dataclasses import dataclass


@dataclass
class Settings:
    seed: int = 12
    width: int = 6
    rounds: int = 4
