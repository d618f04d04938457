"""``--watch``: run, wait for a change, run again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.config.roots import ConfigOptions, FallbackRoot
from torchrepro_lint.engine.import_closure import plan, with_imported_files
from torchrepro_lint.interfaces.cli.watch import Watched, _may_change_report, watch, watched
from torchrepro_lint.source.errors import UsageError

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]


def test_a_run_for_each_batch_and_the_status_of_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    statuses, asked = iter([1, 2, 0]), []

    def run() -> int:
        status = next(statuses)
        if status == 2:
            raise UsageError("settings are broken")
        return status

    def batches(*folders: str, **options: object) -> Iterator[object]:
        asked.extend(folders)
        assert options["raise_interrupt"] is True
        yield from ({"first"}, {"second"})

    assert watch(run, lambda: Watched(("/a", "/b")), batches) == 0
    assert asked == ["/a", "/b"]
    assert capsys.readouterr().err.splitlines() == [
        "Watching for changes; press Ctrl-C to stop",
        "torchrepro-lint: settings are broken",
        *["Watching for changes; press Ctrl-C to stop"] * 2,
    ]


def test_while_nothing_changes_the_next_run_is_prepared() -> None:
    did: list[str] = []

    def batches(*_folders: str, **_options: object) -> Iterator[object]:
        yield from (set(), {"change"}, set(), set())

    def idle() -> None:
        did.append("idle")
        raise UsageError("settings are broken")

    def run() -> int:
        did.append("run")
        return 0

    assert watch(run, lambda: Watched(("/a",)), batches, idle) == 0
    assert did == ["run", "idle", "run", "idle", "idle"]


def test_a_run_may_find_other_folders_to_watch() -> None:
    """As where an import is added to a file whose folder is not taken whole."""
    runs, asked = iter(range(9)), list[tuple[str, ...]]()

    def batches(*folders: str, **_options: object) -> Iterator[object]:
        asked.append(folders)
        yield from ({"change"}, set(), {"change"})

    def run() -> int:
        return next(runs)

    found = iter([Watched(("/a",)), *[Watched(("/a", "/b"))] * 3])
    assert watch(run, lambda: next(found), batches) == 3
    assert asked == [("/a",), ("/a", "/b")]


def test_folders_that_are_not_taken_whole_are_not_watched_whole(project: Maker) -> None:
    files = {"own/a.py": "import lib.b\n", "own/lib/b.py": "", "marked/pyproject.toml": "", "marked/c.py": ""}
    folder = project({**files, "own/other/d.py": ""})
    own, marked = str(folder / "own"), str(folder / "marked")
    options = ConfigOptions(None, False, lambda settings: settings)
    shared = plan([f"{own}/a.py"], options, fallback=FallbackRoot(own, own)).trees[0]._replace(partial="is shared")
    partial = with_imported_files(shared._replace(files=("a.py",)))
    whole = plan([marked], options).trees[0]
    assert watched([partial]) == Watched((own, f"{own}/lib"), recursive=False)
    assert watched([whole]) == Watched((marked,))
    assert watched([whole, partial]) == Watched((marked, f"{own}/a.py", f"{own}/lib/b.py"))


@pytest.mark.skipif(sys.platform == "win32", reason="ends it with a signal")
@pytest.mark.parametrize("options", [[], ["--no-cache"], ["--ignore-noqa"]])
def test_a_later_run_prints_what_a_first_one_prints(project: Maker, lint: Lint, options: list[str]) -> None:
    """The later runs are worked out in memory."""
    pytest.importorskip("watchfiles")
    flag = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
    folder = project({"pyproject.toml": "", "a.py": flag, "b.py": "x = 1\n"})
    command = [sys.executable, "-u", "-m", "torchrepro_lint", "--watch", "-q", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline().startswith("Watching")
            for number in range(1, 600):
                (folder / "b.py").write_text(f"{flag}# {number} noqa\n", encoding="utf-8")
                if _readable(process, 1.0, process.stderr):
                    break
        finally:
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
    last = lint("-q", *options).out
    assert re.sub(r"\d+ noqa", "", out).endswith(re.sub(r"\d+ noqa", "", last))
    assert last.count("benchmark") >= 2


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("a.py", True),
        ("sub/b.ipynb", True),
        ("pyproject.toml", True),
        ("uv.lock", True),
        ("configs/model.json", True),
        ("report.json", False),
        ("page.html", False),
        (".git/x.py", False),
        ("sub/.ipynb_checkpoints/b.ipynb", False),
        ("../other/a.py", True),
    ],
)
def test_what_concerns_a_run(path: str, answer: bool) -> None:
    assert _may_change_report(Path("report.json"), None, os.path.abspath(path)) is answer


def test_without_watchfiles_the_extra_is_named(project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    project({"a.py": ""})
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    ran = lint("--watch")
    assert (ran.status, ran.err) == (2, "torchrepro-lint: --watch needs watchfiles; install torchrepro-lint[watch]\n")
    assert lint("--watch", "-", stdin=b"").status == 2


@pytest.mark.skipif(sys.platform == "win32", reason="ends it with a signal")
def test_with_watchfiles_itself(project: Maker) -> None:
    pytest.importorskip("watchfiles")
    folder = project({"pyproject.toml": "", "a.py": "x = (\n"})
    command = [sys.executable, "-u", "-m", "torchrepro_lint", "--watch", "-q", "--no-cache", "a.py"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline().startswith("a.py:1:5: TRL001")
            assert process.stderr.readline().startswith("Watching")
            # The watcher starts after that line: a change that it misses is followed by another.
            for number in range(1, 600):
                (folder / "a.py").write_text("\n" * number + "x = (\n", encoding="utf-8")
                if _readable(process, 1.0):
                    break
            assert process.stdout.readline().startswith("a.py:")
        finally:
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
    # Nothing is said of the interruption.
    assert (process.returncode, set(told.splitlines()) <= {"", "Watching for changes; press Ctrl-C to stop"}) == (
        130,
        True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="ends it with a signal")
def test_a_file_that_is_replaced_is_still_watched_with_what_it_imports(project: Maker) -> None:
    """In a home directory, which is not taken whole. Many editors save by putting a new file in the place of the old one."""
    pytest.importorskip("watchfiles")
    train = "import torch\n\nif __name__ == '__main__':\n    torch.save(torch.rand(3), 'x')\n"
    folder = project({"train.py": train, "lib/seeds.py": ""})
    command = [sys.executable, "-u", "-m", "torchrepro_lint", "--watch", "--no-cache", "train.py"]
    home = {**os.environ, "HOME": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=home) as process:
        try:
            told = _told(process, "Watching")
            assert "is the home directory" in told
            assert "Found 1 warning" in told
            for number in range(1, 600):
                (folder / "new.txt").write_text(f"import lib.seeds  # {number}\n{train}", encoding="utf-8")
                (folder / "new.txt").replace(folder / "train.py")
                if _readable(process, 1.0, process.stderr):
                    break
            assert "Found 1 warning" in _told(process, "Watching")
            for number in range(1, 600):
                seeds = f"import torch\n\ntorch.manual_seed({number})\n"
                (folder / "lib" / "seeds.py").write_text(seeds, encoding="utf-8")
                if _readable(process, 1.0, process.stderr) and "No findings" in _told(process, "Watching"):
                    break
            else:
                raise AssertionError("the imported file is not watched")
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def _told(process: subprocess.Popen[str], last: str) -> str:
    """What is written to standard error up to a line that begins so."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith(last):
            break
    return "".join(lines)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="drops capabilities as Linux has them")
@pytest.mark.skipif(
    os.name != "posix" or (os.geteuid() == 0 and not shutil.which("setpriv")), reason="root reads everything"
)
def test_a_folder_that_cannot_be_read_does_not_end_it(project: Maker) -> None:
    pytest.importorskip("watchfiles")
    folder = project({"pyproject.toml": "", "a.py": "x = 1\n", "shut/b.py": "x = 1\n"})
    (folder / "shut").chmod(0)
    without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    command = [*without, sys.executable, "-u", "-m", "torchrepro_lint", "--watch", "-q", "--no-cache"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stderr.readline() == "torchrepro-lint: ./shut: cannot be read: Permission denied\n"
            assert process.stderr.readline().startswith("Watching")
            for number in range(1, 600):
                (folder / "a.py").write_text("\n" * number + "x = (\n", encoding="utf-8")
                if _readable(process, 1.0) or process.poll() is not None:
                    break
            assert "TRL001" in process.stdout.readline()
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            (folder / "shut").chmod(0o700)


def _readable(process: subprocess.Popen[str], seconds: float, stream: object = None) -> bool:
    import select

    return bool(select.select([stream or process.stdout], [], [], seconds)[0])
