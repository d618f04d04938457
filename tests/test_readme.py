"""The README's claims that a test can check; ``tests/docs`` checks what it and the pages show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from torchrepro_lint.config.settings import parse_settings
from torchrepro_lint.source.files import parse_toml

TOP = Path(__file__).parents[1]
README = (TOP / "README.md").read_text(encoding="utf-8")
PAGES = [
    *(TOP / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/README.md")),
    *sorted(TOP.glob("docs/**/*.md")),
    *sorted(TOP.glob("rules/*.md")),
]
FIRST = "python -m venv .venv && .venv/bin/pip install . && .venv/bin/torchrepro-lint examples/ --exit-zero"
SECOND = "python -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest -n 2"


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_its_first_command_lints_the_examples_and_the_second_runs_the_tests() -> None:
    commands = [line for line in README.splitlines() if line.startswith("python -m venv")]
    assert commands == [FIRST, SECOND]
    assert README.index(SECOND) > README.index("\n## Development\n") > README.index(FIRST)


def test_the_first_screen_shows_what_it_does() -> None:
    start = "\n".join(README.splitlines()[:40])
    assert "](docs/images/terminal.svg)" in start
    assert start.index("terminal.svg") < start.index("pip install")


def test_its_configuration_is_accepted() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    settings = parse_settings(parse_toml(block)["tool"]["torchrepro-lint"], "README.md")
    assert settings.torch_version == "2.6"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(TOP).as_posix())
def test_links_into_the_repository_lead_somewhere(page: Path) -> None:
    text = re.sub(
        r"^( *)(`{3,}).*?^\1\2$|<!-- site: .*?-->", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    links = re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)", text)
    assert [link for link, _ in links if not (page.parent / link).exists()] == []
    targets = [(page.parent / link if link else page, anchor) for link, anchor in links if anchor]
    assert [(str(file), anchor) for file, anchor in targets if anchor not in anchors(file)] == []


def anchors(file: Path) -> set[str]:
    """The anchors that GitHub and the site give to the headings of a page."""
    found = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


RELEASES = re.findall(r"^## (\d\S+), \d{4}-\d\d-\d\d$", (TOP / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(TOP).as_posix())
def test_only_a_release_that_there_is_is_named(page: Path) -> None:
    """Before the first release each snippet names a commit, and nothing comes from an index; ``tools.release`` sets the tag."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"torchrepro-lint@([\w.<>-]*[\w>])|\brev: (\S+)", text)
    assert {tag or rev for tag, rev in named} <= {"<commit>", *(f"v{version}" for version in RELEASES)}
    from_an_index = re.findall(r"^.*pip install ['\"]?torchrepro-lint(?!\[\w+\] @ git).*$", text, re.MULTILINE)
    assert RELEASES or from_an_index == []


@pytest.mark.parametrize("page", ["README.md", "docs/pipelines.md"])
def test_its_snippets_are_yaml_and_name_what_there_is(page: str) -> None:
    (hook,) = yaml.safe_load((TOP / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    action = yaml.safe_load((TOP / "action.yml").read_text(encoding="utf-8"))
    blocks = re.findall(r"```yaml\n(.*?)```", (TOP / page).read_text(encoding="utf-8"), re.DOTALL)
    found = [part for block in blocks for part in parts(yaml.safe_load(block))]
    assert hook["id"] in {part["id"] for part in found if "id" in part}
    given = [part["with"] for part in found if str(part.get("uses", "")).startswith("torchrepro/torchrepro-lint@")]
    assert given
    assert [key for one in given for key in one if key not in action["inputs"]] == []


def parts(value: object) -> list[dict[str, object]]:
    """All mappings within a value."""
    if isinstance(value, list):
        return [part for each in value for part in parts(each)]
    if isinstance(value, dict):
        return [value, *(part for each in value.values() for part in parts(each))]
    return []
