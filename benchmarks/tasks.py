"""Measured stages, each in a fresh process: ``python -m benchmarks.tasks TASK DIRECTORY COLLECTOR``."""

from __future__ import annotations

import gc
import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.packages import sources


def parse_libcst(directory: Path) -> None:
    """The yardstick: a bare parse of every file; no tree is kept."""
    import libcst

    for path in sources(directory):
        libcst.parse_module(path.read_bytes())


def parse_ast(directory: Path) -> None:
    """The same files through Python's own parser."""
    import ast

    for path in sources(directory):
        ast.parse(path.read_bytes())


def stages(directory: Path) -> None:
    """CPU seconds of the stages of a run, as one line of JSON."""
    from torchrepro_lint.config.discovery import plan
    from torchrepro_lint.config.roots import ConfigOptions
    from torchrepro_lint.engine.partition import Partition, check_tree
    from torchrepro_lint.engine.read_project import read_tree
    from torchrepro_lint.engine.run import prepare

    laps = {"start": time.process_time()}
    (tree,) = plan([str(directory)], ConfigOptions()).trees
    checker, _ = prepare(tree, honour_comments=True)
    laps["discover"] = time.process_time()
    files = read_tree(tree).files
    laps["read"] = time.process_time()
    parts = Partition(checker, files)
    laps["parts"] = time.process_time()
    check_tree(checker, parts)
    laps["check"] = time.process_time()
    print(json.dumps({name: at - before for (_, before), (name, at) in itertools.pairwise(laps.items())}))


TASKS: dict[str, Callable[[Path], None]] = {task.__name__: task for task in (parse_ast, parse_libcst, stages)}

if __name__ == "__main__":
    name, place, collector = sys.argv[1:]
    if collector == "off":
        gc.disable()
    TASKS[name](Path(place))
