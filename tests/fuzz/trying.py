"""One input through everything: reading, linking, all rules, all formats, and for a part fixes and both parsers."""

from __future__ import annotations

import json
import os
import signal
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.checks import RULES
from torchrepro_lint.config.discovery import GivenFile, ProjectTree
from torchrepro_lint.config.roots import ProjectRoot
from torchrepro_lint.config.settings import FORMATS, Selection, Settings
from torchrepro_lint.engine.checker import Checker, make_checker
from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.engine.fixer import fix_tree
from torchrepro_lint.engine.parsed_file import ParsedFile, parse_bytes
from torchrepro_lint.engine.partition import Partition
from torchrepro_lint.engine.run import report_on
from torchrepro_lint.interfaces.report.formats import renderer
from torchrepro_lint.interfaces.report.view import View
from torchrepro_lint.source.decoding import Source, encode
from torchrepro_lint.syntax.file_encoding import decode_tree, encode_tree
from torchrepro_lint.syntax.nodes import SyntaxTree
from torchrepro_lint.syntax.parse import ParseError, parse_with_ast, parse_with_libcst

from .caches import try_cache
from .changing import wrong_changes
from .decoding import fully_decoded
from .failure import Failure, controls_in
from .kills import try_kill
from .projects import try_project
from .sessions import try_session
from .tables import try_baseline, try_settings

# Seconds of work that one small file may take.
DEADLINE = 20.0
_NOWHERE = os.path.join(os.sep, "nowhere", "at", "all")
# What is tried of an input that is no Python file or notebook, by the end of its name.
_OTHERS: dict[str, Callable[[bytes], Iterator[Failure]]] = {
    ".toml": try_settings,
    ".json": try_baseline,
    ".cache": try_cache,
    ".kill": try_kill,
    ".session": try_session,
    ".project": try_project,
}


class Effort(NamedTuple):
    """What of it all is tried: ``reference`` is both parsers, facts as JSON and all formats."""

    reference: bool = True
    fixes: bool = True
    release: str = "2.13"
    seconds: float = DEADLINE


EVERYTHING = Effort()


class _Late(BaseException):
    """The time is up. No ``Exception``, so that nothing in between takes it for a fault of its own."""


def attempt(name: str, data: bytes, effort: Effort = EVERYTHING) -> list[Failure]:
    """All that goes wrong with a file."""
    try:
        with _deadline(effort.seconds):
            other = _OTHERS.get(os.path.splitext(name)[1])
            return list(other(data) if other else _attempt(name, data, effort))
    except _Late as late:
        return [Failure("hang", f"takes longer than {effort.seconds:.0f} seconds{_place(late)}")]
    except Exception as error:  # noqa: BLE001  that is what is looked for
        return [Failure("crash", f"{type(error).__name__}: {str(error)[:200]}{_place(error)}")]


def _attempt(name: str, data: bytes, effort: Effort) -> Iterator[Failure]:
    reading = parse_bytes(data, name.endswith(".ipynb"))
    if reading.problems and reading.problems[0].message.startswith("cannot be analysed"):
        yield Failure("crash", reading.problems[0].message)
    if reading.source is not None and reading.facts is not None:
        if effort.reference:
            yield from compared(reading.source.program)
        if effort.reference and not comes_back(reading.facts):
            yield Failure("differs", "facts are others when they come back from JSON")
    checker = checker_of(name, effort.release)
    said = report_on(checker, Partition(checker, {name: reading}))
    yield from (Failure("crash", fault) for fault in said.faults)
    yield from _rendered(said.diagnostics, FORMATS if effort.reference else FORMATS[:2])
    if effort.fixes and any(each.fix for each in said.diagnostics):
        yield from _fixed(checker, name, data, reading)


def comes_back(facts: SyntaxTree) -> bool:
    """Whether facts are the same once they have been written as JSON and read."""
    try:
        written = encode_tree(facts)
    except RecursionError:
        return True  # what is too deep to be written is not stored
    return fully_decoded(decode_tree(written, facts.summary)) == facts


def compared(text: str) -> Iterator[Failure]:
    """Both parsers give the same facts where both can read a text."""
    quick = parse_with_ast(text)
    if quick is None:
        return
    try:
        slow = parse_with_libcst(text)
    except ParseError:
        return  # syntax that libcst does not know yet
    try:
        same = encode_tree(quick) == encode_tree(slow) and quick.summary == slow.summary
    except RecursionError:
        return  # facts that are too deep to be written are not cached
    if not same:
        yield Failure("differs", "Python's parser and libcst's give other facts")


def _rendered(diagnostics: tuple[Diagnostic, ...], formats: tuple[str, ...]) -> Iterator[Failure]:
    for name in formats:
        text = renderer(name)(diagnostics, View(verbose=True, base=_NOWHERE))
        text.encode("utf-8", "surrogateescape")
        _READERS.get(name, str)(text)
        yield from controls_in(name, text)


def _json_lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.split("\n") if line]


def _xml(text: str) -> ET.Element:
    return ET.fromstring(text.encode("utf-8", "surrogateescape"))


_READERS: dict[str, Callable[[str], Any]] = {
    "json": json.loads,
    "json-lines": _json_lines,
    "sarif": json.loads,
    "gitlab": json.loads,
    "junit": _xml,
}


def _fixed(checker: Checker, name: str, data: bytes, reading: ParsedFile) -> Iterator[Failure]:
    assert isinstance(reading.source, Source)
    try:
        if encode(reading.source, data) != data:
            return  # is refused when it comes to writing
    except UnicodeEncodeError:
        return  # likewise
    fixed = fix_tree(checker, {name: reading}, unsafe=True)
    yield from (Failure("crash", error) for error in fixed.errors)
    for change in fixed.changes.values():
        yield from (Failure("lost", each) for each in wrong_changes(change, fixed.rounds, data))


@cache
def checker_of(name: str, release: str) -> Checker:
    """What a file of a name is checked with: all rules, for a release of torch."""
    settings = Settings(selections=(Selection(("ALL",)),), unsafe_fixes=True)
    tree = ProjectTree(
        ProjectRoot(_NOWHERE, None, settings, _NOWHERE),
        (name,),
        ((name, GivenFile(name, os.path.join(_NOWHERE, name))),),
    )
    return make_checker(tree, RULES, catalogue.load(release), True)


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise _Late

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _place(error: BaseException) -> str:
    """The last line of ours that it came through."""
    found, trace = "", error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if "torchrepro_lint" in path.parts or "fuzz" in path.parts:
            found = f" ({path.name}:{trace.tb_lineno})"
        trace = trace.tb_next
    return found
