"""``python -m benchmarks.fixing``: its notion of a lost token, and its output for a small project."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from benchmarks import fixing
from benchmarks.untouched import compare
from torchrepro_lint.source.text import Edit, Span

Maker = Callable[[Mapping[str, str | bytes]], Path]
LINE = "x = f(a, b)  # why\n"


@pytest.mark.parametrize(
    ("edit", "outside", "lost"),
    [
        (Edit(Span(10, 10), ", c=1"), 9, []),  # beside tokens
        (Edit(Span(0, 0), "import os\n"), 9, []),
        (Edit(Span(6, 7), "z"), 8, []),  # in the stead of one
        (Edit(Span(9, 10), "''"), 8, []),
        (Edit(Span(7, 7), "1"), 9, ["a"]),  # grown onto one
        (Edit(Span(4, 4), "# "), 9, ["f", "(", "a", ",", "b", ")", "# why"]),  # a comment that swallows the rest
        (Edit(Span(18, 18), " not"), 9, ["# why"]),  # a comment that goes on
    ],
)
def test_tokens_outside_an_edit_are_to_stay(edit: Edit, outside: int, lost: list[str]) -> None:
    compared = compare(LINE, [edit])
    assert (compared.outside, [each.string for each in compared.lost]) == (outside, lost)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_tokens_are_found_again_behind_several_edits(line_end: str) -> None:
    text = line_end.join(("if x:", "    y = 'é'", "    z = 2  # two", ""))
    edits = [Edit(Span(0, 0), f"import os{line_end}"), Edit(Span(text.index("2"), text.index("2") + 1), "345")]
    assert compare(text, edits).lost == ()


def test_a_project_is_copied_fixed_and_told_of(
    project: Maker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "import torch\n\ntorch.save(torch.rand(3), 'x.pt')  # drawn\n"
    folder = project({"code/a.py": program, "code/b.py": "x = 1\n", "code/old.py": "print 'x'\n"})
    monkeypatch.setattr(sys, "argv", ["fixing", "code", "--select", "TRL101", "--diffs", "diffs"])
    with pytest.raises(SystemExit) as ended:
        fixing.main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.splitlines()[2:] == ["| code | 3 | 1 | 1 | 16 | 0 |", "", "1 TRL101"]
    assert (folder / "code/a.py").read_text(encoding="utf-8") == program
    assert "+torch.manual_seed(0)\n" in (folder / "diffs/code.diff").read_text(encoding="utf-8")
