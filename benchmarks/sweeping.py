"""``python -m benchmarks.sweeping FOLDER``: the latency of edits in the language server, for files of all lengths in a large project.

Each file of 900 to 1,100 lines is opened in a language server, and edited as in ``_EDITS``: a comment is typed letter by letter,
then a statement in a function in the middle, then one at the top level; all is taken back. Milliseconds are from the edit to
its diagnostics, less what the server waits for more typing; CPU is what the server computes for an edit on average.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.editing import computed, send, spread
from benchmarks.keystrokes import Keystroke
from benchmarks.language_client import Client
from torchrepro_lint.source.text import Span

# Where something is written, and what; a statement takes over the indentation of the line that it comes before.
_EDITS = (
    ("top", ("# ", "# a", "# as ", "# as is")),
    ("body", ("value = 1", "value = torch.rand(3)", "value = value.index_add(0, i, z)")),
    ("between", ("LIMIT = 3", "NAMES = list(set(LABELS))", "torch.manual_seed(0)")),
)
_SIMPLE = re.compile(r"^[ ]+(?:\w+ = [\w.]+|return\b.*|raise\b.*)\n", re.MULTILINE)
_TOP = re.compile(r"^(?:import|from) ", re.MULTILINE)
_DEFINITION = re.compile(r"^\n(?=def |class |@)", re.MULTILINE)


class Costs(NamedTuple):
    """The milliseconds of each edit of a file, and what the server computed for one."""

    file: str
    milliseconds: list[float]
    cpu: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweeping", description=__doc__)
    parser.add_argument("folder", type=Path, help="what is open in the editor")
    parser.add_argument("--lines", type=int, nargs=2, default=(900, 1100), help="(default: 900 1100)")
    parser.add_argument("--delay", type=int, default=100, help="how long the server waits, in ms (default: 100)")
    options = parser.parse_args()
    folder = options.folder.resolve()
    client = Client(folder)
    try:
        client.start({"general": {"positionEncodings": ["utf-32"]}}, options={"delay": options.delay})
        _print(_measured(client, folder, options.lines, options.delay))
    finally:
        client.end()


def _print(found: Iterator[Costs]) -> None:
    every: list[Costs] = []
    print(f"{'median, p95, max':>22} {'CPU':>8}")
    for one in found:
        every.append(one)
        print(f"{spread(one.milliseconds)} {one.cpu:5.0f} ms  {one.file}", flush=True)
    total = [each for one in every for each in one.milliseconds]
    medians = sorted(statistics.median(one.milliseconds) for one in every)
    print(f"{spread(total)} {statistics.mean(one.cpu for one in every):5.0f} ms  all edits of {len(every)} files")
    print(f"{spread(medians)}           their medians")


def _measured(client: Client, folder: Path, lines: tuple[int, int], delay: int) -> Iterator[Costs]:
    for file in sorted(folder.rglob("*.py")):
        with file.open(encoding="utf-8", newline="") as stream:
            text = stream.read()
        if lines[0] <= text.count("\n") <= lines[1]:
            yield _of_file(client, file, text, delay)._replace(file=str(file.relative_to(folder)))


def _of_file(client: Client, file: Path, text: str, delay: int) -> Costs:
    client.open(file, text)
    client.diagnostics(file, 1)
    found, begun = [], computed(client)
    for version, one in enumerate(_edits(text), 2):
        found.append(send(client, file, version, text, one).milliseconds - delay)
        text = one.text
    cpu = (computed(client) - begun) / max(len(found), 1)
    client.close(file)
    return Costs("", found, cpu)


def _edits(text: str) -> Iterator[Keystroke]:
    """Each edit replaces what the one before it wrote at its place."""
    for where, versions in _EDITS:
        at, indent = _place(text, where)
        written = ""
        for each in (*(f"{indent}{one}\n" for one in versions), ""):
            start = at + len(written)
            whole = f"{text[:at]}{each}{text[at:]}"
            yield Keystroke(where, Span(at, start), each, whole)
            written = each


def _place(text: str, where: str) -> tuple[int, str]:
    """The offset of the start of a line, and the indentation that a statement needs there."""
    middle = len(text) // 2
    if where == "top":
        return min((each.start() for each in _TOP.finditer(text)), default=0), ""
    found = list((_SIMPLE if where == "body" else _DEFINITION).finditer(text))
    nearest = min(found, key=lambda each: abs(each.start() - middle), default=None)
    if nearest is None:
        return len(text), ""
    line = nearest.group()
    return nearest.start(), line[: len(line) - len(line.lstrip(" "))]


if __name__ == "__main__":
    main()
