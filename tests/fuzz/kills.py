"""Runs with ``--fix`` that are killed at any moment: afterwards each file is the old or the new one, whole."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from .commands import folder, run
from .corpus import Corpus
from .failure import Failure

_FLAG = "import torch\n\ntorch.backends.cudnn.benchmark = {}\n"
_ARGUMENTS = ("--fix", "--unsafe-fixes", "--no-cache", "--jobs", "1", "--quiet", ".")
_OURS = ".torchrepro-lint-"
_MODES = (0o644, 0o600, 0o755, 0o640)


def moment(chance: Random, corpus: Corpus) -> bytes:
    """A number that says what is fixed and when it ends."""
    return str(chance.randrange(10**9)).encode()


def try_kill(data: bytes) -> Iterator[Failure]:
    """What is wrong with a folder after a run over it has been killed, and after another one has not."""
    if not hasattr(os, "fork"):
        return
    chance = Random(data)
    old, new = _made(chance, "True"), _made(Random(data), "False")
    with folder(old) as place:
        modes = {name: chance.choice(_MODES) for name in sorted(old)}
        for name, mode in modes.items():
            (place / name).chmod(mode)
        _interrupt(chance, place)
        yield from _wrong(place, modes, {name: (old[name], new[name]) for name in old})
        for name in sorted({each.name for each in place.iterdir()} - set(old)):
            if not name.startswith(_OURS):
                yield Failure("lost", "what is left behind is not known again")
        run(*_ARGUMENTS)
        yield from _wrong(place, modes, {name: (new[name],) for name in old})
        if {each.name for each in place.iterdir()} != set(old):
            yield Failure("lost", "what a killed run has left stays")


def _wrong(place: Path, modes: dict[str, int], wanted: dict[str, tuple[bytes, ...]]) -> Iterator[Failure]:
    for name, texts in wanted.items():
        path = place / name
        if not path.exists() or path.read_bytes() not in texts:
            yield Failure("lost", f"{Path(name).suffix} is neither the old nor the new file")
        elif path.stat().st_mode & 0o7777 != modes[name]:
            yield Failure("lost", f"{Path(name).suffix} has another mode")


def _made(chance: Random, value: str) -> dict[str, bytes]:
    """Files that are to be fixed, with all that is to stay: encodings, marks, newlines, a notebook's form."""
    found = {}
    for number in range(chance.randint(2, 5)):
        more = "# more\n" * chance.choice((0, 10, 3000))
        text = chance.choice(("", "\f", "'''é'''\n")) + _FLAG.format(value) + more
        text = text.replace("\n", chance.choice(("\n", "\r\n", "\r")), chance.choice((-1, 2)))
        mark = chance.choice((b"", b"\xef\xbb\xbf"))
        cookie = chance.choice(("", "# coding: latin-1\n")) if not mark else ""
        found[f"f{number}.py"] = mark + (cookie + text).encode("latin-1" if cookie else "utf-8")
    for number in range(chance.randint(0, 2)):
        cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
        lines = _FLAG.format(value).splitlines(keepends=True)
        book = {"cells": [{**cell, "source": lines}], "metadata": {"é": 1}, "nbformat": 4, "nbformat_minor": 5}
        text = json.dumps(book, indent=chance.choice((None, 1, 4)), ensure_ascii=chance.random() < 0.5)
        found[f"n{number}.ipynb"] = (text + chance.choice(("", "\n"))).encode()
    return found


def _interrupt(chance: Random, place: Path) -> None:
    """Start a run, and kill it after any time, or soon after it has begun to write."""
    writing, delay = chance.random() < 0.8, chance.expovariate(1 / chance.choice((0.0005, 0.003, 0.01)))
    late = chance.uniform(0, 0.05)
    child = os.fork()
    if not child:
        _fix_and_end()
    if writing:
        until = time.monotonic() + 5
        while not any(each.startswith(_OURS) for each in os.listdir(place)) and time.monotonic() < until:
            if os.waitpid(child, os.WNOHANG)[0]:
                return
        time.sleep(delay)
    else:
        time.sleep(late)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _fix_and_end() -> None:
    """The life of the process that is killed; nothing of it may come back."""
    try:
        run(*_ARGUMENTS)
    finally:
        os._exit(0)
