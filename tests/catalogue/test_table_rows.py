"""Each row of the tables of third-party calls decides the findings of some example."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

from one_file import project_of
from page_examples import Example, examples
from table_lines import LINES
from torchrepro_lint.catalogue import catalogue, libraries
from torchrepro_lint.catalogue import catalogue as tables
from torchrepro_lint.catalogue import catalogue as third_party
from torchrepro_lint.checks import RULES
from torchrepro_lint.config.settings import Settings
from torchrepro_lint.source.files import read_table
from torchrepro_lint.source.text import Lines
from torchrepro_lint.trace import library_models
from torchrepro_lint.trace.traces import Context

TOP = Path(__file__).parents[2]
PAGES = sorted(TOP.glob("tests/tables/*.md"))
TABLES = {
    "seeders": "seeder",
    "consumers": "consumer",
    "frameworks": "framework",
    "third_party": "operation",
    "generators": "generator",
}
ROWS = [
    pytest.param(table, number, id=f"{table}-{row['names'][0]}")
    for table, key in TABLES.items()
    for number, row in enumerate(read_table(f"{table}.toml")[key])
]
CACHES = (
    *(tables.seeders, tables.seeder_of, tables.consumers, tables.frameworks),
    *(third_party.third_party_operations, library_models.rows_named),
    *(libraries.generators, libraries._roots),
)


# The rules that a line is about; others may have their say besides.
ASKED = ("TRL101", "TRL102", "TRL103", "TRL104", "TRL105", "TRL106", "TRL112", "TRL402", "TRL405")


class Said(NamedTuple):
    """What is reported somewhere."""

    path: str
    start: int
    code: str
    message: str
    severity: str


@pytest.mark.parametrize("number", range(len(LINES)), ids=[line.call for line in LINES])
def test_a_line_is_reported_as_it_says(number: int) -> None:
    found = said(LINES[number].example(number))
    assert " ".join(sorted(one.code[3:] for one in found if one.code in ASKED)) == LINES[number].codes


@pytest.mark.parametrize(("table", "number"), ROWS)
def test_a_row_decides_what_is_said_of_an_example(table: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    row = read_table(f"{table}.toml")[TABLES[table]][number]
    candidates = list(mentioning(row["names"]))
    before = [said(example) for example in candidates]
    without(monkeypatch, table, number)
    try:
        assert any(said_of(example) != known for example, known in zip(candidates, before, strict=True))
    finally:
        monkeypatch.undo()
        forget()


def without(monkeypatch: pytest.MonkeyPatch, table: str, number: int) -> None:
    """Take a row out of its table."""
    rows = {name: read_table(name) for name in (f"{each}.toml" for each in TABLES)}
    kept = rows[f"{table}.toml"][TABLES[table]]
    rows[f"{table}.toml"] = {TABLES[table]: [*kept[:number], *kept[number + 1 :]]}
    for module in (tables, third_party, libraries):
        monkeypatch.setattr(module, "read_table", lambda name: rows[name] if name in rows else read_table(name))
    forget()


def forget() -> None:
    for cached in CACHES:
        cached.cache_clear()


@lru_cache(maxsize=1)
def every_example() -> tuple[Example, ...]:
    lines = (line.example(number) for number, line in enumerate(LINES))
    return (*lines, *(example for page in PAGES for example in examples(page)))


def mentioning(names: list[str]) -> Iterator[Example]:
    """The examples in which a row's name occurs, by its last word that is not a pattern."""
    words = {name.removesuffix(".*").rpartition(".")[2] for name in names}
    pattern = re.compile("|".join(rf"\b{re.escape(word)}\b".replace(r"\*", r"\w+") for word in sorted(words)))
    for example in every_example():
        if any(pattern.search(text) for text in example.files.values()):
            yield example


@cache
def _said(name: str) -> tuple[Said, ...]:
    return said_of(next(example for example in every_example() if example.name == name))


def said(example: Example) -> tuple[Said, ...]:
    """What is said of an example by the tables as they are."""
    return _said(example.name)


def said_of(example: Example) -> tuple[Said, ...]:
    """What all rules say of an example."""
    options: Mapping[str, str] = example.options
    files = {path: text for path, text in example.files.items() if path.endswith(".py")}
    device, torch = options.get("device", "auto"), options.get("torch", "2.13")
    pinned = (line.partition("==") for line in example.files.get("requirements.txt", "").splitlines())
    project = project_of(files, device, torch, tuple((name, f"=={version}") for name, _, version in pinned))
    found: list[Said] = []
    for path, text in sorted(files.items()):
        context = Context(
            path, project.files[path], Lines(text), project, catalogue.load(torch), Settings(device=device)
        )
        for rule in RULES:
            found += (Said(path, one.span.start, one.code, one.message, one.severity) for one in rule.check(context))
    return tuple(found)
