"""A file that takes too long costs itself one TRL001, and every other file is linted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from cProfile import Profile
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.checks.rule import Finding, Rule
from torchrepro_lint.domain import programs as loaded  # noqa: F401  it is loaded late, and that takes time
from torchrepro_lint.engine import limits as deadlines
from torchrepro_lint.engine import read_project
from torchrepro_lint.engine.limits import DeadlineExceededError, deadline
from torchrepro_lint.engine.parsed_file import ParsedFile, parse_bytes
from torchrepro_lint.interfaces.lsp.client import WorkerThread
from torchrepro_lint.interfaces.lsp.workspace import Document, Workspace
from torchrepro_lint.source.text import Edit, Fix, Span
from torchrepro_lint.trace.traces import Context

Maker = Callable[[Mapping[str, str | bytes]], Path]
Lint = Callable[..., Ran]

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no such alarm")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What never ends, ends soon; what does end takes less than this."""
    monkeypatch.setattr(deadlines, "TASK_SECONDS", 1.0)
    monkeypatch.setattr(deadlines, "_SECONDS_PER_FILE", 0.0)


def _endless(context: Context) -> Iterable[Finding]:
    while "ENDLESS" in context.lines.text:
        pass
    yield Finding("TRL901", Span(0, 1), "bad word")


def _for_ever() -> None:
    while True:
        pass


def _rules(check: Callable[[Context], Iterable[Finding]]) -> tuple[Rule, ...]:
    return (
        Rule("TRL001", "syntax-error", "error", True, lambda context: ()),
        Rule("TRL901", "bad-word", "warning", True, check),
    )


def test_a_file_that_is_checked_for_ever(project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchrepro_lint.engine.run.RULES", _rules(_endless))
    project({"a.py": "x = 1\n", "b.py": "ENDLESS\n", "c.py": "x = 1\n"})
    ran = lint("--no-cache", "--jobs", "1")
    assert ran.out.splitlines() == [
        "./a.py:1:1: TRL901 bad word",
        "./b.py:1:1: TRL001 cannot be checked: it takes longer than 120 seconds",
        "./c.py:1:1: TRL901 bad word",
    ]


def _endless_after_one(context: Context) -> Iterable[Finding]:
    yield Finding("TRL902", Span(2, 3), "worse word")
    while "ENDLESS" in context.lines.text:
        pass
    yield Finding("TRL902", Span(4, 5), "worst word")


def test_what_was_found_before_the_limit_stays(project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_word(context: Context) -> Iterable[Finding]:
        yield Finding("TRL901", Span(0, 1), "bad word", Fix("drop it", (Edit(Span(0, 1), ""),), True))

    rules = (*_rules(one_word), Rule("TRL902", "worse-word", "warning", True, _endless_after_one))
    monkeypatch.setattr("torchrepro_lint.engine.run.RULES", rules)
    project({"b.py": "ENDLESS\n"})
    told = "./b.py:1:1: TRL001 cannot be checked in full: it takes longer than 120 seconds"
    for options in ([], ["--fix"]):
        assert lint("--no-cache", "--jobs", "1", *options).out.splitlines() == [
            told,
            "./b.py:1:1: TRL901 bad word",
            "./b.py:1:3: TRL902 worse word",
        ]
    assert Path("b.py").read_text(encoding="utf-8") == "ENDLESS\n"
    project({"b.py": "ENDLESS  # noqa: TRL901\n"})
    assert lint("--no-cache", "--jobs", "1").out.splitlines() == [told, "./b.py:1:3: TRL902 worse word"]


def test_a_file_that_is_read_for_ever(project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(data: bytes, notebook: bool = False, parser: str = "auto") -> ParsedFile:
        while b"ENDLESS" in data:
            pass
        return parse_bytes(data, notebook, parser)

    monkeypatch.setattr(read_project, "parse_bytes", stuck)
    monkeypatch.setattr("torchrepro_lint.engine.run.RULES", _rules(_endless))
    project({"a.py": "x = 1\n", "b.py": "ENDLESS\n", "c.py": "x = 1\n"})
    for data, options in ((None, []), (b"ENDLESS\n", ["-"])):
        ran = lint("--jobs", "1", *options, stdin=data)
        assert "TRL001 cannot be analysed: it takes longer than 120 seconds" in ran.out
        assert ran.out.count("TRL901") == (2 if data is None else 0)


def test_what_a_project_shares_may_be_what_takes_for_ever(
    project: Maker, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files are lost to it; then each is linted by itself, and only the cause is lost."""

    def shared(context: Context) -> Iterable[Finding]:
        while any(facts.summary.functions for facts in context.project.files.values()):
            pass
        yield Finding("TRL901", Span(0, 1), "bad word")

    monkeypatch.setattr("torchrepro_lint.engine.run.RULES", _rules(shared))
    project({f"{name}.py": "x = 1\n" for name in "abcd"} | {"e.py": "def f(): pass\n", "f.py": "x = 1\n"})
    ran = lint("--no-cache", "--jobs", "1")
    assert [line.split()[1] for line in ran.out.splitlines()] == ["TRL001"] * 2 + ["TRL901"] * 2 + ["TRL001", "TRL901"]


def test_the_alarm_is_put_back() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    with pytest.raises(DeadlineExceededError), deadline():
        _for_ever()
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_in_another_thread_it_is_raised_there() -> None:
    found: list[object] = []

    def work() -> None:
        try:
            with deadline():
                found.append(signal.getitimer(signal.ITIMER_VIRTUAL))
                _for_ever()
        except DeadlineExceededError:
            found.append("late")
        found.append(sum(range(100_000)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(0.0, 0.0), "late", 4_999_950_000]


def test_what_is_profiled_afterwards_ends() -> None:
    """An exception that is taken back would make Python 3.11 look for it at every step, and for ever in a profile."""

    def late() -> None:
        with pytest.raises(DeadlineExceededError), deadline():
            _for_ever()

    def profiled() -> None:
        profile = Profile()
        profile.runcall(sorted, [3, 1, 2], key=lambda each: -each)
        found.append(sum(each.callcount for each in profile.getstats()))

    found: list[int] = []
    for work in (late, profiled):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(30)
    assert found


def test_in_another_thread_nothing_is_raised_afterwards() -> None:
    found: list[int] = []
    before = threading.enumerate()

    def work() -> None:
        for number in range(20):
            with deadline():
                pass
            found.append(number)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == list(range(20))
    assert all(each in before for each in threading.enumerate())


def test_a_file_that_is_checked_for_ever_in_an_editor(project: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchrepro_lint.engine.run.RULES", _rules(_endless))
    root = project({"a.py": "x = 1\n", "b.py": "x = 1\n", "pyproject.toml": ""})
    workspace, thread = Workspace(), WorkerThread("checking")

    def found(texts: Mapping[str, str]) -> dict[str, list[str]]:
        paths = {str(root / name): text.encode() for name, text in texts.items()}
        workspace.update_documents({path: Document(path, data, path) for path, data in paths.items()})
        reports = workspace.reports(paths)
        return {
            Path(path).name: [each.message for each in report.checked.findings]
            for path, report in reports.items()
            if report is not None
        }

    late = "cannot be checked: it takes longer than 120 seconds"
    said = thread.submit(lambda: found({"a.py": "x = 2\n", "b.py": "ENDLESS\n"})).result()
    assert said == {"a.py": ["bad word"], "b.py": [late]}
    said = thread.submit(lambda: found({"a.py": "x = 2\n", "b.py": "x = 3\n"})).result()
    assert said == {"a.py": ["bad word"], "b.py": ["bad word"]}
