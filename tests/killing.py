"""``python killing.py FOLDER TIMES SEED``: kills a process that writes files at random moments, and checks the files.

Prints a line on each thing that is wrong: a file that is neither the old nor the new one, one whose mode is another, and what is
left behind and not known again, or not removed by whoever writes next.
"""

# ruff: noqa: T201  # it is a program, which says what is wrong

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from torchrepro_lint.config.discovery import GivenFile
from torchrepro_lint.engine.writing import FileChange, write_all
from torchrepro_lint.source.decoding import Source, decode

COUNT, MODE = 4, 0o640
# A byte order mark, a form feed and mixed newlines: all of it is to stay.
OLD, NEW = (f"\ufeff# {word}\r\nx = 1\n\f\n".encode() + b"# more\n" * 3000 for word in ("old", "new and longer"))


def main(folder: Path, times: int, seed: int) -> None:
    chance = random.Random(seed)
    paths = [folder / f"{number}.py" for number in range(COUNT)]
    for path in paths:
        path.write_bytes(OLD)
        path.chmod(MODE)
    for _ in range(times):
        interrupt(paths, chance.expovariate(1 / 0.004))
        for path in paths:
            if path.read_bytes() not in (OLD, NEW) or path.stat().st_mode & 0o777 != MODE:
                print(f"{path.name} is neither")
        for name in sorted({each.name for each in folder.iterdir()} - {each.name for each in paths}):
            if not name.startswith(".torchrepro-lint-"):
                print(f"{name} is not known again")
    write_all(changes(paths))
    for name in sorted({each.name for each in folder.iterdir()} - {each.name for each in paths}):
        print(f"{name} is left")


def interrupt(paths: list[Path], seconds: float) -> None:
    """Start a process that writes for ever, and kill it after so long."""
    child = os.fork()
    if not child:
        while True:
            write_all(changes(paths))
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def changes(paths: list[Path]) -> list[FileChange]:
    """Each file as it is, to be what it is not; they belong to one fix."""
    texts = [source(each) for each in (OLD, NEW)]
    found = []
    for path in paths:
        before = source(path.read_bytes())
        after = texts[before == texts[0]]
        partners = tuple(str(each) for each in paths if each != path)
        found.append(FileChange(GivenFile(path.name, str(path)), before, after, partners))
    return found


def source(data: bytes) -> Source:
    decoded = decode(data)
    assert isinstance(decoded, Source)
    return decoded


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
