"""``python -m benchmarks.fixing PATH...``: fixes copies of real code, and checks that nothing else has changed."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.untouched import compare
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import Selection, Settings
from torchrepro_lint.engine.fixer import FixResult, fix_tree
from torchrepro_lint.engine.read_project import read_tree
from torchrepro_lint.engine.run import gc_disabled, prepare
from torchrepro_lint.engine.writing import write_all
from torchrepro_lint.interfaces.report import diff
from torchrepro_lint.source.text import Edit, apply_edits


class Row(NamedTuple):
    """What became of one directory: its files, those that were fixed, findings that were settled by code, tokens outside
    the edits, and a line on each thing that is wrong.
    """

    name: str
    files: int
    fixed: int
    settled: tuple[str, ...]
    tokens: int
    wrong: tuple[str, ...]


def main() -> None:
    """Print a table, and what is wrong; status 1 if anything is."""
    options = _options()
    rows = [_row(path, options.select, options.diffs) for path in options.path]
    print(_render(rows))
    sys.exit(1 if any(row.wrong for row in rows) else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fixing", description=__doc__)
    parser.add_argument("path", nargs="+", type=Path, help="a directory, which is copied and taken for one project")
    parser.add_argument("--select", metavar="RULES", help="the rules to fix, as the command line has it; ALL for all")
    parser.add_argument("--diffs", type=Path, metavar="FOLDER", help="write the diff of each directory there")
    return parser.parse_args()


def _row(path: Path, select: str | None, diffs: Path | None) -> Row:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, path.resolve().name)
        shutil.copytree(path, folder, ignore=shutil.ignore_patterns(".git"), symlinks=True)
        sound = {each for each in folder.rglob("*.py") if _compiles(each)}
        fixed = _fix(folder, select)
        if diffs is not None:
            _keep(diffs / f"{folder.name}.diff", folder, fixed)
        wrong = [*fixed.errors, *write_all(fixed.changes.values()).errors]
        outside, strayed = _strayed(fixed)
        wrong += strayed
        wrong += [f"{each}: does not compile any more" for each in sorted(sound) if not _compiles(each)]
        again = _fix(folder, select)
        wrong += [f"{each}: a second run changes it again" for each in again.changes]
        shown = tuple(each.replace(f"{folder}{os.sep}", "") for each in wrong)
        return Row(folder.name, len(fixed.files), len(fixed.changes), fixed.settled, outside, shown)


def _fix(folder: Path, select: str | None) -> FixResult:
    """What ``--fix --unsafe-fixes`` does to the project in a directory, not yet written."""

    def overrides(settings: Settings) -> Settings:
        chosen = Selection(tuple(select.split(",")) if select else None)
        return settings._replace(unsafe_fixes=True, selections=(*settings.selections, chosen))

    (tree,) = plan([str(folder)], ConfigOptions(overrides=overrides)).trees
    checker, _ = prepare(tree, honour_comments=True)
    with gc_disabled():
        return fix_tree(checker, read_tree(tree).files, unsafe=True)


def _strayed(fixed: FixResult) -> tuple[int, list[str]]:
    """How many tokens stand outside the edits, and a line on each that one of the rounds has changed."""
    outside, wrong = 0, []
    for path, change in fixed.changes.items():
        text = change.before.text
        for edits in _rounds(fixed.rounds, path):
            if not path.endswith(".ipynb"):
                compared = compare(text, edits)
                outside += compared.outside
                wrong += [f"{path}: {tokenize.tok_name[each.kind]} {each.string!r} is lost" for each in compared.lost]
            text = apply_edits(text, edits)
        if text != change.after.text:
            wrong.append(f"{path}: is not what the edits make of it")
    return outside, wrong


def _rounds(rounds: Iterable[Mapping[str, tuple[Edit, ...]]], path: str) -> list[tuple[Edit, ...]]:
    return [edits[path] for edits in rounds if path in edits]


def _compiles(path: Path) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in strings
            compile(path.read_bytes(), path.name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _keep(file: Path, folder: Path, fixed: FixResult) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(diff.render(each) for each in fixed.changes.values())
    file.write_text(text.replace(f"{folder}{os.sep}", ""), encoding="utf-8")


def _render(rows: list[Row]) -> str:
    lines = [
        "| directory | files | fixed | findings fixed | tokens outside the edits | wrong |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        cells = (row.name, row.files, row.fixed, len(row.settled), f"{row.tokens:,}", len(row.wrong))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    counts = Counter(code for row in rows for code in row.settled)
    lines += ["", ", ".join(f"{count} {code}" for code, count in sorted(counts.items())) or "nothing was fixed"]
    return "\n".join([*lines, *(f"{row.name}: {line}" for row in rows for line in row.wrong)])


if __name__ == "__main__":
    main()
