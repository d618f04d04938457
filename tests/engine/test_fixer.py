"""Wrong fixes, fixes of two files, and files that cannot be written: what is applied, reported and left alone."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.checks.rule import Finding, Rule
from torchrepro_lint.engine import run
from torchrepro_lint.source.text import Edit, Fix, Span, apply_edits, map_offset, merge
from torchrepro_lint.trace.traces import Context

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]
Answer = Callable[[Context, Span], Fix | None]
FAULT = "; this is a bug in torchrepro-lint, please report it"


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replace the rules: each finds a word in the files, and answers with a fix."""

    def replace(**answers: Answer) -> None:
        made = [
            Rule(f"TRL90{number}", f"no-{word}", "warning", True, _check(f"TRL90{number}", word, answer))
            for number, (word, answer) in enumerate(answers.items(), 1)
        ]
        monkeypatch.setattr(run, "RULES", (Rule("TRL001", "syntax-error", "error", True, lambda _: ()), *made))

    return replace


def _check(code: str, word: str, answer: Answer) -> Callable[[Context], Iterator[Finding]]:
    def check(context: Context) -> Iterator[Finding]:
        for match in re.finditer(rf"\b{word}\b", context.lines.text):
            span = Span(*match.span())
            row = context.lines.position(span.start).row
            yield Finding(code, span, f"{word} in line {row}", answer(context, span))

    return check


def writes(better: str) -> Answer:
    """A fix that writes another word."""
    return lambda _, span: Fix(f"write {better}", (Edit(span, better),), safe=True)


def above(line: str) -> Answer:
    """A fix that writes a line at the start of the file."""
    return lambda _, __: Fix(f"write {line} above", (Edit(Span(0, 0), f"{line}\n"),), safe=True)


def both(path: str) -> Answer:
    """A fix that writes GOOD here and a line into another file."""
    return lambda _, span: Fix(
        "write both", (Edit(span, "GOOD"),), safe=True, elsewhere=((path, (Edit(Span(0, 0), "READY\n"),)),)
    )


def test_a_fix_that_leaves_its_finding_is_withdrawn(project: Maker, lint: Lint, rules: Callable[..., None]) -> None:
    rules(BAD=writes("GOOD"), STUBBORN=above("x = 1"))
    folder = project({"a.py": "BAD\nSTUBBORN\n", "b.py": "BAD\n"})
    ran = lint("--fix")
    assert ran.status == 2
    assert f"./a.py: a fix that would not remove its finding was not applied (write x = 1 above){FAULT}\n" in ran.err
    assert (folder / "a.py").read_text(encoding="utf-8") == "BAD\nSTUBBORN\n"
    assert (folder / "b.py").read_text(encoding="utf-8") == "GOOD\n"
    assert ran.out == "./a.py:1:1: TRL901 BAD in line 1\n./a.py:2:1: TRL902 STUBBORN in line 2\n"


def test_a_finding_that_is_there_twice_is_not_taken_for_one_that_stayed(
    project: Maker, lint: Lint, rules: Callable[..., None]
) -> None:
    rules(BAD=lambda _, span: Fix("one", (Edit(span, "GOOD"), Edit(Span(0, 0), f"# {span.start}\n")), safe=True))
    folder = project({"a.py": "BAD; BAD; BAD\n"})
    assert lint("--fix").status == 0
    assert (folder / "a.py").read_text(encoding="utf-8").endswith("GOOD; GOOD; GOOD\n")


def test_fixes_that_undo_each_other_end_and_leave_all_others_in(
    project: Maker, lint: Lint, rules: Callable[..., None]
) -> None:
    """Also where the circle is entered by a fix that is not undone, and where there is more than one."""
    rules(
        BAD=writes("GOOD"),
        IN=writes("PING"),
        PING=writes("PONG"),
        PONG=writes("PING"),
        ONE=writes("TWO"),
        TWO=writes("THREE"),
        THREE=writes("ONE"),
    )
    folder = project({"a.py": "PING\nBAD\nIN\n", "b.py": "BAD\nTWO\n", "c.py": "ONE\nPONG\n"})
    ran = lint("--fix")
    assert ran.status == 2
    assert f"./a.py: fixes that would go on without end were not applied (write PING; write PONG){FAULT}\n" in ran.err
    assert (
        f"./b.py: fixes that would go on without end were not applied (write ONE; write THREE; write TWO){FAULT}\n"
        in ran.err
    )
    both = "write ONE; write PING; write PONG; write THREE; write TWO"
    assert f"./c.py: fixes that would go on without end were not applied ({both}){FAULT}\n" in ran.err
    assert (folder / "a.py").read_text(encoding="utf-8") == "PING\nGOOD\nPING\n"
    assert (folder / "b.py").read_text(encoding="utf-8") == "GOOD\nTWO\n"
    assert (folder / "c.py").read_text(encoding="utf-8") == "ONE\nPONG\n"


@pytest.mark.parametrize(("rounds", "status"), [(10, 0), (11, 2)])
def test_fixes_have_ten_rounds_to_come_to_an_end(
    project: Maker, lint: Lint, rules: Callable[..., None], rounds: int, status: int
) -> None:
    """Each round's finding says something else, so that none is taken for one that stayed."""
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"]
    words = names[: rounds + 1]
    rules(**{one: writes(other) for one, other in itertools.pairwise(words)})
    folder = project({"a.py": "zero\n"})
    ran = lint("--fix")
    assert ran.status == status
    assert ("would go on without end" in ran.err) == bool(status)
    assert (folder / "a.py").read_text(encoding="utf-8") == f"{words[0] if status else words[-1]}\n"


def test_the_fix_that_breaks_a_file_is_named(project: Maker, lint: Lint, rules: Callable[..., None]) -> None:
    rules(BAD=writes("GOOD"), BREAK=writes("("))
    folder = project({"a.py": "BAD\nBREAK\n", "b.py": "BAD\n"})
    ran = lint("--fix")
    assert f"./a.py: a fix that would break the file was not applied (write (){FAULT}\n" in ran.err
    assert (folder / "a.py").read_text(encoding="utf-8") == "BAD\nBREAK\n"
    assert (folder / "b.py").read_text(encoding="utf-8") == "GOOD\n"


def test_a_fix_of_two_files_is_one_fix(project: Maker, lint: Lint, rules: Callable[..., None]) -> None:
    rules(BAD=both("b.py"))
    folder = project({"pyproject.toml": "", "a.py": "BAD\n", "b.py": "x\n"})
    (edits,) = [one["fix"]["edits"] for one in json.loads(lint("--output-format", "json").out)]
    assert [each.get("filename") for each in edits] == [None, str(folder / "b.py")]
    ran = lint("--fix")
    assert (ran.status, ran.err.splitlines()[0]) == (0, "Fixed 1 finding: 1 TRL901")
    assert (folder / "a.py").read_text(encoding="utf-8") == "GOOD\n"
    assert (folder / "b.py").read_text(encoding="utf-8") == "READY\nx\n"


def test_a_fix_of_two_files_waits_until_both_are_given(project: Maker, lint: Lint, rules: Callable[..., None]) -> None:
    rules(BAD=both("b.py"))
    folder = project({"pyproject.toml": "", "a.py": "BAD\n", "b.py": "x\n"})
    assert lint("--fix", "a.py").status == 1
    assert (folder / "a.py").read_text(encoding="utf-8") == "BAD\n"


def test_a_fix_of_two_files_that_breaks_one_leaves_both(project: Maker, lint: Lint, rules: Callable[..., None]) -> None:
    torn = (("b.py", (Edit(Span(0, 2), "("),)),)
    rules(BAD=lambda _, span: Fix("tear", (Edit(span, "GOOD"),), safe=True, elsewhere=torn))
    folder = project({"pyproject.toml": "", "a.py": "BAD\n", "b.py": "if x:\n    y\n"})
    ran = lint("--fix")
    assert ran.err.count("a fix that would break the file was not applied (tear)") == 2
    assert (folder / "a.py").read_text(encoding="utf-8") == "BAD\n"
    assert (folder / "b.py").read_text(encoding="utf-8") == "if x:\n    y\n"


def test_files_of_one_fix_are_written_together_or_not(
    project: Maker, lint: Lint, rules: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(BAD=both("b.py"), POOR=writes("RICH"))
    folder = project({"pyproject.toml": "", "a.py": "BAD\n", "b.py": "x\n", "c.py": "POOR\n"})
    from torchrepro_lint.engine import writing

    honest = writing.stage

    def refuse(data: bytes, place: str) -> str:
        if place.endswith("b.py"):
            raise PermissionError(13, "Permission denied")
        return honest(data, place)

    monkeypatch.setattr(writing, "stage", refuse)
    ran = lint("--fix")
    assert ran.status == 2
    assert "torchrepro-lint: ./b.py: cannot be written: Permission denied\n" in ran.err
    assert "./a.py: not fixed: the fix also changes another file, which cannot be written\n" in ran.err
    assert (folder / "a.py").read_text(encoding="utf-8") == "BAD\n"
    assert (folder / "c.py").read_text(encoding="utf-8") == "RICH\n"
    assert sorted(each.name for each in folder.iterdir()) == ["a.py", "b.py", "c.py", "pyproject.toml"]


def test_fixes_that_touch_wait_for_another_round() -> None:
    one = Fix("one", (Edit(Span(0, 3), "x"),), safe=True)
    far = Fix("far", (), safe=True, elsewhere=(("a.py", (Edit(Span(2, 4), "y"),)), ("b.py", (Edit(Span(0, 0), "z"),))))
    same = Fix("same", (Edit(Span(0, 3), "x"), Edit(Span(9, 9), "!")), safe=True)
    merged = merge([("b.py", far), ("a.py", one), ("a.py", same)])
    assert merged.taken == (1, 2)
    assert merged.edits == {"a.py": (Edit(Span(0, 3), "x"), Edit(Span(9, 9), "!"))}


@pytest.mark.parametrize(("offset", "places"), [(0, (0, 2)), (2, (4, 4)), (4, (5, 5)), (6, (7, 11)), (7, (12, 12))])
def test_offsets_move_with_the_edits_before_them(offset: int, places: tuple[int, int]) -> None:
    edits, text = (Edit(Span(0, 0), "##"), Edit(Span(3, 4), ""), Edit(Span(6, 6), "abcd")), "0123456789"
    assert map_offset(offset, edits) == places
    assert apply_edits(text, edits)[places[1]] == text[offset]


def test_a_release_before_the_catalogue_gets_the_fixes_that_every_release_can_run(project: Maker, lint: Lint) -> None:
    files = {
        "requirements.txt": "torch==1.2.0\n",
        "data.py": "import os\n\nimport torch\n\n\ndef names(folder):\n    return [name for name in os.listdir(folder)]\n",
        "train.py": "import torch\nfrom torch.utils.data import DataLoader\n\n\ndef loader(data):\n    torch.backends.cudnn.benchmark = True\n"
        "    return DataLoader(data, shuffle=True)\n",
    }
    folder = project(files)
    lint("--fix", "--unsafe-fixes")
    assert "in sorted(os.listdir(folder))" in (folder / "data.py").read_text(encoding="utf-8")
    written = (folder / "train.py").read_text(encoding="utf-8")
    assert "benchmark = False" in written
    assert "DataLoader(data, shuffle=True)" in written
