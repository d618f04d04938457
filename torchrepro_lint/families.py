"""The three families of random generators, as messages name them."""

from __future__ import annotations

from typing import NamedTuple


class Family(NamedTuple):
    """A family: its key in the catalogue, its generator, what is said to be seeded, and the call that seeds it."""

    key: str
    owner: str
    what: str
    seeder: str


TORCH = Family("torch", "torch's generator", "torch", "torch.manual_seed(...)")
NUMPY = Family("numpy", "numpy's global generator", "it", "np.random.seed(...)")
PYTHON = Family("python", "Python's global generator", "it", "random.seed(...)")
FAMILIES = (TORCH, NUMPY, PYTHON)
