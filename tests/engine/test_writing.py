"""Atomic writing of files: whole or not at all, and only files that are ours to replace."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from conftest import Ran

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]
HERE = Path(__file__).parents[1]
toys = pytest.mark.usefixtures("toys")
posix = pytest.mark.skipif(os.name != "posix", reason="needs signals, modes and links as POSIX has them")
# A program whose fix is unsafe, and what it becomes.
PROGRAM = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
FIXED = PROGRAM.replace("True", "False")
FIX = ("--fix", "--unsafe-fixes")
CALM = ("--no-cache", "--jobs", "1", ".")


def run(
    folder: Path, before: str = "", task: tuple[str, ...] = FIX, **options: object
) -> subprocess.CompletedProcess[str]:
    """Fix a folder in a process of its own; ``before`` is run in it first."""
    given = [*task, *CALM]
    code = f"import sys\n{before}\nfrom torchrepro_lint.__main__ import main\nsys.argv[1:] = {given!r}\nmain()\n"
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )  # type: ignore[call-overload, no-any-return]


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are for one."""
    folder = Path(tempfile.mkdtemp(prefix="writing-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@posix
@toys
@pytest.mark.parametrize("mode", [0o400, 0o644, 0o755, 0o4750])
def test_a_file_keeps_its_mode(project: Maker, lint: Lint, mode: int) -> None:
    folder = project({"a.py": "BAD\n"})
    (folder / "a.py").chmod(mode | 0o200)
    assert lint("--fix").status == 0
    assert (folder / "a.py").stat().st_mode & 0o7777 == mode | 0o200
    assert (folder / "a.py").read_text(encoding="utf-8") == "GOOD\n"


# A user's own attribute, and the list of who may do what: the owner and another user read and write, the group nothing.
_LIST = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, rights, who)
    for tag, rights, who in [
        (1, 6, 2**32 - 1),
        (2, 6, 65534),
        (4, 0, 2**32 - 1),
        (16, 6, 2**32 - 1),
        (32, 0, 2**32 - 1),
    ]
)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")
@toys
@pytest.mark.parametrize(("name", "value"), [("user.note", b"mine"), ("system.posix_acl_access", _LIST)])
def test_a_file_keeps_its_extended_attributes(project: Maker, lint: Lint, name: str, value: bytes) -> None:
    folder = project({"a.py": "BAD\n"})
    try:
        os.setxattr(folder / "a.py", name, value)
    except OSError:
        pytest.skip("this file system has none")
    mode = (folder / "a.py").stat().st_mode
    assert lint("--fix").status == 0
    assert (folder / "a.py").read_text(encoding="utf-8") == "GOOD\n"
    assert os.getxattr(folder / "a.py", name) == value
    assert (folder / "a.py").stat().st_mode == mode


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")
@toys
def test_a_file_whose_access_list_cannot_be_kept_is_left_alone(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project({"a.py": "BAD\n"})

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "listxattr", lambda _: ["system.posix_acl_access"])
    monkeypatch.setattr(os, "getxattr", lambda *_: _LIST)
    monkeypatch.setattr(os, "setxattr", refuse)
    ran = lint("--fix")
    assert (ran.status, "./a.py: cannot be written: Operation not supported\n" in ran.err) == (2, True)
    assert (folder / "a.py").read_text(encoding="utf-8") == "BAD\n"
    assert names(folder) == ["a.py"]


@toys
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfBAD\r\nx = 1\n", b"\xef\xbb\xbfGOOD\r\nx = 1\n"),
        (b"# coding: latin-1\nBAD = '\xe9'\r", b"# coding: latin-1\nGOOD = '\xe9'\r"),
        (b"# coding: utf-8-sig\nBAD\n\x0c\n", b"# coding: utf-8-sig\nGOOD\n\x0c\n"),
        ("BAD = 'é\U0001f600'  # \u2028".encode(), "GOOD = 'é\U0001f600'  # \u2028".encode()),
    ],
)
def test_a_file_keeps_its_encoding_and_its_newlines(project: Maker, lint: Lint, before: bytes, after: bytes) -> None:
    folder = project({"a.py": before})
    assert lint("--fix").status == 0
    assert (folder / "a.py").read_bytes() == after


@posix
@toys
def test_the_target_of_links_is_written_and_they_stay(project: Maker, lint: Lint) -> None:
    folder = project({"real/m.py": "BAD\n", "given/.keep": ""})
    (folder / "given/one.py").symlink_to("two.py")
    (folder / "given/two.py").symlink_to("../real/m.py")
    assert lint("--fix", "given/one.py").status == 0
    assert (folder / "real/m.py").read_text(encoding="utf-8") == "GOOD\n"
    assert os.readlink(folder / "given/one.py") == "two.py"
    assert names(folder / "real") == ["m.py"]


@posix
@toys
def test_a_file_with_another_hard_link_is_left_alone(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD\n", "b.py": "BAD\n"})
    os.link(folder / "a.py", folder / "copy.txt")
    ran = lint("--fix")
    assert (ran.status, ran.err.count("not fixed")) == (2, 1)
    assert "./a.py: not fixed: it has other hard links, which would keep the old content\n" in ran.err
    assert (folder / "a.py").read_text(encoding="utf-8") == "BAD\n"
    assert (folder / "b.py").read_text(encoding="utf-8") == "GOOD\n"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
@toys
def test_a_file_of_another_user_is_left_alone(project: Maker, lint: Lint) -> None:
    folder = project({"a.py": "BAD\n"})
    os.chown(folder / "a.py", 65534, -1)
    ran = lint("--fix")
    assert ran.status == 2
    assert "./a.py: not fixed: it belongs to another user\n" in ran.err
    assert (folder / "a.py").read_text(encoding="utf-8") == "BAD\n"


SOMEBODY = """
import os
from torchrepro_lint.interfaces.cli import check as command
honest = command.write_all
command.write_all = lambda *given: os.seteuid(65534) or honest(*given)
"""


@posix
@pytest.mark.parametrize(("place", "mode"), [("a.py", 0o444), (".", 0o555)])
def test_what_may_not_be_written_is_said(open_folder: Path, place: str, mode: int) -> None:
    """Root may write all, so it becomes somebody else first."""
    (open_folder / "a.py").write_text(PROGRAM, encoding="utf-8")
    before = ""
    if os.geteuid() == 0:
        for each in (open_folder, open_folder / "a.py"):
            os.chown(each, 65534, 65534)
        before = SOMEBODY
    (open_folder / place).chmod(mode)
    ran = run(open_folder, before)
    (open_folder / place).chmod(0o755)
    assert (ran.returncode, ran.stderr.count("cannot be written: Permission denied")) == (2, 1), ran.stderr
    assert (open_folder / "a.py").read_text(encoding="utf-8") == PROGRAM
    assert names(open_folder) == ["a.py"]


@posix
def test_where_there_is_no_room_the_old_file_stays(tmp_path: Path) -> None:
    """No file may become longer than the short one, as on a disk with hardly any room."""
    long = PROGRAM + "# more\n" * 3000
    (tmp_path / "long.py").write_text(long, encoding="utf-8")
    (tmp_path / "short.py").write_text(PROGRAM, encoding="utf-8")
    ran = run(tmp_path, "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))")
    assert ran.returncode == 2
    assert "long.py: cannot be written: File too large\n" in ran.stderr
    assert (tmp_path / "long.py").read_text(encoding="utf-8") == long
    assert (tmp_path / "short.py").read_text(encoding="utf-8") == FIXED
    assert names(tmp_path) == ["long.py", "short.py"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_on_a_full_disk_the_old_file_stays(small_disk: Path) -> None:
    text = PROGRAM + "# more\n" * 3000
    for name in ("one.py", "two.py"):
        (small_disk / name).write_text(text, encoding="utf-8")
    ran = run(small_disk)
    assert ran.returncode == 2
    assert "cannot be written: No space left on device\n" in ran.stderr
    for name in ("one.py", "two.py"):
        left = (small_disk / name).read_text(encoding="utf-8")
        assert left == (text if f"{name}: cannot" in ran.stderr else text.replace("True", "False"))
    assert names(small_disk) == ["one.py", "two.py"]


CHANGING = """
from pathlib import Path
from torchrepro_lint.engine import writing
honest = writing.{function}
def change(*arguments):
    Path("a.py").write_text("# mine\\n", encoding="utf-8")
    return honest(*arguments)
writing.{function} = change
"""


@pytest.mark.parametrize("function", ["_stage", "_put_in_place"])
def test_what_changes_while_it_is_being_fixed_is_left_alone(tmp_path: Path, function: str) -> None:
    (tmp_path / "a.py").write_text(PROGRAM, encoding="utf-8")
    ran = run(tmp_path, CHANGING.format(function=function))
    assert ran.returncode == 2
    assert "a.py: not fixed: it changed in the meantime" in ran.stderr
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "# mine\n"
    assert names(tmp_path) == ["a.py"]


PIPING = """
import os
from torchrepro_lint.engine import writing
honest = writing._stage
def change(change):
    if change.given.display.endswith("a.py"):
        os.unlink("a.py")
        os.mkfifo("a.py")
    return honest(change)
writing._stage = change
"""


@posix
def test_what_becomes_a_pipe_while_it_is_being_fixed_is_not_counted_as_fixed(tmp_path: Path) -> None:
    for path in ("a.py", "b.py"):
        (tmp_path / path).write_text(PROGRAM, encoding="utf-8")
    ran = run(tmp_path, PIPING)
    assert ran.returncode == 2
    assert "a.py: not fixed: it is not a regular file\n" in ran.stderr
    assert (tmp_path / "b.py").read_text(encoding="utf-8") == FIXED
    assert "Fixed 1 finding: 1 TRL201\n1 finding left; its fix could not be written\n" in ran.stderr


VANISHING = """
import os
from torchrepro_lint.interfaces.cli import adopt
honest = adopt.noqa_changes
def change(diagnostics):
    os.unlink("a.py")
    {instead}
    return honest(diagnostics)
adopt.noqa_changes = change
"""


@posix
@pytest.mark.parametrize(
    ("instead", "said"), [("pass", "No such file or directory"), ("os.mkfifo('a.py')", "Not a regular file")]
)
def test_what_goes_before_it_is_annotated_costs_no_other_file(tmp_path: Path, instead: str, said: str) -> None:
    for path in ("a.py", "b.py"):
        (tmp_path / path).write_text(PROGRAM, encoding="utf-8")
    ran = run(tmp_path, VANISHING.format(instead=instead), ("--add-noqa",))
    assert ran.returncode == 2
    assert f"a.py: cannot be read: {said}\n" in ran.stderr
    assert "# noqa: " in (tmp_path / "b.py").read_text(encoding="utf-8")
    assert "in 1 file\n" in ran.stderr


@posix
@toys
@pytest.mark.parametrize("option", ["--output-file", "--write-baseline"])
def test_a_report_replaces_no_file_with_another_hard_link(project: Maker, lint: Lint, option: str) -> None:
    folder = project({"a.py": "BAD\n", "old.txt": "old\n"})
    os.link(folder / "old.txt", folder / "copy.txt")
    ran = lint(option, "old.txt")
    assert ran.status == 2
    assert "cannot be written: it has other hard links, which would keep the old content" in ran.err
    assert (folder / "old.txt").read_text(encoding="utf-8") == "old\n"
    assert os.path.samefile(folder / "old.txt", folder / "copy.txt")


INTERRUPTING = """
import os, signal
from torchrepro_lint.engine import writing
honest, calls = {module}.{function}, []
def interrupt(*arguments):
    calls.append(arguments)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.{name})
    return honest(*arguments)
{module}.{function} = interrupt
"""


@posix
@pytest.mark.parametrize(
    ("name", "status", "module", "function", "after"),
    [
        ("SIGINT", 130, "writing", "stage", PROGRAM),
        ("SIGTERM", 143, "writing", "stage", PROGRAM),
        ("SIGINT", 130, "os", "replace", FIXED),
        ("SIGTERM", 143, "os", "replace", FIXED),
    ],
)
def test_a_run_that_is_interrupted_ends_cleanly(
    tmp_path: Path, name: str, status: int, module: str, function: str, after: str
) -> None:
    """While new files are written, nothing has happened yet; while they are put in place, all of them are."""
    for path in ("a.py", "b.py", "c.py"):
        (tmp_path / path).write_text(PROGRAM, encoding="utf-8")
    ran = run(tmp_path, INTERRUPTING.format(name=name, module=module, function=function))
    assert ran.returncode == status
    assert "Traceback" not in ran.stderr
    assert [(tmp_path / path).read_text(encoding="utf-8") for path in ("a.py", "b.py", "c.py")] == [after] * 3
    assert names(tmp_path) == ["a.py", "b.py", "c.py"]


@posix
@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_run_that_is_interrupted_while_it_reads_ends_cleanly(tmp_path: Path, name: str, status: int) -> None:
    (tmp_path / "a.py").write_text(PROGRAM, encoding="utf-8")
    hook = f"from torchrepro_lint.engine import run\nimport os, signal\nhonest = run.read_tree\nrun.read_tree = lambda *_: os.kill(os.getpid(), signal.{name}) or honest(*_)"
    ran = run(tmp_path, hook)
    assert (ran.returncode, ran.stdout.strip()) == (status, "")
    assert "Traceback" not in ran.stderr
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == PROGRAM


@posix
@toys
@pytest.mark.parametrize("text", ["BAD\n", "GOOD\n"])
def test_what_a_killed_run_has_left_goes_with_the_next(project: Maker, lint: Lint, text: str) -> None:
    """Whether or not there is anything to fix in that folder."""
    from torchrepro_lint.engine.writing import _machine_id

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = f".torchrepro-lint-{_machine_id()}-{dead.pid}-0123abcd"
    others = [
        f".torchrepro-lint-{_machine_id()}-{os.getpid()}-0123abcd",  # still being written
        f".torchrepro-lint-00000000-{dead.pid}-0123abcd",  # by another machine
        ".torchrepro-lint-notes",
    ]
    folder = project({"a.py": text, left: "", **dict.fromkeys(others, "")})
    assert lint().status == (text == "BAD\n")
    assert left in names(folder)
    assert lint("--fix").status == 0
    assert names(folder) == sorted(["a.py", *others])


@posix
@pytest.mark.parametrize("times", [20, pytest.param(500, marks=pytest.mark.long)])
def test_a_writer_that_is_killed_leaves_old_files_or_new_ones(tmp_path: Path, times: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    command = [sys.executable, str(HERE / "killing.py"), str(tmp_path), str(times), "1"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@posix
def test_two_runs_at_once_leave_new_files(tmp_path: Path) -> None:
    """Either may find that a file has changed meanwhile; none is torn or lost."""
    paths = [f"{number}.py" for number in range(8)]
    for path in paths:
        (tmp_path / path).write_text(PROGRAM + "# more\n" * 2000, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    command = [sys.executable, "-m", "torchrepro_lint", *FIX, *CALM]
    runs = [subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) for _ in "12"]
    said = [each.communicate()[1] for each in runs]
    assert not any("Traceback" in each for each in said)
    for path in paths:
        assert (tmp_path / path).read_text(encoding="utf-8") == FIXED + "# more\n" * 2000
    assert names(tmp_path) == paths


@posix
@toys
def test_a_baseline_is_whole_or_the_old_one(project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project({"a.py": "BAD\n"})
    lint("--write-baseline", "known.json")
    before = (folder / "known.json").read_bytes()
    (folder / "a.py").write_text("BAD\nRISKY\n", encoding="utf-8")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ran = lint("--write-baseline", "known.json")
    assert (ran.status, "known.json: cannot be written: No space left on device" in ran.err) == (2, True)
    assert (folder / "known.json").read_bytes() == before
    assert names(folder) == ["a.py", "known.json"]


@posix
def test_a_reader_that_has_gone_away_is_no_error(tmp_path: Path) -> None:
    """The pipe is closed before anything is written."""
    (tmp_path / "a.py").write_text(PROGRAM, encoding="utf-8")
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    ran = subprocess.run(
        [sys.executable, "-m", "torchrepro_lint", "--no-cache", "--unsafe-fixes", "--diff", "a.py"],
        cwd=tmp_path,
        env=environment,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert ran.returncode == 1
    assert "BrokenPipe" not in ran.stderr


@toys
def test_a_notebook_that_changes_meanwhile_is_left_alone(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": ["BAD"]}
    book = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    folder = project({"a.ipynb": book})
    from torchrepro_lint.engine import writing

    honest = writing.remove_stale_temporaries

    def change(place: str) -> None:
        (folder / "a.ipynb").write_text(book.replace("BAD", "BAD  # mine"), encoding="utf-8")
        honest(place)

    monkeypatch.setattr(writing, "remove_stale_temporaries", change)
    ran = lint("--fix")
    assert (ran.status, "it changed in the meantime" in ran.err) == (2, True)
    assert "BAD  # mine" in (folder / "a.ipynb").read_text(encoding="utf-8")
