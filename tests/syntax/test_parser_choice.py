"""``--parser libcst`` and the setting ``parser``: everything is parsed by libcst, with the same findings."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from notebooks import notebook
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.engine.session import Session
from torchrepro_lint.interfaces.lsp.workspace import Document, Preferences, Workspace
from torchrepro_lint.syntax import parse
from torchrepro_lint.syntax.nodes import SyntaxTree

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]
TOP = Path(__file__).parents[2]
SETTING = '[tool.torchrepro-lint]\nparser = "libcst"\n'
MODEL = "import torch\n\n\ndef build():\n    return torch.nn.Linear(3, 1)\n"
TRAIN = "from model import build\n\nnet = build()\nprint(net)\nnet(net.weight).sum().backward()\n"
CELL = "import torch\nx = torch.rand(3)\ntorch.save(x, 'x')"
FILES = {
    "model.py": MODEL,
    "train.py": TRAIN,
    "switch.py": "import torch\n\nif True:\n    torch.backends.cudnn.benchmark = True\n",
    "broken.py": "x = (\n",
    "python2.py": "print 'x'\n",
    "old.py": "import torch\nx = torch.rand(3).cuda(async=True)\ntorch.save(x, 'x')\n",
    "cells.ipynb": notebook(CELL),
    "broken.ipynb": notebook(CELL, "y = (", "z = 1)"),
    "open.ipynb": notebook("x = (1,", "2)"),
    "pyproject.toml": "",
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which parser was asked, for each text."""
    found: list[str] = []

    def spy(name: str) -> None:
        real = getattr(parse, f"parse_with_{name}")

        def told(text: str) -> SyntaxTree | None:
            found.append(name)
            answer: SyntaxTree | None = real(text)
            return answer

        monkeypatch.setattr(parse, f"parse_with_{name}", told)

    spy("ast")
    spy("libcst")
    return found


@pytest.fixture
def no_ast(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(text: str) -> SyntaxTree | None:
        raise AssertionError(f"Python's own parser was asked: {text!r}")

    monkeypatch.setattr(parse, "parse_with_ast", ask)


def _printed(folder: Path, *arguments: str) -> list[bytes]:
    """What a command prints with each parser, in processes of their own that run side by side."""
    command = [sys.executable, "-m", "torchrepro_lint", *arguments, ".", "--select", "ALL", "--output-format", "json"]
    started = [
        subprocess.Popen([*command, "--no-cache", "-q", "--parser", parser], cwd=folder, stdout=subprocess.PIPE)
        for parser in ("auto", "libcst")
    ]
    printed = [each.communicate(timeout=120)[0] for each in started]
    assert [each.returncode for each in started] == [1, 1]
    return printed


@pytest.mark.parametrize("command", ["check", "report"])
def test_both_say_the_same_of_the_examples(command: str) -> None:
    quick, reference = _printed(TOP / "examples", command)
    assert quick == reference
    assert b"TRL401" in quick


@pytest.mark.parametrize("command", ["check", "report"])
def test_both_say_the_same_of_a_package(tmp_path: Path, command: str) -> None:
    spec = importlib.util.find_spec("torch")
    package = Path(spec.origin).parent / "utils" / "data" / "datapipes" if spec and spec.origin else Path("none")
    if not package.is_dir():
        pytest.skip("not installed")
    shutil.copytree(package, tmp_path / "datapipes", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "datapipes"\n')
    quick, reference = _printed(tmp_path, command)
    assert quick == reference
    assert b"TRL106" in quick


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--diff", "--unsafe-fixes", "--jobs", "1"),
        ("report", "--output-format", "json", "--jobs", "1"),
        ("trace", "train.py"),
    ],
)
def test_with_libcst_python_s_own_parser_is_not_asked(
    project: Maker, lint: Lint, no_ast: None, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    project(FILES)
    found = lint(*arguments, "--parser", "libcst")
    monkeypatch.undo()
    monkeypatch.chdir(project({}))
    assert found == lint(*arguments)
    assert found.out


def test_standard_input_is_read_by_it_too(project: Maker, lint: Lint, no_ast: None) -> None:
    project(FILES)
    ran = lint("-q", "--parser", "libcst", "--stdin-filename", "other.py", stdin=TRAIN.encode())
    assert ran.out.startswith("other.py:3:1: TRL101")


@pytest.mark.usefixtures("toys")
def test_a_fix_that_breaks_a_file_is_one_for_it_too(project: Maker, lint: Lint, no_ast: None) -> None:
    project({"a.py": "x = BREAK\nBAD = 1\n"})
    ran = lint("--fix", "--extend-select", "TRL912", "--parser", "libcst", "--jobs", "1")
    assert "a.py: a fix that would break the file was not applied (write ()" in ran.err


def test_what_is_stored_of_one_parser_is_not_what_the_other_told(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts, answers about the project and the record of a run: here libcst sees nothing in any file."""
    nothing = parse.parse_module("")
    monkeypatch.setattr(parse, "parse_with_libcst", lambda text: nothing)
    folder = project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""})
    for options in ((), (), ("--ignore-noqa",), ("--verbose",), ("report", "--output-format", "markdown")):
        assert "TRL101" in lint(*options).out
        assert "TRL101" not in lint(*options, "--parser", "libcst").out
    for number in range(3):  # what is known of the other files is taken up
        Path(folder, "train.py").write_text(TRAIN + f"print({number})\n")
        assert "TRL101" not in lint("--parser", "libcst").out
        assert "TRL101" in lint().out


def test_each_parser_s_facts_are_kept_for_its_next_run(
    project: Maker, lint: Lint, asked: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""})
    place = tmp_path_factory.mktemp("caches")
    for parser in ("auto", "libcst"):
        lint("--cache-dir", str(place), "--parser", parser)
    assert asked == ["ast", "ast", "libcst", "libcst"]
    for parser in ("auto", "libcst"):
        lint("--cache-dir", str(place), "--parser", parser, "--ignore-noqa")
    assert len(asked) == 4
    assert sorted(path.name for path in place.glob("*/facts*")) == ["facts", "facts-libcst"]
    assert len(list(place.glob("*/run-*"))) == 4


def test_damaged_facts_are_read_again_by_the_same_parser(
    project: Maker, lint: Lint, asked: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""})
    place = tmp_path_factory.mktemp("caches")
    arguments = ("--cache-dir", str(place), "--parser", "libcst")
    first = lint(*arguments)
    (facts,) = place.glob("*/facts-libcst")
    facts.write_bytes(facts.read_bytes()[:-1] + b"?")
    for other in (*place.glob("*/run-*"), *place.glob("*/answers*"), *place.glob("*/findings*")):
        other.unlink()
    assert lint(*arguments) == first
    assert asked[2:]
    assert set(asked) == {"libcst"}


def test_the_setting_counts_and_the_command_line_overrules_it(project: Maker, lint: Lint, asked: list[str]) -> None:
    project({"a.py": "x = 1\n", "pyproject.toml": SETTING})
    assert "parser = libcst" in lint("--show-settings").out.splitlines()
    assert "parser = auto" in lint("--show-settings", "--parser", "auto").out.splitlines()
    assert "parser = auto" in lint("--show-settings", "--isolated").out.splitlines()
    for options, parser in ((), "libcst"), (("--parser", "auto"), "ast"), (("--isolated",), "ast"):
        asked.clear()
        lint("--no-cache", *options)
        lint("report", "--no-cache", *options)
        assert asked == [parser] * 2


@pytest.mark.parametrize("command", [(), ("report",), ("trace", "train.py")])
def test_another_word_is_a_usage_error(project: Maker, lint: Lint, command: tuple[str, ...]) -> None:
    project(FILES)
    ran = lint(*command, "--parser", "ast")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "torchrepro-lint: Invalid value for '--parser': 'ast' is not one of auto, libcst\n"


def test_another_word_in_the_settings_is_one_too(project: Maker, lint: Lint) -> None:
    project({"a.py": "", "torchrepro-lint.toml": 'parser = "ast"\n'})
    ran = lint()
    assert (ran.status, ran.err.count("\n")) == (2, 1)
    assert ran.err.endswith("torchrepro-lint.toml: parser: expected one of auto, libcst; found 'ast'\n")


def test_the_plugin_honours_the_setting(project: Maker, no_ast: None) -> None:
    folder = project({**FILES, "pyproject.toml": SETTING})
    session = Session(ConfigOptions())
    for data in (None, TRAIN.encode()):
        answer = session.findings(os.path.join(folder, "train.py"), data)
        assert answer is not None
        assert [one.code for one in answer.findings] == ["TRL101"]


def test_the_server_honours_the_setting_also_when_it_changes(project: Maker, asked: list[str]) -> None:
    folder = project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""})
    workspace, train = Workspace(), folder / "train.py"
    workspace.configure(Preferences(), {str(folder): Preferences()})
    for number, (settings, parser) in enumerate((("", "ast"), (SETTING, "libcst"), ("", "ast"))):
        asked.clear()
        (folder / "pyproject.toml").write_text(settings)
        workspace.refresh()
        text = f"{TRAIN}# {number}\n"
        workspace.update_documents({str(train): Document(str(train), text.encode(), train.as_uri())})
        report = workspace.reports([str(train)])[str(train)]
        assert report is not None
        assert [one.code for one in report.checked.findings] == ["TRL101"]
        assert set(asked) == {parser}
        (folder / "model.py").write_text(f"{MODEL}# {number}\n")
        workspace.refresh()
        assert set(asked) == {parser}
