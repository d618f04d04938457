"""``python -m benchmarks.linking``: the cost of building the query database of a large project whose syntax trees are loaded.

Linking is everything that a project is asked as a whole: where imports lead, what is started, who calls by which word, which
options are declared, which classes inherit from which, what decorators register. What the entry points then run, and the
rules, are shown beside it.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.packages import joined
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.domain.programs import all_programs
from torchrepro_lint.engine.checker import Checker, check
from torchrepro_lint.engine.parsed_file import ParsedFile
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.read_project import read_tree
from torchrepro_lint.engine.run import prepare


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linking", description=__doc__)
    parser.add_argument("--directory", type=Path, help="measure a directory instead of the pinned packages")
    parser.add_argument("--modules", type=int, default=1300, help="how many modules (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="runs that count (default: %(default)s)")
    options = parser.parse_args()
    gc.disable()
    (tree,) = plan([str(options.directory or joined())], ConfigOptions()).trees
    checker, _ = prepare(tree, honour_comments=True)
    files = dict(list(read_tree(tree).files.items())[: options.modules])
    laps = [_laps(checker, files) for _ in range(options.repeats)]
    print(f"{len(files)} modules; CPU seconds, median of {options.repeats} (least to most)")
    for name in laps[0]:
        seconds = sorted(each[name] for each in laps)
        print(f"{name}: {statistics.median(seconds):.3f} ({seconds[0]:.3f} to {seconds[-1]:.3f})")


def _laps(checker: Checker, files: dict[str, ParsedFile]) -> dict[str, float]:
    laps: dict[str, float] = {}

    def lap(name: str, work: Callable[[], Any]) -> Any:
        started = time.process_time()
        result = work()
        laps[name] = time.process_time() - started
        return result

    parts = lap("linking", lambda: _linked(checker, files))
    lap("what entry points run", lambda: [all_programs(project) for project in parts.all()])
    lap("all rules on all modules", lambda: [check(checker, path, files[path], parts.of(path)) for path in files])
    gc.collect()
    return laps


def _linked(checker: Checker, files: dict[str, ParsedFile]) -> Partition:
    parts = Partition(checker, files, lasting=True)
    for project in parts.all():
        names = project.resolver
        for table in (project.entries, names.property_words, names.call_graph, names.options, names.registry.tables):
            assert table is not None
        names.subclasses("")
    return parts


if __name__ == "__main__":
    main()
