"""``python -m benchmarks.editing FILE``: what edits of a file cost the language server, and whether memory stays level.

The file is a script of a project on disk; each edit adds or takes away lines above everything, so that every fact of it moves.
Memory is what the process holds after a collection of garbage, in megabytes, ten times over the run.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
from pathlib import Path

from torchrepro_lint.server.documents import Document, encoded
from torchrepro_lint.server.preferences import Preferences
from torchrepro_lint.server.workspace import Workspace


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.editing", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--edits", type=int, default=2000, help="how many edits (default: %(default)s)")
    options = parser.parse_args()
    path = str(options.file.resolve())
    text = Path(path).read_text(encoding="utf-8")
    workspace = Workspace(print)
    workspace.configure(Preferences(), {os.path.dirname(path): Preferences()})
    seconds: list[float] = []
    for number in range(options.edits + 1):
        workspace.take({path: Document(path, encoded("\n" * (number % 7) + text), Path(path).as_uri())})
        started = time.process_time()
        report = workspace.reports()[path]
        seconds.append(time.process_time() - started)
        assert report is not None
        if number % max(options.edits // 10, 1) == 0:
            gc.collect()
            print(f"after {number} edits: {_megabytes():.1f} MB")
    edits = sorted(seconds[1:])
    print(f"CPU seconds an edit: median {statistics.median(edits):.3f} ({edits[0]:.3f} to {edits[-1]:.3f})")


def _megabytes() -> float:
    """What is resident; Linux only."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
