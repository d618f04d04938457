"""Fixtures: a project on disk, and the tool run over it in this process."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

import browser
from browser import Browser
from prepared_python import CAN_PREPARE, Python, in_fresh_process, prepared

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in the background has them, and all that they start, ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Hundreds of tests start the tool, which takes three times as long where it is to be compiled each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# As many threads as there are cores, in each worker, are in each other's way where tensors are small.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_finish() -> None:
    """Thousands of tests are objects that stay to the end: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


class Ran(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


_FOLDERS = count()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """As pytest has it, but with few others beside it: the tool looks at all that lies around a project, and so it would look at
    the folders of thousands of tests.
    """
    name, number = re.sub(r"\W", "_", request.node.name)[:30], next(_FOLDERS)
    folder = tmp_path_factory.getbasetemp() / f"tests{number // 50}" / f"{name}{number % 50}"
    folder.mkdir(mode=0o700, parents=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _no_users_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No fixture reads or fills the cache of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHREPRO_LINT_CACHE_DIR", str(tmp_path_factory.mktemp("caches")))
        yield


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a test those of thousands of others: whoever adds one looks how large all of them are."""
    place = tmp_path_factory.getbasetemp() / f"caches of {next(_FOLDERS)}"
    monkeypatch.setenv("TORCHREPRO_LINT_CACHE_DIR", str(place))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, str | bytes]], Path]:
    """Write files below a fresh current directory; returns it."""

    def make(files: Mapping[str, str | bytes]) -> Path:
        for path, content in files.items():
            place = tmp_path / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return make


@pytest.fixture
def lint(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run the command line as the console script does."""
    from torchrepro_lint.config.settings import settings_table
    from torchrepro_lint.interfaces.cli.app import main

    def run(*arguments: str, stdin: bytes | None = None) -> Ran:
        settings_table.cache_clear()
        capfdbinary.readouterr()
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", _Piped(stdin))
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        captured = capfdbinary.readouterr()
        status = ended.value.code
        assert isinstance(status, int)
        return Ran(
            status, captured.out.decode("utf-8", "surrogateescape"), captured.err.decode("utf-8", "surrogateescape")
        )

    return run


class _Piped:
    def __init__(self, data: bytes) -> None:
        import io

        self.buffer = io.BytesIO(data)

    def isatty(self) -> bool:
        return False


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules of a few lines instead of the real ones: they look at the text only."""
    from torchrepro_lint.checks.rule import Rule

    rules = (
        Rule("TRL001", "syntax-error", "error", True, lambda context: ()),
        Rule("TRL901", "bad-word", "warning", True, _toy("TRL901", "BAD", "GOOD", safe=True)),
        Rule("TRL902", "risky-word", "note", True, _toy("TRL902", "RISKY", "CALM", safe=False)),
        Rule("TRL911", "rare-word", "error", False, _toy("TRL911", "RARE", None, safe=True)),
        Rule("TRL912", "breaking-fix", "error", False, _toy("TRL912", "BREAK", "(", safe=True)),
        Rule("TRL913", "broken-rule", "error", False, lambda context: 1 // 0),  # type: ignore[arg-type, return-value]
    )
    monkeypatch.setattr("torchrepro_lint.engine.run.RULES", rules)


def _toy(code: str, word: str, better: str | None, *, safe: bool) -> Callable[..., object]:
    import re

    from torchrepro_lint.checks.rule import Finding
    from torchrepro_lint.source.text import Edit, Fix, Span
    from torchrepro_lint.trace.traces import Context

    def check(context: Context) -> Iterator[Finding]:
        for match in re.finditer(rf"\b{word}\b", context.lines.text):
            span = Span(*match.span())
            fix = None if better is None else Fix(f"write {better}", (Edit(span, better),), safe)
            yield Finding(code, span, f"{word} is not {better or 'wanted'}", fix)

    return check


@pytest.fixture(scope="session")
def _in_fork(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Python]:
    with prepared(tmp_path_factory.mktemp("prepared"), (1, 2)) as python:
        yield python


@pytest.fixture(params=["in_fork", pytest.param("in_fresh_process", marks=pytest.mark.long)])
def python(request: pytest.FixtureRequest) -> Python:
    """Forks every time, and fresh processes by ``pytest -m long``: those import torch for seconds each."""
    if request.param == "in_fresh_process" or not CAN_PREPARE:
        return in_fresh_process
    in_fork: Python = request.getfixturevalue("_in_fork")
    return in_fork


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless browser, one for all tests of pages."""
    with browser.start(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core, which looks for what keeps people out."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm to get axe-core with")
    place = tmp_path_factory.mktemp("axe")
    install = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(place), "axe-core@4"]
    try:
        subprocess.run(install, check=True, capture_output=True, timeout=120)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("axe-core cannot be had from the registry")
    return (place / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
