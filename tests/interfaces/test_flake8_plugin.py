"""The flake8 plugin, run by flake8 itself, gives what the command line gives on the same files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.engine.session import RELEVANT_WORDS, Session
from torchrepro_lint.source.files import parse_toml

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]
TOP = Path(__file__).parents[2]
LOCAL = "[flake8:local-plugins]\nextension =\n    TRL = torchrepro_lint.interfaces.flake8_plugin:Plugin\n"
SETTINGS = "[flake8]\n"

DRAW = "import torch\n\nnet = torch.nn.Linear(3, 1)\ntorch.save(net, 'x')\n"
SWITCH = "import torch\n\nif True:\n    torch.backends.cudnn.benchmark = True{}\n"


@pytest.fixture
def flake8(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    """Run flake8 in the current directory; the lines that it prints."""
    settings = tmp_path_factory.mktemp("settings") / "flake8.cfg"

    def run(*arguments: str, stdin: str | None = None, config: str = "", status: int | None = None) -> list[str]:
        installed = any(point.name == "TRL" for point in entry_points(group="flake8.extension"))
        settings.write_text(f"{SETTINGS}{config}{'' if installed else LOCAL}", encoding="utf-8")
        command = [sys.executable, "-m", "flake8", "--config", str(settings), "--select", "TRL", *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, input=stdin)
        assert "critical" not in ran.stdout + ran.stderr, ran.stdout + ran.stderr
        assert status in (None, ran.returncode), ran.stdout + ran.stderr
        return ran.stdout.splitlines()

    return run


def test_the_project_registers_the_plugin() -> None:
    points = parse_toml((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    assert points == {"flake8.extension": {"TRL": "torchrepro_lint.interfaces.flake8_plugin:Plugin"}}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_example_as_the_command_line_has_it(
    flake8: Callable[..., list[str]], lint: Lint, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    monkeypatch.chdir(TOP / "examples")
    found = flake8("-j", jobs, ".", status=1)
    assert found == lint("-q", ".").out.splitlines()
    assert len(found) > 5
    assert flake8("scenes/losses.py") == lint("-q", "scenes/losses.py").out.splitlines()


def test_comments_hide_as_on_the_command_line(flake8: Callable[..., list[str]], project: Maker, lint: Lint) -> None:
    project(
        {
            "pyproject.toml": "",
            "a.py": SWITCH.format("  # noqa: TRL201"),
            "b.py": SWITCH.format("  # torchrepro: ignore[cudnn-benchmark] why"),
            "c.py": "# torchrepro: ignore-file[TRL201]\n" + SWITCH.format(""),
            "d.py": SWITCH.format("  # noqa: E501"),
            "e.py": "# flake8: noqa\n" + SWITCH.format(""),
            "f.py": SWITCH.format("  # noqa"),
        }
    )
    found = flake8(".")
    assert [line.partition(":")[0] for line in found] == ["./d.py"]
    assert found == lint("-q", ".").out.splitlines()
    shown = flake8("--disable-noqa", ".")
    assert [line.partition(":")[0] for line in shown] == ["./a.py", "./d.py", "./e.py", "./f.py"]


def test_columns_count_characters(flake8: Callable[..., list[str]], project: Maker, lint: Lint) -> None:
    project({"pyproject.toml": "", "a.py": "import torch\n'ä😀'; torch.backends.cudnn.benchmark = True\n"})
    (line,) = flake8("a.py")
    assert line.startswith("a.py:2:7: TRL201 ")
    assert [line] == lint("-q", "a.py").out.splitlines()


def test_options_and_the_projects_own_settings(flake8: Callable[..., list[str]], project: Maker) -> None:
    folder = project(
        {
            "pyproject.toml": '[tool.torchrepro-lint]\nignore = ["unseeded-torch"]\nexclude = ["old"]\n',
            "a.py": DRAW
            + SWITCH.format("")
            + "\ndef keep(scores, boxes):\n    _, order = scores.topk(9)\n    return boxes[order]\n",
            "old/b.py": SWITCH.format(""),
            "other.toml": 'ignore = ["cudnn-benchmark"]\n',
        }
    )

    def codes(*arguments: str, config: str = "") -> list[str]:
        return [line.split()[1] for line in flake8("a.py", *arguments, config=config)]

    assert codes() == ["TRL201"]
    assert [line.split(":")[0] for line in flake8(".")] == ["./a.py"]
    assert codes("--torchrepro-isolated") == ["TRL101", "TRL201"]
    assert codes("--torchrepro-config", str(folder / "other.toml")) == ["TRL101"]
    assert codes("--torchrepro-ignore", "TRL2,TRL3") == []
    assert codes("--torchrepro-select", "unseeded-torch") == ["TRL101"]
    assert codes("--torchrepro-extend-select", "tie-dependent-order") == ["TRL201", "TRL406"]
    assert codes("--extend-select", "TRL406") == ["TRL201", "TRL406"]
    assert codes("--torchrepro-min-severity", "error") == []
    assert codes("--torchrepro-extend-select", "TRL4", "--torchrepro-device", "cpu") == ["TRL201"]
    assert codes(config="torchrepro-ignore = TRL201\n") == []


def test_a_mistake_in_an_option_or_a_setting_is_told(project: Maker) -> None:
    project({"pyproject.toml": "[tool.torchrepro-lint]\nselct = []\n", "a.py": DRAW, "flake8.cfg": SETTINGS + LOCAL})
    installed = any(point.name == "TRL" for point in entry_points(group="flake8.extension"))
    command = [sys.executable, "-m", "flake8", *(() if installed else ("--config", "flake8.cfg")), "a.py"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "tool.torchrepro-lint.selct: unknown key" in ran.stdout + ran.stderr
    wrong = subprocess.run([*command, "--torchrepro-torch-version", "two"], capture_output=True, text=True, check=False)
    assert wrong.returncode != 0
    assert 'expected a string like "2.1"' in wrong.stderr


def test_standard_input(flake8: Callable[..., list[str]], project: Maker) -> None:
    project(
        {
            "pyproject.toml": "",
            "a.py": "x = 1\n",
            "model.py": "import torch\n\ndef net():\n    return torch.nn.Linear(2, 1)\n",
        }
    )
    text = "import torch\nfrom model import net\ntorch.save(net(), 'x')\n"
    for name in ("a.py", "new.py"):
        (line,) = flake8("-", "--stdin-display-name", name, stdin=text)
        assert line.startswith(f"{name}:3:1: TRL101 nn.Linear (model.py:4, via net)")
    assert flake8("-", stdin="import torch\ntorch.manual_seed(0)\n") == []


def test_nothing_is_parsed_where_nothing_can_matter(project: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    project({"pyproject.toml": "", "a.py": "import os\n\nprint(os.getcwd())\n", "b/c.py": "import a\n"})
    monkeypatch.setattr("torchrepro_lint.engine.session.read_tree", lambda tree, options: pytest.fail("read"))
    session = Session(ConfigOptions())
    assert session.findings("a.py") is None
    assert session.findings("b/c.py") is None
    (Path("b/d.py")).write_text("import torch\n", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception):
        session.findings("b/d.py")


@pytest.mark.parametrize("word", ["torch", "\uff54\uff4f\uff52\uff43\uff48"])
def test_a_word_in_letters_that_python_reads_as_plain_ones_is_seen(project: Maker, word: str) -> None:
    folder = project({"a.py": f"import {word}\n{word}.backends.cudnn.benchmark = True\n"})
    answer = Session(ConfigOptions(isolated=True)).findings(str(folder / "a.py"))
    assert answer is not None
    assert [each.code for each in answer.findings] == ["TRL201"]


def test_a_session_reads_a_project_once(project: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    from torchrepro_lint.engine import session as module

    project({"pyproject.toml": "", "a.py": DRAW, "b.py": "import torch\n"})
    reads = []
    honest = module.read_tree
    monkeypatch.setattr(module, "read_tree", lambda tree, options: reads.append(tree.root.path) or honest(tree))
    session = Session(ConfigOptions())
    for _ in range(2):
        answer = session.findings("a.py")
        assert answer is not None
        assert [one.code for one in answer.findings] == ["TRL101"]
        assert session.findings("b.py") is not None
    fresh = session.findings("b.py", DRAW.encode())
    assert fresh is not None
    assert [one.code for one in fresh.findings] == ["TRL101"]
    assert len(reads) == 1


def test_every_library_of_the_tables_is_among_the_words() -> None:
    """A project that uses one of them must not be taken for one that cannot matter."""
    roots = set()
    for name in ("consumers", "seeders", "third_party", "frameworks", "loaders"):
        for tables in parse_toml((TOP / f"rules/catalogue/{name}.toml").read_text(encoding="utf-8")).values():
            for table in tables if isinstance(tables, list) else ():
                names = table.get("packages") or [each for each in table.get("names", ()) if "." in each]
                roots |= {each.partition(".")[0].lower() for each in names}
    roots -= {"utils", *sys.stdlib_module_names} - {
        "random"
    }  # utils is of YOLOv5, whose folder is part of the project and imports torch
    assert sorted(root for root in roots if not any(word.decode() in root for word in RELEVANT_WORDS)) == []
    assert len(roots) > 20
