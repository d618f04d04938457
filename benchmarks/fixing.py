"""``python -m benchmarks.fixing PATH...``: fixes copies of real code, and checks that nothing else has changed.

``python -m benchmarks.fixing --public FOLDER``: copies of the public repositories, whose clones are in that folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks import flaking, hunks
from benchmarks.hunks import Causes, Hunk
from benchmarks.repositories import REPOSITORIES, clone, moved
from benchmarks.untouched import compare
from torchrepro_lint.config.discovery import ProjectTree, plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import Selection, Settings
from torchrepro_lint.engine.fixer import FixResult, fix_tree
from torchrepro_lint.engine.read_project import read_tree
from torchrepro_lint.engine.run import gc_disabled, prepare
from torchrepro_lint.engine.writing import FileChange, write_all
from torchrepro_lint.source.text import Edit, apply_edits


class Row(NamedTuple):
    """What became of one directory: its files, those that were fixed, findings that were settled by code, tokens outside
    the edits, a line on each thing that is wrong, and the hunks of the diff.
    """

    name: str
    files: int
    fixed: int
    settled: tuple[str, ...]
    tokens: int
    wrong: tuple[str, ...]
    hunks: tuple[Hunk, ...]


def main() -> None:
    """Print a table, and what is wrong; status 1 if anything is, or a public repository is not there."""
    options = _options()
    unlike: list[str] = []
    if options.public is not None:
        options.select = options.select or "ALL"
        unlike = _unlike(options.public, options.clone)
        options.path += [place for each in REPOSITORIES if (place := options.public / each.name).is_dir()]
    rows = [_row(path, options.select) for path in options.path]
    if options.diffs is not None:
        hunks.write(options.diffs, {row.name: row.hunks for row in rows})
    print("\n".join([_render(rows), *unlike]))
    sys.exit(1 if unlike or any(row.wrong for row in rows) else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fixing", description=__doc__)
    parser.add_argument("path", nargs="*", type=Path, help="a directory, which is copied and fixed by itself")
    parser.add_argument(
        "--public", type=Path, metavar="FOLDER", help="the repositories of benchmarks/repositories.py there"
    )
    parser.add_argument("--clone", action="store_true", help="with --public: get those that are missing")
    parser.add_argument("--select", metavar="RULES", help="the rules to fix, as the command line has it; ALL for all")
    parser.add_argument("--diffs", type=Path, metavar="FOLDER", help="write the diffs there, by directory and by rule")
    options = parser.parse_args()
    if not options.path and options.public is None:
        parser.error("a directory, or --public")
    return options


def _unlike(folder: Path, wanted: bool) -> list[str]:
    """A line on each public repository that is not in a folder, even after an attempt to get it, or is at another commit."""
    found = []
    for each in REPOSITORIES:
        there = (folder / each.name).is_dir()
        why = moved(each, folder) if there else clone(each, folder) if wanted else "not there"
        found += [f"{each.slug} at {each.commit}: {why}"] if why else []
    return found


def _row(path: Path, select: str | None) -> Row:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, path.resolve().name)
        shutil.copytree(path, folder, ignore=shutil.ignore_patterns(".git"), symlinks=True)
        sound = {each for each in folder.rglob("*.py") if _compiles(each)}
        causes = Causes()
        wrong, files, outside, settled = [], 0, 0, []
        changes: list[FileChange] = []
        found: list[Hunk] = []
        for tree, each in _fix(folder, select, causes):
            tokens, strayed = _strayed(each)
            files += len(tree.given)
            outside += tokens
            settled += each.settled
            wrong += [*each.errors, *strayed]
            changes += each.changes.values()
            for own, change in each.changes.items():
                found += hunks.of(change, causes.of(own, each.rounds))
        wrong += write_all(changes).errors
        wrong += [f"{each}: does not compile any more" for each in sorted(sound) if not _compiles(each)]
        wrong += flaking.added({each.given.display: (each.before.program, each.after.program) for each in changes})
        again = [change.given.display for _, each in _fix(folder, select, causes) for change in each.changes.values()]
        wrong += [f"{each}: a second run changes it again" for each in again]
        start = f"{folder}{os.sep}"
        return Row(
            folder.name,
            files,
            len(changes),
            tuple(settled),
            outside,
            tuple(each.replace(start, "") for each in wrong),
            tuple(each._replace(file=each.file.removeprefix(start)) for each in found),
        )


def _fix(folder: Path, select: str | None, causes: Causes) -> Iterator[tuple[ProjectTree, FixResult]]:
    """What ``--fix --unsafe-fixes`` does to each project in a directory, not yet written."""

    def overrides(settings: Settings) -> Settings:
        chosen = Selection(tuple(select.split(",")) if select else None)
        return settings._replace(unsafe_fixes=True, selections=(*settings.selections, chosen))

    for tree in plan([str(folder)], ConfigOptions(overrides=overrides)).trees:
        checker, _ = prepare(tree, honour_comments=True)
        with gc_disabled():
            yield tree, fix_tree(checker, read_tree(tree).files, unsafe=True, reported=causes.note)


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
