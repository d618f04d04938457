"""Files that are given under two names are fixed once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.checks.rule import Finding, Rule
from torchrepro_lint.engine import run
from torchrepro_lint.source.text import Edit, Fix, Span
from torchrepro_lint.trace.traces import Context

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]
SYNTAX = Rule("TRL001", "syntax-error", "error", True, lambda _: ())


def first_word(code: str, word: str, fix: Callable[[str], Fix]) -> Rule:
    """A rule that asks that a word does not begin a file; the fix may depend on the file's name."""

    def check(context: Context) -> Iterator[Finding]:
        if context.lines.text.startswith(word):
            yield Finding(code, Span(0, len(word)), f"{word} comes first", fix(context.path))

    return Rule(code, f"no-{word}", "warning", True, check)


def good(_: str) -> Fix:
    return Fix("write GOOD", (Edit(Span(0, 3), "GOOD"),), safe=True)


def use(monkeypatch: pytest.MonkeyPatch, *rules: Rule) -> None:
    monkeypatch.setattr(run, "RULES", (SYNTAX, *rules))


def test_a_file_and_links_to_it_are_fixed_once(project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, first_word("TRL901", "BAD", good))
    folder = project({"pyproject.toml": "", "m.py": "BAD\n", "sub/n.py": "BAD\n"})
    (folder / "a.py").symlink_to("m.py")
    (folder / "sub/z.py").symlink_to("../m.py")
    assert lint("--fix") == Ran(0, "", "Fixed 4 findings: 4 TRL901\nNo findings left in 4 files\n")
    assert (folder / "m.py").read_text(encoding="utf-8") == "GOOD\n"
    assert (folder / "a.py").is_symlink()
    assert (folder / "sub/z.py").is_symlink()
    assert lint("--fix") == Ran(0, "", "No findings in 4 files\n")


def test_the_diff_shows_a_file_once_and_by_its_own_name(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, first_word("TRL901", "BAD", good))
    folder = project({"pyproject.toml": "", "m.py": "BAD\n"})
    (folder / "a.py").symlink_to("m.py")
    assert lint("--diff").out == "--- ./m.py\n+++ ./m.py\n@@ -1 +1 @@\n-BAD\n+GOOD\n"


def test_what_is_found_under_one_name_alone_is_fixed(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_link(path: str) -> Fix:
        return Fix("write FINE", (Edit(Span(0, 3), "FINE"),) if path == "a.py" else (), safe=path == "a.py")

    use(monkeypatch, first_word("TRL901", "BAD", only_link))
    folder = project({"pyproject.toml": "", "m.py": "BAD\n"})
    (folder / "a.py").symlink_to("m.py")
    assert lint("--fix").err.startswith("Fixed 1 finding: 1 TRL901\n")
    assert (folder / "m.py").read_text(encoding="utf-8") == "FINE\n"


def test_a_fix_of_two_files_may_reach_one_by_a_link(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def both(_: str) -> Fix:
        return Fix("both", (Edit(Span(0, 3), "GOOD"),), safe=True, elsewhere=(("a.py", (Edit(Span(0, 0), "# 1\n"),)),))

    use(monkeypatch, first_word("TRL901", "BAD", both))
    folder = project({"pyproject.toml": "", "b.py": "BAD\n", "m.py": "x\n"})
    (folder / "a.py").symlink_to("m.py")
    assert lint("--fix").status == 0
    assert (folder / "b.py").read_text(encoding="utf-8") == "GOOD\n"
    assert (folder / "m.py").read_text(encoding="utf-8") == "# 1\nx\n"


def test_a_fix_that_breaks_a_file_leaves_it_under_each_name(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, first_word("TRL901", "BAD", lambda _: Fix("tear", (Edit(Span(0, 3), "("),), safe=True)))
    folder = project({"pyproject.toml": "", "m.py": "BAD\n"})
    (folder / "a.py").symlink_to("m.py")
    ran = lint("--fix")
    assert (ran.status, ran.err.count("a fix that would break the file was not applied (tear)")) == (2, 2)
    assert (folder / "m.py").read_text(encoding="utf-8") == "BAD\n"


def test_a_file_of_two_projects_is_fixed_as_the_first_has_it(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_folder(path: str) -> Fix:
        return Fix("name", (Edit(Span(0, 3), f"GOOD = '{path}'"),), safe=True)

    use(monkeypatch, first_word("TRL901", "BAD", by_folder))
    folder = project({"one/pyproject.toml": "", "one/m.py": "BAD\n", "two/pyproject.toml": ""})
    os.symlink("../one/m.py", folder / "two/link.py")
    ran = lint("--fix", "one", "two")
    assert ran.status == 2
    assert "two/link.py: not fixed: it is the same file as one/m.py, which was fixed; run again\n" in ran.err
    assert (folder / "one/m.py").read_text(encoding="utf-8") == "GOOD = 'm.py'\n"
    assert lint("--fix", "one", "two").status == 0
