from torch import nn


class Classifier(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.body(x))
