"""Incremental update: a query database that follows changes gives the findings of a new one, and recomputes only what a change
concerns.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from one_file import facts_of
from page_examples import Example, examples
from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.config.settings import Settings
from torchrepro_lint.engine.store.query_store import (
    TABLES,
    compress_json,
    decompress_json,
    encode_answers,
    encode_table,
    restore_answers,
    restore_table,
)
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.program_index import link, prepare_revision, revise
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.text import Lines
from torchrepro_lint.trace.traces import Context, Traces

_ROOT = Path(__file__).parents[2]
# What TRL001 is about has no facts to follow.
_PAGES = sorted([*(_ROOT / "rules").glob("TRL[1-9]*.md"), *(_ROOT / "tests/rules").glob("TRL[1-9]*.md")])


def _several(page: Path) -> list[Example]:
    """The examples of a page with more than one module."""
    return [each for each in examples(page) if sum(path.endswith(".py") for path in each.files) > 1]


def _recall(into: Names, tables: dict[str, object], name: str) -> None:
    if name in tables:
        restore_table(into, name, tables.pop(name))


class _Checked:
    """What all rules say of a project whose files change, by a link that follows them and by new ones."""

    def __init__(self, files: Mapping[str, str], options: Mapping[str, str]) -> None:
        self._settings = Settings(device=options.get("device", "auto"))
        self._catalogue = catalogue.load(options.get("torch", "2.13"))
        self.followed = True
        self._files = files
        self._link = self._new(files, incremental=True, early_cutoff=True)
        self._left = self._new(files, incremental=True)
        self.found = self._findings(files, self._link)
        assert self.found == self._findings(files, self._left)

    def change(self, files: Mapping[str, str]) -> None:
        """Take over other texts of the files, and expect of the link what a new one says, and of one that takes up no more
        than what is written down between runs.
        """
        later = self._new(self._files, incremental=True)
        restore_answers(later, decompress_json(compress_json(encode_answers(self._left))))
        tables = decompress_json(compress_json({name: encode_table(self._left, name) for name in TABLES}))
        later.modules.reads.recall = partial(_recall, later, tables)
        facts = {path: facts_of(text) for path, text in files.items()}
        self._files = files
        self.followed = revise(self._link, facts)
        if not self.followed:
            self._link = self._new(files, incremental=True, early_cutoff=True)
        self.found = self._findings(files, self._link)
        assert self.found == self._findings(files, self._new(files))
        prepare_revision(later, facts)
        self._left = later if revise(later, facts) else self._new(files, incremental=True)
        assert self._findings(files, self._left) == self.found

    def _new(self, files: Mapping[str, str], *, incremental: bool = False, early_cutoff: bool = False) -> Names:
        facts = {path: facts_of(text) for path, text in files.items()}
        return link(
            facts,
            ModuleTree(facts, (".",)),
            self._catalogue.version,
            incremental=incremental,
            early_cutoff=early_cutoff,
        )

    def unrecorded(self) -> set[tuple[str, str]]:
        """The files and rules whose findings depend on more where nothing was asked of the project before: something that the
        project remembers has not been recorded as read. All tables of the database have been filled.
        """
        reads = self._link.modules.reads
        lines = {path: Lines(text) for path, text in self._files.items()}
        shared = self._project(lines, self._link)
        found = set[tuple[str, str]]()
        for _, rule, path in product(range(2), RULES, sorted(self._files)):
            recorded = []
            for project in (self._project(lines, self._link), shared):
                reads.dependencies = 0
                list(rule.check(self._context(path, lines[path], project)))
                recorded.append(reads.dependencies)
            if recorded[0] & ~recorded[1]:
                found.add((path, rule.code))
        return found

    def _findings(self, files: Mapping[str, str], names: Names) -> dict[str, list[Finding]]:
        lines = {path: Lines(text) for path, text in files.items()}
        project = self._project(lines, names)
        return {path: list(self._of_file(path, lines[path], project)) for path in sorted(files)}

    def _project(self, lines: Mapping[str, Lines], names: Names) -> Traces:
        return Traces(
            names.modules.files,
            self._settings,
            self._catalogue,
            position=lambda path, offset: lines[path].place(offset),
            text=lambda path: lines[path].text,
            names=names,
        )

    def _context(self, path: str, lines: Lines, project: Traces) -> Context:
        return Context(path, project.files[path], lines, project, self._catalogue, self._settings)

    def _of_file(self, path: str, lines: Lines, project: Traces) -> Iterator[Finding]:
        for rule in RULES:
            yield from rule.check(self._context(path, lines, project))


def _modules(example: Example) -> dict[str, str]:
    return {path: text for path, text in example.files.items() if path.endswith(".py")}


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: f"{page.parent.name}-{page.stem[:6]}")
def test_a_file_that_comes_and_goes_is_followed(page: Path) -> None:
    for example in _several(page)[::12][:2]:
        _come_and_go(example)


@pytest.mark.long
@pytest.mark.parametrize("page", _PAGES, ids=lambda page: f"{page.parent.name}-{page.stem[:6]}")
def test_every_file_that_comes_and_goes_is_followed(page: Path) -> None:
    for example in _several(page):
        _come_and_go(example)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: f"{page.parent.name}-{page.stem[:6]}")
def test_what_a_project_remembers_is_recorded_as_read(page: Path) -> None:
    for example in _several(page)[::4]:
        assert not _Checked(_modules(example), example.options).unrecorded()


def test_a_file_that_becomes_a_program_is_followed() -> None:
    draws = "import torch\ndef go():\n    torch.save(torch.rand(3), 'x.pt')\ndef stay():\n    return 1\n"
    files = {"model.py": draws, "other.py": "from model import go\nx = 1\n"}
    checked = _Checked(files, {})
    assert not checked.found["other.py"]
    checked.change({**files, "other.py": "from model import go\ngo()\n"})
    assert [each.code for each in checked.found["other.py"]] == ["TRL101"]
    checked.change(files)
    assert not checked.found["other.py"]


def test_an_answer_may_have_nodes_of_an_unchanged_part_of_an_edited_file() -> None:
    """``_C.clone()`` is the same call after the edit of settings.py, and a new object."""
    settings = "_C = CN()\n_C.MODEL.HEAD.NAME = 'zeros'\ndef get_config():\n    return _C.clone()\n"
    load = "importlib.import_module(f'nets.{cfg.MODEL%s.NAME}').build(cfg)"
    files = {
        "nets/small.py": "import torch\ndef build(cfg):\n    return torch.nn.Linear(3, 1)\n",
        "settings.py": settings,
        "a.py": f"import importlib\nfrom settings import get_config\ndef create(cfg):\n    return {load % ''}\n    cfg = get_config()\n",
        "zeros.py": "import importlib\nfrom settings import get_config, get_dict\ncfg, config = get_config(), get_dict()\n"
        f"{load % '.HEAD'}.sum().backward()\n",
    }
    checked = _Checked(files, {})
    checked.change({**files, "settings.py": f"{settings}NOISE = torch.rand(3)\n"})
    assert checked.followed


def _come_and_go(example: Example) -> None:
    files = _modules(example)
    for path, text in files.items():
        checked = _Checked(files, example.options)
        for other in ("", text, f"\n\n{text}", text):
            checked.change({**files, path: other})


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(each, marks=pytest.mark.long) for each in range(3, 9))])
def test_edits_as_people_make_them_are_followed(seed: int) -> None:
    every = sorted((each for page in _PAGES for each in _several(page)), key=lambda each: -len(each.files))
    files = _modules(every[seed % 3])
    dice = random.Random(seed)
    checked = _Checked(files, {})
    followed = 0
    for _ in range(25):
        path = dice.choice(sorted(files))
        files = {**files, path: _edited(files[path], dice)}
        checked.change(files)
        followed += checked.followed
    assert followed > 10


def _edited(text: str, dice: random.Random) -> str:
    """A text with one line changed; as it is where what comes of it is no program."""
    lines = text.split("\n")
    at = dice.randrange(len(lines))
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    for _ in range(20):
        match dice.randrange(9):
            case 0:
                new = [*lines, "", "def added(values):", "    return [each for each in values if each]", ""]
            case 1:
                new = [*lines[:at], f"{indent}torch.manual_seed(0)", *lines[at:]]
            case 2:
                new = [*lines[:at], f"{indent}y = x.index_add(0, i, z); torch.rand(3)", *lines[at:]]
            case 3:
                new = [*lines[:at], *lines[at + 1 :]]
            case 4:
                new = [*lines[:at], lines[at].replace("(", "(None, ", 1), *lines[at + 1 :]]
            case 5:
                new = ["# a comment", *lines]
            case 6:
                new = [*lines, "NOISE = torch.rand(3)", ""]
            case 7:  # a definition moves to the end
                end = next((n for n in range(at + 1, len(lines)) if lines[n][:1].strip()), len(lines))
                new = [*lines[:at], *lines[end:], "", *lines[at:end], ""]
            case _:
                new = [*lines[:at], lines[at].replace("self.", "other.", 1), *lines[at + 1 :]]
        changed = "\n".join(new)
        try:
            compile(changed, "edited.py", "exec")
        except SyntaxError:
            continue
        return changed
    return text


def test_a_parameter_begins_to_be_called_and_ends() -> None:
    loading = """
from torch.utils.data import DataLoader, Dataset
from b import run


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return self.rows[index]


def loader(rows):
    return DataLoader(Rows(rows), num_workers=2)


run(loader)
"""
    other = "def run(make, do=None):\n    return do and do()\n"
    calls = "from noise import Noise\n\n\ndef run(make, do=None):\n    do and do()\n    return make(Noise())\n"
    noise = "import random\n\n\nclass Noise:\n    def __getitem__(self, index):\n        return random.random()\n"
    files = {"a.py": loading, "b.py": "def run(make):\n    return 1\n", "noise.py": noise}
    checked = _Checked(files, {})
    for text, draws in ((calls, True), (files["b.py"], False), (other, False), (calls, True), (other, False)):
        checked.change({**files, "b.py": text})
        assert checked.followed
        assert any(each.code == "TRL301" for each in checked.found["a.py"]) is draws


def test_a_module_that_did_nothing_begins_to_draw() -> None:
    files = {
        "kit/__init__.py": "",
        "kit/nets.py": "class Net:\n    pass\n",
        "train.py": "import torch\nfrom kit.nets import Net\n\nif __name__ == '__main__':\n    torch.save(Net(), 'net.pt')\n",
    }
    checked = _Checked(files, {})
    assert not checked.found["train.py"]
    checked.change({**files, "kit/nets.py": "import torch\nNOISE = torch.rand(3)\nclass Net:\n    pass\n"})
    assert [each.code for each in checked.found["train.py"]] == ["TRL101"]


def test_what_a_change_does_not_concern_is_not_worked_out_again() -> None:
    files = {
        "a.py": "import torch\n\ndef f():\n    return torch.rand(3)\n",
        "b.py": "import a\n\na.f()\n",
        "c.py": "def g():\n    return 1\n",
    }
    checked = _Checked(files, {})
    table = checked._link.database.table_of(Traces.calls)
    before = {path: table.get((path,)) for path in files}
    checked.change({**files, "c.py": "def g():\n    return 2\n"})
    after = {path: table.get((path,)) for path in files}
    assert checked.followed
    assert after["a.py"] is before["a.py"] is not None
    assert after["b.py"] is before["b.py"]


def _link(files: Mapping[str, str]) -> Names:
    facts = {path: facts_of(text) for path, text in files.items()}
    return link(facts, ModuleTree(facts, (".",)), "2.13", incremental=True)


def test_files_that_come_or_go_make_a_new_link() -> None:
    names = _link({"a.py": "x = 1\n"})
    assert not revise(names, {"a.py": facts_of("x = 1\n"), "b.py": facts_of("y = 1\n")})


def test_options_concern_all_files() -> None:
    text = "import argparse\np = argparse.ArgumentParser()\n"
    names = _link({"a.py": text, "b.py": "x = 1\n"})
    assert not revise(names, {"a.py": facts_of(f"{text}p.add_argument('--seed')\n"), "b.py": facts_of("x = 1\n")})


_COMMANDS = """\
import click
import torch
import config

torch.backends.cudnn.benchmark = config.FAST
torch.use_deterministic_algorithms(config.EXACT)
model = config.Net().cuda()


@click.command()
def train():
    torch.manual_seed(0)
    model(torch.rand(1)).sum().backward()
    torch.save(model, "model.pt")


@click.command()
def test():
    torch.save(model(torch.rand(1)), "out.pt")
"""


def test_what_commands_have_in_common_follows_changes_elsewhere() -> None:
    """Their module runs once for all of them, and what that does is asked after the runs are kept."""
    plain, library = "import torch\nclass Net(torch.nn.Conv2d): pass\n", "import timm\nNet = timm.models.ResNet\n"
    texts = [
        f"FAST = {fast}\nEXACT = {exact}\n{net}"
        for fast, exact, net in (
            (True, False, plain),
            (False, False, plain),
            (False, True, plain),
            (False, False, library),
            (True, True, library),
        )
    ]
    checked = _Checked({"app.py": _COMMANDS, "config.py": texts[0]}, {})
    said = []
    for text in (*texts, texts[0]):
        checked.change({"app.py": _COMMANDS, "config.py": text})
        said.append(checked.found["app.py"])
    assert len(set(map(str, said))) == len(texts)
