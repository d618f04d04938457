"""Prints what loader workers draw, as JSON; ``test_worker_claims`` runs it in fresh processes.

Each case gives, for two epochs, the index of each sample in the order of arrival, a number from each generator, and the seed that
torch says the worker has.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, RandomSampler, random_split

SAMPLES = 8


class Draws:
    """A dataset that draws from every generator, and from one of its own."""

    def __init__(self) -> None:
        self.own = np.random.default_rng(7)

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> dict[str, int]:
        return {
            "index": index,
            "torch": int(torch.randint(2**31, (1,))),
            "numpy": int(np.random.randint(2**31 - 1)),
            "python": random.randrange(2**31),
            "own": int(self.own.integers(2**31)),
            "seed": torch.initial_seed() % 2**62,
        }


class Waiting:
    """A dataset whose first sample is not made before the mark is there."""

    def __init__(self, mark: str) -> None:
        self.mark = Path(mark)

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        while index == 0 and not self.mark.exists():
            time.sleep(0.01)
        return index


def keep(batch: list[Any]) -> list[Any]:
    return batch


def documented(_: int) -> None:
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


def alike(_: int) -> None:
    np.random.seed(0)
    random.seed(0)
    torch.manual_seed(0)


def entropy(_: int) -> None:
    np.random.seed()
    random.seed()


CASES: dict[str, dict[str, Any]] = {
    # What nothing seeds comes first: a later case leaves its seeds behind.
    "nothing": {},
    "entropy": {"generator": 3, "worker_init_fn": entropy},
    "no workers": {"seed": 1, "num_workers": 0},
    "generator": {"generator": 3},
    "generator, a draw before": {"generator": 3, "before": True},
    "unseeded generator": {"generator": None},
    "seed": {"seed": 1},
    "seed, a draw before": {"seed": 1, "before": True},
    "documented": {"generator": 3, "worker_init_fn": documented},
    "alike": {"generator": 3, "worker_init_fn": alike},
    "persistent": {"generator": 3, "persistent_workers": True},
    "four workers": {"generator": 3, "num_workers": 4},
    "spawn": {"generator": 3, "multiprocessing_context": "spawn"},
    "shuffled": {"generator": 3, "shuffle": True},
    "shuffled, a draw before": {"generator": 3, "shuffle": True, "before": True},
    "shuffled by the seed": {"seed": 1, "shuffle": True},
    "shuffled by the seed, a draw before": {"seed": 1, "shuffle": True, "before": True},
    "sampler": {"generator": 3, "seed": 1, "sampler": None},
    "sampler, a draw before": {"generator": 3, "seed": 1, "sampler": None, "before": True},
}


def run(seed: int | None = None, before: bool = False, **options: Any) -> list[list[dict[str, int]]]:
    """Two epochs of a loader."""
    if seed is not None:
        torch.manual_seed(seed)
    if before:
        torch.rand(1)
    if "generator" in options:
        given = options["generator"]
        options["generator"] = torch.Generator() if given is None else torch.Generator().manual_seed(given)
    data = Draws()
    if "sampler" in options:
        options["sampler"] = RandomSampler(data)
    options = {"num_workers": 2, **options}
    if options["num_workers"]:
        options = {"multiprocessing_context": "fork", **options}
    loader = DataLoader(data, batch_size=1, collate_fn=keep, **options)
    return [[batch[0] for batch in loader] for _ in range(2)]


def order(in_order: bool, workers: int, mark: str) -> list[int]:
    """The order in which a loader gives two samples of which the second has reached it before the first is made.

    A single worker makes them one after the other, so there the first is not held up.
    """
    Path(mark).unlink(missing_ok=True)
    if workers < 2:
        Path(mark).touch()
    options = {"num_workers": workers, "multiprocessing_context": "fork", "in_order": in_order}
    batches = iter(DataLoader(Waiting(mark), batch_size=1, collate_fn=keep, **options))
    receive = batches._try_get_data

    def received(*arguments: Any, **named: Any) -> Any:
        arrived = receive(*arguments, **named)
        if arrived[0]:
            Path(mark).touch()
        return arrived

    # The worker that is ready first must have been heard by then: a mark of its own would only say that it is about to send.
    batches._try_get_data = received
    return [int(batch[0]) for batch in batches]


def splits() -> list[list[int]]:
    """The first part of splits by the global generator after a seed, after a draw as well, and by one of their own."""
    found = []
    for draws in (0, 1):
        torch.manual_seed(1)
        torch.rand(draws)
        found.append(list(random_split(range(8), [4, 4])[0].indices))
        found.append(list(random_split(range(8), [4, 4], torch.Generator().manual_seed(1))[0].indices))
    return found


def main(folder: str, *names: str) -> None:
    """Some cases; without names all but the one that imports torch in each of its workers, for seconds."""
    found: dict[str, Any] = {name: run(**CASES[name]) for name in names or (each for each in CASES if each != "spawn")}
    mark = os.path.join(folder, "ready")
    found["orders"] = [order(False, 2, mark), order(True, 2, mark), order(False, 1, mark)]
    found["splits"] = splits()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
