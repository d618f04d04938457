"""What the documentation shows is what the program prints; ``python -m tools.docs --write`` renews it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("pty")

from tools.docs import console, picture, tables
from tools.docs.__main__ import pages

TOP = Path(__file__).parents[2]
PAGES = [pytest.param(page, id=page.relative_to(TOP).as_posix()) for page in pages()]
HINT = "python -m tools.docs --write renews it"


# Pages whose programs import torch for seconds each. `pytest -m long` runs these programs; what the tool says of them, and how it
# changes them, is tried every time.
OF_TORCH = [page for page in pages() if "$ python " in page.read_text(encoding="utf-8")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(*each.values, id=each.id, marks=pytest.mark.long if each.values[0] in OF_TORCH else ())
        for each in PAGES
    ],
)
def test_console_examples_hold(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page in OF_TORCH and importlib.util.find_spec("torch") is None:
        pytest.skip("runs torch")
    wrong = [(each.block.text, each.printed) for each in console.check(text)]
    assert wrong == [], HINT


@pytest.mark.slow
@pytest.mark.parametrize("page", OF_TORCH, ids=lambda page: page.name)
def test_console_examples_hold_beside_the_programs(page: Path) -> None:
    text = re.sub(r"```console\n(?:\$ python .*\n.*\n)+```\n", "", page.read_text(encoding="utf-8"))
    assert "$ torchrepro-lint " in text
    assert "$ python " not in text
    assert [(each.block.text, each.printed) for each in console.check(text)] == [], HINT


@pytest.mark.parametrize("page", PAGES)
def test_tables_are_those_of_the_program(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert tables.written(text) == text, HINT


def test_the_picture_is_what_is_printed() -> None:
    assert picture.PICTURE.read_text(encoding="utf-8") == picture.drawn(), HINT


def test_the_picture_has_three_findings_and_a_fix() -> None:
    shown = re.sub(r"<[^>]+>", "", picture.PICTURE.read_text(encoding="utf-8")).replace("\N{NO-BREAK SPACE}", " ")
    assert len(re.findall(r"\w+\[TRL\d{3}\]", shown)) == 3
    assert re.search(r"^\d+ \+ ", shown, re.MULTILINE)


def test_every_page_with_a_console_block_is_run() -> None:
    known = set(pages())
    found = {page for page in (*TOP.glob("*.md"), *TOP.glob("docs/**/*.md")) if "```console" in page.read_text("utf-8")}
    assert found <= known


FINDING = "$ torchrepro-lint examples/scenes/losses.py -q --output-format flake8\n"


def test_another_output_is_noticed_and_written() -> None:
    page = f"Before\n\n```console\n{FINDING}something else\n```\n\nAfter\n"
    (wrong,) = console.check(page)
    assert wrong.block.text == f"{FINDING}something else\n"
    assert "TRL401" in wrong.printed
    again = console.rewritten(page)
    assert again == f"Before\n\n```console\n{wrong.printed}```\n\nAfter\n"
    assert console.check(again) == []


def test_an_output_may_hold_fences() -> None:
    page = "````console\n$ printf '```\\nx\\n```\\n'\n```\nx\n```\n````\n"
    assert console.check(page) == []


def test_a_page_writes_and_changes_files() -> None:
    page = (
        '```python title="a.py"\nx = 1\ny = 2\n```\n\n```diff title="a.py"\n x = 1\n-y = 2\n+y = 3\n```\n\n'
        "```console\n$ cat a.py\nx = 1\ny = 3\n```\n"
    )
    assert console.check(page) == []


def test_a_change_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 times"):
        console.patched("x = 1\n", "-y = 2\n+y = 3\n")


@pytest.mark.parametrize(
    ("note", "shown"),
    [
        ("", "a\nb\nc\nd\n"),
        ("show: 1", "a\n…\n"),
        ("show: 2-3", "…\nb\nc\n…\n"),
        ("show: /c/", "…\nc\n…\n"),
        ("show: /b/+1", "…\nb\nc\n…\n"),
        ("show: 1, -1", "a\n…\nd\n"),
    ],
)
def test_a_note_chooses_lines(note: str, shown: str) -> None:
    assert console.shown("a\nb\nc\nd\n", note) == shown


def test_a_pattern_must_match() -> None:
    with pytest.raises(ValueError, match="no line"):
        console.shown("a\n", "show: /b/")


def test_long_lines_are_cut() -> None:
    assert console.shown("123456789\n", "show: 1; cut 5") == "1234…\n"


SAME, OTHER = "$ echo 1.5\n", "$ echo 2.5\n"


@pytest.mark.parametrize(("note", "commands"), [("agree", SAME + SAME), ("differ", SAME + OTHER)])
def test_numbers_are_compared_with_each_other(note: str, commands: str) -> None:
    block = re.sub("^(.*)$", r"\1\n9.9", commands.rstrip("\n"), flags=re.MULTILINE)
    assert console.check(f"<!-- numbers {note} -->\n\n```console\n{block}\n```\n") == []


@pytest.mark.parametrize(("note", "commands"), [("differ", SAME + SAME), ("agree", SAME + OTHER), ("agree", SAME)])
def test_numbers_that_do_not_do_so_are_an_error(note: str, commands: str) -> None:
    with pytest.raises(ValueError, match=f"numbers {note}"):
        console.check(f"<!-- numbers {note} -->\n\n```console\n{commands}```\n")


def test_colours_become_pieces() -> None:
    plain, bold = picture.Style(), picture.Style(bold=True)
    red = picture.Style(picture._COLOURS[1], bold=True)
    line = "a \x1b[1mb\x1b[m \x1b[1;31mc\x1b[0md"
    assert list(picture.pieces(line)) == [
        picture.Piece(0, "a ", plain),
        picture.Piece(2, "b", bold),
        picture.Piece(3, " ", plain),
        picture.Piece(4, "c", red),
        picture.Piece(5, "d", plain),
    ]


def test_long_lines_go_on_in_the_next() -> None:
    rows = list(picture._wrapped(list(picture.pieces("x" * (console.COLUMNS + 2)))))
    assert [[len(piece.text) for piece in row] for row in rows] == [[console.COLUMNS], [2]]
