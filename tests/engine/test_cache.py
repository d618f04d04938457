"""A run gives the same findings whatever the cache holds, and a damaged cache is no error."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from fuzz.decoding import fully_decoded
from torchrepro_lint.engine.store.cache import Cache, open_cache, project_cache, project_caches, remove, trim
from torchrepro_lint.engine.store.file_store import FileStore, pack_facts
from torchrepro_lint.source.files import FileSignature, digest
from torchrepro_lint.syntax.parse import parse_module

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

MODEL = "import torch\n\n\ndef build():\n    return torch.nn.Linear(3, 1)\n"
SEEDED = MODEL.replace("return", "torch.manual_seed(0)\n    return")
TRAIN = "from model import build\n\nnet = build()\nnet(net.weight).sum().backward()\n"
FILES = {"model.py": MODEL, "train.py": TRAIN, "pyproject.toml": "[project]\nname = 'x'\n", "broken.py": "x = (\n"}


CONFIGURED = {
    "pyproject.toml": "",
    "nets.py": "import torch\n\n\nclass Noisy:\n    def __init__(self):\n        torch.save(torch.rand(3), 'x.pt')\n\n\n"
    "class Quiet:\n    def __init__(self):\n        torch.save(torch.ones(3), 'x.pt')\n",
    "train.py": "import json\nfrom importlib import import_module\n\nimport torch\n\n\ndef find(text):\n"
    "    module, name = text.rsplit('.', 1)\n    return getattr(import_module(module), name)\n\n\n"
    "if __name__ == '__main__':\n    find(json.load(open('conf/a.json'))['target'])()\n",
    "conf/a.json": '{"target": "nets.Noisy"}',
}


@pytest.fixture
def caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path_factory.mktemp("caches")
    monkeypatch.setenv("TORCHREPRO_LINT_CACHE_DIR", str(place))
    return place


def _age(folder: Path) -> None:
    """Make files look as if they had lain there for a while."""
    for path in folder.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))


def _stored(caches: Path, start: str) -> list[Path]:
    return sorted(caches.glob(f"*/{start}*"))


def test_the_second_run_says_the_same_as_the_first(project: Maker, lint: Lint, caches: Path) -> None:
    project(FILES)
    alone = lint("--no-cache")
    assert [line.split()[1] for line in alone.out.splitlines()] == ["TRL001", "TRL101"]
    for options in ([], [], ["--output-format", "json"], ["--jobs", "1"], ["--jobs", "3"]):
        assert lint(*options).status == 1
    assert lint() == lint() == alone
    assert lint("--verbose") == lint("--verbose", "--no-cache")
    assert lint("--output-format", "json") == lint("--output-format", "json", "--no-cache")
    assert _stored(caches, "facts")
    assert _stored(caches, "run-")


def test_what_is_started_later_is_found_in_kept_facts_too(project: Maker, lint: Lint) -> None:
    made = "import torch\nimport torch.multiprocessing as mp\n\ndef work():\n    torch.rand(2).sum().backward()\n\n"
    project({"run.py": f"{made}one = mp.Process(target=work)\nprint('made')\none.start()\ntorch.manual_seed(0)\n"})
    first = lint("report", "--output-format", "json")
    assert first.out == lint("report", "--output-format", "json").out
    assert first.out == lint("report", "--output-format", "json", "--no-cache").out


def test_without_a_cache_nothing_is_written(project: Maker, lint: Lint, caches: Path) -> None:
    project(FILES)
    lint("--no-cache")
    assert list(caches.iterdir()) == []


def test_a_changed_file_is_noticed_whether_or_not_it_is_given(project: Maker, lint: Lint) -> None:
    folder = project(FILES)
    assert "TRL101" in lint("train.py").out
    Path(folder, "model.py").write_text(SEEDED)
    assert lint("train.py").out == ""
    Path(folder, "model.py").write_text(MODEL)
    assert "TRL101" in lint("train.py").out


def test_a_changed_configuration_is_noticed(project: Maker, lint: Lint) -> None:
    folder = project(CONFIGURED)
    for options in ((), ("train.py",)):
        assert "TRL101" in lint(*options).out
        Path(folder, "conf/a.json").write_text('{"target": "nets.Quiet"}')
        assert lint(*options).out == ""
        Path(folder, "conf/a.json").unlink()
        assert lint(*options).out == ""
        Path(folder, "conf/a.json").write_text('{"target": "nets.Noisy"}')
        assert "TRL101" in lint(*options).out
        _age(folder)


def test_a_change_that_keeps_size_and_time_is_noticed(project: Maker, lint: Lint) -> None:
    folder = project({**FILES, "train.py": "import torch\n\ntorch.manual_seed(0)\n" + TRAIN})
    assert "TRL101" not in lint("train.py").out
    before = os.stat("train.py")
    Path(folder, "train.py").write_text("import torch\n\ntorch.manual_zeed(0)\n" + TRAIN)
    os.utime("train.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "TRL101" in lint("train.py").out


def test_a_new_and_a_lost_file_and_other_settings_are_noticed(project: Maker, lint: Lint) -> None:
    folder = project(FILES)
    assert "TRL101" in lint("train.py").out
    Path(folder, "pyproject.toml").write_text("[tool.torchrepro-lint]\nignore = ['TRL101']\n")
    assert lint("train.py").out == ""
    Path(folder, "pyproject.toml").unlink()
    assert "TRL101" in lint("train.py").out
    Path(folder, "model.py").unlink()
    assert lint("train.py").out == ""


def test_other_options_are_other_questions(project: Maker, lint: Lint) -> None:
    project({**FILES, "train.py": TRAIN.replace("build()\n", "build()  # noqa\n")})
    assert lint("train.py").out == ""
    assert "TRL101" in lint("train.py", "--ignore-noqa").out
    assert lint("train.py", "--ignore-noqa", "--ignore", "TRL101").out == ""
    assert lint("train.py").out == ""


def test_a_run_with_an_error_is_not_remembered(project: Maker, lint: Lint, caches: Path) -> None:
    project(FILES)
    assert lint("train.py", "missing.py").status == 2
    assert _stored(caches, "run-") == []


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:100], lambda data: data[:-40] + b"\0" * 40])
@pytest.mark.parametrize("name", ["facts", "answers", "run-"])
def test_a_damaged_file_is_a_miss(
    project: Maker, lint: Lint, caches: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    folder = project(FILES)
    _age(folder)
    whole = lint()
    for path in _stored(caches, name):
        path.write_bytes(damage(path.read_bytes()))
    if name != "run-":
        for path in _stored(caches, "run-"):
            path.unlink()
    assert lint() == whole


def test_what_another_key_signed_is_a_miss(project: Maker, lint: Lint, caches: Path) -> None:
    """A record that somebody else wrote, for the very same files, hides no finding."""
    folder = project({**FILES, "train.py": TRAIN})
    _age(folder)
    found = lint("train.py", "--ignore", "TRL101"), lint("train.py")
    hiding, telling = sorted(_stored(caches, "run-"), key=lambda path: path.stat().st_mtime_ns)
    telling.write_bytes(hiding.read_bytes())
    assert found[0].out == ""
    (key,) = caches.glob("key")
    key.write_bytes(b"0" * 32)
    assert lint("train.py") == found[1]


def test_a_cache_in_the_tree_is_signed_with_the_users_key(project: Maker, lint: Lint, tmp_path: Path) -> None:
    folder = project(FILES)
    lint("--cache-dir", "cache")
    assert sorted(path.name for path in Path(folder, "cache").iterdir() if path.name == "key") == []
    assert _stored(Path(folder, "cache"), "run-")


@pytest.mark.parametrize(("start", "marked"), [(".", False), (".", True), ("sub", True)])
def test_a_cache_beside_the_project_in_its_checkout_is_signed_with_the_users_key(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch, start: str, marked: bool
) -> None:
    """A clone brings along what lies in it, also where the project is a folder of it, and wherever the tool is started."""
    folder = project({"sub/pyproject.toml": "[project]\nname = 'x'\n", "sub/train.py": TRAIN, "sub/model.py": MODEL})
    if marked:
        Path(folder, ".git").mkdir()
    monkeypatch.chdir(Path(folder, start))
    lint("--cache-dir", str(Path(folder, "kept")), str(Path(folder, "sub")))
    assert not Path(folder, "kept", "key").exists()
    assert _stored(Path(folder, "kept"), "run-")


@pytest.mark.parametrize("deep", [False, True])
def test_a_link_in_the_tree_leads_no_cache_out_of_it(
    project: Maker, lint: Lint, tmp_path_factory: pytest.TempPathFactory, deep: bool
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    folder = project(FILES)
    if deep:
        lint("--cache-dir", "kept")
        (place,) = Path(folder, "kept").iterdir()
        for each in place.iterdir():
            each.unlink()
        place.rmdir()
        place.symlink_to(outside)
    else:
        Path(folder, "kept").symlink_to(outside)
    assert lint("--cache-dir", "kept") == lint("--no-cache")
    assert not list(outside.iterdir())


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_is_no_error(project: Maker, lint: Lint, caches: Path) -> None:
    project(FILES)
    caches.chmod(0o500)
    assert lint().status == 1
    caches.chmod(0o700)


def test_a_cache_that_is_a_file_is_no_error(project: Maker, lint: Lint) -> None:
    folder = project(FILES)
    Path(folder, "file").write_text("")
    assert lint("--cache-dir", "file") == lint("--no-cache")


def test_what_is_nested_too_deeply_to_be_kept_is_read_anew(project: Maker, lint: Lint) -> None:
    project({"a.py": f"import torch\nx = {'-' * 400}a\n", "b.py": "y = 1\n"})
    assert lint(".", "--jobs", "1") == lint(".", "--jobs", "1")
    Path("b.py").write_text("y = 2\n", encoding="utf-8")
    assert lint(".", "--jobs", "1").status == 0


def test_clean_removes_caches_and_nothing_else(project: Maker, lint: Lint, caches: Path) -> None:
    project(FILES)
    lint()
    Path(caches, "mine").mkdir()
    Path(caches, "notes.txt").write_text("")
    assert remove(project_caches(caches)) == 1
    assert sorted(path.name for path in caches.iterdir()) == ["key", "mine", "notes.txt"]
    assert remove(project_caches(caches)) == 0


def test_clean_removes_the_cache_of_this_project_only(
    project: Maker, lint: Lint, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project({"one/pyproject.toml": "", "one/a.py": "", "two/pyproject.toml": "", "two/sub/b.py": ""})
    lint("one", "two")
    lint("two")
    lint("one")
    assert len(project_caches(caches)) == 2
    assert lint("clean", "two/sub/b.py") == Ran(0, "", f"Removed the cache of {folder / 'two'}\n")
    assert [path.name for path in project_caches(caches)] == [project_cache(str(folder / "one")).name]
    assert lint("clean", "two", "two/sub") == Ran(0, "", f"{folder / 'two'} has no cache\n")
    monkeypatch.chdir("one")
    assert lint("clean") == Ran(0, "", f"Removed the cache of {folder / 'one'}\n")
    assert project_caches(caches) == []
    missing = lint("clean", "on")
    assert (missing.status, "on: no such file or directory" in missing.err) == (2, True)


class Typed(io.StringIO):
    """What a user types at a terminal."""

    def isatty(self) -> bool:
        return True


def test_all_caches_are_removed_only_when_that_is_confirmed(
    project: Maker, lint: Lint, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project({"one/pyproject.toml": "", "one/a.py": "", "two/pyproject.toml": "", "two/b.py": ""})
    lint("one")
    lint("two")
    refused = lint("clean", "--all", stdin=b"y\n")
    told = f"torchrepro-lint: --all would remove the caches of 2 projects in {caches}; add --yes to remove them"
    assert (refused.status, refused.out, refused.err.startswith(told)) == (2, "", True)
    for answer, left in (("n", 2), ("y", 0)):
        monkeypatch.setattr("sys.stdin", Typed(f"{answer}\n"))
        asked = lint("clean", "--all")
        assert asked.status == 0
        assert f"Remove the caches of 2 projects in {caches}? [y/N]" in asked.err
        assert asked.err.endswith("Removed the caches of 2 projects\n" if not left else "Nothing was removed\n")
        assert len(project_caches(caches)) == left
    assert lint("clean", "--all") == Ran(0, "", f"There are no caches in {caches}\n")


def test_all_caches_are_removed_without_a_question_if_that_is_asked_for(
    project: Maker, lint: Lint, caches: Path
) -> None:
    project(FILES)
    lint()
    assert lint("clean", "--all", "--yes") == Ran(0, "", "Removed the caches of 1 project\n")
    assert project_caches(caches) == []
    assert lint("clean", "--all", ".").err == (
        "torchrepro-lint: --all cannot be combined with paths: it removes the caches of all projects\n"
    )
    assert lint("clean", "--yes").status == 2


def test_the_caches_that_were_not_used_for_longest_go_first(tmp_path: Path) -> None:
    for number in range(4):
        cache = Cache(tmp_path / f"{number:020}", b"k")
        cache.write("facts", b"x" * 1000)
        os.utime(cache.place, (number, number))
    trim(tmp_path, 2500)
    assert sorted(path.name[-1] for path in tmp_path.iterdir()) == ["2", "3"]


def test_a_pack_keeps_what_is_still_used_and_gives_it_back(tmp_path: Path, caches: Path) -> None:
    cache = open_cache(str(tmp_path))
    assert cache is not None
    texts = {f"{number}.py": f"import torch\nx = torch.rand({number})\n" for number in range(3)}
    facts = {path: parse_module(text) for path, text in texts.items()}
    names = {path: digest(text.encode()) for path, text in texts.items()}
    files = {path: (FileSignature(1, 2, 3, 4), name) for path, name in names.items()}
    FileStore(cache).update(files, {names[path]: pack_facts(each) for path, each in facts.items()})
    del files["0.py"]
    FileStore(cache).update(files, {})
    pack = FileStore(cache)
    assert pack.digests == {names["1.py"], names["2.py"]}
    assert [fully_decoded(pack.facts(names[path])) for path in files] == [facts[path] for path in files]
    assert [pack.summary(names[path]) for path in files] == [facts[path].summary for path in files]
    assert pack.digest("1.py", FileSignature(1, 2, 3, 4)) == names["1.py"]
    assert pack.digest("1.py", FileSignature(1, 2, 3, 5)) is None


def test_a_pack_that_was_written_anew_is_read_where_things_stand_now(tmp_path: Path, caches: Path) -> None:
    cache = open_cache(str(tmp_path))
    assert cache is not None
    facts = [parse_module(f"import torch\nx = torch.rand({number})\n" * (number + 1)) for number in range(5)]
    names = [digest(str(number).encode()) for number in range(5)]
    some = sorted(names)[1:]  # what comes first moves all others along
    pack = FileStore(cache)
    for present in (some, names):
        fresh = {name: pack_facts(each) for name, each in zip(names, facts, strict=True) if name not in pack.digests}
        files = {f"{name}.py": (FileSignature(1, 2, 3, 4), name) for name in present}
        pack.update(files, {name: fresh[name] for name in present if name in fresh})
        known = dict(zip(names, facts, strict=True))
        assert [fully_decoded(pack.facts(name)) for name in present] == [known[name] for name in present]
