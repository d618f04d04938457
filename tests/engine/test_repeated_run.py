"""A run that is repeated in memory finds what a run from nothing finds, and checks only what a change affects."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from torchrepro_lint.checks.rule import Rule
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import settings_table
from torchrepro_lint.engine import rule_groups
from torchrepro_lint.engine.diagnostic import RunOutcome
from torchrepro_lint.engine.run import run
from torchrepro_lint.engine.session import RepeatedRun
from torchrepro_lint.query.database import Database
from torchrepro_lint.syntax.nodes import Call
from torchrepro_lint.trace.traces import Context

Project = Callable[[Mapping[str, str | bytes]], Path]

MODEL = "import torch\n\n\ndef draw():\n    return torch.randn(3)\n\n\ndef steady():\n    return 3\n"
SEEDING = "import torch\n\n\ndef seed(value):\n    torch.manual_seed(value)\n"
TRAIN = (
    "import torch\nfrom model import draw\n\n\ndef main():\n    torch.save(draw(), 'x.pt')\n\n\n"
    "if __name__ == '__main__':\n    main()\n"
)
OTHER = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
FILES = {
    "pyproject.toml": "",
    "model.py": MODEL,
    "seeding.py": SEEDING,
    "train.py": TRAIN,
    "other.py": OTHER,
    "plain.py": "LIMIT = 3\n",
}


class Watched:
    """A project on disk with a run that is repeated; ``checked`` are the files that its last outcome was worked out for, ``fixed`` the codes with a fix."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.run = RepeatedRun(honour_comments=True)
        self.checked: list[str] = []
        self.fixed: set[str] = set()
        run_rules = rule_groups._run_rules

        def noted(rules: Sequence[Rule], context: Context) -> rule_groups.GroupResult:
            if context.project.resolver.modules.reads.incremental:
                self.checked.append(context.path)
            return run_rules(rules, context)

        monkeypatch.setattr(rule_groups, "_run_rules", noted)

    def outcome(self, **written: str | None) -> list[str]:
        """The findings after files were written or removed; those of a run from nothing are the same."""
        for name, text in written.items():
            path = self.root / f"{name}.py"
            path.unlink() if text is None else path.write_text(text, encoding="utf-8")
        settings_table.cache_clear()
        planned = plan([str(self.root)], ConfigOptions(None, False, lambda settings: settings))
        self.checked.clear()
        found = self.run.outcome(planned)
        anew = run(planned, fix=False, honour_comments=True, progress=lambda _: lambda: None)
        assert plain(found) == plain(anew)
        self.checked = sorted(set(self.checked))
        self.fixed = {one.code for one in found.diagnostics if one.fix}
        return [f"{Path(one.filename).name}:{one.start.row} {one.code}" for one in found.diagnostics]

    def rest(self) -> None:
        """All that is prepared while nothing changes."""
        self.run.settle()


def plain(outcome: RunOutcome) -> object:
    """An outcome without the lines of files, which are equal only if they are the same."""
    found = [
        (one.display, one.start, one.end, one.code, one.message, one.severity, one.fix, one.steps, one.unfixed)
        for one in outcome.diagnostics
    ]
    return found, outcome.files, outcome.notes, outcome.errors


@pytest.fixture
def watched(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    yield Watched(project(FILES), monkeypatch)
    gc.unfreeze()


def test_only_what_a_change_affects_is_checked_again(watched: Watched) -> None:
    assert watched.outcome() == ["other.py:3 TRL201", "train.py:6 TRL101"]
    assert watched.checked == ["model.py", "other.py", "plain.py", "seeding.py", "train.py"]
    watched.rest()
    assert watched.outcome() == ["other.py:3 TRL201", "train.py:6 TRL101"]
    assert watched.checked == []
    watched.outcome(plain="LIMIT = 4\n")
    assert {"model.py", "other.py", "seeding.py"}.isdisjoint(watched.checked)
    watched.rest()
    seeded = MODEL.replace("    return torch", "    torch.manual_seed(0)\n    return torch")
    assert watched.outcome(model=seeded) == ["other.py:3 TRL201"]
    assert "train.py" in watched.checked


def test_a_message_follows_the_lines_of_another_file(watched: Watched) -> None:
    watched.outcome()
    watched.rest()
    assert watched.outcome(model=f"# one line more\n{MODEL}") == ["other.py:3 TRL201", "train.py:6 TRL101"]


def test_which_programs_reach_a_function_is_compared_after_a_change(watched: Watched) -> None:
    """Whether an operation counts depends on the programs that reach it: here one of another file, which is edited."""
    helper = "import torch\n\n\ndef pick(x, i):\n    return x.index_select(0, i)\n\n\nLIMIT = 3\n"
    start = "import torch\nfrom helper import pick\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n"
    step = "    x = torch.ones(3, requires_grad=True)\n    pick(x, torch.tensor([0, 0])).sum().backward()\n"
    on_cpu = f"{start}{step}"
    on_cuda = f"{start}    device = torch.device('cuda')\n{step}"
    assert "helper.py:5 TRL401" not in watched.outcome(helper=helper, start=on_cpu)
    watched.rest()
    assert "helper.py:5 TRL401" in watched.outcome(start=on_cuda)
    watched.rest()
    assert "helper.py:5 TRL401" not in watched.outcome(start=on_cpu)


def test_files_come_go_and_break(watched: Watched) -> None:
    watched.outcome()
    watched.rest()
    assert "new.py:3 TRL201" in watched.outcome(new=OTHER)
    watched.rest()
    assert watched.outcome(new="def f(:\n")[0] == "new.py:1 TRL001"
    watched.rest()
    assert watched.outcome(new=None, model=None) == ["other.py:3 TRL201"]
    (watched.root / "pyproject.toml").write_text('[tool.torchrepro-lint]\nignore = ["TRL201"]\n', encoding="utf-8")
    assert watched.outcome(model=MODEL) == ["train.py:6 TRL101"]


def test_a_change_does_not_wait_for_preparation(watched: Watched) -> None:
    watched.outcome()
    assert watched.outcome(seeding=f"{SEEDING}\n\nLIMIT = 3\n") == ["other.py:3 TRL201", "train.py:6 TRL101"]
    assert watched.outcome(train=TRAIN.replace("'x.pt'", "'y.pt'")) == ["other.py:3 TRL201", "train.py:6 TRL101"]


def test_findings_depend_on_their_own_file(watched: Watched) -> None:
    """Also where no rule asks the project of it: a rule that looks at the file alone, and one that judges its comments."""
    (watched.root / "pyproject.toml").write_text(
        '[tool.torchrepro-lint]\nselect = ["TRL108", "TRL002"]\n', encoding="utf-8"
    )
    assert watched.outcome() == []
    watched.rest()
    drawing = "import gymnasium as gym\n\nenv = gym.make('CartPole-v1')\nstate, info = env.reset()\n"
    assert watched.outcome(plain=drawing) == ["plain.py:4 TRL108"]
    watched.rest()
    assert watched.outcome(plain="LIMIT = 3  # noqa: TRL108\n") == ["plain.py:1 TRL002"]


def test_requirements_count_where_the_target_torch_stays(watched: Watched) -> None:
    """Both admit torch 2.3 as the newest release, but with 2.0 deterministic mode would raise an error: there is no fix then."""
    (watched.root / "requirements.txt").write_text("torch>=2.1,<2.4\n", encoding="utf-8")
    trained = (
        "import torch\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n"
        "    x = torch.ones(2, 3, 8, 8, requires_grad=True).cuda()\n"
        "    torch.nn.functional.interpolate(x, scale_factor=2, mode='bilinear').sum().backward()\n"
    )
    assert "train.py:6 TRL203" in watched.outcome(train=trained)
    assert "TRL203" in watched.fixed
    watched.rest()
    (watched.root / "requirements.txt").write_text("torch>=1.8,<2.4\n", encoding="utf-8")
    assert "train.py:6 TRL203" in watched.outcome()
    assert "TRL203" not in watched.fixed


def test_configurations_count(watched: Watched) -> None:
    """A class that a file names is entered, and no longer once it names another."""
    configuration = watched.root / "conf.json"
    configuration.write_text('{"net": {"target": "model.draw"}}', encoding="utf-8")
    building = (
        "import json\nimport torch\nfrom importlib import import_module\n\n\ndef find(text):\n"
        "    module, name = text.rsplit('.', 1)\n    return getattr(import_module(module), name)\n\n\n"
        "if __name__ == '__main__':\n    torch.save(find(json.load(open('conf.json'))['net']['target'])(), 'x.pt')\n"
    )
    assert "train.py:12 TRL101" in watched.outcome(train=building)
    watched.rest()
    configuration.write_text('{"net": {"target": "model.steady"}}', encoding="utf-8")
    assert watched.outcome() == ["other.py:3 TRL201"]
    watched.rest()
    configuration.unlink()
    assert watched.outcome() == ["other.py:3 TRL201"]
    configuration.write_text('{"net": {"target": "model.draw"}}', encoding="utf-8")
    assert "train.py:12 TRL101" in watched.outcome()


def test_registries_of_objects_count(watched: Watched) -> None:
    """A definition that is decorated now is built, and no longer once its decorator is gone."""
    seeding = "class Registry:\n    pass\n\n\nNETS = Registry()\n"
    plain = "import torch\n\n\ndef draw():\n    return torch.randn(3)\n"
    decorated = plain.replace("def draw", "@NETS.register('draw')\ndef draw").replace(
        "import torch\n", "import torch\nfrom seeding import NETS\n"
    )
    building = "import torch\nimport model\nfrom seeding import NETS\n\ntorch.save(NETS.build({'type': 'draw'}), model.__name__)\n"
    assert watched.outcome(seeding=seeding, model=plain, train=building) == ["other.py:3 TRL201"]
    watched.rest()
    assert "train.py:5 TRL101" in watched.outcome(model=decorated)
    watched.rest()
    assert watched.outcome(model=plain) == ["other.py:3 TRL201"]


def test_which_version_was_asked_for_counts_where_the_catalogue_has_neither(watched: Watched) -> None:
    """The reason why nothing is fixed names the release."""
    (watched.root / "requirements.txt").write_text("torch==0.2\n", encoding="utf-8")
    watched.outcome()
    watched.rest()
    (watched.root / "requirements.txt").write_text("torch==0.1\n", encoding="utf-8")
    watched.outcome()


def test_calls_that_are_gone_are_not_asked_for(watched: Watched) -> None:
    """Which call passes what to ``model`` is compared after the edit, while what was known of the calls still counts two."""
    step = "            loss = train_epoch(model, loader)\n"
    train = (
        "from rows import rows\n\n\ndef train_epoch(model, loader):\n    return model(loader)\n\n\n"
        "def run(config):\n    loader = rows(config)\n    for epoch in range(3):\n        for batch in range(3):\n"
        f"{step}{step}\n\nif __name__ == '__main__':\n    run(3)\n"
    )
    rows = (
        "import torch\nfrom torch.utils.data import DataLoader, Dataset\n\n\nclass Rows(Dataset):\n"
        "    def __init__(self, names):\n        self.labels = {name: label for label, name in enumerate(names)}\n\n\n"
        "class Noisy(Rows):\n    def __getitem__(self, index):\n        return super().__getitem__(index)\n\n\n"
        "def rows(config):\n    return DataLoader(Rows(config.names), num_workers=2)\n"
    )
    watched.outcome(train=train, rows=rows)
    watched.outcome(train=train.replace(step, "", 1))


def test_a_project_that_could_not_be_updated_is_linked_again(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is updated in part would be wrong from then on."""
    assert "train.py:6 TRL101" in watched.outcome()

    def failing(self: Database, *rest: object) -> None:
        raise KeyError(*rest)

    with monkeypatch.context() as broken:
        broken.setattr(Database, "invalidate", failing)
        with pytest.raises(KeyError):
            watched.outcome(model=f"import torch\n\ntorch.manual_seed(0)\n{MODEL}")
    assert "train.py:6 TRL101" not in watched.outcome()


def test_the_comparison_of_programs_hides_no_dependency(watched: Watched) -> None:
    """It asks what the entry points are before rules do: a file that is imported now is none."""
    (watched.root / "pyproject.toml").write_text(
        '[tool.torchrepro-lint]\nselect = ["TRL101", "TRL401"]\n', encoding="utf-8"
    )
    (watched.root / "sub").mkdir()
    script = "import torch\n\ntorch.save(torch.rand(3), 'x.pt')\n"
    picking = "import torch\n\n\ndef pick(x, i):\n    return x.index_select(0, i)\n"
    first = watched.outcome(**{"sub/alone": script, "sub/later": "LIMIT = 3\n", "sub/picking": picking})
    assert "alone.py:3 TRL101" in first
    assert "alone.py:4 TRL101" in watched.outcome(**{"sub/alone": f"\n{script}"})
    assert "alone.py:4 TRL101" not in watched.outcome(**{"sub/later": "import alone\n"})


def test_an_answer_by_node_depends_on_the_file_of_its_node(watched: Watched) -> None:
    """Or it would outlive an edit of what the names in the node mean."""
    watched.outcome(
        other="import numpy as np\nimport torch\n\n\ndef f():\n    for x in zip(np.arange(3), open('x')):\n        torch.save(x, 'x')\n"
    )
    databases = [each for linked in watched.run._known.values() for each in linked._links._known.values()]
    found = [(key, bits) for each in databases for key, _, bits in each.database.table("never sets").entries()]
    assert any(isinstance(key[1], Call) for key, _ in found)
    assert all(bits for _, bits in found)
