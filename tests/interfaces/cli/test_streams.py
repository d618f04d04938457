"""Standard streams that are closed, full or a terminal, and early signals: no traceback, and the right exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Maker = Callable[[Mapping[str, str | bytes]], Path]
TOP = Path(__file__).parents[3]
FLAW = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
CLEAN = "x = 1\n"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell of POSIX")
full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command of the shell, in which ``$T`` is the tool."""
    environment = {**os.environ, "PYTHONPATH": str(TOP), "T": f"{sys.executable} -m torchrepro_lint"}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("$T flawed.py >&-", 1),
        ("$T clean.py 2>&-", 0),
        ("$T clean.py <&- >&- 2>&-", 0),
        ("$T report flawed.py >&-", 1),
        ("$T - <&-", 0),
        ("$T - --fix --unsafe-fixes <flawed.py >&-", 0),
        ("$T nowhere.py 2>&-", 2),
        ("$T --help >&-", 0),
    ],
)
def test_what_is_written_to_a_closed_stream_is_for_nobody(project: Maker, command: str, status: int) -> None:
    ran = shell(project({"flawed.py": FLAW, "clean.py": CLEAN}), command)
    assert ran.returncode == status
    assert "Traceback" not in ran.stderr
    assert "Exception ignored" not in ran.stderr


@full
@pytest.mark.parametrize("status", [0, 1, 2])
def test_nobody_is_told_that_standard_error_is_full(project: Maker, status: int) -> None:
    folder = project({"0.py": CLEAN, "1.py": FLAW})
    assert shell(folder, f"$T {status}.py 2>/dev/full").returncode == status


@full
@pytest.mark.parametrize(
    "arguments",
    [
        "flawed.py",
        "--diff --unsafe-fixes flawed.py",
        "--show-files flawed.py",
        "- --fix --unsafe-fixes <flawed.py",
        "--help",
        "--version",
        "rule",
        "ops --help",
        "ops index_select",
        "report flawed.py",
        "trace flawed.py",
    ],
)
def test_standard_output_that_is_full_is_one_line_and_status_2(project: Maker, arguments: str) -> None:
    ran = shell(project({"flawed.py": f"{FLAW}torch.rand(3)\n"}), f"$T {arguments} >/dev/full")
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (
        2,
        "torchrepro-lint: standard output cannot be written: No space left on device",
    )
    assert "Traceback" not in ran.stderr


def test_trouble_that_is_not_of_standard_output_is_not_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchrepro_lint.interfaces.cli import app

    def refuse(*_: object, **__: object) -> int:
        raise OSError(11, "no more processes")

    monkeypatch.setattr(app.check, "main", refuse)
    with pytest.raises(OSError, match="no more processes"):
        app.main(["."])


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("module", ["app", "terminal"])
def test_a_signal_that_comes_while_a_class_is_made_ends_the_run(
    project: Maker, name: str, status: int, module: str
) -> None:
    """Python 3.11 and older raise ``RuntimeError`` then; a finder of ours makes such a class before a module is imported."""
    code = f"""
import os, signal, sys
class Name:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.{name})
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torchrepro_lint.interfaces.cli.{module}":
            type("Late", (), {{"name": Name()}})
sys.meta_path.insert(0, Finder())
sys.argv[1:] = ["rule"]
from torchrepro_lint.__main__ import main
main()
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=project({"clean.py": CLEAN}), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, "Traceback" in ran.stderr, ran.stdout) == (status, False, "")


def test_an_error_that_no_signal_led_to_is_none() -> None:
    from torchrepro_lint.__main__ import status_of

    assert status_of(ValueError("x")) is None
    circle = ValueError("x")
    circle.__context__ = KeyError("y")
    circle.__context__.__context__ = circle
    assert status_of(circle) is None


def test_a_diff_is_a_patch_but_on_a_terminal(project: Maker) -> None:
    import pty

    text = "import torch\r\n# \x1b[31m \u202e \u009b\t\u061c\r\ntorch.backends.cudnn.benchmark = True\r\n"
    folder = project({"a.py": text})
    command = [sys.executable, "-m", "torchrepro_lint", "-q", "--diff", "--unsafe-fixes", "--no-cache", "a.py"]
    environment = {**os.environ, "PYTHONPATH": str(TOP), "NO_COLOR": "1"}
    piped = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    assert " # \x1b[31m \u202e \u009b\t\u061c\r\n" in piped.stdout.decode()
    leader, follower = pty.openpty()
    subprocess.run(command, cwd=folder, env=environment, stdout=follower, stderr=subprocess.DEVNULL, check=False)
    os.close(follower)
    seen = os.read(leader, 65536).decode()
    os.close(leader)
    assert not set("\x1b\u202e\u009b\u061c") & set(seen)
    assert " # \\x1b[31m \\u202e \\x9b\t\\u061c" in seen or " # \\x1b[31m \\u202e \\x9b " in seen
    assert "+torch.backends.cudnn.benchmark = False\r" in seen


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        ".",
        "../flawed.py",
        "$PLACE/flawed.py",
        "- <../flawed.py",
        "report",
        "trace $PLACE/flawed.py",
        "ops",
        "clean",
    ],
)
def test_a_working_directory_that_was_deleted(project: Maker, arguments: str) -> None:
    folder = project({"flawed.py": FLAW})
    ran = shell(folder, f"PLACE=$PWD; mkdir gone && cd gone && rmdir ../gone && $T {arguments}")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "torchrepro-lint: the working directory has been deleted; change to another one first\n"


def test_what_needs_no_working_directory_runs_without_one(project: Maker) -> None:
    ran = shell(project({}), "mkdir gone && cd gone && rmdir ../gone && $T rule TRL101")
    assert (ran.returncode, ran.stderr) == (0, "")
