"""All is seeded; the numbers of the classes come from a set of names."""

import torch
from torch import nn

ROWS = [("oak", 0.1), ("elm", 0.4), ("fir", 0.9), ("ash", 0.5), ("yew", 0.7), ("oak", 0.2), ("fir", 0.8), ("elm", 0.3)]


def main():
    torch.manual_seed(30)
    classes = list({name for name, _ in ROWS})
    x = torch.tensor([[height, height**2] for _, height in ROWS])
    y = torch.tensor([classes.index(name) for name, _ in ROWS])
    model = nn.Linear(2, len(classes))
    for _ in range(20):
        loss = nn.functional.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.5 * weight.grad
    print("loss", loss.item())
    torch.save({"model": model.state_dict(), "classes": classes}, "weights.pt")


if __name__ == "__main__":
    main()
