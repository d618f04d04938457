"""A run: from files to findings, and fixes to a fixed point."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import Selection, Settings
from torchrepro_lint.engine import run as engine
from torchrepro_lint.engine.diagnostic import RunOutcome
from torchrepro_lint.engine.run import run
from torchrepro_lint.engine.writing import write

Maker = Callable[[Mapping[str, str | bytes]], Path]
pytestmark = pytest.mark.usefixtures("toys")


def outcome(
    *paths: str, select: tuple[str, ...] = ("ALL",), ignore: tuple[str, ...] = ("TRL913",), **given: object
) -> RunOutcome:
    fix, comments = bool(given.pop("fix", False)), bool(given.pop("comments", True))

    def overrides(settings: Settings) -> Settings:
        layers = (*settings.selections, Selection(select, (), ignore))
        return settings._replace(selections=layers, **given)  # type: ignore[arg-type]

    planned = plan(paths or (".",), ConfigOptions(overrides=overrides))
    return run(planned, fix, comments, lambda total: lambda: None)


def shown(result: RunOutcome) -> list[str]:
    return [f"{one.display}:{one.start.row}:{one.start.column} {one.code}" for one in result.diagnostics]


def fixed(result: RunOutcome) -> list[str]:
    assert [write(change) for change in result.changes] == [None] * len(result.changes)
    return [change.given.display for change in result.changes]


def test_findings_come_in_order_of_path_row_column_code(project: Maker) -> None:
    project({"b.py": "x = 1\nBAD, RISKY = 1, 2\nRARE = BAD\n", "a.py": "BAD = 1\n"})
    assert shown(outcome("b.py", "a.py")) == [
        "a.py:1:1 TRL901",
        "b.py:2:1 TRL901",
        "b.py:2:6 TRL902",
        "b.py:3:1 TRL911",
        "b.py:3:8 TRL901",
    ]


def test_what_is_said_twice_is_reported_once(project: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    project({"a.py": "BAD\n"})
    bad = next(rule for rule in engine.RULES if rule.code == "TRL901")
    monkeypatch.setattr(engine, "RULES", (bad._replace(check=lambda context: [*bad.check(context)] * 2),))
    assert shown(outcome(ignore=())) == ["./a.py:1:1 TRL901"]


def test_columns_count_code_points(project: Maker) -> None:
    project({"a.py": "'ä😀'; BAD = 1\n"})
    assert shown(outcome()) == ["./a.py:1:7 TRL901"]


def test_comments_suppress_unless_told_otherwise(project: Maker) -> None:
    project({"a.py": "BAD = 1  # noqa: TRL901\nBAD = 2  # torchrepro: ignore[bad-word]\nBAD = 3\n"})
    assert shown(outcome()) == ["./a.py:3:1 TRL901"]
    assert len(outcome(comments=False).diagnostics) == 3


def test_severity_and_files_filter(project: Maker) -> None:
    settings = '[tool.torchrepro-lint.per-file-ignores]\n"t/*.py" = ["TRL9"]\n"!*a.py" = ["rare-word"]\n'
    project({"pyproject.toml": settings, "a.py": "BAD; RISKY; RARE\n", "b.py": "RARE; RISKY\n", "t/c.py": "BAD\n"})
    assert shown(outcome()) == ["./a.py:1:1 TRL901", "./a.py:1:6 TRL902", "./a.py:1:13 TRL911", "./b.py:1:7 TRL902"]
    assert shown(outcome(min_severity="error")) == ["./a.py:1:13 TRL911"]


def test_a_broken_file_is_a_finding_and_the_others_go_on(project: Maker) -> None:
    project({"a.py": "x = (\n", "b.py": "BAD = 1\n", "c.py": b"x = '\xff'\n", "d.py": "(" * 5000})
    result = outcome()
    assert [(one.display, one.code) for one in result.diagnostics] == [
        ("./a.py", "TRL001"),
        ("./b.py", "TRL901"),
        ("./c.py", "TRL001"),
        ("./d.py", "TRL001"),
    ]
    assert result.errors == ()


def test_a_broken_rule_is_an_error_and_the_others_go_on(project: Maker) -> None:
    project({"a.py": "BAD = 1\n", "b.py": "", "c.py": ""})
    result = outcome(ignore=())
    assert shown(result) == ["./a.py:1:1 TRL901"]
    (error,) = result.errors
    assert error.startswith("./a.py: TRL913 failed: ZeroDivisionError")
    assert error.endswith(" (and in 2 more files)")


def test_an_unreadable_file_is_an_error_and_the_others_go_on(project: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    project({"a.py": "BAD = 1\n", "b.py": "BAD = 1\n"})
    honest = os.open

    def refuse(path: str | Path, *how: Any) -> int:
        if Path(path).name == "a.py":
            raise PermissionError(13, "Permission denied")
        return honest(path, *how)

    monkeypatch.setattr(os, "open", refuse)
    result = outcome("a.py", "b.py")
    assert shown(result) == ["b.py:1:1 TRL901"]
    assert result.errors == ("a.py: cannot be read: Permission denied",)
    assert outcome("b.py").errors == ()


def test_a_file_that_vanishes_before_it_is_read_is_an_error_and_the_others_go_on(
    project: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    project({"a.py": "BAD = 1\n", "b.py": "BAD = 1\n", "c.py": "import a\nBAD = a\n"})
    honest = os.open

    def vanish(path: str | Path, *how: Any) -> int:
        if Path(path).name == "a.py":
            Path(path).unlink(missing_ok=True)
        return honest(path, *how)

    monkeypatch.setattr(os, "open", vanish)
    result = outcome()
    assert shown(result) == ["./b.py:1:1 TRL901", "./c.py:2:1 TRL901"]
    assert result.errors == ("./a.py: cannot be read: No such file or directory",)


def test_safe_fixes_are_applied_and_the_rest_is_left(project: Maker) -> None:
    folder = project({"a.py": "BAD = RISKY = BAD\n", "b.py": "x = 1\n"})
    result = outcome(fix=True)
    assert fixed(result) == ["./a.py"]
    assert (folder / "a.py").read_text(encoding="utf-8") == "GOOD = RISKY = GOOD\n"
    assert shown(result) == ["./a.py:1:8 TRL902"]
    assert result.settled == ("TRL901", "TRL901")


def test_unsafe_fixes_are_asked_for(project: Maker) -> None:
    folder = project({"a.py": "BAD = RISKY\n"})
    assert shown(outcome(fix=True, unsafe_fixes=True)) == []
    fixed(outcome(fix=True, unsafe_fixes=True))
    assert (folder / "a.py").read_text(encoding="utf-8") == "GOOD = CALM\n"
    assert outcome(fix=True, unsafe_fixes=True).changes == ()


def test_unfixable_and_suppressed_findings_are_not_fixed(project: Maker) -> None:
    project({"a.py": "BAD = 1\nRISKY = 1  # noqa\n"})
    result = outcome(fix=True, unsafe_fixes=True, unfixable=("bad-word",))
    assert result.changes == ()
    assert [one.fix for one in result.diagnostics] == [None]


def test_a_fix_that_breaks_the_file_is_not_written(project: Maker) -> None:
    project({"a.py": "x = BREAK\nBAD = 1\n", "b.py": "BAD = 1\n"})
    result = outcome(fix=True)
    assert fixed(result) == ["./b.py"]
    assert result.errors == (
        "./a.py: a fix that would break the file was not applied (write (); this is a bug in torchrepro-lint, please report it",
    )
    assert shown(result) == ["./a.py:1:5 TRL912", "./a.py:2:1 TRL901"]


def test_bytes_around_a_fix_are_kept(project: Maker) -> None:
    data = b"\xef\xbb\xbfx = '\xc3\xa9'\r\nBAD = 1\ny = 2\r\nz = 3"
    latin = "# coding: latin-1\nBAD = 'é'\n".encode("latin-1")
    folder = project({"a.py": data, "b.py": latin})
    os.chmod(folder / "a.py", 0o754)
    fixed(outcome(fix=True))
    assert (folder / "a.py").read_bytes() == data.replace(b"BAD", b"GOOD")
    assert (folder / "b.py").read_bytes() == latin.replace(b"BAD", b"GOOD")
    assert stat.S_IMODE(os.stat(folder / "a.py").st_mode) == 0o754
    assert sorted(path.name for path in folder.iterdir()) == ["a.py", "b.py"]


def test_the_target_of_a_link_is_written(project: Maker) -> None:
    folder = project({"real/a.txt": "BAD = 1\n"})
    (folder / "link.py").symlink_to("real/a.txt")
    fixed(outcome("link.py", fix=True))
    assert (folder / "link.py").is_symlink()
    assert (folder / "real/a.txt").read_text(encoding="utf-8") == "GOOD = 1\n"


def test_a_file_that_changed_meanwhile_is_left_alone(project: Maker) -> None:
    folder = project({"a.py": "BAD = 1\n"})
    result = outcome(fix=True)
    (folder / "a.py").write_text("x = 1\n", encoding="utf-8")
    assert [write(change) for change in result.changes] == [
        "./a.py: not fixed: it changed in the meantime, or its encoding cannot be preserved"
    ]
    assert (folder / "a.py").read_text(encoding="utf-8") == "x = 1\n"


def test_a_failed_write_leaves_the_file_and_no_rubbish(project: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project({"a.py": "BAD = 1\n"})
    result = outcome(fix=True)

    def fail(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    assert [write(change) for change in result.changes] == ["./a.py: cannot be written: No space left on device"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a.py": b"BAD = 1\n"}


def test_an_unknown_target_is_noted_once(project: Maker) -> None:
    project({"one/pyproject.toml": "", "one/a.py": "", "two/pyproject.toml": "", "two/b.py": ""})
    (note,) = outcome(torch_version="1.2").notes
    assert note.startswith("torch 1.2 (the torch-version setting) is not known; torch 1.7 is assumed")


def test_what_is_said_of_a_file_does_not_depend_on_the_others(project: Maker) -> None:
    project({"pyproject.toml": "", "a.py": "BAD\n", "b/c.py": "RISKY; BAD\n"})
    alone = shown(outcome("./a.py")) + shown(outcome("./b/c.py"))
    assert alone == shown(outcome("."))
