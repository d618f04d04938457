"""Runs programs, each in a process of its own, under one set of accidents: ``python observe.py NUMBER PLAN``.

The plan is a JSON list of folders; the ``main.py`` of each is run there. What they print goes to standard output as a JSON
list of pairs, the exit status and the text. The accidents that a machine has from run to run are made by the number: the
order in which a directory lists its files, how long a ``time.sleep`` takes, and what the clock says. The hash seed is that
of this process.
"""

from __future__ import annotations

import json
import os
import random
import runpy
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401  read once, for all programs
import torch  # noqa: F401  as numpy
from typing_extensions import Self

# The most seconds that a program may take.
_LIMIT = 60


def main() -> None:
    """Run every program of the plan."""
    number, plan = int(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    print(json.dumps([_observed(folder, number) for folder in plan]))  # noqa: T201  the answer


def _observed(folder: str, number: int) -> tuple[int, str]:
    """The exit status and the output of a program in a forked process, which spares it the import of torch."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            _become(folder, number, output.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return status, output.read().decode()


def _become(folder: str, number: int, output: int) -> None:
    """Run the program in this process, which ends with it."""
    import signal

    os.setpgid(0, 0)
    signal.alarm(_LIMIT)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(folder)
    sys.argv[:] = ["main.py"]
    sys.path[0] = folder
    _accidents(random.Random(number))
    status = 0
    try:
        # By its whole path: a spawned process starts elsewhere and reads it again.
        runpy.run_path(str(Path(folder, "main.py")), run_name="__main__")
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else bool(stop.code)
    except BaseException:  # noqa: BLE001  whatever it is, it is the program's end
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    os._exit(status)


def _accidents(rng: random.Random) -> None:
    """Put in place what differs between two runs, drawn from ``rng``."""
    os.listdir = _shuffling(os.listdir, rng, list)  # type: ignore[assignment]
    os.scandir = _shuffling(os.scandir, rng, _Entries)  # type: ignore[assignment,misc]
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(seconds * 2 * rng.random())
    sys.setswitchinterval(1e-5)


def _shuffling(listed: Callable[..., Any], rng: random.Random, kind: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    def shuffled(*args: Any) -> Any:
        found = sorted(listed(*args), key=lambda entry: getattr(entry, "name", entry))
        rng.shuffle(found)
        return kind(found)

    return shuffled


class _Entries(list[Any]):
    """What ``os.scandir`` gives: an iterator, and a context."""

    def __iter__(self) -> Any:
        while self:
            yield self.pop(0)

    def __next__(self) -> Any:
        if not self:
            raise StopIteration
        return self.pop(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        """Nothing is open."""


if __name__ == "__main__":
    main()
