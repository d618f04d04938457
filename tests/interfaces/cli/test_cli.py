"""The command line: arguments, output, exit statuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from notebooks import notebook
from page_examples import examples
from torchrepro_lint import __version__

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]
TOP = Path(__file__).parents[3]
toys = pytest.mark.usefixtures("toys")


def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The tool in a process of its own."""
    command = [sys.executable, "-m", "torchrepro_lint", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@toys
def test_findings_go_out_and_the_summary_goes_to_standard_error(project: Maker, lint: Lint) -> None:
    project({"a.py": "BAD = 1\nRISKY = BAD\n", "b.py": "BAD\n", "c.py": ""})
    assert lint() == Ran(
        1,
        "./a.py:1:1: TRL901 BAD is not GOOD\n./a.py:2:1: TRL902 RISKY is not CALM\n"
        "./a.py:2:9: TRL901 BAD is not GOOD\n./b.py:1:1: TRL901 BAD is not GOOD\n",
        "Found 3 warnings, 1 note in 2 files; 3 fixable with --fix, 1 more with --unsafe-fixes\n",
    )


def test_verbose_and_json_tell_the_way_from_the_entry_point(project: Maker, lint: Lint) -> None:
    folder = project(
        {
            "model.py": "import torch\n\n\ndef build():\n    return torch.nn.Linear(3, 1)\n",
            "train.py": "from model import build\n\nnet = build()\nnet(net.weight).sum().backward()\n",
        }
    )
    assert lint("--verbose", "--quiet", "train.py").out.splitlines()[1:] == [
        "    train.py:3:7: calls build",
        "    model.py:5:12: nn.Linear draws from torch's generator",
    ]
    (finding,) = json.loads(lint("--output-format", "json", "train.py").out)
    assert finding["steps"] == [
        {"filename": str(folder / "train.py"), "location": {"row": 3, "column": 7}, "message": "calls build"},
        {
            "filename": str(folder / "model.py"),
            "location": {"row": 5, "column": 12},
            "message": "nn.Linear draws from torch's generator",
        },
    ]


@toys
def test_a_clean_run(project: Maker, lint: Lint) -> None:
    project({"a.py": "x = 1\n"})
    assert lint("a.py") == lint("check", "a.py") == Ran(0, "", "No findings in 1 file\n")
    assert lint("-q", "a.py") == Ran(0, "", "")


@toys
def test_a_first_word_that_names_a_command_is_one(project: Maker, lint: Lint) -> None:
    project({"rule/a.py": "BAD\n", "check/a.py": "x\n"})
    assert lint("./rule").out == "./rule/a.py:1:1: TRL901 BAD is not GOOD\n"
    assert lint("check", "rule").out == "rule/a.py:1:1: TRL901 BAD is not GOOD\n"
    assert lint("rule", "--output-format", "json").out.startswith("[")


@toys
@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ((), ["TRL901", "TRL902"]),
        (("--select", "TRL901,rare-word"), ["TRL901", "TRL911"]),
        (("--extend-select", "TRL911"), ["TRL901", "TRL902", "TRL911"]),
        (("--ignore", "TRL9"), []),
        (("--ignore", "TRL901", "--ignore", "TRL902"), []),
        (("--min-severity", "warning"), ["TRL901"]),
        (("--ignore-noqa",), ["TRL901", "TRL902", "TRL901"]),
        (("--exclude", "a.py"), []),
        (("--extend-exclude", "*.py"), []),
    ],
)
def test_choosing(project: Maker, lint: Lint, arguments: tuple[str, ...], codes: list[str]) -> None:
    project({"a.py": "BAD; RISKY; RARE\nBAD  # noqa\n"})
    ran = lint(*arguments)
    assert [line.split()[1] for line in ran.out.splitlines()] == codes
    assert ran.status == bool(codes)


@toys
def test_fix(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD = RISKY\n"})
    assert lint("--fix") == Ran(
        0,
        "./a.py:1:8: TRL902 RISKY is not CALM\n",
        "Fixed 1 finding: 1 TRL901\n1 note left in 1 file; 1 fixable with --fix --unsafe-fixes\n",
    )
    fixed = "Fixed 1 finding: 1 TRL902\nNo findings left in 1 file\n"
    assert lint("--fix", "--unsafe-fixes") == Ran(0, "", fixed)
    assert (folder / "a.py").read_text(encoding="utf-8") == "GOOD = CALM\n"


@toys
def test_fix_only_reports_nothing_that_is_left(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD = RISKY = BAD\n", "b.py": "RISKY\n"})
    assert lint("--fix-only") == Ran(0, "", "Fixed 2 findings: 2 TRL901\n")
    assert (folder / "a.py").read_text(encoding="utf-8") == "GOOD = RISKY = GOOD\n"
    assert lint("--fix-only") == Ran(0, "", "")
    assert lint("--fix-only", "--unsafe-fixes", "--exit-non-zero-on-fix").status == 1
    assert lint("-", "--fix-only", stdin=b"BAD; RISKY\n") == Ran(0, "GOOD; RISKY\n", "Fixed 1 finding: 1 TRL901\n")


@toys
def test_exit_statuses(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD = 1\n"})
    assert lint("--exit-zero").status == 0
    assert lint("--fix", "--exit-non-zero-on-fix").status == 1
    assert lint("--fix", "--exit-non-zero-on-fix").status == 0
    (folder / "a.py").write_text("BAD = 1\n", encoding="utf-8")
    ran = lint("a.py", "nowhere.py", "--exit-zero")
    assert (ran.status, ran.out) == (2, "a.py:1:1: TRL901 BAD is not GOOD\n")
    assert "torchrepro-lint: nowhere.py: no such file or directory\n" in ran.err


@toys
@pytest.mark.parametrize(
    ("text", "arguments", "status"),
    [
        ("RISKY\n", (), 0),
        ("RISKY\n", ("--fail-on", "note"), 1),
        ("RISKY\n", ("--fail-on", "note", "--min-severity", "warning"), 0),
        ("RISKY\n", ("--fail-on", "note", "--exit-zero"), 0),
        ("RISKY\n", ("--fail-on", "note", "--statistics"), 1),
        ("RISKY\n", ("--fail-on", "note", "--fix-only"), 0),
        ("BAD; RISKY\n", (), 1),
        ("BAD; RISKY\n", ("--min-severity", "error"), 0),
        ("BAD\n", ("--fail-on", "error"), 0),
        ("BAD; x = (\n", ("--fail-on", "error"), 1),
        ("RARE\n", ("--select", "TRL911", "--fail-on", "error"), 1),
        ("BAD\n", ("--fail-on", "error", "--diff"), 1),
        ("BAD\n", ("--fail-on", "error", "--fix", "--exit-non-zero-on-fix"), 1),
    ],
)
def test_the_exit_status_is_1_from_a_severity_on(
    project: Maker, lint: Lint, text: str, arguments: tuple[str, ...], status: int
) -> None:
    project({"a.py": text})
    assert lint(*arguments).status == status


@toys
def test_each_project_says_what_it_fails_on(project: Maker, lint: Lint) -> None:
    strict = {"strict/torchrepro-lint.toml": 'fail-on = "note"\n', "strict/a.py": ""}
    lax = {"lax/torchrepro-lint.toml": 'fail-on = "error"\n', "lax/b.py": "BAD\n"}
    folder = project({**strict, **lax})
    assert lint().status == 0
    assert lint("--fail-on", "warning").status == 1
    (folder / "strict/a.py").write_text("RISKY\n", encoding="utf-8")
    assert lint().status == 1
    assert lint("--fail-on", "warning", "strict").status == 0


@toys
def test_a_new_note_beside_a_baseline_fails_only_if_asked_to(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD\n"})
    lint("--write-baseline", "known.json")
    (folder / "a.py").write_text("BAD\nRISKY\n", encoding="utf-8")
    assert lint("--baseline", "known.json").status == 0
    assert lint("--baseline", "known.json", "--fail-on", "note").status == 1


@toys
def test_diff_shows_and_writes_nothing(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "x = 1\r\nBAD = 1", "b.py": "RISKY\n"})
    assert lint("--diff") == Ran(
        1,
        "--- ./a.py\n+++ ./a.py\n@@ -1,2 +1,2 @@\n x = 1\r\n-BAD = 1\n\\ No newline at end of file\n"
        "+GOOD = 1\n\\ No newline at end of file\n",
        "Would fix 1 finding: 1 TRL901; 1 more with --unsafe-fixes\n",
    )
    assert (folder / "a.py").read_bytes() == b"x = 1\r\nBAD = 1"
    assert lint("--diff", "b.py") == Ran(0, "", "No safe fixes; 1 with --unsafe-fixes\n")
    assert lint("--diff", "b.py", "--unsafe-fixes", "-q").err == ""
    assert lint("--diff", "--exit-zero").status == 0
    missing = lint("--diff", "a.py", "nowhere.py")
    assert (missing.status, "nowhere.py: no such file" in missing.err, "+GOOD = 1" in missing.out) == (2, True, True)


@toys
def test_standard_input(project: Maker, lint: Lint) -> None:
    project({"a.py": "x = 1\n", "pyproject.toml": '[tool.torchrepro-lint]\nignore = ["TRL902"]\n'})
    assert lint("-", stdin=b"BAD\nRISKY\n").out == "stdin:1:1: TRL901 BAD is not GOOD\n"
    named = lint("-", "--stdin-filename", "a.py", stdin=b"BAD\n")
    assert named.out == "a.py:1:1: TRL901 BAD is not GOOD\n"
    assert lint("-", "a.py", stdin=b"").status == 2


@toys
def test_standard_input_is_fixed_to_standard_output(project: Maker, lint: Lint) -> None:
    project({"pyproject.toml": ""})
    ran = lint("-", "--fix", stdin=b"\xef\xbb\xbfBAD = RISKY\r\n")
    assert (ran.status, ran.out) == (0, "\ufeffGOOD = RISKY\r\n")
    assert ran.err.startswith("stdin:1:8: TRL902")
    assert lint("-", "--fix", stdin=b"x = 1\n").out == "x = 1\n"
    forced = lint("-", "--fix", "--force-exclude", "--stdin-filename", "venv/a.py", stdin=b"BAD\n")
    assert (forced.status, forced.out) == (0, "BAD\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--no-such-option",), "torchrepro-lint: no such option --no-such-option\n"),
        (("--device", "tpu"), "Invalid value for '--device'"),
        (("--torch-version", "new"), "--torch-version: expected a string like"),
        (("--config", "nowhere.toml"), "nowhere.toml"),
        (("--select", "TRL999", "a.py"), "unknown rule 'TRL999' in --select"),
        (("--config", "bad.toml"), "bad.toml: selct: unknown key; did you mean 'select'?"),
        (("--config", "unfixable.toml", "a.py"), "unknown rule 'TRL999' in unfixable of unfixable.toml"),
        (("--config", "ignores.toml", "a.py"), "unknown rule 'bad' in per-file-ignores of ignores.toml"),
        (("rule", "TRL999"), "no rule 'TRL999'"),
        (("sub",), "sub/pyproject.toml: invalid TOML: "),
    ],
)
def test_a_mistake_is_one_clear_line_and_status_2(
    project: Maker, lint: Lint, arguments: tuple[str, ...], message: str
) -> None:
    settings = {
        "bad.toml": "selct = []\n",
        "unfixable.toml": 'unfixable = ["TRL999"]\n',
        "ignores.toml": 'per-file-ignores = { "*.py" = ["bad"] }\n',
        "sub/pyproject.toml": "[tool\n",
    }
    project({"a.py": "", "sub/a.py": "", **settings})
    ran = lint(*arguments)
    assert ran.status == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("repot",), "repot: no such command, file or directory; did you mean the command 'report'?"),
        (("chek", "a.py"), "chek: no such command, file or directory; did you mean the command 'check'?"),
        (("exmaples/",), "exmaples/: no such file or directory; did you mean 'examples/'?"),
        (("exmaples/sub/b.py",), "exmaples/sub/b.py: no such file or directory; did you mean 'examples/sub/b.py'?"),
        (("examples/sbu/b.py",), "examples/sbu/b.py: no such file or directory; did you mean 'examples/sub/b.py'?"),
        (("trace", "examples/sub/c.py"), "c.py: no such file or directory; did you mean 'examples/sub/b.py'?"),
        (("report", "exmaples"), "exmaples: no such file or directory; did you mean 'examples/'?"),
        (("xyz/abc.py",), "torchrepro-lint: xyz/abc.py: no such file or directory\n"),
        (("repots",), "repots: no such file or directory; did you mean 'repos/'?"),
        (("--out-format", "json"), "no such option --out-format; did you mean '--output-format'?\n"),
        (("trace", "--deviec", "cpu", "a.py"), "no such option --deviec; did you mean '--device'?\n"),
        (("--output-format", "jsn"), "junit, markdown; did you mean 'json'?"),
        (("report", "--device", "cdua"), "'cdua' is not one of auto, cuda, mps, cpu; did you mean 'cuda'?"),
        (("--device", "GPU"), "'GPU' is not one of auto, cuda, mps, cpu; did you mean 'cuda'?"),
        (("--fail-on", "errors"), "did you mean 'error'?"),
        (("--config", "pyprojet.toml"), "File 'pyprojet.toml' does not exist; did you mean 'pyproject.toml'?"),
        (("--select", "dataloader-genrator"), "in --select; did you mean 'dataloader-generator'?"),
        (("--extend-select", "TRL3O1"), "in --extend-select; did you mean 'TRL301'?"),
        (("rule", "datalaoder-generator"), "did you mean 'dataloader-generator'?"),
        (("--config", "ignores.toml"), "in per-file-ignores of ignores.toml; did you mean 'index-select'?"),
        (("--config", "device.toml"), "did you mean 'cuda'?"),
    ],
)
def test_what_is_misspelt_gets_the_nearest_word_suggested(
    project: Maker, lint: Lint, arguments: tuple[str, ...], message: str
) -> None:
    settings = {
        "pyproject.toml": "",
        "ignores.toml": 'per-file-ignores = { "*.py" = ["index-selct"] }\n',
        "device.toml": 'device = "cude"\n',
    }
    project({"a.py": "", "examples/sub/b.py": "", "repos/c.py": "", **settings})
    ran = lint(*arguments)
    assert (ran.status, ran.out) == (2, "" if arguments[0] != "report" else ran.out)
    assert message in ran.err


def test_a_path_that_is_named_nearly_like_a_command_is_a_path(project: Maker, lint: Lint) -> None:
    project({"repot/a.py": "x = (\n"})
    assert lint("repot").out.startswith("repot/a.py:1:5: TRL001 ")


@toys
def test_show_files_and_settings(project: Maker, lint: Lint) -> None:
    folder = project(
        {"b.py": "", "a.py": "", "requirements.txt": "torch==1.8.1\n", "torchrepro-lint.toml": 'device = "cpu"\n'}
    )
    assert lint("--show-files").out == "./a.py\n./b.py\n"
    shown = lint("--show-settings", "--ignore", "TRL902").out.splitlines()
    assert f"root = {folder} (torchrepro-lint.toml)" in shown
    assert f"settings = {folder / 'torchrepro-lint.toml'}" in shown
    assert "target-torch = 1.8 (requirements.txt)" in shown
    assert "device = cpu" in shown
    assert "rules = TRL001, TRL901" in shown


@toys
@pytest.mark.parametrize(
    ("files", "arguments", "decided"),
    [
        ({}, (), "2.15 (the newest release known)"),
        ({"uv.lock": '[[package]]\nname = "torch"\nversion = "2.1.2"\n'}, (), "2.1 (uv.lock)"),
        ({"requirements.txt": "torch==1.8.1\n"}, ("--torch-version", "2.0"), "2.0 (the option --torch-version)"),
        ({"requirements.txt": "torch==1.4.0\n"}, (), "1.7 (requirements.txt, nearest to 1.4)"),
        ({}, ("--torch-version", "3.1"), "2.15 (the option --torch-version, nearest to 3.1)"),
    ],
)
def test_settings_shown_tell_what_decided_the_target(
    project: Maker, lint: Lint, files: dict[str, str], arguments: tuple[str, ...], decided: str
) -> None:
    project({"a.py": "", **files})
    assert f"target-torch = {decided}" in lint("--show-settings", *arguments).out.splitlines()


@toys
@pytest.mark.parametrize(
    ("pin", "said"),
    [
        ("1.4.0", "torch 1.4 (requirements.txt) is not known; torch 1.7 is assumed instead"),
        ("3.1", "torch 3.1 (requirements.txt) is not known; torch 2.15 is assumed instead"),
        ("2.0.1", ""),
    ],
)
def test_a_release_that_is_not_known_is_said_once(project: Maker, lint: Lint, pin: str, said: str) -> None:
    project({"a.py": "BAD\n", "b.py": "BAD\n", "requirements.txt": f"torch=={pin}\n"})
    assert [line for line in lint().err.splitlines() if line.startswith("torch ")] == [said] * bool(said)


@toys
def test_a_release_that_is_not_known_is_ascribed_to_what_names_it(project: Maker, lint: Lint) -> None:
    project({"a.py": "torch.rand(1)\n", "torchrepro-lint.toml": 'torch-version = "3.1"\n'})
    said = "torch 3.1 (the {}) is not known; torch 2.15 is assumed instead\n"
    for command in ([], ["report", "-o", "r.html"]):
        assert said.format("torch-version setting") in lint(*command).err
        # Also where the run is recalled from the cache.
        for _ in range(2):
            assert said.format("option --torch-version") in lint(*command, "--torch-version", "3.1").err


@toys
def test_settings_give_the_format_and_the_command_line_overrules_it(project: Maker, lint: Lint) -> None:
    project({"a.py": "BAD\n", "torchrepro-lint.toml": 'output-format = "json"\n'})
    assert json.loads(lint().out)[0]["code"] == "TRL901"
    assert lint("--output-format", "flake8").out.startswith("./a.py:1:1: ")


@toys
def test_a_path_that_is_not_utf8_is_printed_as_its_bytes(project: Maker, lint: Lint) -> None:
    folder = project({})
    try:
        with open(os.path.join(os.fsencode(folder), b"caf\xe9.py"), "wb") as file:
            file.write(b"BAD\n")
    except OSError:
        pytest.skip("the file system takes UTF-8 only")
    assert lint().out.encode("utf-8", "surrogateescape").startswith(b"./caf\xe9.py:1:1: TRL901")
    assert os.path.exists(json.loads(lint("--output-format", "json").out)[0]["filename"])


def test_rule_prints_a_page_or_all(lint: Lint) -> None:
    page = lint("rule", "TRL101")
    assert page.status == 0
    assert page.out.startswith("# TRL101 unseeded-torch\n")
    assert lint("rule", "unseeded-torch").out == page.out
    record = json.loads(lint("rule", "TRL101", "--output-format", "json").out)
    assert (record["code"], record["name"], record["text"]) == ("TRL101", "unseeded-torch", page.out)
    table = lint("rule").out.splitlines()
    assert any(line.startswith("TRL101  unseeded-torch  ") for line in table)
    assert [one["code"] for one in json.loads(lint("rule", "--output-format", "json").out)] == [
        line.split()[0] for line in table
    ]


@pytest.mark.parametrize("prefix", ["TRL3", "trl30"])
def test_rule_prints_a_table_of_the_rules_with_a_prefix(lint: Lint, prefix: str) -> None:
    wanted = [words for words in map(str.split, lint("rule").out.splitlines()) if words[0].startswith("TRL30")]
    assert [line.split() for line in lint("rule", prefix).out.splitlines()] == wanted
    records = json.loads(lint("rule", prefix, "--output-format", "json").out)
    assert [one["code"] for one in records] == [words[0] for words in wanted]


def test_version_and_help() -> None:
    assert start("--version").stdout == start("-V").stdout == f"torchrepro-lint {__version__}\n"
    help_text = start("--help", COLUMNS="80").stdout
    assert max(map(len, help_text.splitlines())) <= 80
    headings = [line.rstrip(":") for line in help_text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "Examples",
        "Commands (add --help for their options)",
        "Fixes",
        "Rule selection",
        "Existing findings",
        "Output",
        "Files",
        "Settings",
        "Exit status",
        "Miscellaneous",
    ]


def test_help_is_a_word_for_the_option(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": ""})
    assert lint("help") == lint("--help")
    assert lint("help", "rule") == lint("rule", "--help")
    (folder / "help").mkdir()
    assert lint("help").out == ""


def test_each_option_of_a_command_is_in_its_help_once(lint: Lint) -> None:
    from torchrepro_lint.interfaces.cli.app import EVERY_COMMAND

    for name, command in EVERY_COMMAND.items():
        shown = lint(*name.split(), "--help").out
        rows = [line.split() for line in shown.splitlines() if line.startswith("  -")]
        options = [
            one for one in command.params if one.param_type_name == "option" and not getattr(one, "hidden", False)
        ]
        assert sorted(row[0].rstrip(",") for row in rows) == sorted(["-h", *(one.opts[0] for one in options)])
        assert all(getattr(one, "help", None) for one in options)


@pytest.mark.parametrize("arguments", [("--help",), ("rule",), ("rule", "TRL101")])
def test_help_and_rule_load_neither_libcst_nor_the_catalogue(arguments: tuple[str, ...]) -> None:
    code = (
        "import sys; from torchrepro_lint.interfaces.cli.app import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(sorted({'libcst', 'torchrepro_lint.catalogue.catalogue', 'torch'} & set(sys.modules)), file=sys.stderr)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "[]\n")


# What a run imports only if it needs it: the names of modules begin so.
_NEEDED_BY_FEW = (
    *("libcst", "torchrepro_lint.checks.fixes.", "torchrepro_lint.syntax.libcst_tree", "multiprocessing"),
    *("packaging", "pathspec", "ctypes", "importlib.resources"),
)
_CLEAN = """\
import torch

torch.manual_seed(0)
torch.save(torch.nn.Linear(2, 2)(torch.rand(2, 2)), "result.pt")
"""


def imported(*arguments: str) -> set[str]:
    """The modules of ``_NEEDED_BY_FEW`` that a run imports, each as it begins there."""
    code = (
        "import sys; from torchrepro_lint.interfaces.cli.app import main\n"
        f"try: main(sys.argv[1:])\nfinally: print(*(each for each in {_NEEDED_BY_FEW!r}"
        " if any(one.startswith(each) for one in sys.modules)), file=sys.stderr)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    return set(ran.stderr.splitlines()[-1].split())


def test_a_clean_file_imports_no_fix_and_no_libcst(project: Maker) -> None:
    folder = project({"a.py": _CLEAN})
    assert imported(str(folder), "--no-cache", "--quiet") == set()


def test_a_file_of_python_2_imports_no_libcst(project: Maker) -> None:
    folder = project({"a.py": _CLEAN + 'print "done"\n'})
    assert imported(str(folder), "--no-cache", "--quiet") == set()


def test_a_finding_imports_its_fix(project: Maker) -> None:
    folder = project({"a.py": _CLEAN.replace("torch.manual_seed(0)\n", "")})
    assert imported(str(folder), "--no-cache", "--quiet") == {"torchrepro_lint.checks.fixes."}


def test_what_python_warns_of_in_the_code_that_is_read_is_not_printed(project: Maker) -> None:
    """Each text has an escape that Python warns of, in a place of its own: a quoted annotation, an input over two lines, a
    magic's command.
    """
    program = """\
import torch


def pick(rows: "torch.Tensor['\\d']", at: torch.Tensor):
    return torch.index_select(rows["\\d",
        1], 0, at)
"""
    folder = project({"a.py": program, "b.ipynb": notebook("%timeit x = '\\d'", "  x = '\\d'\n  !ls\n")})
    ran = start(str(folder), "--diff", "--unsafe-fixes", "--no-cache", PYTHONWARNINGS="always")
    assert "+        1][at]" in ran.stdout
    assert "Warning" not in ran.stderr


def test_two_hash_seeds_print_the_same_bytes(project: Maker) -> None:
    pages = sorted((TOP / "rules").glob("*.md"))
    found = [(page.stem, number, one) for page in pages for number, one in enumerate(examples(page))]
    folder = project(
        {f"{stem}/n{number}/{path}": text for stem, number, one in found for path, text in one.files.items()}
    )
    runs = [start(str(folder), "--output-format", "json", PYTHONHASHSEED=seed).stdout for seed in ("1", "2")]
    assert runs[0] == runs[1]
    assert len(json.loads(runs[0])) > len(pages)


@pytest.mark.long
def test_the_tool_has_nothing_to_say_about_itself() -> None:
    ran = start(str(TOP / "torchrepro_lint"))
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_tool_has_nothing_to_say_about_its_lower_layers(tmp_path: Path) -> None:
    """In a project without the other layers: all of them together take half a minute."""
    (tmp_path / "pyproject.toml").touch()
    for layer in ("catalogue", "config", "query", "resolve", "source", "syntax"):
        shutil.copytree(TOP / "torchrepro_lint" / layer, tmp_path / "torchrepro_lint" / layer)
    ran = start(str(tmp_path))
    assert (ran.returncode, ran.stdout) == (0, "")
    assert re.search(r"No findings in \d\d files", ran.stderr)


def test_no_colour_and_no_bar_off_a_terminal(project: Maker) -> None:
    folder = project({"a.py": "x = (\n"})
    ran = start(str(folder), FORCE_COLOR="", CLICOLOR_FORCE="1")
    assert ran.returncode == 1
    assert "\033" not in ran.stdout + ran.stderr


terminal = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


def shown(folder: Path, *arguments: str, **environment: str) -> str:
    """What the tool prints to a terminal of 80 columns as its standard output."""
    import pty

    plain = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "torchrepro_lint", *arguments]
    told = {**plain, "TERM": "xterm", "COLUMNS": "80", "PYTHONPATH": str(TOP), **environment}
    subprocess.run(command, cwd=folder, stdout=follower, stderr=subprocess.DEVNULL, check=False, env=told)
    os.close(follower)
    text = os.read(leader, 65536).decode()
    os.close(leader)
    return text.replace("\r\n", "\n")


@terminal
@pytest.mark.parametrize(
    ("options", "environment", "coloured"),
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"NO_COLOR": ""}, True),
        ((), {"TERM": "dumb"}, False),
        ((), {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color", "auto"), {"NO_COLOR": "1"}, False),
    ],
)
def test_colour_on_a_terminal(
    project: Maker, options: tuple[str, ...], environment: dict[str, str], coloured: bool
) -> None:
    text = shown(project({"a.py": "x = (\n"}), "-q", "a.py", *options, **environment)
    assert "TRL001" in text
    assert ("\033[" in text) is coloured


def test_colour_that_is_asked_for_goes_into_a_pipe(project: Maker, lint: Lint) -> None:
    project({"a.py": "x = (\n", "b.py": "import torch\ntorch.rand(1).numpy().tofile('x')\n"})
    assert "\033[" in lint("a.py", "--color", "always").out
    assert "\033[" not in lint("a.py", "--color", "auto").out
    assert "\033[" in lint("trace", "b.py", "--color=always").out
    assert "\033[" not in lint("trace", "b.py").out


@terminal
@pytest.mark.parametrize(
    ("settings", "options", "first"),
    [
        ("", (), "error[TRL001]: "),
        ("", ("--output-format", "concise"), "a.py:1:5: TRL001 "),
        ("", ("--output-format", "flake8"), "a.py:1:5: TRL001 "),
        ('output-format = "concise"\n', (), "a.py:1:5: TRL001 "),
        ('output-format = "concise"\n', ("--output-format", "full"), "error[TRL001]: "),
        ("", ("-o", "out.txt"), ""),
        ("", ("--statistics",), "1\tTRL001"),
    ],
)
def test_the_format_on_a_terminal(project: Maker, settings: str, options: tuple[str, ...], first: str) -> None:
    folder = project({"a.py": "x = (\n", "torchrepro-lint.toml": settings})
    # Something is always printed, so that reading does not wait.
    text = shown(folder, "-q", "a.py", *options, NO_COLOR="1") if first else ""
    if first:
        assert text.expandtabs().startswith(first.expandtabs())
    else:
        assert start("-q", "a.py", *options).stdout == ""
        assert (folder / "out.txt").read_text(encoding="utf-8").startswith("a.py:1:5: TRL001 ")


@terminal
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_table_of_rules_fits_into_the_terminal(project: Maker, lint: Lint, columns: int) -> None:
    folder = project({})
    text = shown(folder, "rule", "TRL3", COLUMNS=str(columns))
    assert max(map(len, text.splitlines())) <= columns
    assert text.split() == lint("rule", "TRL3").out.split()


@terminal
def test_the_table_of_operations_fits_into_the_terminal(project: Maker) -> None:
    text = shown(project({}), "ops", "--torch-version", "2.13", COLUMNS="70")
    assert max(map(len, text.splitlines())) <= 70
    long = "adaptive_avg_pool2d_backward_cuda,\n           adaptive_avg_pool2d_backward_out_cuda\n"
    assert f"\ntorch.nn.AdaptiveAvgPool1d\n  ✕ raises, CUDA backward: output_size is not 1\n    error  {long}" in text


@terminal
@pytest.mark.parametrize("arguments", [("explain", "cumsum_cuda_kernel"), ("ops", "index_add"), ("trace", "a.py")])
def test_explanations_fit_into_the_terminal(project: Maker, lint: Lint, arguments: tuple[str, ...]) -> None:
    folder = project({"a.py": "import torch\n\ntorch.save(torch.rand(3).cumsum(0), 'a-file-with-a-long-name.pt')\n"})
    text = shown(folder, *arguments, COLUMNS="70", NO_COLOR="1")
    assert max(map(len, text.splitlines())) <= 70
    if arguments[0] != "trace":
        assert text.split() == lint(*arguments).out.split()


@terminal
def test_a_diff_is_coloured_on_a_terminal(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "import torch\n\ntorch.backends.cudnn.benchmark = True\n"})
    options = ("--diff", "--unsafe-fixes", "--no-cache", "a.py")
    text = shown(folder, *options)
    assert "\033[31m-torch.backends.cudnn.benchmark = True\033[m\n" in text
    assert "\033[32m+torch.backends.cudnn.benchmark = False\033[m\n" in text
    plain = lint(*options).out
    assert "\033[" not in plain
    assert re.sub(r"\033\[\d*m", "", text) == plain
    assert lint(*options, "--color", "always").out == text


@terminal
@pytest.mark.parametrize("quiet", [("-q",), ()])
def test_a_status_is_shown_on_a_terminal_and_erased(project: Maker, quiet: tuple[str, ...]) -> None:
    import pty

    folder = project({f"m{number}.py": "x = 1\n" for number in range(120)})
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "torchrepro_lint", "--no-cache", *quiet]
    told = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "PYTHONPATH": str(TOP)}
    # Standard error is drained only after the run: what is written to it is short.
    subprocess.run(command, cwd=folder, stderr=follower, stdout=subprocess.DEVNULL, check=True, env=told)
    os.close(follower)
    text = os.read(leader, 65536).decode()
    os.close(leader)
    last = "" if quiet else "No findings in 120 files\r\n"
    assert text.endswith(f"Checking 120 files ...\r\033[K{last}")
    piped = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env=told)
    assert piped.stderr == last.replace("\r", "")


@terminal
def test_lines_fit_into_the_terminal(project: Maker) -> None:
    folder = project({"a.py": f"import torch\n\ntorch.backends.cudnn.benchmark = True  # {'long ' * 40}\n"})
    text = shown(folder, "-q", "a.py", "--no-cache", NO_COLOR="1")
    code = [line for line in text.splitlines() if not line.lstrip().startswith(("3 -", "3 +"))]
    assert max(map(len, code)) <= 80
    assert text.startswith("warning[TRL201]: ")


def test_a_reader_that_goes_away_is_no_error(project: Maker) -> None:
    folder = project({f"m{number}.py": "x = (\n" for number in range(3)})
    command = f"{sys.executable} -m torchrepro_lint {folder} | true"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr
    assert "BrokenPipe" not in ran.stderr


@toys
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--select", ""), "--select': no rule would run: name rules, or leave the option out"),
        (("--select", "trl901"), "unknown rule 'trl901' in --select; did you mean 'TRL901'?"),
        (("--exclude", "a,[b"), "--exclude': '[b' is not a valid glob: a bracket is not closed"),
        (("--extend-exclude", "!"), "--extend-exclude': '!' is not a valid glob: nothing follows the exclamation mark"),
        (("--ignore", "Bad-Word"), "unknown rule 'Bad-Word' in --ignore; did you mean 'bad-word'?"),
        (("--config", "other.toml", "--isolated"), "--config cannot be combined with --isolated"),
        (("--config", "other.toml"), "[tool.torchrepro-lint] is only for pyproject.toml; write the keys in this file"),
        (("--stdin-filename", "b.py", "."), "--stdin-filename is for standard input: leave out the paths"),
    ],
)
def test_a_message_names_the_option_to_change(
    project: Maker, lint: Lint, arguments: tuple[str, ...], message: str
) -> None:
    project({"a.py": "BAD\n", "other.toml": "[tool.torchrepro-lint]\nignore = []\n"})
    ran = lint(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err


@toys
def test_a_name_for_standard_input_is_enough(project: Maker, lint: Lint) -> None:
    project({"a.py": "x = 1\n"})
    assert lint("-q", "--stdin-filename", "a.py", stdin=b"BAD\n").out == "a.py:1:1: TRL901 BAD is not GOOD\n"


@toys
def test_a_file_of_two_names_is_fixed_once(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD\nx = BAD\n"})
    (folder / "b.py").symlink_to("a.py")
    ran = lint("--fix", "a.py", "b.py")
    assert (ran.status, ran.out) == (0, "")
    assert "not applied" not in ran.err
    assert "not fixed" not in ran.err
    assert (folder / "a.py").read_text(encoding="utf-8") == "GOOD\nx = GOOD\n"
    assert (folder / "b.py").is_symlink()


def test_a_rule_is_found_in_any_case_and_json_says_how_it_counts(project: Maker, lint: Lint) -> None:
    project({})
    assert lint("rule", "trl301").out == lint("rule", "TRL301").out == lint("rule", "DataLoader-Worker-Init").out
    (record, off) = (json.loads(lint("rule", code, "--output-format", "json").out) for code in ("TRL301", "TRL403"))
    assert (record["severity"], record["default"]) == ("warning", True)
    assert (off["severity"], off["default"]) == ("note", False)
