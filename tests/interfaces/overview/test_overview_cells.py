"""The cells of the overview: the state of each control in an entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from overview_projects import STEADY, STUDY, TRAIN, cells_of, overview_of
from torchrepro_lint.checks import RULES
from torchrepro_lint.interfaces.overview.controls import CONTROL_OF, CONTROLS, NOT_KNOWN, SHORT_MESSAGES, TITLES
from torchrepro_lint.interfaces.report.page_content import verdict

Project = Callable[[Mapping[str, str | bytes]], Path]


def test_every_rule_has_words_and_a_control() -> None:
    assert sorted(SHORT_MESSAGES) == [rule.code for rule in RULES if not rule.code.startswith("TRL0")]
    assert set(CONTROL_OF.values()) <= set(TITLES)
    assert sorted(set(SHORT_MESSAGES) - set(CONTROL_OF)) == ["TRL105", "TRL106", "TRL107", "TRL110"]


def test_each_control_of_a_program_with_flaws(project: Project) -> None:
    found = cells_of(overview_of(project(STUDY)), "train.py")
    assert list(found) == [control.key for control in CONTROLS]
    assert {key: (cell.state, cell.says) for key, cell in found.items()} == {
        "python": ("good", "seeded"),
        "numpy": ("bad", "never seeded"),
        "torch": ("good", "seeded"),
        "cuda": ("good", "seeded"),
        "events": ("good", "seeds come first"),
        "cudnn": ("bad", "benchmark is on"),
        "algorithms": ("bad", "not enabled"),
        "workspace": ("unused", "not needed"),
        "loaders": ("risk", "shuffled by the global generator"),
        "workers": ("risk", "seeded by the global generator"),
        "operations": ("bad", "no deterministic version"),
        "order": ("bad", "a listing's order decides"),
    }


def test_a_settled_program_has_nothing_to_mend(project: Project) -> None:
    overview = overview_of(project(STUDY))
    states = {key: cell.state for key, cell in cells_of(overview, "steady.py").items()}
    assert {key for key, state in states.items() if state == "unused"} == {"workspace", "loaders", "workers"}
    assert {state for state in states.values() if state != "unused"} == {"good"}
    assert verdict(overview) == "1 of 2 entry points has something to fix."
    assert (
        verdict(overview_of(project({"steady.py": STEADY}) / "steady.py")) == "The one entry point has nothing to fix."
    )


@pytest.mark.parametrize(
    ("change", "control", "expected"),
    [
        (("torch.manual_seed(0)\n", ""), "torch", ("bad", "never seeded")),
        (("torch.manual_seed(0)\n", ""), "cuda", ("bad", "never seeded")),
        (("torch.manual_seed(0)\n", "torch.cuda.manual_seed(0)\n"), "cuda", ("good", "seeded")),
        (("torch.manual_seed(0)\n", "torch.seed()\n"), "torch", ("bad", "new seed in each run")),
        (("torch.manual_seed(0)\n", "from lib import set_seed; set_seed(0)\n"), "torch", ("unknown", "perhaps seeded")),
        (("np.random.seed(0)\n", ""), "numpy", ("bad", "never seeded")),
        (("np.random.seed(0)\n", "if A:\n    np.random.seed(0)\n"), "numpy", ("risk", "seeded under a condition")),
        (("random.seed(0)\nnp", "np"), "python", ("bad", "never seeded")),
        (("* random.random()", "* random.Random().random()"), "python", ("bad", "generator without a seed")),
        (("random.seed(0)\nnp", "noise = random.random()\nrandom.seed(0)\nnp"), "python", ("risk", "seeded too late")),
        (("random.seed(0)\nnp", "noise = random.random()\nrandom.seed(0)\nnp"), "events", ("bad", "draws before the seed")),
        (("use_deterministic_algorithms(True)", "backends.cudnn.deterministic = True"), "algorithms", ("good", "not needed")),
        (("use_deterministic_algorithms(True)", "backends.cudnn.deterministic = True"), "cudnn", ("good", "kernels fixed")),
        (("torch.use_deterministic_algorithms(True)\n", ""), "algorithms", ("bad", "not enabled")),
        (("use_deterministic_algorithms(True)", "backends.cudnn.deterministic = A"), "cudnn", ("risk", "depends on an option")),
        (("torch.use_deterministic_algorithms(True)\n", ""), "cudnn", ("bad", "kernels may vary")),
        (("(True)", "(True, warn_only=True)"), "algorithms", ("bad", "enabled without effect")),
        (("(True)", "(A)"), "algorithms", ("risk", "depends on an option")),
        (("torch.use", "if A: torch.use"), "algorithms", ("risk", "on under a condition")),
        (("torch.use", "if A: torch.use"), "cudnn", ("risk", "on under a condition")),
        (("torch.use", "torch.backends.cudnn.deterministic = True\nif A: torch.use"), "cudnn", ("good", "kernels fixed")),
        (("(True)", "(A)"), "cudnn", ("risk", "depends on an option")),
        (("(True)", "(True, warn_only=True)"), "cudnn", ("good", "kernels fixed")),
        (("torch.use", "torch.backends.cudnn.benchmark = A; torch.use"), "cudnn", ("unknown", "benchmark depends on the run")),
        (("torch.use", "torch.backends.cudnn.benchmark = True  # noqa\ntorch.use"), "cudnn", ("risk", "benchmark is on")),
        (("torch.use", "if A: torch.backends.cudnn.benchmark = True\nelse: torch.backends.cudnn.benchmark = False\ntorch.use"), "cudnn", ("risk", "benchmark is on")),
        (("nn.Conv2d(3, 8, 3)", "nn.Linear(8, 8)"), "cudnn", ("unused", "no convolution found")),
        ((".cuda()", ""), "cuda", ("unused", "no CUDA")),
        ((".cuda()", ""), "cudnn", ("unused", "no CUDA")),
        ((".cuda()", ""), "workspace", ("unused", "no CUDA")),
        (("random.random()", "1"), "python", ("good", "seeded")),
        (("nn.Conv2d(3, 8, 3)", "nn.AdaptiveMaxPool2d(3)"), "operations", ("bad", "no deterministic version")),
        (('"model.pt")', '"model.pt", list({"a", str(A)}))'), "order", ("bad", "a set's order decides")),
    ],
)  # fmt: skip
def test_a_control_when_something_changes(
    project: Project, change: tuple[str, str], control: str, expected: tuple[str, str]
) -> None:
    assert change[0] in STEADY
    text = STEADY.replace("import random\n", "import random, sys\nA = sys.argv\n", 1)
    overview = overview_of(project({"run.py": text.replace(*change)}), torch="2.13")
    cell = cells_of(overview, "run.py")[control]
    assert (cell.state, cell.says) == expected


@pytest.mark.parametrize(
    ("arguments", "order", "workers"),
    [
        ("batch_size=4", ("good", "nothing is shuffled"), ("good", "no workers")),
        (
            "shuffle=True, generator=torch.Generator().manual_seed(1)",
            ("good", "own generators"),
            ("good", "no workers"),
        ),
        ("shuffle=True", ("risk", "shuffled by the global generator"), ("good", "no workers")),
        ("num_workers=2", ("good", "nothing is shuffled"), ("risk", "seeded by the global generator")),
        ("**options()", ("unknown", "arguments not known"), ("unknown", "arguments not known")),
        (
            "in_order=False, num_workers=2, generator=torch.Generator()",
            ("bad", "batches out of order"),
            ("good", "workers draw nothing unseeded"),
        ),
    ],
)
def test_loaders(project: Project, arguments: str, order: tuple[str, str], workers: tuple[str, str]) -> None:
    text = f"import torch\nfrom lib import rows, options\ntorch.manual_seed(0)\nloader = torch.utils.data.DataLoader(rows(), {arguments})\n"
    found = cells_of(overview_of(project({"run.py": f"{text}print('loss', sum(loader))\n"}), torch="2.13"), "run.py")
    assert (found["loaders"].state, found["loaders"].says) == order
    assert (found["workers"].state, found["workers"].says) == workers


def test_the_workspace_before_torch_needs_it_no_more(project: Project) -> None:
    place = project({"run.py": STEADY})
    assert cells_of(overview_of(place, torch="2.9"), "run.py")["workspace"].state == "bad"
    assert cells_of(overview_of(place, torch="2.10"), "run.py")["workspace"].state == "unused"
    project({"run.py": f'import os\nos.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"\n{STEADY}'})
    assert cells_of(overview_of(place, torch="2.9"), "run.py")["workspace"].says == "set"


def test_a_cell_is_never_better_than_its_findings(project: Project) -> None:
    overview = overview_of(project({**STUDY, "more.py": TRAIN.replace("seed_all(0)", "pass")}))
    severity = {item.id: item.severity for item in overview.findings}
    linked = [
        (cell.state, severity[each]) for entry in overview.entries for cell in entry.cells for each in cell.findings
    ]
    assert ("bad", "warning") in linked
    assert all(state == "bad" if weight != "note" else state in ("bad", "risk") for state, weight in linked)


_BEHIND_A_GAP = """\
import torch
from other import wrap
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module):
        self.model = wrap(model)

    def fit(self, x):
        self.model(x).sum().backward()


torch.manual_seed(0)
torch.backends.cudnn.deterministic = True
Trainer(nn.Conv2d(3, 8, 3).cuda()).fit(torch.ones(1, 3, 8, 8).cuda())
"""


def test_no_cell_is_good_across_a_gap(project: Project) -> None:
    overview = overview_of(project({"train.py": _BEHIND_A_GAP}))
    found = cells_of(overview, "train.py")
    for key in ("operations", "algorithms"):
        assert (found[key].state, found[key].says) == ("unknown", NOT_KNOWN)
        assert found[key].because.startswith("What self.model(x) (train.py:11) runs is not known, so ")
    assert [(gap.what, gap.why) for gap in overview.gaps if gap.kind == "call"] == [
        ("train.py", "what self.model(x) (train.py:11) runs is not known: no table describes the package other")
    ]
    plain = _BEHIND_A_GAP.replace("wrap(model)", "model").replace("from other import wrap\n", "")
    followed = cells_of(overview_of(project({"train.py": plain})), "train.py")
    assert (followed["operations"].says, followed["algorithms"].says) == (
        "all have a deterministic version",
        "not needed",
    )


def test_what_a_gap_may_hide_is_not_known(project: Project) -> None:
    """A seed that comes before it holds; what was not found may be behind it."""
    overview = overview_of(project({"train.py": _BEHIND_A_GAP}))
    found = cells_of(overview, "train.py")
    assert {key: cell.says for key, cell in found.items() if cell.state != "unknown"} == {
        "torch": "seeded",
        "cuda": "seeded",
        "events": "seeds come first",
        "cudnn": "kernels fixed",
        "workspace": "not needed",
    }
    assert {cell.says for cell in found.values() if cell.state == "unknown"} == {NOT_KNOWN}
    assert found["numpy"].because == (
        "What self.model(x) (train.py:11) runs is not known. "
        "In what is followed: Nothing in this run draws from numpy's global generator."
    )


def test_a_seed_after_a_gap_may_be_late(project: Project) -> None:
    text = "import torch\nimport lib\n\n\ndef main(step):\n    step()\n    torch.manual_seed(0)\n    step()\n"
    late = f"{text}    torch.save(torch.rand(2), 'x')\n\n\nif __name__ == '__main__':\n    lib.apply(main)\n"
    found = cells_of(overview_of(project({"late.py": late})), "late.py")
    assert [found[key].state for key in ("torch", "events")] == ["unknown", "unknown"]
    assert found["torch"].because.startswith(
        "What step() (late.py:6) runs is not known, and 1 more call is not followed."
    )
    early = late.replace("    step()\n    torch.manual_seed", "    torch.manual_seed")
    found = cells_of(overview_of(project({"late.py": early})), "late.py")
    assert [found[key].state for key in ("torch", "events", "numpy")] == ["good", "good", "unknown"]
