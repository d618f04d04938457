from torch import nn


def build(width=16):
    return nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))
