"""``python -m benchmarks.latency FOLDER``: how soon an edit is answered, by the language server and by ``--watch``.

Edits are drawn over all files of a copy of the folder, by the seed: a statement in a function, a new function, a class attribute, and
a statement in one of the files that most others import. The language server has the file open; milliseconds are from ``didChange``
to the diagnostics of that file, less what the server waits for more typing. For ``--watch`` the file is written, and milliseconds are
from then to the end of the report. Each edit is undone, which does not count, and two seconds pass before the next one.
"""

from __future__ import annotations

import argparse
import queue
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.editing import send
from benchmarks.keystrokes import Keystroke
from benchmarks.language_client import PATIENCE, Client
from benchmarks.packages import sources
from torchrepro_lint.source.text import Span

# A change must be answered within this time, in milliseconds.
WANTED = 300.0
_DELAY = 100
# Seconds after the first report, and between two edits: someone thinks.
_WARM_UP = 10.0
_REST = 2.0
_KINDS = ("body", "function", "attribute", "imported")
_STATEMENT = re.compile(r"^( +)(?=(?:\w+ = [\w.]+|return\b.*|raise\b.*)\n)", re.MULTILINE)
_CLASS = re.compile(r"^class \w+.*:\n", re.MULTILINE)
_MEMBER = re.compile(r"^( +)(?=def |\w+ = |\w+: )", re.MULTILINE)
_WORD = re.compile(r"\w+")
_IMPORT = re.compile(r"^\s*(?:from|import)\s.*", re.MULTILINE)
# How many of the files that most others import are edited.
_MOST_IMPORTED = 8


class Change(NamedTuple):
    """An edit of a file: of which kind, where, and what is inserted."""

    kind: str
    file: Path
    at: int
    inserted: str


class Cost(NamedTuple):
    """What the answer to a change took."""

    change: Change
    milliseconds: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("folder", type=Path, help="a project")
    parser.add_argument("--edits", type=int, default=60, help="how many edits (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: %(default)s)")
    parser.add_argument("--only", choices=("server", "watch"), help="measure one of the two")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(options.folder, Path(scratch, options.folder.resolve().name)).resolve()
        files = sources(copy)
        lines = sum(file.read_bytes().count(b"\n") for file in files)
        print(f"{len(files)} files, {lines:,} lines; median, nine of ten, most, and the share within {WANTED:.0f} ms")
        changes = drawn(files, options.edits, options.seed)
        ways: dict[str, Callable[[Path, Sequence[Change]], Iterator[Cost]]] = {"server": _server, "watch": _watch}
        for name, measured in ways.items():
            if options.only in (None, name):
                _print(name, list(measured(copy, changes)))


def drawn(files: Sequence[Path], count: int, seed: int) -> list[Change]:
    """Edits of all kinds in turn, each drawn among the places for it in all files."""
    chance = random.Random(seed)
    texts = {file: file.read_bytes().decode("utf-8", "replace") for file in files}
    widely = _most_imported(texts)
    found = []
    for number in range(count):
        kind = _KINDS[number % len(_KINDS)]
        candidates = sorted(widely if kind == "imported" else texts)
        chance.shuffle(candidates)
        found += next(([change] for file in candidates if (change := _change(kind, file, texts[file], chance))), [])
    return found


def _most_imported(texts: dict[Path, str]) -> list[Path]:
    """The files whose module names stand in the import statements of most files."""
    words: Counter[str] = Counter()
    for text in texts.values():
        words.update({word for line in _IMPORT.findall(text) for word in _WORD.findall(line)})
    return sorted(texts, key=lambda file: (-words[file.parent.name if file.stem == "__init__" else file.stem], file))[
        :_MOST_IMPORTED
    ]


def _change(kind: str, file: Path, text: str, chance: random.Random) -> Change | None:
    if kind == "function":
        return Change(
            kind, file, len(text), "\n\ndef added(values):\n    return [value for value in values if value]\n"
        )
    if kind == "attribute":
        places = [(match.end(), _member_indent(text, match.end())) for match in _CLASS.finditer(text)]
        return Change(kind, file, *_line(chance.choice(places), "added = 1")) if places else None
    places = [(match.start(), match[1]) for match in _STATEMENT.finditer(text)]
    return Change(kind, file, *_line(chance.choice(places), "added = 1")) if places else None


def _member_indent(text: str, at: int) -> str:
    found = _MEMBER.search(text, at)
    return found[1] if found else "    "


def _line(place: tuple[int, str], statement: str) -> tuple[int, str]:
    at, indent = place
    return at, f"{indent}{statement}\n"


def _server(root: Path, changes: Sequence[Change]) -> Iterator[Cost]:
    client = Client(root)
    try:
        client.start({"general": {"positionEncodings": ["utf-32"]}}, options={"delay": _DELAY})
        for change in changes:
            text = change.file.read_bytes().decode("utf-8", "replace")
            client.open(change.file, text)
            client.diagnostics(change.file, 1)
            there, back = _there_and_back(change, text)
            cost = send(client, change.file, 2, text, there).milliseconds
            yield Cost(change, cost - _DELAY)
            send(client, change.file, 3, there.text, back)
            client.close(change.file)
    finally:
        client.end()


def _there_and_back(change: Change, text: str) -> tuple[Keystroke, Keystroke]:
    after = text[: change.at] + change.inserted + text[change.at :]
    end = change.at + len(change.inserted)
    return (
        Keystroke(change.kind, Span(change.at, change.at), change.inserted, after),
        Keystroke("undo", Span(change.at, end), "", text),
    )


def _watch(root: Path, changes: Sequence[Change]) -> Iterator[Cost]:
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "torchrepro_lint", str(root), "--watch", "-q", "--cache-dir", cache]
        watching = _Watching(command)
        try:
            watching.wait()
            time.sleep(_WARM_UP)
            for change in changes:
                time.sleep(_REST)
                yield Cost(change, watching.answered(change))
        finally:
            watching.end()


class _Watching:
    """A process with ``--watch``; a report ends with a line on standard error."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._ended: queue.Queue[float] = queue.Queue()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._drain, self._read)]
        for thread in self._threads:
            thread.start()

    def answered(self, change: Change) -> float:
        """Write a change, and undo it; milliseconds until it was answered."""
        text = change.file.read_bytes()
        there, _ = _there_and_back(change, text.decode("utf-8", "replace"))
        started = time.perf_counter()
        change.file.write_bytes(there.text.encode())
        cost = (self.wait() - started) * 1000
        change.file.write_bytes(text)
        self.wait()
        return cost

    def wait(self) -> float:
        """Wait for the next report; when it was there."""
        return self._ended.get(timeout=PATIENCE)

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join()

    def _drain(self) -> None:
        assert self._process.stdout
        while self._process.stdout.read(1):
            pass

    def _read(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            if line.startswith(b"Watching"):
                self._ended.put(time.perf_counter())


def _print(name: str, costs: Sequence[Cost]) -> None:
    for kind in (*_KINDS, "all"):
        own = [each.milliseconds for each in costs if kind in ("all", each.change.kind)]
        if len(own) > 1:
            tenth = statistics.quantiles(own, n=10, method="inclusive")[-1]
            share = sum(each <= WANTED for each in own) / len(own)
            print(f"{name:7} {kind:10} {statistics.median(own):6.0f} {tenth:6.0f} {max(own):6.0f} ms {share:6.0%}")
    worst = sorted(costs, key=lambda each: -each.milliseconds)[:5]
    print("  most:", ", ".join(f"{one.change.kind} {one.change.file.name} {one.milliseconds:.0f}" for one in worst))


if __name__ == "__main__":
    main()
