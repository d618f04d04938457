"""Suppression comments: which of them hide which findings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchrepro_lint.source.suppressions import joined_rows, suppressions
from torchrepro_lint.source.text import Lines


def hidden(text: str, row: int, code: str = "TRL301", name: str = "dataloader-worker-init") -> bool:
    return any(one.covers(row, code, name) for one in suppressions(Lines(text)))


@pytest.mark.parametrize(
    ("comment", "hides"),
    [
        ("# noqa", True),
        ("# NoQA", True),
        ("# noqa: TRL301", True),
        ("# noqa:TRL301", True),
        ("# noqa: E501,TRL301", True),
        ("# noqa: E501, TRL301", True),
        ("# noqa: E501 TRL301", True),
        ("# noqa: TRL3", True),
        ("# noqa: T", True),  # no code without a digit: a bare noqa
        ("# noqa : E501", True),
        ("# noqa: a reason in words", True),
        ("# type: ignore  # noqa: TRL301", True),
        ("# noqa: TRL302", False),
        ("# noqa: trl301", False),
        ("#noqa", False),
        ("#  noqa", False),
        ("# torchrepro: ignore", True),
        ("# torchrepro: ignore[TRL301]", True),
        ("# torchrepro: ignore[TRL3]", True),
        ("# torchrepro: ignore[TRL101, dataloader-worker-init] seeded by the launcher", True),
        ("#torchrepro:ignore[TRL301]", True),
        ("# torchrepro: ignore[TRL302]", False),
        ("# torchrepro: ignore[]", False),
        ("# torchrepro: ignored", False),
        ("# torchrepro: ignore-file[TRL301]", False),  # not before the code
    ],
)
def test_a_comment_on_the_line(comment: str, hides: bool) -> None:
    text = f"a = 1\nb = 2  {comment}\nc = 3\n"
    assert hidden(text, 2) is hides
    assert not hidden(text, 1)
    assert not hidden(text, 3)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_string_or_backslash_joins_lines_and_a_bracket_does_not(newline: str) -> None:
    text = newline.join(
        ['x = """', "a", '"""  # noqa', "y = 1 + \\", "    2  # noqa", "z = [", "    3,", "]  # noqa", ""]
    )
    assert [row for row in range(1, 9) if hidden(text, row)] == [1, 2, 3, 4, 5, 8]


def test_ignore_file_counts_before_the_code_only() -> None:
    assert hidden("#!/usr/bin/env python\n# torchrepro: ignore-file[TRL301]\n\nx = 1\n", 4)
    assert hidden("# torchrepro: ignore-file\nx = 1\n", 2)
    assert not hidden('"""Docstring."""\n# torchrepro: ignore-file\nx = 1\n', 3)
    assert not hidden("# torchrepro: ignore-file[TRL302]\nx = 1\n", 2)


def test_flake8_noqa_covers_the_file() -> None:
    assert hidden("x = 1\n# flake8: noqa\n", 1)
    assert hidden("# flake8: noqa: TRL3\nx = 1\n", 2)
    assert not hidden("# flake8: noqa: E501\nx = 1\n", 2)


def test_a_file_that_does_not_tokenize_is_read_line_by_line() -> None:
    text = "def f(:\n    x = '  # noqa\n"
    assert hidden(text, 2)
    assert not hidden(text, 1)


def test_ours_in_a_string_is_no_comment() -> None:
    assert not hidden("x = '# torchrepro: ignore'\n", 1)


def test_joined_rows_cover_every_row() -> None:
    lines = Lines("a = 1\n\nb = '''\n'''\n")
    assert joined_rows(lines) == {1: (1, 1), 2: (2, 2), 3: (3, 4), 4: (3, 4), 5: (5, 5)}


def test_flake8_reads_the_same_comments_the_same_way(tmp_path: Path) -> None:
    """flake8 itself, with F401 at every line: what it leaves out is what we leave out."""
    comments = [
        *("# noqa", "# NOQA:F401", "# noqa: F4", "# noqa: E501, F401", "# noqa: E501 F401", "# noqa : E1", "#noqa"),
        *(
            "# noqa: f401",
            "# noqa: E501",
            "# noqa:  F401",
            "# noqa: F401: because",
            "# x # noqa:F401 y",
            "# noqa:E501,,F401",
        ),
    ]
    text = "".join(f"import m{number}  {comment}\n" for number, comment in enumerate(comments))
    text += 'import o, \\\n    p  # noqa\nimport q; s = """\n"""  # noqa: F401\nfrom r import (  # noqa\n    t,\n)\n'
    file = tmp_path / "imports.py"
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "flake8", "--isolated", "--select", "F401", "--format", "%(row)d", str(file)]
    reported = {int(row) for row in subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()}
    every = subprocess.run([*command, "--disable-noqa"], capture_output=True, text=True, check=False).stdout.split()
    assert len(set(every)) >= len(comments)
    assert reported == {int(row) for row in every if not hidden(text, int(row), "F401", "unused-import")}
