"""A configuration object, a trainer, rows by pandas-like sampling of NumPy."""

import numpy as np
import torch
from fitting import Fitting
from settings import Settings
from torch import nn


def main():
    settings = Settings()
    torch.manual_seed(settings.seed)
    np.random.seed(settings.seed)
    x = torch.from_numpy(np.random.normal(size=(20, 2))).float()  # first numpy
    model = nn.Sequential(nn.Linear(2, settings.width), nn.Tanh(), nn.Linear(settings.width, 1))  # first torch
    print("loss", Fitting(model, settings).run(x, x.prod(1, keepdim=True)))
    torch.save(model.state_dict(), "weights.pt")


if __name__ == "__main__":
    main()
