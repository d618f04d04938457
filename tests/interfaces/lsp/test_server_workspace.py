"""The workspace without the protocol: open documents get the findings of the command line."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.keystrokes import keystrokes
from torchrepro_lint.engine.incremental_project import FileReport, LinkedProject
from torchrepro_lint.engine.parsed_file import ParsedFile
from torchrepro_lint.interfaces.lsp.workspace import (
    CellText,
    Document,
    Preferences,
    Workspace,
    encode_text,
    notebook_data,
    preferences,
)
from torchrepro_lint.syntax.nodes import SyntaxTree
from torchrepro_lint.trace.traces import Traces

Project = Callable[[Mapping[str, str | bytes]], Path]

MODEL = "import torch\n\n\ndef draw():\n    return torch.randn(3)\n"
TRAIN = """import torch
from model import draw

if __name__ == "__main__":
    x = draw()
    torch.save(x, "x.pt")
"""
SEEDED = TRAIN.replace("    x = draw()\n", "    torch.manual_seed(0)\n    x = draw()\n")


class Opened:
    """A workspace with one folder."""

    def __init__(self, root: Path, settings: Any = None) -> None:
        self.root = root
        self.complaints: list[str] = []
        self.workspace = Workspace(self.complaints.append)
        own, mistakes = preferences(settings)
        assert not mistakes
        self.workspace.configure(Preferences(), {str(root): own})

    def show(self, **texts: str) -> None:
        changes = {}
        for name, text in texts.items():
            path = self.root / f"{name}.py"
            changes[str(path)] = Document(str(path), encode_text(text), path.as_uri())
        self.workspace.update_documents(changes)

    def hide(self, name: str) -> None:
        self.workspace.update_documents({str(self.root / f"{name}.py"): None})

    def report(self, name: str) -> FileReport | None:
        path = str(self.root / f"{name}.py")
        return self.workspace.reports([path])[path]

    def home(self, name: str) -> LinkedProject:
        found = self.workspace.project_of(str(self.root / f"{name}.py"))
        assert found is not None
        return found[0]

    def findings(self, name: str) -> list[tuple[str, int, str]] | None:
        report = self.report(name)
        if report is None:
            return None
        lines = report.reading.lines
        return [(one.code, lines.position(one.span.start).row, one.message) for one in report.checked.findings]

    def codes(self, name: str) -> list[str]:
        return [code for code, _, _ in self.findings(name) or ()]


def test_the_unsaved_text_of_one_file_decides_what_is_said_of_another(project: Project) -> None:
    opened = Opened(project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""}))
    opened.show(train=TRAIN)
    assert opened.codes("train") == ["TRL101"]
    opened.show(model=MODEL.replace("torch.randn(3)", "torch.ones(3)"))
    assert opened.codes("train") == []
    opened.hide("model")
    assert opened.codes("train") == ["TRL101"]


def test_an_edit_is_seen_and_undone(project: Project) -> None:
    opened = Opened(project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""}))
    for text, expected in ((TRAIN, ["TRL101"]), (SEEDED, []), (TRAIN, ["TRL101"])):
        opened.show(train=text)
        assert opened.codes("train") == expected


def test_an_import_joins_two_parts_and_its_end_parts_them(project: Project) -> None:
    other = 'import torch\n\n\ndef draw():\n    return torch.ones(3)\n\n\nif __name__ == "__main__":\n    draw()\n'
    train = TRAIN.replace("from model import draw", "from nets.model import draw")
    opened = Opened(
        project({"nets/model.py": MODEL, "run/train.py": train, "run/other.py": other, "pyproject.toml": ""})
    )
    apart = train.replace("from nets.model import draw", "from run.other import draw")
    for _ in range(2):
        opened.show(**{"run/train": train})
        assert opened.codes("run/train") == ["TRL101"]
        opened.show(**{"nets/model": MODEL.replace("randn", "zeros")})
        assert opened.codes("run/train") == []
        opened.hide("nets/model")
        opened.show(**{"run/train": apart})
        assert opened.codes("run/train") == []
        opened.show(**{"run/other": other.replace("ones", "rand")})
        assert opened.codes("run/train") == ["TRL101"]
        opened.hide("run/other")


def test_what_was_linked_before_an_edit_is_let_go(project: Project) -> None:
    """Operations ask for kinds and callers, which refer to the project that they are worked out for."""
    text = TRAIN + "\n\ndef loss(x, i):\n    return x.index_select(0, i).cumsum(0)\n\n\nloss(draw(), draw())\n"
    opened = Opened(project({"model.py": MODEL, "train.py": text, "pyproject.toml": ""}))
    try:
        counts = [_after(opened, text, 30, seed) for seed in (1, 2, 3)]
    finally:
        gc.unfreeze()
    assert counts[1] == counts[2]
    assert counts[1][SyntaxTree] >= 2
    assert counts[1][Traces] == 0


@pytest.mark.long
def test_two_thousand_edits_leave_nothing_behind(project: Project) -> None:
    opened = Opened(project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""}))
    try:
        counts = [_after(opened, TRAIN, 500, seed) for seed in (1, 2, 3, 4)]
    finally:
        gc.unfreeze()
    assert [each[Traces] for each in counts] == [0] * 4
    assert counts[1][ParsedFile] == counts[2][ParsedFile] == counts[3][ParsedFile]
    assert all(each[SyntaxTree] < 20 for each in counts)  # small caches hold some


def _after(opened: Opened, text: str, edits: int, seed: int) -> dict[type, int]:
    """How many projects, facts and readings there are after so many edits, undone at last, and a rest."""
    for one in keystrokes(text, edits, seed):
        opened.show(train=one.text)
        opened.codes("train")
        opened.workspace.release()
    opened.show(train=text)
    assert "TRL101" in opened.codes("train")
    opened.workspace.release()
    gc.unfreeze()  # what is exempt is not counted
    every = gc.get_objects()
    return {kind: sum(type(each) is kind for each in every) for kind in (Traces, SyntaxTree, ParsedFile)}


def test_after_any_edits_the_same_is_said_as_of_files_just_opened(project: Project) -> None:
    """What is kept from link to link decides nothing. Reading a property runs code, a call under a test that is ruled out none."""
    model = (
        "import random\nimport torch\n\n\nclass Net:\n    def noise(self):\n        return random.random()\n\n    "
        "def draw(self):\n        return torch.randn(3)\n\n\ndef draw():\n    return Net().draw()\n"
    )
    train = TRAIN.replace(
        "    x = draw()\n", "    torch.manual_seed(0)\n    net = Net()\n    print(net.noise)\n    x = draw()\n"
    )
    train = train.replace("import draw", "import Net, draw")
    root = project({"model.py": model, "train.py": train, "pyproject.toml": ""})
    opened, said = Opened(root), set()
    texts = {"model": model, "train": train}
    for name, old, new in (
        ("model", "    def noise", "    @property\n    def noise"),
        ("train", "    torch.manual_seed(0)\n", "    if False:\n        torch.manual_seed(0)\n"),
        ("model", "random.random()", "1"),
        ("model", "    @property\n", ""),
        ("train", "    if False:\n        torch.manual_seed(0)\n", "    torch.manual_seed(0)\n"),
        ("train", "torch.manual_seed(0)", "pass"),
        ("model", "torch.randn(3)", "3"),
    ):
        texts[name] = texts[name].replace(old, new)
        fresh = Opened(root)
        for each in (opened, fresh):
            each.show(**texts)
        assert opened.findings("train") == fresh.findings("train")
        assert opened.findings("model") == fresh.findings("model")
        said.add(tuple(opened.codes("train")))
    assert said == {("TRL103",), ("TRL103", "TRL101"), ("TRL101",), ()}


def test_a_file_that_does_not_parse_stays_in_the_link_as_it_was(project: Project) -> None:
    opened = Opened(project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""}))
    opened.show(train=TRAIN, model=MODEL.replace("torch.randn(3)", "torch.ones(3)"))
    assert opened.codes("train") == []
    opened.show(model=MODEL.replace("return torch.randn(3)", "return torch.randn("))
    assert opened.codes("model") == ["TRL001"]
    assert opened.codes("train") == []
    opened.show(model=MODEL)
    assert (opened.codes("model"), opened.codes("train")) == ([], ["TRL101"])


def test_a_deleted_file_is_forgotten_and_a_new_one_found(project: Project) -> None:
    root = project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""})
    opened = Opened(root)
    opened.show(train=TRAIN)
    assert opened.codes("train") == ["TRL101"]
    (root / "model.py").unlink()
    opened.workspace.refresh()
    assert opened.codes("train") == []
    (root / "model.py").write_text(MODEL)
    opened.workspace.refresh()
    assert opened.codes("train") == ["TRL101"]


def test_an_open_file_that_is_renamed_is_one_file(project: Project) -> None:
    root = project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""})
    opened = Opened(root)
    opened.show(train=TRAIN, model=MODEL)
    assert opened.codes("train") == ["TRL101"]
    (root / "model.py").rename(root / "net.py")
    opened.hide("model")
    opened.show(net=MODEL, train=TRAIN.replace("from model", "from net"))
    opened.workspace.refresh()
    assert opened.codes("train") == ["TRL101"]
    home = opened.workspace.project_of(str(root / "train.py"))
    assert home is not None
    assert sorted(home[0].readings) == ["net.py", "train.py"]


def test_a_configuration_that_changes_on_disk_counts_after_looking_again(project: Project) -> None:
    train = (
        "import torch\nfrom hydra.utils import instantiate\nfrom omegaconf import OmegaConf\n\n"
        "torch.save(instantiate(OmegaConf.load('a.yaml')), 'x.pt')\n"
    )
    root = project({"model.py": MODEL, "train.py": train, "pyproject.toml": "", "a.yaml": "_target_: model.draw\n"})
    opened = Opened(root)
    opened.show(train=train)
    assert opened.codes("train") == ["TRL101"]
    (root / "a.yaml").write_text("_target_: model.other\n")
    opened.workspace.refresh()
    assert opened.codes("train") == []
    (root / "a.yaml").write_text("_target_: model.draw\n")
    opened.workspace.refresh()
    assert opened.codes("train") == ["TRL101"]


def test_settings_that_change_on_disk_count_after_looking_again(project: Project) -> None:
    root = project({"train.py": "import torch\ntorch.backends.cudnn.benchmark = True\n", "pyproject.toml": ""})
    opened = Opened(root)
    opened.show(train=(root / "train.py").read_text())
    assert opened.codes("train") == ["TRL201"]
    (root / "pyproject.toml").write_text('[tool.torchrepro-lint]\nignore = ["TRL201"]\n')
    opened.workspace.refresh()
    assert opened.codes("train") == []
    (root / "pyproject.toml").write_text("")
    opened.workspace.refresh()
    assert opened.codes("train") == ["TRL201"]


def test_while_settings_are_wrong_those_before_stay_in_force(project: Project) -> None:
    """They are saved in between while they are written."""
    good = '[tool.torchrepro-lint]\nignore = ["TRL201"]\n'
    text = "import torch\ntorch.backends.cudnn.benchmark = True\ntorch.use_deterministic_algorithms()\n"
    root = project({"train.py": text, "model.py": MODEL, "pyproject.toml": good})
    opened = Opened(root)
    opened.show(train=text)
    assert opened.codes("train") == ["TRL204"]
    for broken in (good + "[", good + "[tool.torchrepro-lint", '[tool.torchrepro-lint]\nignore = "TRL201"\n'):
        (root / "pyproject.toml").write_text(broken)
        opened.workspace.refresh()
        assert opened.codes("train") == ["TRL204"]
    assert len(opened.complaints) == 1
    assert opened.complaints[0].startswith(str(root / "pyproject.toml"))
    assert opened.complaints[0].endswith("the earlier settings stay in force")
    opened.show(train=TRAIN)
    assert opened.codes("train") == ["TRL101"]
    (root / "model.py").write_text(MODEL.replace("torch.randn(3)", "torch.ones(3)"))
    opened.workspace.refresh()
    assert opened.codes("train") == []  # other files are still looked at
    (root / "pyproject.toml").write_text("")
    opened.workspace.refresh()
    opened.show(train=text)
    assert opened.codes("train") == ["TRL201", "TRL204"]
    (root / "pyproject.toml").write_text("[")
    opened.workspace.refresh()
    assert len(opened.complaints) == 2


def test_settings_that_are_wrong_from_the_start_are_told_once(project: Project) -> None:
    root = project({"train.py": TRAIN, "model.py": MODEL, "pyproject.toml": '[tool.torchrepro-lint]\nselect = ["X"]\n'})
    opened = Opened(root)
    opened.show(train=TRAIN)
    for _ in range(2):
        assert opened.findings("train") is None
        opened.workspace.refresh()
    assert len(opened.complaints) == 1
    (root / "pyproject.toml").write_text("")
    opened.workspace.refresh()
    assert opened.codes("train") == ["TRL101"]


def test_nothing_is_linked_again_where_nothing_has_changed(project: Project) -> None:
    root = project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""})
    opened = Opened(root)
    opened.show(train=TRAIN)
    before = opened.report("train")
    opened.workspace.refresh()
    (root / "train.py").write_text(SEEDED)  # under an open file
    opened.workspace.refresh()
    opened.workspace.configure(Preferences(delay=1), {str(root): Preferences(delay=2)})
    assert opened.report("train") is before
    (root / "model.py").write_text(MODEL.replace("torch.randn(3)", "torch.ones(3)"))
    opened.workspace.refresh()
    assert opened.codes("train") == []


def test_opening_closing_and_breaking_a_file_leaves_what_is_said_of_others(project: Project) -> None:
    root = project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""})
    opened = Opened(root)
    opened.show(train=TRAIN)
    before = opened.report("train")
    opened.show(model=MODEL)  # as it is on disk
    assert opened.codes("model") == []
    opened.show(model=MODEL + "(")
    assert opened.codes("model") == ["TRL001"]
    assert opened.report("train") is before
    opened.hide("model")
    assert opened.report("train") is before
    opened.show(model=MODEL)
    assert opened.codes("model") == []
    opened.show(model=MODEL.replace("torch.randn(3)", "torch.ones(3)"))
    assert opened.codes("train") == []
    opened.hide("model")
    assert opened.codes("train") == ["TRL101"]


def test_what_is_said_outlives_the_link(project: Project) -> None:
    opened = Opened(project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""}))
    opened.show(train=TRAIN)
    before = opened.report("train")
    try:
        opened.workspace.release()
        assert opened.report("train") is before
        opened.show(model=MODEL)
        assert opened.codes("model") == []
        opened.show(train=SEEDED)
        assert opened.codes("train") == []
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("shared", ["home", "above", "temporary"])
def test_a_file_in_someones_home_has_only_what_it_imports(
    shared: str, project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = {"model.py": MODEL, "train.py": TRAIN, "deep/x.py": "", "own/model.py": MODEL, "own/train.py": TRAIN}
    files |= {"other.py": "", "alone.py": "", "unrelated.py": ""}
    opened = Opened(project({**files, "own/pyproject.toml": ""}))
    monkeypatch.setenv("HOME", str(tmp_path / "me" if shared == "above" else tmp_path))
    if shared == "temporary":
        monkeypatch.setenv("TMPDIR", str(tmp_path))
    opened.show(train=TRAIN)
    assert opened.codes("train") == ["TRL101"]
    assert sorted(opened.home("train").readings) == ["model.py", "train.py"]
    opened.show(other="import alone\n")
    assert sorted(opened.home("other").readings) == ["alone.py", "model.py", "other.py", "train.py"]
    opened.show(train=TRAIN.replace("from model import draw", "draw = print"))
    opened.workspace.refresh()
    assert sorted(opened.home("train").readings) == ["alone.py", "other.py", "train.py"]
    opened.show(**{"own/train": TRAIN})
    assert opened.codes("own/train") == ["TRL101"]
    assert sorted(opened.home("own/train").readings) == ["model.py", "train.py"]


def test_a_project_is_kept_for_a_file_that_is_opened_next(project: Project) -> None:
    root = project({"a/model.py": MODEL, "a/train.py": TRAIN, "a/pyproject.toml": "", "b/pyproject.toml": ""})
    opened = Opened(root)
    opened.show(**{"a/train": TRAIN})
    linked = opened.home("a/train")
    opened.hide("a/train")
    opened.workspace.refresh()
    opened.show(**{"a/model": MODEL})
    opened.workspace.refresh()
    assert opened.home("a/model") is linked
    assert "train.py" in linked.readings


def test_a_file_that_is_opened_broken_counts_as_it_was_saved(project: Project) -> None:
    opened = Opened(project({"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": ""}))
    opened.show(train=TRAIN, model=MODEL + "(")
    assert (opened.codes("train"), opened.codes("model")) == (["TRL101"], ["TRL001"])


def test_what_the_settings_leave_out_is_silent(project: Project) -> None:
    root = project({"build/train.py": TRAIN, "pyproject.toml": '[tool.torchrepro-lint]\nexclude = ["build"]\n'})
    opened = Opened(root)
    opened.show(**{"build/train": "import torch\ntorch.backends.cudnn.benchmark = True\n"})
    assert opened.findings("build/train") is None


def test_a_document_that_was_never_saved_is_linted(project: Project) -> None:
    root = project({"model.py": MODEL})
    opened = Opened(root)
    opened.show(train=TRAIN)
    assert opened.codes("train") == ["TRL101"]


def test_editors_settings_overrule_those_of_the_project(project: Project) -> None:
    text = "import torch\ntorch.backends.cudnn.benchmark = True\n"
    root = project({"train.py": text, "pyproject.toml": '[tool.torchrepro-lint]\nselect = ["TRL201"]\n'})
    opened = Opened(root, {"extendSelect": ["TRL403"], "ignore": ["cudnn-benchmark"]})
    opened.show(train=text)
    assert opened.codes("train") == []


def test_two_folders_have_their_own_settings(project: Project) -> None:
    text = "import torch\ntorch.backends.cudnn.benchmark = True\n"
    root = project({"a/train.py": text, "b/train.py": text, "a/pyproject.toml": "", "b/pyproject.toml": ""})
    opened = Opened(root)
    ignoring, _ = preferences({"ignore": ["TRL201"]})
    opened.workspace.configure(Preferences(), {str(root / "a"): ignoring, str(root / "b"): Preferences()})
    opened.show(**{"a/train": text, "b/train": text})
    assert (opened.codes("a/train"), opened.codes("b/train")) == ([], ["TRL201"])


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"ignroe": []}, "did you mean 'ignore'?"),
        ({"select": "TRL101"}, "expected a list of strings"),
        ({"device": "gpu"}, "expected one of auto, cuda, mps, cpu"),
        ({"delay": -1}, "expected milliseconds"),
        ({"isolated": 1}, "expected true or false"),
        ("all", "expected a table"),
    ],
)
def test_a_mistake_in_the_editors_settings_is_told(settings: Any, part: str) -> None:
    found, mistakes = preferences(settings)
    assert found == Preferences()
    assert len(mistakes) == 1
    assert part in mistakes[0]


@pytest.mark.parametrize(
    "files",
    [
        {"model.py": MODEL, "train.py": TRAIN},
        {"model.py": MODEL, "train.py": TRAIN.replace("\n", "\r\n")},
        {"model.py": MODEL, "train.py": "# -*- coding: latin-1 -*-\ns = 'é'\n" + TRAIN},
        {"model.py": MODEL, "train.py": "# coding: no-such\n" + TRAIN},
        {"model.py": MODEL, "train.py": TRAIN + "(\n"},
        {"model.py": MODEL, "train.py": TRAIN.replace("draw()\n", "draw()  # noqa: TRL101\n")},
        {"model.py": MODEL, "train.py": "s = '😀'; " + TRAIN},
    ],
)
def test_findings_are_those_of_the_command_line(
    files: dict[str, str], project: Project, lint: Callable[..., Any]
) -> None:
    """The same content once unsaved over another file, once on disk."""
    stale = {**files, "train.py": "import torch\n", "pyproject.toml": ""}
    root = project(stale)
    opened = Opened(root)
    opened.show(train=files["train.py"])
    unsaved = opened.findings("train")
    coding = "latin-1" if "latin-1" in files["train.py"] else "utf-8"
    (root / "train.py").write_bytes(files["train.py"].encode(coding))
    ran = lint("train.py", "--output-format=json")
    said = [(one["code"], one["location"]["row"], one["message"]) for one in json.loads(ran.out)]
    assert unsaved == said


def test_a_notebook_is_read_as_its_file_is(project: Project, lint: Callable[..., Any]) -> None:
    cells = [
        CellText("cell:a", True, "python", "import torch\n%matplotlib inline"),
        CellText("cell:b", False, "markdown", "# Title"),
        CellText("cell:c", True, "python", "x = torch.randn(3)\ntorch.save(x, 'x.pt')"),
        CellText("cell:d", True, "sql", "select 1"),
    ]
    data = notebook_data(cells, {"kernelspec": {"language": "python"}})
    root = project({"train.ipynb": data, "pyproject.toml": ""})
    path = str(root / "train.ipynb")
    opened = Opened(root)
    opened.workspace.update_documents({path: Document(path, data, "notebook:", tuple(each.uri for each in cells))})
    report = opened.workspace.reports()[path]
    assert report is not None
    found = [(one.code, str(report.reading.lines.place(one.span.start))) for one in report.checked.findings]
    assert found == [("TRL101", "cell 3:1:1")]
    assert "cell 3:1:1: TRL101" in lint("train.ipynb").out
