"""Causes that can be planted into real code, one at a time, to see whether they are reported.

A family of rules has a module here with its ``OPERATORS``; ``benchmarks.plants.table`` lists them. They are written from the
rules' contract, over Python's own syntax tree: nothing of the linter is used.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple


class Edit(NamedTuple):
    """Characters of a file, as offsets, and what stands there instead."""

    start: int
    end: int
    text: str


class Plant(NamedTuple):
    """A cause in a file: the edits that plant it; it must be reported in the rows that the first of them writes.

    With ``around`` any row of those characters (of the file as it was) will do: a call's, where an argument is changed.
    ``options`` go to the command line as well, such as ``("--torch-version", "1.8")``.
    """

    edits: tuple[Edit, ...]
    around: tuple[int, int] | None = None
    options: tuple[str, ...] = ()


class Operator(NamedTuple):
    """A way to plant what a rule reports; ``find`` gives every place of a file where that can be done.

    Only files in whose text each of the ``hints``, regular expressions over lines, is found are parsed for it.
    """

    name: str
    code: str
    hints: tuple[str, ...]
    find: Callable[[Source], Iterator[Plant]]


class Source:
    """A file that parses: its text, its tree, and where the nodes of the tree stand in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = text.splitlines(keepends=True)
        self._starts = [0, *accumulate(map(len, self._lines))]

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes, parents before children."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """What each node is a direct part of."""
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def functions(self) -> tuple[ast.FunctionDef, ...]:
        """Functions and methods, with a body of more than a line behind their documentation."""
        return tuple(node for node in self.nodes if isinstance(node, ast.FunctionDef) and body(node))

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """The calls of functions by the last word of their names, as they are written."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and word(node.func) in names:
                yield node

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The characters of a node."""
        row, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        last, after = getattr(node, "end_lineno", 1), getattr(node, "end_col_offset", 0)
        return self._offset(row, column), self._offset(last, after)

    def segment(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that a node is part of."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def function(self, node: ast.AST) -> ast.FunctionDef | None:
        """The innermost function around a node."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.FunctionDef):
                return node
        return None

    def before(self, statement: ast.stmt, lines: Sequence[str]) -> Edit:
        """Lines above a statement that stands alone on its line, indented as it is."""
        start = self._offset(statement.lineno, 0)
        indent = self.text[start : self.span(statement)[0]]
        return Edit(start, start, "".join(f"{indent}{line}\n" for line in lines))

    def places(self, *parameters: str) -> Iterator[tuple[ast.stmt, str]]:
        """Statements of functions above which lines can be put, each with one of the ``parameters`` that the function has."""
        for function in self.functions:
            named = [each.arg for each in (*function.args.args, *function.args.kwonlyargs) if each.arg in parameters]
            for statement in body(function) if named else ():
                if not self.text[self._offset(statement.lineno, 0) : self.span(statement)[0]].strip():
                    yield statement, named[0]

    def importing(self, *modules: str) -> Edit:
        """Imports in front of the file's first, or at its end where it has none (never below a use at run time)."""
        first = next((node for node in self.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))), None)
        future = [node for node in self.tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        at = self._offset((future[-1].end_lineno or 0) + 1, 0) if future else self.span(first)[0] if first else 0
        return Edit(at, at, "".join(f"import {module}\n" for module in modules))

    def at_the_end(self, text: str) -> Edit:
        """Code behind everything else."""
        end = len(self.text)
        return Edit(end, end, ("" if self.text.endswith("\n") else "\n") + text)

    def _offset(self, row: int, column: int) -> int:
        """Where a column, counted in UTF-8 bytes, stands in the text."""
        if row > len(self._lines):
            return len(self.text)
        line = self._lines[row - 1]
        return self._starts[row - 1] + (column if line.isascii() else len(line.encode()[:column].decode()))


def body(function: ast.FunctionDef) -> list[ast.stmt]:
    """What a function does: its statements without documentation, where the first stands on a line of its own."""
    found = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return found if found and found[0].lineno > function.lineno else []


def word(node: ast.expr) -> str:
    """The last word of a name, empty for what is none."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def rows(text: str, plant: Plant) -> tuple[int, int]:
    """The first and the last row, from 1, of the planted text in which the cause must be reported."""
    first = plant.edits[0]
    start, end = plant.around or (first.start, first.end)
    grown = sum(_growth(edit) for edit in plant.edits if edit.end <= end)
    start += sum(_growth(edit) for edit in plant.edits if edit.end <= start and edit is not first)
    new = planted(text, plant.edits)
    return new.count("\n", 0, start) + 1, new.count("\n", 0, max(end + grown - 1, start)) + 1


def planted(text: str, edits: Sequence[Edit]) -> str:
    """The text with all edits."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _growth(edit: Edit) -> int:
    return len(edit.text) - (edit.end - edit.start)
