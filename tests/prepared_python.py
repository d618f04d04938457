"""Runs programs of torch under a hash seed: in a fresh process, or in a fork of one that has imported torch.

A fork spares a program the seconds that its imports take. What a fresh process draws from entropy, a fork draws again: the first
seeds of Python's, NumPy's and torch's generators.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

# One thread: that sums of floats come out alike on more of them is not what is to be shown.
_VARIABLES = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
CAN_PREPARE = Path("/proc/self/task").exists()


class Ran(NamedTuple):
    """What a program left behind."""

    returncode: int
    stdout: bytes
    stderr: bytes


# Runs a script in its folder, given with its arguments, under a hash seed and with more variables of the environment.
Python = Callable[[Path, Sequence[str], int, Mapping[str, str]], Ran]


def in_fresh_process(folder: Path, words: Sequence[str], hash_seed: int, variables: Mapping[str, str]) -> Ran:
    environment = {**os.environ, **_VARIABLES, **variables, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, *words]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False, timeout=300)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


@contextmanager
def prepared(scratch: Path, hash_seeds: Sequence[int]) -> Iterator[Python]:
    """A process for each of some hash seeds, which has imported torch and forks for each program."""
    started = {each: _start(each) for each in hash_seeds}
    streams = [scratch / name for name in ("stdout", "stderr")]

    def in_fork(folder: Path, words: Sequence[str], hash_seed: int, variables: Mapping[str, str]) -> Ran:
        job = {"folder": str(folder), "words": [*words], "streams": [*map(str, streams)], "variables": {**variables}}
        process = started[hash_seed]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{json.dumps(job)}\n")
        process.stdin.flush()
        return Ran(int(process.stdout.readline()), *(each.read_bytes() for each in streams))

    try:
        yield in_fork
    finally:
        for each in started.values():
            each.communicate()


def _start(hash_seed: int) -> subprocess.Popen[str]:
    environment = {**os.environ, **_VARIABLES, "PYTHONHASHSEED": str(hash_seed)}
    return subprocess.Popen(
        [sys.executable, __file__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _serve() -> None:
    import torch
    import torch._dynamo  # the first optimizer of a program imports it

    assert len(os.listdir("/proc/self/task")) == 1, "a fork has one thread only"
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _run(torch.default_generator, **json.loads(line))
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def _run(generator: object, folder: str, words: list[str], streams: list[str], variables: dict[str, str]) -> None:
    import numpy as np

    for number, path in enumerate((os.devnull, *streams)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.chdir(folder)
    os.environ.update(variables)
    np.random.seed()
    generator.seed()  # type: ignore[attr-defined]
    sys.argv[:] = words
    sys.path[0] = folder
    status = 0
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:  # noqa: BLE001  as an interpreter does
        status = 1
        traceback.print_exc()
    # What an interpreter does at its end, but for freeing all objects of torch: that takes seconds.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _serve()
