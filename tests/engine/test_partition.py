"""Partition: a project falls into independent parts, and each file gets the findings that the whole project gives."""

from __future__ import annotations

import gc
import os
import random
import signal
import time
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from conftest import Ran
from one_file import facts_of
from page_examples import examples
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions, likely_has_components
from torchrepro_lint.engine import partition, read_project
from torchrepro_lint.engine.checker import Checker, CheckResult, check
from torchrepro_lint.engine.import_closure import connected_components
from torchrepro_lint.engine.parsed_file import ParsedFile, page_in, page_out, parse_bytes
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.process_pool import FORKS, Schedule, make_schedule, run_tasks
from torchrepro_lint.engine.read_project import ReadOptions, read_tree
from torchrepro_lint.engine.run import prepare
from torchrepro_lint.resolve.search_path import ModuleTree
from torchrepro_lint.source.files import top_folders
from torchrepro_lint.syntax.nodes import SyntaxTree
from torchrepro_lint.syntax.serialization import pickled, unpickled
from torchrepro_lint.trace.traces import Traces

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

_ROOT = Path(__file__).parents[2]
_PAGES = sorted([*(_ROOT / "rules").glob("TRL[1-9]*.md"), *(_ROOT / "tests/rules").glob("TRL[1-9]*.md")])
_ANY = "import importlib\nimport sys\n\nimportlib.import_module(sys.argv[1])\n"
forks = pytest.mark.skipif(not FORKS, reason="processes are not forked here")


def _parts(files: Mapping[str, str], roots: tuple[str, ...] = (".",)) -> list[set[str]]:
    facts = {path: facts_of(text) for path, text in files.items()}
    return [set(paths) for paths in connected_components(facts, ModuleTree(facts, roots))]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a/x.py": "", "b/y.py": ""}, [{"a/x.py"}, {"b/y.py"}]),
        ({"a/x.py": "import b.y\n", "b/y.py": ""}, [{"a/x.py", "b/y.py"}]),
        ({"a/x.py": "def f():\n    from b import y\n", "b/y.py": ""}, [{"a/x.py", "b/y.py"}]),
        ({"a/x.py": "from b.y import f\n", "b/y.py": "", "c/z.py": ""}, [{"a/x.py", "b/y.py"}, {"c/z.py"}]),
        ({"a/x.py": "from b import *\n", "b/__init__.py": ""}, [{"a/x.py", "b/__init__.py"}]),
        # Through a third one.
        ({"a/x.py": "import m\n", "b/y.py": "import m\n", "m.py": ""}, [{"a/x.py", "b/y.py", "m.py"}]),
        # What lies in a folder belongs together, and so does what lies below it.
        ({"a/x.py": "", "a/y.py": "", "a/in/z.py": ""}, [{"a/x.py", "a/y.py", "a/in/z.py"}]),
        ({"a/x/x.py": "", "a/y/y.py": ""}, [{"a/x/x.py"}, {"a/y/y.py"}]),
        # What lies at the root belongs together, and not with all that is below it.
        ({"x.py": "", "y.py": "", "a/z.py": ""}, [{"a/z.py"}, {"x.py", "y.py"}]),
        # By another word than the folder's.
        ({"src/a/x.py": "", "t/y.py": "import a.x\n"}, [{"src/a/x.py", "t/y.py"}]),
        ({"a/x.py": "from .. import y\n", "y.py": ""}, [{"a/x.py", "y.py"}]),
        ({"a/b/x.py": "from ..c import y\n", "a/c/y.py": ""}, [{"a/b/x.py", "a/c/y.py"}]),
        ({"t/y.py": "import sys\nsys.path.append('lib/deep')\nimport x\n", "lib/deep/x.py": ""}, [{"t/y.py", "lib/deep/x.py"}]),
        # Who works out what to import may mean what a text begins with, and a script at the root any file.
        ({"x.py": _ANY, "a/y.py": "", "b/z.py": ""}, [{"x.py", "a/y.py", "b/z.py"}]),
        ({"a/x.py": _ANY, "b/z.py": ""}, [{"a/x.py"}, {"b/z.py"}]),
        ({"a/x.py": f"{_ANY}importlib.import_module(f'b.{{sys.argv[1]}}')\n", "b/z.py": "", "c/z.py": ""},
         [{"a/x.py", "b/z.py"}, {"c/z.py"}]),
        ({"a/x.py": f"{_ANY}\ndef f():\n    return ['b.z', 'd']\n", "b/z.py": "", "c/z.py": ""},
         [{"a/x.py", "b/z.py"}, {"c/z.py"}]),
        ({"a/x.py": "print('b.z')\n", "b/z.py": ""}, [{"a/x.py"}, {"b/z.py"}]),
        ({}, []),
    ],
)  # fmt: skip
def test_what_belongs_together(files: Mapping[str, str], expected: list[set[str]]) -> None:
    assert _parts(files, ("src", ".")) == expected


def test_the_outermost_folder_that_has_files() -> None:
    paths = ("a/b/x.py", "a/b/c/y.py", "a/d/z.py", "s.py")
    assert list(top_folders(paths).values()) == ["a/b", "a/b", "a/d", ""]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"a/x.py": b"", "b/y.py": b""}, True),
        ({"a/x.py": b"import b\n", "b/y.py": b""}, False),
        ({"a/x.py": b"from b.y import f\n", "b/y.py": b""}, False),
        ({"a/x.py": b"import bb\n", "b/y.py": b""}, False),  # a guess, on the safe side
        ({"a/x.py": b"", "a/y.py": b""}, False),
    ],
)
def test_whether_a_project_falls_apart_is_guessed_from_its_bytes(texts: Mapping[str, bytes], expected: bool) -> None:
    assert likely_has_components(dict.fromkeys(texts, 100), texts.__getitem__) is expected


def _examples(one_in: int) -> dict[str, str]:
    """One in so many examples of all pages, each in a folder, but for those of which a script may import any other."""
    every = [(page, example) for page in _PAGES for example in examples(page)]
    return {
        f"{page.parent.name}_{page.stem}_{example.line}/{path}": text
        for page, example in every[::one_in]
        if not any("import_module" in text for text in example.files.values())
        for path, text in example.files.items()
        if path.endswith(".py")
    }


def _read(place: Path, jobs: int = 1) -> tuple[Checker, dict[str, ParsedFile]]:
    (found,) = plan([str(place)], ConfigOptions()).trees
    return prepare(found, honour_comments=True)[0], read_tree(found, options=ReadOptions(jobs)).files


def _checked(tree: tuple[Checker, dict[str, ParsedFile]], jobs: int = 1) -> dict[str, CheckResult]:
    return partition.check_tree(tree[0], Partition(*tree), jobs)


@pytest.mark.parametrize("one_in", [16, pytest.param(1, marks=pytest.mark.long)])
def test_parts_say_what_each_says_by_itself(
    project: Maker, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, one_in: int
) -> None:
    files = _examples(one_in)
    place = project({**files, "any.py": "print(1)\n"})
    tree = _read(place)
    apart = _checked(tree)
    assert len(Partition(*tree).paths) > 500 / one_in
    assert sum(len(each.findings) for each in apart.values()) > 1000 / one_in
    # So they do when facts are put away; each part is let go of when it is done with.
    with monkeypatch.context() as patch:
        patch.setattr(read_project, "_PAGING_BYTES", 0)
        away = _read(place)
    assert not any("body" in vars(each.facts) for each in away[1].values() if each.facts is not None)
    assert _checked(away) == apart
    # Facts that a fix will be completed with are kept, all others are not.
    fixes = [(path, one.fix) for path, each in apart.items() for one in each.findings if one.fix]
    fixed = {path for path, _ in fixes} | {path for _, fix in fixes for path, _ in fix.elsewhere}
    assert {path for path, each in away[1].items() if each.facts and "body" in vars(each.facts)} == fixed
    # As one part they have to do with one another where words are alike, and so some say something else.
    whole = _checked(_read(project({"any.py": _ANY})))
    others = {path.partition("/")[0] for path in apart if apart[path] != whole[path]} - {"any.py"}
    assert others
    for folder in sorted(others)[::6]:
        own = tmp_path_factory.mktemp("alone")
        for path in (each for each in files if each.startswith(f"{folder}/")):
            Path(own, path).parent.mkdir(parents=True, exist_ok=True)
            Path(own, path).write_text(files[path])
        Path(own, "any.py").write_text("print(1)\n")
        for path, said in _checked(_read(own)).items():
            assert said == apart[path], path


NET = "from torch import nn\n\n\ndef make():\n    return nn.Linear(2, 2)\n"
TRAIN = (
    "import torch\nfrom torch.utils.data import DataLoader\n\nfrom {0}.net import make\n\n"
    'if __name__ == "__main__":\n    net = make()\n    for x in DataLoader([1], shuffle=True, num_workers=2):\n'
    '        net(x)\n    torch.save(net, "net.pt")\n'
)


def _project_of(sizes: Mapping[str, int]) -> dict[str, str]:
    """Packages without any import between them, of so many training scripts each."""
    files = {f"{name}/net.py": NET for name in sizes}
    return files | {f"{name}/train_{at}.py": TRAIN.format(name) for name, size in sizes.items() for at in range(size)}


def test_a_component_that_is_released_is_freed_at_once(project: Maker) -> None:
    tree = _read(project(_project_of({"a": 2, "b": 2})))
    parts, path = Partition(*tree), "a/train_0.py"
    gc.collect()
    gc.disable()
    try:
        linked = parts.of(path)
        before = check(tree[0], path, tree[1][path], linked)
        names, database = linked.resolver, weakref.ref(linked.database)
        parts.release(path)
        assert not vars(linked)
        assert not vars(names)
        assert database() is None
    finally:
        gc.enable()
    # What other components need is whole.
    for each in ("b/train_0.py", path):
        assert check(tree[0], each, tree[1][each], parts.of(each)).findings
    assert check(tree[0], path, tree[1][path], parts.of(path)) == before


@forks
@pytest.mark.parametrize("away", [False, True])
def test_any_number_of_processes_says_the_same(project: Maker, monkeypatch: pytest.MonkeyPatch, away: bool) -> None:
    monkeypatch.setattr(read_project, "_PAGING_BYTES", 0 if away else 1 << 40)
    tree = _read(project(_project_of({"a": 30, "b": 20, "c": 10, "d": 2, "e": 1})))
    alone = _checked(tree)
    assert sum(len(each.findings) for each in alone.values()) == 2 * 63
    for jobs in (2, 3, 8):
        assert list(_checked(tree, jobs).items()) == list(alone.items())


@forks
def test_a_file_that_ends_its_process_costs_itself_alone(project: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = _read(project(_project_of({"a": 30, "b": 30, "c": 10})))
    alone, ours = _checked(tree), os.getpid()

    def deadly(checker: Checker, path: str, reading: ParsedFile, project: Traces) -> CheckResult:
        if path in ("a/train_7.py", "c/train_3.py"):
            assert os.getpid() != ours
            os.kill(os.getpid(), signal.SIGKILL)
        return check(checker, path, reading, project)

    monkeypatch.setattr(partition, "check", deadly)
    found = _checked(tree, 2)
    for path in ("a/train_7.py", "c/train_3.py"):
        (dead,) = found.pop(path).findings
        assert (dead.code, dead.message) == ("TRL001", "cannot be checked: its process was ended by SIGKILL")
        del alone[path]
    assert found == alone


@forks
def test_a_file_that_nothing_stops_costs_itself_alone(project: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = _read(project(_project_of({"a": 30, "b": 30})))
    alone = _checked(tree)

    def endless(checker: Checker, path: str, reading: ParsedFile, project: Traces) -> CheckResult:
        if path == "b/train_7.py":
            time.sleep(600)  # takes no time of the processor, which the deadline counts
        return check(checker, path, reading, project)

    monkeypatch.setattr(partition, "check", endless)
    monkeypatch.setattr(partition, "time_limit", lambda _: 1.0)
    monkeypatch.setattr(partition, "run_tasks", partial(run_tasks, deadline=5))
    found = _checked(tree, 2)
    (late,) = found.pop("b/train_7.py").findings
    assert (late.code, late.message) == ("TRL001", "cannot be checked: it takes longer than 5 seconds")
    del alone["b/train_7.py"]
    assert found == alone


@pytest.mark.parametrize(
    ("weights", "jobs", "expected"),
    [
        ((50, 50), 2, Schedule(((0,), (1,)), ())),
        ((100,), 2, Schedule((), (0,))),
        ((10, 90), 2, Schedule(((0,),), (1,))),
        ((48, 34, 59), 2, Schedule(((0,), (1,)), (2,))),
        ((25, 25, 25, 25), 2, Schedule(((0, 2), (1, 3)), ())),
        ((50, 50), 8, Schedule((), (0, 1))),
        ((), 2, Schedule((), ())),
    ],
)
def test_how_parts_are_shared_out(weights: tuple[int, ...], jobs: int, expected: Schedule) -> None:
    assert make_schedule(weights, jobs) == expected


@pytest.mark.parametrize("compressed", [False, True])
def test_facts_that_were_put_away_are_the_same(compressed: bool) -> None:
    facts = facts_of(TRAIN.format("a"))
    away = page_out(facts, compressed=compressed)
    assert (away.summary, away.exports) == (facts.summary, facts.exports)
    assert "body" not in vars(away)
    assert page_out(away) is away
    _assert_equal(away, facts)
    body = away.body
    page_in(away)
    assert away.body is body
    with pytest.raises(AttributeError):
        _ = away.nothing  # type: ignore[attr-defined]


def test_facts_that_were_released_are_parsed_again() -> None:
    reading = parse_bytes(TRAIN.format("a").encode())
    facts = reading.facts
    assert facts is not None
    reading.page_out()
    for _ in range(2):
        reading.release_facts()
        again = reading.facts
        assert again is not None
        assert again is not facts
        assert again.summary is facts.summary
        _assert_equal(again, facts)


def test_a_file_that_goes_to_another_process_takes_its_facts_along() -> None:
    reading = parse_bytes(TRAIN.format("a").encode())
    other = unpickled(pickled(reading))
    assert "body" not in vars(other.facts)
    assert other.source == reading.source
    assert reading.facts is not None
    _assert_equal(other.facts, reading.facts)


def _assert_equal(facts: SyntaxTree, other: SyntaxTree) -> None:
    for name in SyntaxTree._fields:
        if name != "assigned":
            assert getattr(facts, name) == getattr(other, name)
    assert dict(facts.assigned) == dict(other.assigned)


def test_facts_that_are_nested_too_deeply_stay_as_they_are() -> None:
    facts = facts_of("x = " + "-" * 400 + "1\n")
    deep = facts._replace(body=(facts.body[0]._replace(value=_nested(facts.body[0], 100_000)),))  # type: ignore[union-attr]
    assert page_out(deep) is deep


def _nested(value: object, times: int) -> object:
    for _ in range(times):
        value = (value,)
    return value


def test_a_change_in_one_part_leaves_what_is_known_of_the_others(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project({**_project_of({"a": 2, "b": 2}), "pyproject.toml": ""})
    run: list[str] = []
    find = Traces.traces_from
    monkeypatch.setattr(
        Traces, "traces_from", lambda self, entries: [run.append(entries[0].path), find(self, entries)][1]
    )
    lint()
    assert sorted(run) == ["a/train_0.py", "a/train_1.py", "b/train_0.py", "b/train_1.py"]
    run.clear()
    Path(folder, "a/net.py").write_text(f"import torch\n\ntorch.manual_seed(0)\n{NET}")
    assert lint("b/net.py").out == ""
    assert run == []
    assert "TRL101" not in lint("a").out
    assert sorted(run) == ["a/train_0.py", "a/train_1.py"]


def test_what_is_stored_of_parts_that_are_none_any_more_goes(project: Maker, lint: Lint) -> None:
    folder = project({**_project_of({"a": 2, "b": 2}), "pyproject.toml": ""})
    lint()
    stored = _stored()
    assert len([name for name in stored if name.startswith("answers-")]) == 2
    Path(folder, "a/net.py").write_text(f"import b.net\n{NET}")
    assert lint() == lint("--no-cache")
    assert len([name for name in _stored() if name.startswith("answers-")]) == 1
    assert not stored & {name for name in _stored() if name.startswith("answers-")}


def _stored() -> set[str]:
    return {path.name for path in Path(os.environ["TORCHREPRO_LINT_CACHE_DIR"]).rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def _caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHREPRO_LINT_CACHE_DIR", str(tmp_path_factory.mktemp("caches")))


def test_runs_after_changes_say_what_a_first_run_says(project: Maker, lint: Lint) -> None:
    files = {**_project_of({"a": 3, "b": 3, "c": 3}), "pyproject.toml": ""}
    folder = project(files)
    dice = random.Random(11)
    lines = (
        "import a.net",
        "import b.net",
        "from c.net import make",
        "import torch\ntorch.manual_seed(1)",
        "x = 1",
        "",
    )
    for _ in range(12):
        path = dice.choice([path for path in files if path.endswith(".py")])
        Path(folder, path).write_text(f"{dice.choice(lines)}\n{files[path]}")
        asked = dice.choice(["a", "b", "c", "."])
        assert lint(asked, "--verbose") == lint(asked, "--verbose", "--no-cache")
