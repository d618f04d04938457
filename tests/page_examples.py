"""The examples in a Markdown file with their expectations: the format of ``rules/*.md`` and ``tests/rules/*.md``.

A fenced block is an example. Words after its language say what it is:

``path=train.py``   the file it is; blocks with paths that follow one another under one heading make one project
``fixed``           what ``--fix`` makes of the block before (of the block with its path, where it has one);
                    ``fixed unsafe`` with ``--unsafe-fixes``
``torch=1.8``       the target torch; ``device=cuda``, the device
``select=TRL403``   the rules to run, by commas: the default ones and the page's own otherwise
``page=TRL003``     a rule to run beside the default ones

``# error: [TRL101] "part of the message"`` at the end of a line is a finding that must be there, several such comments are
several findings; nothing else may be. The comments are taken out before the code is linted. Blocks of other languages
without a path are only text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<text>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
_MARKS = re.compile(r"[ \t]*(?P<marks># error: \[TRL\d{3}\].*)$", re.MULTILINE)
_MARK = re.compile(r"# error: \[(?P<code>TRL\d{3})\](?: \"(?P<part>[^\"]*)\")?")
_PAGE = re.compile(r"TRL\d{3}")


class Expected(NamedTuple):
    """A finding that must be reported."""

    path: str
    row: int
    code: str
    part: str


class Fixed(NamedTuple):
    """The text that fixing must give, and what is still reported in it."""

    path: str
    text: str
    unsafe: bool
    expected: tuple[Expected, ...]


class Example(NamedTuple):
    """A project of one or more files, without marks, and what is expected of it."""

    page: str
    line: int
    files: dict[str, str]
    expected: tuple[Expected, ...]
    fixed: tuple[Fixed, ...]
    options: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


class Block(NamedTuple):
    line: int
    group: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def options(self) -> dict[str, str]:
        return dict(word.split("=", 1) for word in self.words if "=" in word)

    @property
    def path(self) -> str | None:
        return self.options.get("path")


def examples(page: Path) -> list[Example]:
    """All examples of a page, in order."""
    text = page.read_text(encoding="utf-8")
    code = _PAGE.match(page.name)
    found: list[Example] = []
    last: Block | None = None
    for block in blocks(text):
        if block.language != "python" and block.path is None:
            continue
        if "fixed" in block.words:
            assert found, f"{page.name}:{block.line}: nothing to fix before this block"
            assert last is not None
            found[-1] = _with_fix(found[-1], block, block.path or last.path or "example.py")
            continue
        joins = last is not None and block.path and last.path and block.group == last.group
        if not joins or block.path in found[-1].files:
            options = {"page": code[0]} if code else {}
            found.append(Example(page.name, block.line, {}, (), (), options))
        found[-1] = _with_file(found[-1], block)
        last = block
    return found


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page; ``group`` counts the headings before."""
    headings = [match.start() for match in _HEADING.finditer(_FENCE.sub(lambda match: " " * len(match[0]), text))]
    for match in _FENCE.finditer(text):
        language, *words = match["info"].split()
        group = sum(start < match.start() for start in headings)
        yield Block(text.count("\n", 0, match.start()) + 1, group, language, tuple(words), match["text"])


def unmarked(text: str) -> str:
    """Code without its marks."""
    return _MARKS.sub("", text)


def expectations(path: str, text: str) -> tuple[Expected, ...]:
    """The marks of a block."""
    return tuple(
        Expected(path, row, mark["code"], mark["part"] or "")
        for row, line in enumerate(text.split("\n"), 1)
        for mark in _MARK.finditer(line)
    )


def _with_file(example: Example, block: Block) -> Example:
    path = block.path or "example.py"
    options = {**example.options, **{key: value for key, value in block.options.items() if key != "path"}}
    return example._replace(
        files={**example.files, path: unmarked(block.text)},
        expected=(*example.expected, *expectations(path, block.text)),
        options=options,
    )


def _with_fix(example: Example, block: Block, path: str) -> Example:
    unsafe = "unsafe" in block.words
    fixed = Fixed(path, unmarked(block.text), unsafe, expectations(path, block.text))
    return example._replace(fixed=(*example.fixed, fixed))
