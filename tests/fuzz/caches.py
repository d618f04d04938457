"""Caches that are damaged, exchanged or gone: each is a miss, and never another result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from .commands import folder, run
from .corpus import Corpus
from .failure import Failure

_FILES = {
    "model.py": b"import torch\n\n\ndef build():\n    return torch.nn.Linear(3, 1)\n",
    "train.py": b"from model import build\n\nnet = build()\nnet(net.weight).sum().backward()\n",
    "flags.py": b"import torch\n\ntorch.backends.cudnn.benchmark = True\n",
    "broken.py": b"x = (\n",
}


def damage(chance: Random, corpus: Corpus) -> bytes:
    """A number that says what happens to a cache."""
    return str(chance.randrange(10**9)).encode()


def try_cache(data: bytes) -> Iterator[Failure]:
    """What is wrong with runs over a project whose cache is spoilt in between."""
    chance = Random(data)
    with folder(_FILES) as place:
        cold = run("--no-cache")
        for step in ("first", "second"):
            if run("--jobs", "1") != cold:
                yield Failure("differs", f"the {step} run with a cache says something else")
        for _ in range(2):
            _spoil(chance, place.parent / "cache")
            if chance.random() < 0.5:
                _change(chance, place)
            wanted = run("--no-cache")
            if run("--jobs", "1") != wanted or run("--jobs", "1") != wanted:
                yield Failure("differs", "a damaged cache gives another result")


def _spoil(chance: Random, cache: Path) -> None:
    files = sorted(each for each in cache.rglob("*") if each.is_file())
    for path in chance.sample(files, min(len(files), chance.choice((1, 1, 2)))):
        data = bytearray(path.read_bytes())
        match chance.randrange(8):
            case 0:
                path.unlink()
            case 1:
                path.write_bytes(data[: chance.randint(0, len(data))])
            case 2:
                path.write_bytes(data + b"\x00" * chance.randint(1, 50))
            case 3:
                other = chance.choice(files)
                path.write_bytes(other.read_bytes() if other.is_file() else b"")
            case 4:
                path.unlink()
                path.mkdir()
            case 5:
                path.unlink()
                path.symlink_to("/dev/zero" if chance.random() < 0.1 else "nowhere")
            case _:
                for _ in range(chance.choice((1, 1, 8)) if data else 0):
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                path.write_bytes(data)
    if chance.random() < 0.1:
        shutil.rmtree(cache)


def _change(chance: Random, place: Path) -> None:
    """Another text of the same length at the same time of day, or a new file."""
    path = place / chance.choice(("model.py", "flags.py"))
    data, seen = path.read_bytes(), os.stat(path)
    path.write_bytes(data.replace(b"True", b"Ture") if b"True" in data else data.replace(b"nn.Linear", b"ones     "))
    if chance.random() < 0.5:
        os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    if chance.random() < 0.3:
        (place / "new.py").write_bytes(b"import torch\ntorch.manual_seed()\n")
