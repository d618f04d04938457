"""Any file in a folder or on the command line gives a result or one line, and every other file is linted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from overview_projects import HELPERS, PROJECT, STEADY, TRAIN

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")

SOUND = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
# What is read beside Python: in none of them may it wait for a writer.
ASIDE = [
    ".gitignore",
    ".git/info/exclude",
    "pyproject.toml",
    "torchrepro-lint.toml",
    "requirements.txt",
    "requirements-dev.txt",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "environment.yml",
    "setup.cfg",
]


def run(folder: Path, *arguments: str) -> Ran:
    """The tool in a process of its own, which is ended where it waits for ever."""
    command = [sys.executable, "-m", "torchrepro_lint", "check", "--select", "TRL001,TRL201", "--no-cache", *arguments]
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, cwd=folder, capture_output=True, timeout=300, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    return Ran(done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr))


# A number of more digits than Python reads, and what of a project's own may hold it.
DIGITS = "9" * 5000
PAPERS = {
    "uv.lock": f'[[package]]\nname = "torch"\nversion = "{DIGITS}.0"\n',
    "poetry.lock": f"package = {DIGITS}\n",
    "pdm.lock": 'package = ["torch"]\n',
    "requirements.txt": f"torch=={DIGITS}.0\n",
    "requirements-dev.txt": f"torch>={DIGITS}.0\n",
    "environment.yml": f"dependencies:\n- pytorch={DIGITS}.1\n",
    "setup.cfg": f"[options]\ninstall_requires = torch=={DIGITS}\n",
    "pyproject.toml": f'[project]\ndependencies = ["torch>={DIGITS}"]\n[tool.poetry.dependencies]\ntorch = "^{DIGITS}.1"\n',
}
SETTINGS = {
    "digits": f"a = {DIGITS}\n",
    "a version of many digits": f'[tool.torchrepro-lint]\ntorch-version = "{DIGITS}.0"\n',
    "a version that is no text": f"[tool.torchrepro-lint]\ntorch-version = 0x{'f' * 4000}\n",
    "a version that is none": '[tool.torchrepro-lint]\ntorch-version = "2.1.x"\n',
    "a device that is none": f"[tool.torchrepro-lint]\ndevice = 0x{'f' * 4000}\n",
    "a key of many parts": f"{'a.' * 100_000}b = 1\n",
    "a table of many parts": f"[{'a.' * 100_000}b]\n",
    "too many bytes": "# more\n" * 200_000,
}


def wide(text: str) -> str:
    """In letters that Python reads as the plain ones."""
    return "".join(chr(ord(each) + 0xFEE0) for each in text)


@pytest.mark.parametrize("keyword", ["axis", "a\u217as"])
def test_a_keyword_in_fewer_letters_than_python_reads_is_not_rewritten(
    project: Maker, lint: Lint, keyword: str
) -> None:
    """U+217A is read as ``xi``: who replaces as many letters as ``axis`` has would replace the ``=``, too."""
    program = (
        "import torch\n\nw = torch.nn.Parameter(torch.zeros(3, 4, device='cuda'))\n\n\n"
        f"def pick(rows, d, i):\n    return rows.index_select({keyword}=d, index=i)\n\n\n"
        "pick(w, -2, torch.tensor([0, 0], device='cuda')).sum().backward()\n"
        "pick(w, 1, torch.tensor([0, 0], device='cuda')).sum().backward()\n"
    )
    project({"a.py": program})
    select = ("--select", "TRL401")
    assert " TRL401 " in lint(*select).out
    ran = lint(*select, "--diff", "--unsafe-fixes")
    assert "not applied" not in ran.err
    assert "not fixed" not in ran.err
    assert "dim=d" in ran.out if keyword == "axis" else ran.out == ""


@pytest.mark.parametrize(
    ("old", "new"), [("benchmark", "\uff42enchmark"), ("torch", wide("torch")), ("cudnn", wide("cudnn"))]
)
def test_names_that_python_reads_as_plain_ones_are_found_and_fixed(
    project: Maker, lint: Lint, old: str, new: str
) -> None:
    folder = project({"a.py": SOUND.replace(old, new), "b.py": SOUND.replace(old, new, 1)})
    for arguments in ([], [], ["--no-cache"]):
        ran = lint("--select", "TRL201", *arguments, ".")
        assert [line.split(":")[0] for line in ran.out.splitlines()] == ["./a.py", "./b.py"]
    lint("--select", "TRL201", "--fix", "--unsafe-fixes", ".")
    assert (folder / "a.py").read_text(encoding="utf-8") == SOUND.replace(old, new).replace("True", "False")


@pytest.mark.parametrize(
    "number", [f"0x{'f' * 3600}", f"-0x{'f' * 3600}", f"0b{'1' * 20_000}", "9" * 5000, "1_0" * 3000]
)
def test_a_number_of_too_many_digits_is_a_number(project: Maker, lint: Lint, number: str) -> None:
    text = f"import torch\n\ntorch.manual_seed({number})\nx = [{number}]\ntorch.backends.cudnn.benchmark = True\n"
    cell = '{"cell_type": "code", "source": "import torch\\ntorch.backends.cudnn.benchmark = True"}'
    project({"a.py": text, "b.py": SOUND, "c.ipynb": f'{{"nbformat": {"9" * 5000}, "cells": [{cell}]}}'})
    for arguments in ([], [], ["--no-cache"], ["--verbose"]):
        ran = lint("--select", "TRL0,TRL1,TRL201", *arguments, ".")
        assert [line.split(": ")[0] for line in ran.out.splitlines() if "TRL201" in line and line[0] == "."] == [
            "./a.py:5:1",
            "./b.py:3:1",
            "./c.ipynb:cell 1:2:1",
        ]
        assert "TRL001" not in ran.out
    assert lint("trace", "a.py").status == 0


@pytest.mark.parametrize("arguments", [["un.py", "a.py"], ["shut", "a.py"]])
def test_what_is_given_and_may_not_be_read_is_one_line(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """As a user who is not root sees it."""
    project({"a.py": SOUND, "un.py": SOUND, "shut/c.py": SOUND})
    access, opened, scanned = os.access, os.open, os.scandir

    def refuse(path: object) -> None:
        if os.path.basename(str(path)) in ("un.py", "shut"):
            raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "access", lambda path, *rest: str(path) not in ("un.py", "shut") and access(path, *rest))
    monkeypatch.setattr(os, "open", lambda path, *rest, **more: refuse(path) or opened(path, *rest, **more))
    monkeypatch.setattr(os, "scandir", lambda path=".": refuse(path) or scanned(path))
    ran = lint("--select", "TRL201", "--no-cache", *arguments)
    assert ran.status == 2
    assert ran.out.startswith("a.py:3:1: TRL201 ")
    assert f"torchrepro-lint: {arguments[0]}: cannot be read: Permission denied\n" in ran.err


@pytest.mark.parametrize(("is_listed", "said"), [(False, "shut"), (True, "shut/c.py")])
def test_a_directory_that_may_not_be_searched_is_one_line(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch, is_listed: bool, said: str
) -> None:
    """As a user who is not root sees it: no file in it can be asked about."""
    project({"a.py": SOUND, "shut/c.py": SOUND})
    status, scanned = os.stat, os.scandir

    def asked(path: object, *rest: object, **more: object) -> os.stat_result:
        if os.path.basename(os.path.dirname(str(path))) == "shut":
            raise PermissionError(13, "Permission denied", path)
        return status(path, *rest, **more)  # type: ignore[arg-type]

    def listed(path: str = ".") -> object:
        if os.path.basename(path) == "shut" and not is_listed:
            raise PermissionError(13, "Permission denied", path)
        return scanned(path)

    monkeypatch.setattr(os, "stat", asked)
    monkeypatch.setattr(os, "scandir", listed)
    ran = lint("--select", "TRL201", "--no-cache", "shut", "a.py")
    assert ran.out.startswith("a.py:3:1: TRL201 ")
    assert ran.status == 2
    assert f"torchrepro-lint: {said}: cannot be read: Permission denied\n" in ran.err


def refused(monkeypatch: pytest.MonkeyPatch, folder: str, *functions: str) -> None:
    """Let functions of ``os`` refuse a folder, or what lies in it, as a user who is not root sees it."""

    def guarded(name: str, known: Callable[..., object]) -> Callable[..., object]:
        def call(path: object = ".", *rest: object, **more: object) -> object:
            place = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
            if os.path.basename(os.path.dirname(place) if name == "lstat" else place) == folder:
                raise PermissionError(13, "Permission denied", path)
            return known(path, *rest, **more)

        return call

    for name in functions:
        monkeypatch.setattr(os, name, guarded(name, getattr(os, name)))


def test_a_folder_in_a_given_one_that_may_not_be_read_is_one_line(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project({"top/a.py": SOUND, "top/shut/c.py": SOUND, "top/shut/d.py": SOUND})
    refused(monkeypatch, "shut", "scandir")
    check = ("--select", "TRL201", "-q")
    said = "torchrepro-lint: top/shut: cannot be read: Permission denied\n"
    for _ in range(2):
        ran = lint(*check, "top", "top/a.py", "top/")
        assert (ran.status, ran.out.count("\n"), ran.err) == (2, 1, said)
    assert lint(*check, "top", "top/shut").err == said
    assert lint("report", "-q", "-o", "page.html", "top") == Ran(2, "", said)
    assert lint("--show-files", "-q", "top") == Ran(2, "top/a.py\n", said)
    # What is excluded is not looked into, and what is not given is of no interest.
    assert lint(*check, "top", "--extend-exclude", "shut").err == ""
    assert lint(*check, "top/a.py").err == ""
    (folder / "top/shut/torchrepro-lint.toml").write_text("")
    assert lint(*check, "top").err == said


def test_a_file_that_may_not_be_asked_about_is_not_said_to_be_missing(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    project({"top/shut/lone.py": SOUND})
    refused(monkeypatch, "shut", "lstat")
    ran = lint("-q", "top/shut/lone.py")
    assert ran == Ran(2, "", "torchrepro-lint: top/shut/lone.py: cannot be read: Permission denied\n")


@pytest.mark.parametrize("name", PAPERS)
def test_what_a_paper_says_that_cannot_be_is_not_heard(project: Maker, lint: Lint, name: str) -> None:
    project({"a.py": SOUND, name: PAPERS[name]})
    for arguments in (["--no-cache"], [], ["--torch-version", "minimum"]):
        ran = lint("--select", "TRL201", *arguments, ".")
        assert (ran.status, ran.out.count("\n")) == (1, 1)


@pytest.mark.parametrize("kind", SETTINGS)
def test_settings_that_cannot_be_are_one_line(project: Maker, lint: Lint, kind: str) -> None:
    project({"a.py": SOUND, "pyproject.toml": SETTINGS[kind]})
    ran = lint("--no-cache", ".")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("torchrepro-lint: ")
    assert "pyproject.toml: " in ran.err
    assert (ran.err.count("\n"), len(ran.err) < 500) == (1, True)


@pytest.mark.parametrize("name", ["uv.lock", "requirements.txt", "environment.yml", ".gitignore"])
def test_a_paper_of_more_bytes_than_anybody_writes_is_not_read(project: Maker, lint: Lint, name: str) -> None:
    folder = project({"a.py": SOUND, name: ""})
    os.truncate(folder / name, 6_000_000_000)
    assert lint("--select", "TRL201", "--no-cache", ".").status == 1


@pytest.mark.parametrize("option", ["--baseline", "--config"])
def test_what_is_named_and_too_large_is_one_line(project: Maker, lint: Lint, option: str) -> None:
    folder = project({"a.py": SOUND, "named.json": ""})
    os.truncate(folder / "named.json", 6_000_000_000)
    ran = lint("--no-cache", option, "named.json", ".")
    assert ran.status == 2
    assert "named.json: cannot be read: more than " in ran.err
    assert ran.err.count("\n") == 1


def test_settings_may_come_from_a_pipe(project: Maker) -> None:
    """As a shell passes them with ``--config <(...)``."""
    folder = project({"a.py": SOUND})
    os.mkfifo(folder / "settings")
    with subprocess.Popen(["/bin/sh", "-c", "echo 'exclude = [\"a.py\"]' > settings"], cwd=folder):
        ran = run(folder, "--config", "settings", ".")
    assert (ran.status, ran.out) == (0, "")


def test_what_is_given_and_no_file_is_one_line_each(project: Maker) -> None:
    folder = project({"a.py": SOUND, "folder.py/b.py": SOUND, "z.py": SOUND})
    os.mkfifo(folder / "pipe.py")
    (folder / "loop.py").symlink_to("loop.py")
    (folder / "gone.py").symlink_to("nowhere.py")
    (folder / "zero.py").symlink_to("/dev/zero")
    ran = run(folder, "a.py", "pipe.py", "loop.py", "gone.py", "zero.py", "folder.py", "z.py")
    assert ran.status == 2
    assert [line.split(":")[0] for line in ran.out.splitlines()] == ["a.py", "folder.py/b.py", "z.py"]
    told = [line for line in ran.err.splitlines() if line.startswith("torchrepro-lint: ")]
    assert sorted(line.split(": ")[1] for line in told) == ["gone.py", "loop.py", "pipe.py", "zero.py"]
    assert "Traceback" not in ran.err


def test_a_pipe_in_the_place_of_settings_is_not_waited_for(project: Maker) -> None:
    folder = project({"a.py": SOUND})
    for name in ASIDE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(folder / name)
    ran = run(folder, ".")
    assert (ran.status, ran.out.count("\n")) == (1, 1)


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_one_line(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": SOUND, "b.py": SOUND, "shut/c.py": SOUND})
    (folder / "a.py").chmod(0)
    (folder / "shut").chmod(0)
    ran = lint("--select", "TRL201", "--no-cache", ".")
    (folder / "shut").chmod(0o700)
    assert ran.status == 2
    assert ran.out.startswith("./b.py:")
    assert ran.err.count("cannot be read") == 2


def test_links_out_of_the_tree_are_read_and_links_to_folders_not_followed(project: Maker, lint: Lint) -> None:
    folder = project({"in/a.py": SOUND, "out/b.py": SOUND, "out/more/c.py": SOUND})
    (folder / "in/linked.py").symlink_to(folder / "out/b.py")
    (folder / "in/folder").symlink_to(folder / "out/more")
    (folder / "in/round").symlink_to(folder / "in")
    ran = lint("--select", "TRL201", "--no-cache", "in")
    assert [line.split(":")[0] for line in ran.out.splitlines()] == ["in/a.py", "in/linked.py"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_name_that_a_terminal_or_a_log_would_obey_is_shown(project: Maker, lint: Lint) -> None:
    """In findings, in errors, in diffs, and in the list of files."""
    broken, sound = "b\n::error::x\x1b[31m.py", "a\r\u202e\x9b.py"
    folder = project({broken: "def f(:\n", sound: SOUND})
    os.mkfifo(folder / "c\n::warning::y\x07.py")
    for arguments in (
        ["."],
        ["--diff", "--unsafe-fixes", "."],
        ["--show-files", "."],
        ["c\n::warning::y\x07.py", "no\n::x"],
    ):
        ran = lint("--no-cache", *arguments)
        for text in (ran.out, ran.err):
            assert not set("\x1b\x07\r\x9b\u202e") & set(text)
            assert not any(line.startswith("::") for line in text.splitlines())
    assert "\\x0a::warning::y\\x07.py" in ran.err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_name_that_is_not_utf8_comes_out_as_it_is(project: Maker, lint: Lint) -> None:
    folder = project({})
    (folder / os.fsdecode(b"caf\xe9.py")).write_text(SOUND)
    ran = lint("--select", "TRL201", "--no-cache", ".")
    assert os.fsencode(ran.out).startswith(b"./caf\xe9.py:3:1: TRL201 ")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
@pytest.mark.parametrize(
    "arguments", [["--verbose", "."], ["--diff", "--unsafe-fixes", "."], ["report", "--output-format", "markdown"]]
)
def test_a_colon_in_a_path_changes_nothing(project: Maker, lint: Lint, arguments: list[str]) -> None:
    """As in the folders that runs leave their code in, called by the time of day."""
    said = []
    for hour in ("12.30", "12:30"):
        names = {f"{hour}/train.py": TRAIN, f"{hour}/helpers.py": HELPERS, f"{hour}/{hour}.py": STEADY}
        folder = project({"pyproject.toml": PROJECT, **names})
        ran = lint(*arguments, *(() if arguments[0] == "report" else ("--select", "ALL", "--no-cache")))
        said.append((ran.status, ran.out.replace(hour, "12-30"), ran.err.replace(hour, "12-30")))
        shutil.rmtree(folder / hour)
    assert said[0] == said[1]
    assert "12-30/train.py" in said[0][1]


@pytest.mark.long
def test_fifty_megabytes_get_a_result_or_one_line(project: Maker) -> None:
    line = "x = f(a, b)  # " + "y" * 60 + "\n"
    folder = project(
        {"a.py": SOUND, "large.py": line * (50_000_000 // len(line)), "string.py": f"x = '{'y' * 50_000_000}'\n"}
    )
    ran = run(folder, ".")
    assert "./a.py:3:1: TRL201" in ran.out
    assert ran.out.count("\n") <= 3
    assert "Traceback" not in ran.err
