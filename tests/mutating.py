"""Programs as texts: finding calls in them and changing lines, without any code of the package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

Files = Mapping[str, str]
ENTRY, SETTINGS = "train.py", "torchrepro-lint.toml"
SEEDERS = {"torch": "torch.manual_seed", "numpy": "np.random.seed", "python": "random.seed"}
UNSEEDED = {"torch": "TRL101", "numpy": "TRL102", "python": "TRL103"}


class Mutant(NamedTuple):
    """A changed program, and the finding that must be there; ``select`` are rules that are off by default."""

    name: str
    files: Files
    code: str
    path: str
    row: int
    select: str = ""


def calls(text: str, *names: str) -> Iterator[ast.Call]:
    """The calls of functions, by the names as they are written, in the order of the text."""
    found = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and ast.unparse(node.func) in names
    ]
    yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))


def statements(text: str, *names: str) -> Iterator[ast.Expr]:
    """The statements that are such calls."""
    inner = {(each.lineno, each.col_offset) for each in calls(text, *names)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and (node.lineno, node.col_offset) in inner:
            yield node


def row_of(text: str, part: str) -> int:
    """The row of the first line that holds a text; 0 where none does."""
    return next((number for number, line in enumerate(text.splitlines(), 1) if part in line), 0)


def marked(files: Files, family: str) -> tuple[str, int, str]:
    """Where a family that nothing seeds is reported, and by which code: at the mark of a run, else at that of a draw."""
    row = row_of(files[ENTRY], f"# first {family}")
    if row:
        return ENTRY, row, UNSEEDED[family]
    for path, text in sorted(files.items()):
        if row_of(text, f"# {family} here"):
            return path, row_of(text, f"# {family} here"), "TRL110"
    return "", 0, ""


def put(text: str, node: ast.expr | ast.stmt, new: str) -> str:
    """The text with a node written anew."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
    return text[:start] + new + text[end:]


def without_rows(text: str, first: int, last: int) -> str:
    """The text without some rows."""
    lines = text.splitlines(keepends=True)
    return "".join(lines[: first - 1] + lines[last:])


def with_row(text: str, row: int, new: str) -> str:
    """The text with a line before a row, indented as that one is."""
    lines = text.splitlines(keepends=True)
    indent = re.match(r"\s*", lines[row - 1])
    assert indent is not None
    return "".join([*lines[: row - 1], f"{indent[0]}{new}\n", *lines[row - 1 :]])


def importing(text: str, module: str) -> str:
    """The text with an import at its top, below the documentation; nothing is added for an empty name."""
    row = next(node.lineno for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom)))
    return with_row(text, row, f"import {module}") if module and f"import {module}\n" not in text else text


def changed(files: Files, path: str, text: str) -> Files:
    """The program with another text for a file."""
    return {**files, path: text}


def sources(files: Files) -> Iterator[tuple[str, str]]:
    """The Python files, in order."""
    yield from ((path, text) for path, text in sorted(files.items()) if path.endswith(".py"))
