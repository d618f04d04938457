"""The README's claims that a test can check."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Ran
from torchrepro_lint.checks import RULES
from torchrepro_lint.config.settings import FAMILIES, parse_settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOP = Path(__file__).parents[1]
README = (TOP / "README.md").read_text(encoding="utf-8")


def test_the_table_of_rules_is_the_tools() -> None:
    listed = re.findall(r"^\| \[(TRL\d{3})\]\((\S+)\) \| (\S+) \|", README, re.MULTILINE)
    assert [(code, name) for code, _, name in listed] == [(rule.code, rule.name) for rule in RULES]
    assert [link for code, link, name in listed] == [f"rules/{rule.code}-{rule.name}.md" for rule in RULES]


def test_the_table_says_how_severe_and_whether_by_default() -> None:
    listed = re.findall(r"^\| \[TRL\d{3}\]\(\S+\) \| \S+ \| ([^|]+) \|", README, re.MULTILINE)
    assert listed == [rule.severity + ("" if rule.default else ", off") for rule in RULES]


@pytest.mark.parametrize("block", re.findall(r"```console\n(.*?)```", README, re.DOTALL))
def test_what_it_shows_is_what_is_printed(
    block: str, lint: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    command, *shown = block.splitlines()
    monkeypatch.chdir(TOP)
    monkeypatch.setenv("COLUMNS", "100")
    ran = lint(*shlex.split(command.removeprefix("$ torchrepro-lint ")))
    assert ran.status == 0
    # "…" stands for what is left out: lines, or the end of one.
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else _line(line) for line in shown)
    assert re.fullmatch(pattern, ran.out)


def _line(shown: str) -> str:
    start = shown.removesuffix("…")
    return re.escape(start) + (r".*\n" if start != shown else r"\n")


def test_the_configuration_is_accepted() -> None:
    (block,) = (each for each in re.findall(r"```toml\n(.*?)```", README, re.DOTALL) if "[tool." in each)
    settings = parse_settings(tomllib.loads(block)["tool"]["torchrepro-lint"], "README.md")
    assert settings.seeders == (("acme.repro.fix_seeds", FAMILIES),)


def test_all_keys_are_named() -> None:
    from torchrepro_lint.config.settings import _READERS

    section = README.partition("## Configuration")[2].partition("\n## ")[0]
    assert [key for key in _READERS if not re.search(rf"^\[?[\w.-]*{key}\b|`{key}`", section, re.MULTILINE)] == []


def test_its_first_command_lints_the_examples() -> None:
    command = "python -m venv .venv && .venv/bin/pip install . && .venv/bin/torchrepro-lint examples/ --exit-zero"
    assert command in README.splitlines()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"])
def test_links_into_the_repository_lead_somewhere(page: str) -> None:
    file = TOP / page
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", file.read_text(encoding="utf-8"))
    assert [link for link in links if not (file.parent / link).exists()] == []
