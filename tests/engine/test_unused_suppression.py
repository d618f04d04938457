"""TRL002 in whole runs: fixing, notebooks, files that were not fully checked, and the ways to accept findings."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Ran
from notebooks import notebook
from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.checks.unused_suppression import RulesRun, unused_suppressions
from torchrepro_lint.engine import partition
from torchrepro_lint.source.suppressions import suppressions
from torchrepro_lint.source.text import Lines, Span, apply_edits

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]
SETTINGS = '[tool.torchrepro-lint]\nextend-select = ["TRL002"]\n'
UNUSED = "import torch\n\nx = 1  # noqa: TRL201\n"
SWITCH = "import torch\n\ntorch.backends.cudnn.benchmark = True{}\n"


def reported(ran: Ran) -> list[str]:
    return [line.partition(" ")[2][:6] for line in ran.out.splitlines()]


def test_a_fix_may_leave_a_comment_without_a_finding(project: Maker, lint: Lint) -> None:
    """Deterministic algorithms, which one fix turns on, settle TRL401; so its comment is removed in the next round."""
    text = (
        "import torch\n\ntorch.manual_seed(0)\nnet = torch.nn.Conv2d(3, 3, 3).cuda()\nindex = torch.randint(3, (9,)).cuda()\n"
        "for _ in range(3):\n    loss = net(torch.ones(2, 3, 9, 9).cuda())\n"
        "    loss = loss.index_select(1, index).sum()  # noqa: TRL401 small\n    loss.backward()\n"
    )
    folder = project({"pyproject.toml": SETTINGS, "train.py": text})
    assert reported(lint("-q")) == ["TRL203"]
    assert lint("--fix", "--unsafe-fixes").status == 0
    fixed = (folder / "train.py").read_text(encoding="utf-8")
    assert "use_deterministic_algorithms(True)" in fixed
    assert "    loss = loss.index_select(1, index).sum()\n" in fixed


def test_a_fix_of_another_rule_and_its_comment_in_one_run(project: Maker, lint: Lint) -> None:
    folder = project({"pyproject.toml": SETTINGS, "a.py": SWITCH.format("  # noqa: TRL202 as shipped")})
    assert lint("--fix", "--unsafe-fixes").status == 0
    assert (folder / "a.py").read_text(encoding="utf-8") == SWITCH.replace("True", "False").format("")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_line_that_consists_of_the_comment_goes(project: Maker, lint: Lint, newline: str) -> None:
    lines = ["import torch", "", "# torchrepro: ignore[TRL201] gone", "x = 1  # noqa: TRL302 \t", ""]
    folder = project({"pyproject.toml": SETTINGS, "a.py": newline.join(lines)})
    assert lint("--fix", "-q").status == 0
    assert (folder / "a.py").read_bytes() == newline.join(["import torch", "", "x = 1", ""]).encode()


def test_a_notebook(project: Maker, lint: Lint) -> None:
    cells = (
        "import torch\nx = 1  # noqa: TRL201",
        "# torchrepro: ignore[TRL302]",
        "!ls  # noqa: TRL201\n%time y = 1  # noqa: TRL202\nz = 1",
        "%%bash\necho  # noqa: TRL201",
        "torch.backends.cudnn.benchmark = True  # noqa: TRL201",
    )
    folder = project({"pyproject.toml": SETTINGS, "a.ipynb": notebook(*cells)})
    found = [line.partition(": TRL002")[0] for line in lint("-q").out.splitlines()]
    assert found == ["./a.ipynb:cell 1:2:8", "./a.ipynb:cell 2:1:1", "./a.ipynb:cell 3:2:14"]
    assert lint("-q", "--fix").status == 0
    written = json.loads((folder / "a.ipynb").read_text(encoding="utf-8"))
    assert ["".join(cell["source"]) for cell in written["cells"]] == [
        "import torch\nx = 1",
        "",
        cells[2].replace("%time y = 1  # noqa: TRL202", "%time y = 1"),
        *cells[3:],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n\nx = (  # noqa: TRL201\n",
        "import torch\n\nx = 1 1  # torchrepro: ignore[TRL201]\n",
    ],
)
def test_a_file_that_does_not_parse(project: Maker, lint: Lint, text: str) -> None:
    project({"pyproject.toml": SETTINGS, "a.py": text})
    assert reported(lint("-q", "--ignore", "TRL001")) == []


def test_a_file_of_which_a_rule_broke_off(project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_: object) -> list[Finding]:
        raise ZeroDivisionError

    def deep(_: object) -> list[Finding]:
        raise RecursionError

    project({"pyproject.toml": SETTINGS, "a.py": UNUSED})
    assert reported(lint("-q", "--no-cache")) == ["TRL002"]
    for fault, status in ((breaks, 2), (deep, 0)):
        rules = [each._replace(check=fault) if each.code == "TRL501" else each for each in RULES]
        monkeypatch.setattr("torchrepro_lint.engine.run.RULES", tuple(rules))
        ran = lint("-q", "--no-cache", "--ignore", "TRL001")
        assert (ran.status, reported(ran)) == (status, [])


def test_a_file_that_is_checked_by_itself(project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    """After several files that took too long the others are not linked with their project, so that findings may be missing."""
    project({"pyproject.toml": SETTINGS, "a.py": UNUSED})
    monkeypatch.setattr(partition, "_MAX_TIMEOUTS", 0)
    assert reported(lint("-q", "--no-cache")) == []


def test_comments_that_are_not_honoured_or_added(project: Maker, lint: Lint) -> None:
    folder = project({"pyproject.toml": SETTINGS, "a.py": UNUSED, "b.py": SWITCH.format("  # noqa: TRL202")})
    assert reported(lint("-q", "--ignore-noqa")) == ["TRL201"]
    ran = lint("--add-noqa")
    assert ran.err == "Suppressed 1 finding in 1 file\n"
    assert (folder / "a.py").read_text(encoding="utf-8") == UNUSED
    assert reported(lint("-q")) == ["TRL002", "TRL002"]


def test_a_baseline(project: Maker, lint: Lint) -> None:
    folder = project({"pyproject.toml": SETTINGS, "a.py": UNUSED})
    assert lint("--write-baseline", "known.json").status == 0
    (folder / "a.py").write_text(f"{UNUSED}y = 1  # noqa: TRL202\n", encoding="utf-8")
    assert reported(lint("-q", "--baseline", "known.json")) == ["TRL002"]
    assert lint("-q", "--baseline", "known.json", "--fix").status == 0
    assert (folder / "a.py").read_text(encoding="utf-8") == f"{UNUSED}y = 1\n"


def test_a_severity_that_hides_the_finding_leaves_its_comment_in_use(project: Maker, lint: Lint) -> None:
    note = "import torch\n\ntorch.manual_seed(0)\nx = torch.utils.data.DataLoader(range(3), shuffle=True){}\n"
    project({"pyproject.toml": SETTINGS, "a.py": note.format("  # noqa: TRL302")})
    assert lint("-q", "--ignore-noqa", "--select", "TRL302").out.count("TRL302") == 1
    assert reported(lint("-q", "--min-severity", "warning")) == []


def test_the_rule_can_be_left_out_of_what_is_fixed(project: Maker, lint: Lint) -> None:
    project({"pyproject.toml": f'{SETTINGS}unfixable = ["unused-suppression"]\n', "a.py": UNUSED})
    assert lint("--diff").status == 0
    assert reported(lint("-q", "--torch-version", "99.0")) == ["TRL002"]


def test_flake8_is_silent(project: Maker) -> None:
    project({"pyproject.toml": SETTINGS, "a.py": f"{UNUSED}y = 1  # torchrepro: ignore[TRL202]\n"})
    command = [sys.executable, "-m", "flake8", "--isolated", "--select", "TRL", "--extend-select", "TRL002", "a.py"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


_CODES = st.lists(st.sampled_from(["TRL201", "TRL202", "TRL9", "E501", "W6", "TRL2", "TRL002"]), min_size=1, max_size=5)
_LISTS = st.tuples(_CODES, st.sampled_from([",", ", ", " ", ",,", " , "])).map(lambda each: each[1].join(each[0]))
_PARTS = st.one_of(
    st.just("# a reason #12"),
    st.just("# type: ignore"),
    st.just("# noqa"),
    _LISTS.map(lambda codes: f"# noqa: {codes}"),
    _LISTS.map(lambda codes: f"# noqa:{codes} why"),
    _LISTS.map(lambda codes: f"# torchrepro: ignore[{codes}] why"),
    _LISTS.map(lambda codes: f"#torchrepro:ignore[ {codes} ]"),
    st.just("# torchrepro: ignore"),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_PARTS, min_size=1, max_size=3), st.booleans(), st.sampled_from(["x = 1  ", "    ", "", "x = 1"]))
def test_a_fix_changes_nothing_that_is_suppressed(parts: list[str], found: bool, before: str) -> None:
    """Findings of any rule are hidden as before, also other tools'; nothing is left to remove, and the code stays."""
    text = f"{before}{'  '.join(parts)}\ny = 2\n"
    rules = tuple(rule for rule in RULES if rule.default)
    codes = frozenset(rule.code for rule in rules)
    findings = [Finding("TRL201", Span(0, 1), "")] if found else []

    def told(text: str) -> list[Finding]:
        lines = Lines(text)
        return list(unused_suppressions(lines, suppressions(lines), RulesRun(RULES, codes, findings)))

    def hidden(text: str) -> list[bool]:
        """Whether the finding is hidden, if there is one, and what other tools might find."""
        one = [each for each in suppressions(Lines(text)) if each.codes is not None]
        ours = [any(each.covers(1, "TRL201", "cudnn-benchmark") for each in one)] * found
        return ours + [any(each.covers(1, code, "") for each in one if not each.own) for code in ("E501", "W605")]

    edits = [edit for one in told(text) if one.fix for edit in one.fix.edits]
    after = apply_edits(text, edits)
    assert [one for one in told(after) if one.fix] == []
    assert after.replace(" ", "").startswith(before.strip().replace(" ", ""))
    assert after.endswith("y = 2\n")
    if after.count("\n") == 2:
        assert hidden(after) == hidden(text)
