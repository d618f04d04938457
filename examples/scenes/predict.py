"""Classify the scenes in some images with the weights that training has saved."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from scenes.data import load_image
from scenes.model import SceneNet


def main() -> None:
    parser = argparse.ArgumentParser(description="Classify images.")
    parser.add_argument("weights", type=Path)
    parser.add_argument("images", type=Path, nargs="+")
    args = parser.parse_args()
    state = torch.load(args.weights, map_location="cpu")
    model = SceneNet(len(state["names"]))
    model.load_state_dict(state["model"])
    model.eval()
    with torch.inference_mode():
        for path in args.images:
            print(path, state["names"][int(model(load_image(path).unsqueeze(0)).argmax())])


if __name__ == "__main__":
    main()
