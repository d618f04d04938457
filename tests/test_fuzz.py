"""A short run of ``python -m tests.fuzz``, and all its past finds: no input crashes a run or loses a byte."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fuzz.corpus import OURS, Corpus, read_corpus
from fuzz.kinds import KINDS, make
from fuzz.projects import project
from fuzz.running import try_numbers
from fuzz.shapes import LINKS
from fuzz.shrinking import shrunk
from fuzz.trying import EVERYTHING, attempt
from torchrepro_lint.engine.process_pool import WorkerFailure, run_tasks
from torchrepro_lint.syntax.parse import ParseError, parse_module

FOUND = sorted(Path(__file__).parent.glob("fuzz/found/*.txt"))
# A deadline that a busy machine keeps, and what does not end does not.
SECONDS = 300.0


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """The same on every machine: our own files."""
    return read_corpus([OURS])


def test_some_of_each_kind(corpus: Corpus) -> None:
    tried = try_numbers(13, corpus, range(110), SECONDS)
    assert tried.failures == ()
    assert len(tried.counts) > len(KINDS) / 2


def test_nothing_of_hostile_projects_is_markup() -> None:
    """Names, strings and settings that would be tags, links and commands."""
    for number in range(15):
        data = project(Random(number), Corpus((), ()))
        assert attempt("x.project", data, EVERYTHING._replace(seconds=SECONDS)) == [], number


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_what_was_found_is_mended(path: Path) -> None:
    assert attempt(f"x{Path(path.stem).suffix}", path.read_bytes(), EVERYTHING._replace(seconds=SECONDS)) == []


@pytest.mark.parametrize("name", LINKS)
def test_a_chain_of_twenty_thousand_is_read_or_refused(name: str) -> None:
    """By itself, and before a mistake, which libcst is asked about; in a process that may die of it."""
    text = f"x = {LINKS[name](20_000)}\n"
    if name in ("dictionary", "strings of letters"):  # they are flat, and take their time
        text = f"x = {LINKS[name](2_000)}\n"
    for number, answer in run_tasks(_collected, [text, f"{text}print 'a'\n"], 1, deadline=SECONDS):
        assert not isinstance(answer, WorkerFailure), number


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("x = (a\n" + "  + b\n" * 400 + ") y\n", False),
        ("x = (a\n" + "  + b\n" * 600 + ") y\n", True),
        ("x = [" + "a + b, " * 2000 + "] y\n", False),
        ("x = a + b\n" * 2000 + "y z\n", False),
        ("# " + "- " * 2000 + "\nx = '" + "+ " * 2000 + "' y\n", False),
        ("x = a" + ".b" * 600 + " y\n", True),
        ("x = a" + "[0]" * 600 + " y\n", True),
        ("x = " + "not " * 600 + "a y\n", True),
    ],
)
def test_a_long_expression_is_refused_and_many_short_ones_are_not(text: str, refused: bool) -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    assert ("nested too deeply" in caught.value.message) is refused


def test_an_input_has_a_number(corpus: Corpus) -> None:
    assert [make(1, number, corpus) for number in range(20)] == [make(1, number, corpus) for number in range(20)]
    assert make(1, 3, corpus) != make(2, 3, corpus)


def test_an_input_is_made_smaller() -> None:
    data = b"".join(b"x%d = 1\n" % number for number in range(50))
    assert shrunk(data, lambda data: b"7" in data and b"=" in data) in (b"7=", b"=7")


def _collected(text: str) -> str:
    try:
        parse_module(text)
    except ParseError as error:
        return error.message
    return ""
