"""The reference pages leave nothing out: settings, formats, fixes, and the keys of each JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conftest import Ran
from tools.docs.tables import FAMILIES
from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.pages import pages
from torchrepro_lint.config.settings import FORMATS, READERS, Settings, parse_settings
from torchrepro_lint.domain.timeline import KINDS
from torchrepro_lint.interfaces.cli.app import EVERY_COMMAND
from torchrepro_lint.source.files import parse_toml

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = str(DOCS.parent / "examples")


@cache
def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(name: str, title: str) -> str:
    """The text below a heading, up to the next heading of its level or above."""
    level, rest = re.split(rf"^(#+) {re.escape(title)}$", page(name), flags=re.MULTILINE)[1:]
    return re.split(rf"^#{{1,{len(level)}}} ", rest, flags=re.MULTILINE)[0]


def first_column(text: str) -> list[str]:
    """The words in code in the first column of the tables of a text."""
    cells = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


def rows(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]


# The rules


def test_the_table_of_rules_is_the_tools() -> None:
    listed = re.findall(r"^\| \[(TRL\d{3})\]\((\S+)\) \| (\S+) \| (\w+) \| (on|off) \|", page("rules.md"), re.MULTILINE)
    assert listed == [
        (rule.code, f"../rules/{rule.code}-{rule.name}.md", rule.name, rule.severity, "on" if rule.default else "off")
        for family in FAMILIES
        for rule in RULES
        if rule.code.startswith(family)
    ]
    assert len(listed) == len(RULES)


def test_the_readme_has_every_family() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (TRL\d) \| \[[^]]+\]\(docs/rules\.md#([a-z-]+)\) \|", readme, re.MULTILINE)
    assert listed == [
        (family, title.lower().replace(" ", "-")) for family, (title, _) in FAMILIES.items() if family != "TRL0"
    ]


# The fixes


def test_every_rule_with_a_fix_says_what_the_fix_writes() -> None:
    listed = {code for row in rows(page("fixes.md")) for code in re.findall(r"TRL\d{3}", row[0])}
    fixable = {one.code for one in pages() if not re.search(r"^## Fix\n\nNone\b", one.text, re.MULTILINE)}
    assert listed == fixable


def test_fixes_are_as_safe_as_the_table_says() -> None:
    from tools.docs import rule_pages

    said = dict(re.findall(r"^\| \[(TRL\d{3})\]\(\S+\) \|.*?\|.*?\|.*?\| ([^|]+) \|", page("rules.md"), re.MULTILINE))
    found = rule_pages.fixes(sorted((DOCS.parent / "rules").glob("TRL*.md")))
    assert {code: kinds for code, kinds in found.items() if not kinds <= set(said[code].split(" or "))} == {}
    assert {code for code, kinds in said.items() if kinds != "no"} - set(found) == set()


# The settings


def test_all_keys_have_a_row_and_a_section() -> None:
    keys = set(READERS)
    assert set(re.findall(r"^\| \[`([\w-]+)`\]\(#\1\) \|", page("settings.md"), re.MULTILINE)) == keys
    assert set(re.findall(r"^### `([\w-]+)`$", page("settings.md"), re.MULTILINE)) == keys


@pytest.mark.parametrize("key", sorted(READERS))
def test_the_example_of_a_key_is_accepted(key: str) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", section("settings.md", f"`{key}`"), re.DOTALL)
    table = parse_toml(block)
    ours: dict[str, Any] = table.get("tool", {}).get("torchrepro-lint", table)
    assert list(ours) == [key]
    parse_settings(ours, "settings.md")


WORKED_OUT = {"select", "torch-version", "output-format", "exclude"}


@pytest.mark.parametrize("key", sorted(set(READERS) - WORKED_OUT))
def test_the_default_of_a_key_is_the_tools(key: str) -> None:
    (default,) = re.findall(rf"^\| \[`{key}`\].*?\| ([^|]+) \| [^|]+ \|$", page("settings.md"), re.MULTILINE)
    values = Settings()._asdict() | {"extend_select": (), "ignore": ()}
    value = values[key.replace("-", "_")]
    told = parse_toml(f"x = {default.strip('`')}")["x"]
    assert told == (dict(value) if told == {} else list(value) if isinstance(value, tuple) else value)


def test_the_first_example_is_accepted() -> None:
    block = re.findall(r"```toml\n(.*?)```", page("settings.md"), re.DOTALL)[0]
    settings = parse_settings(parse_toml(block)["tool"]["torchrepro-lint"], "settings.md")
    assert settings.seeders == (("acme.repro.fix_seeds", ("torch", "numpy", "python")),)


# The command line


def test_every_command_has_a_section_with_all_its_options() -> None:
    for name, command in EVERY_COMMAND.items():
        told = section("command-line.md", name)
        options = [
            one
            for each in command.params
            for one in each.opts
            if one.startswith("-") and not getattr(each, "hidden", False)
        ]
        assert [one for one in options if not re.search(rf"[`, ]{re.escape(one)}\b", told)] == [], name


# The formats


def test_every_format_is_told_of() -> None:
    first = page("formats.md").partition("\n## ")[0]
    assert set(first_column(first)) | {"flake8"} == set(FORMATS)


def test_the_keys_of_json_are_told(lint: Callable[..., Ran]) -> None:
    found = json.loads(lint(EXAMPLE, "--output-format", "json", "--exit-zero", "-q").out)
    assert set(first_column(section("formats.md", "json"))) == {key for one in found for key in one}


def test_the_keys_of_a_timeline_are_told(lint: Callable[..., Ran]) -> None:
    (trace,) = json.loads(lint("trace", f"{EXAMPLE}/scenes/train.py", "--output-format", "json").out)
    told = section("trace-and-report.md", "The timeline of one run")
    entry, moment, kinds = [part for part in told.split("\n\n") if part.startswith("|")]
    assert set(first_column(entry)) == set(trace)
    assert set(first_column(moment)) == {key for each in trace["moments"] for key in each} - {"cell"}
    assert set(first_column(kinds)) == set(KINDS)
    assert {each["state"] for each in trace["lanes"]} <= set(re.findall(r"`(\w+)`", told))


def test_the_keys_of_a_report_are_told(lint: Callable[..., Ran]) -> None:
    report = json.loads(lint("report", EXAMPLE, "--output-format", "json", "--exit-zero", "-q").out)
    told = section("trace-and-report.md", "The report")
    assert set(first_column(told)) == set(report)


# The language server


def test_the_settings_of_the_server_are_told() -> None:
    from torchrepro_lint.interfaces.lsp.workspace import _READERS as OF_SERVER

    told = first_column(section("editors/index.md", "Settings of the server"))
    assert {re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", key) for key in told} == set(OF_SERVER)
