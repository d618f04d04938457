"""``python -m benchmarks.editing FILE``: the latency of edits in the language server, and whether its memory stays level.

The file, of a project on disk (``--root``: the folder that is open), is edited as someone would who types, renames, makes mistakes
and undoes them: see ``keystrokes``. Each edit is sent to a language server over its pipes, and its diagnostics are waited for.
Milliseconds are from one to the other, less what the server waits for more typing, of edits after which the file parses and of
those after which it does not; CPU is what the server computes for one on average, memory what its process holds.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.keystrokes import Keystroke, keystrokes
from benchmarks.language_client import Client
from torchrepro_lint.source.text import Lines


class Cost(NamedTuple):
    """What an edit took, and whether the file parses after it."""

    milliseconds: float
    parses: bool


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.editing", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--root", type=Path, help="the folder that is open (default: that of the file)")
    parser.add_argument("--edits", type=int, default=2000, help="how many edits (default: %(default)s)")
    parser.add_argument("--each", type=int, default=100, help="edits between two lines (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument(
        "--delay", type=int, default=100, help="how long the server waits, in ms (default: %(default)s)"
    )
    options = parser.parse_args()
    file = options.file.resolve()
    client = Client((options.root or file.parent).resolve())
    try:
        _measure(client, file, options)
    finally:
        client.end()


def _measure(client: Client, file: Path, options: argparse.Namespace) -> None:
    with file.open(encoding="utf-8", newline="") as stream:
        text = stream.read()
    client.start({"general": {"positionEncodings": ["utf-32"]}}, options={"delay": options.delay})
    started = time.perf_counter()
    client.open(file, text)
    found = client.diagnostics(file, 1)
    print(f"opened after {time.perf_counter() - started:.2f} s, {len(found)} findings, {_megabytes(client):.0f} MB")
    print("  edits   memory      CPU  parses: median, p95, max       does not: median, p95, max")
    begun = known = computed(client)
    every: list[Cost] = []
    for number, one in enumerate(keystrokes(text, options.edits, options.seed), 1):
        sent = send(client, file, number + 1, text, one)
        every.append(sent._replace(milliseconds=sent.milliseconds - options.delay))
        text = one.text
        if number % options.each == 0:
            known, before = computed(client), known
            cost = (known - before) / options.each
            print(
                f"{number:7d} {_megabytes(client):5.0f} MB {cost:5.0f} ms {_figures(every[-options.each :])}",
                flush=True,
            )
    print(f"    all          {(computed(client) - begun) / max(len(every), 1):5.0f} ms {_figures(every)}")


def send(client: Client, file: Path, version: int, before: str, one: Keystroke) -> Cost:
    """Send one edit and wait until its diagnostics are there."""
    change = {"range": _range(Lines(before), one), "text": one.new}
    started = time.perf_counter()
    client.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": file.as_uri(), "version": version}, "contentChanges": [change]},
    )
    found = client.diagnostics(file, version)
    return Cost((time.perf_counter() - started) * 1000, all(each["code"] != "TRL001" for each in found))


def _range(lines: Lines, one: Keystroke) -> dict[str, Any]:
    places = (lines.position(each) for each in one.span)
    return dict(
        zip(("start", "end"), ({"line": row - 1, "character": column - 1} for row, column, _ in places), strict=True)
    )


def _figures(costs: Sequence[Cost]) -> str:
    good, bad = ([one.milliseconds for one in costs if one.parses is kind] for kind in (True, False))
    return f"{len(good):5d}: {spread(good)}   {len(bad):5d}: {spread(bad)}"


def spread(values: Sequence[float]) -> str:
    if not values:
        return " " * 25
    p95 = sorted(values)[math.ceil(len(values) * 0.95) - 1]
    return f"{statistics.median(values):5.0f} {p95:5.0f} {max(values):5.0f} ms"


def computed(client: Client) -> float:
    """How many milliseconds the server has computed; Linux only."""
    fields = Path(f"/proc/{client.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _megabytes(client: Client) -> float:
    """What is resident of the server; Linux only."""
    pages = int(Path(f"/proc/{client.process.pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
