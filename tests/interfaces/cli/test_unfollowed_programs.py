"""Programs that lead into code that is not followed: the summary counts them, and formats that hold more than findings name them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.engine.session import RepeatedRun
from torchrepro_lint.interfaces.cli.app import FORMATS

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

BUILD = "import importlib\n\n\ndef build(name):\n    return importlib.import_module(name).Net()\n"
TRAIN = (
    "import sys\n\nimport torch\n\nfrom build import build\n\n\ndef main():\n    torch.manual_seed(0)\n"
    "    torch.save(build(sys.argv[1])(torch.rand(2)), 'x.pt')\n\n\nif __name__ == '__main__':\n    main()\n"
)
STORED = "import torch\n\ntorch.manual_seed(0)\ntorch.save(torch.load('net.pt', weights_only=False)(torch.rand(2)), 'x.pt')\n"
KNOWN = "import torch\n\ntorch.manual_seed(0)\ntorch.save(torch.rand(2), 'x.pt')\n"
FILES = {"pyproject.toml": "", "build.py": BUILD, "train.py": TRAIN, "stored.py": STORED, "known.py": KNOWN}
SENTENCE = "2 of 3 programs lead into code that could not be followed (TRL003)"
CHOSEN = (
    "what importlib.import_module(name) (build.py:5) runs is not known: "
    "importlib.import_module chooses it while the program runs"
)


@pytest.mark.parametrize("name", FORMATS)
def test_no_format_ends_in_a_bare_summary(project: Maker, lint: Lint, name: str) -> None:
    project(FILES)
    ran = lint("--output-format", name)
    assert (ran.status, ran.err) == (0, f"No findings in 4 files; {SENTENCE}\n")


def test_the_sentence_stands_after_findings_and_in_statistics(project: Maker, lint: Lint) -> None:
    project({**FILES, "known.py": KNOWN.replace("torch.manual_seed(0)\n", "")})
    found = f"Found 1 warning in 1 file; 1 fixable with --fix --unsafe-fixes; {SENTENCE}\n"
    assert lint().err == found
    assert lint("--statistics").err == found
    assert lint("--fix", "--unsafe-fixes").err.endswith(f"\nNo findings left in 4 files; {SENTENCE}\n")


def test_one_program(project: Maker, lint: Lint) -> None:
    project(FILES)
    told = "1 of 1 program leads into code that could not be followed (TRL003)"
    assert lint("train.py").err == f"No findings in 1 file; {told}\n"
    assert lint("known.py").err == "No findings in 1 file\n"
    assert lint("build.py").err == "No findings in 1 file\n"


def test_quiet_says_nothing_and_no_gap_fails_a_run(project: Maker, lint: Lint) -> None:
    project(FILES)
    assert lint("--quiet", "--fail-on", "note") == Ran(0, "", "")
    assert lint("--select", "TRL003", "--quiet").status == 0
    assert lint("--select", "TRL003", "--quiet", "--fail-on", "note").status == 1


def test_a_comment_hides_the_finding_and_not_the_gap(project: Maker, lint: Lint) -> None:
    project({**FILES, "stored.py": STORED.replace("'x.pt')", "'x.pt')  # noqa: TRL003")})
    ran = lint("--select", "TRL003")
    assert (
        ran.out == f"./train.py:10:5: TRL003 {CHOSEN.replace('build.py', './build.py')}; nothing behind it is checked\n"
    )
    assert ran.err == f"Found 1 note in 1 file; {SENTENCE}\n"


def test_markdown_names_the_first_place_of_each_program(project: Maker, lint: Lint) -> None:
    project(FILES)
    text = lint("--quiet", "--output-format", "markdown", ".").out
    assert text.startswith(f"### torchrepro-lint: no findings\n\n{SENTENCE}:\n\n- `./stored.py`: what torch.load(...)(")
    assert text.count("\n- ") == 2


def test_sarif_has_notifications_of_the_tool(project: Maker, lint: Lint) -> None:
    project(FILES)
    (run,) = json.loads(lint("--quiet", "--output-format", "sarif").out)["runs"]
    (invocation,) = run["invocations"]
    assert (run["results"], invocation["executionSuccessful"]) == ([], True)
    told = invocation["toolExecutionNotifications"][1]
    assert (told["level"], told["associatedRule"], told["message"]) == ("note", {"id": "TRL003"}, {"text": CHOSEN})
    (place,) = told["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "train.py"
    assert place["physicalLocation"]["region"] == {"startColumn": 5, "startLine": 10}
    project({"train.py": KNOWN, "stored.py": KNOWN})
    assert "invocations" not in json.loads(lint("--quiet", "--output-format", "sarif").out)["runs"][0]


def test_junit_says_so_where_nothing_was_found(project: Maker, lint: Lint) -> None:
    project(FILES)
    assert ET.fromstring(lint("--quiet", "--output-format", "junit").out).findtext("testsuite/system-out") == SENTENCE


def test_trace_shows_where_and_why(project: Maker, lint: Lint) -> None:
    project(FILES)
    told = lint("trace", "train.py").out.split("? not followed: ")[1]
    assert " ".join(told.split()).startswith(f"{CHOSEN}; train.py:10 leads there")
    (found,) = json.loads(lint("trace", "train.py", "--output-format", "json").out)
    (gap,) = found["gaps"]
    assert (gap["reason"], gap["text"], gap["path"], gap["row"]) == ("run-time", CHOSEN, "build.py", 5)
    assert [(step["path"], step["row"]) for step in gap["way"]] == [("train.py", 14), ("train.py", 10)]


def test_the_report_says_so_in_its_verdict(project: Maker, lint: Lint) -> None:
    folder = project(FILES)
    ran = lint("report", "-o", "report.md")
    assert ran.err == f"report.md: 3 entry points; no findings; {SENTENCE}\n"
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "2 of 3 entry points lead into code that could not be followed.**" in text
    assert "- `train.py`: what importlib.import\\_module(name) (build.py:5) runs is not known: importlib" in text


def test_a_repeated_run_notices_what_changes(project: Maker) -> None:
    folder = project(FILES)
    repeated = RepeatedRun(honour_comments=True)

    def unfollowed() -> list[str]:
        outcome = repeated.outcome(plan([str(folder)], ConfigOptions()))
        assert outcome.programs == 3
        return [Path(one.filename).name for one in outcome.unfollowed]

    assert unfollowed() == ["stored.py", "train.py"]
    project({**FILES, "build.py": "import torch\n\n\ndef build(name):\n    return torch.nn.Linear(2, 1)\n"})
    assert unfollowed() == ["stored.py"]
    project(FILES)
    assert unfollowed() == ["stored.py", "train.py"]


def test_the_same_bytes_cold_and_warm_in_one_process_or_two(project: Maker) -> None:
    many = {f"known{number}.py": KNOWN for number in range(50)}
    folder = project({**FILES, **many})
    seen = set()
    for seed, jobs in (("1", "1"), ("2", "2"), ("3", "1")):
        for name in ("sarif", "markdown"):
            cache = str(folder.parent / f"cache {seed}")
            for _ in range(2):
                command = [sys.executable, "-m", "torchrepro_lint", ".", "--jobs", jobs, "--cache-dir", cache]
                ran = subprocess.run(
                    [*command, "--output-format", name],
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    check=True,
                    env={**os.environ, "PYTHONHASHSEED": seed},
                )
                seen.add((name, ran.stdout, ran.stderr))
    assert len(seen) == 2
    assert {told for _, _, told in seen} == {f"No findings in 54 files; {SENTENCE.replace('3', '53', 1)}\n"}
