"""Every example in the rules' pages holds, and pages and rules agree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from page_examples import Example, Expected, examples
from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.pages import page, pages
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import Selection, Settings, settings_table
from torchrepro_lint.engine.diagnostic import RunOutcome
from torchrepro_lint.engine.run import run
from torchrepro_lint.engine.writing import write

TOP = Path(__file__).parents[2]
RULE_PAGES = sorted(TOP.glob("rules/TRL*.md"))
EXAMPLES = [
    one
    for file in (
        *RULE_PAGES,
        *(page for where in ("rules", "tables", "causes") for page in sorted(TOP.glob(f"tests/{where}/*.md"))),
    )
    for one in examples(file)
]
HEADINGS = ["What it reports", "Why it matters", "Bad", "Good", "Fix", "Limits", "Versions", "References"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_is_reported_as_it_says(example: Example, tmp_path: Path) -> None:
    _write(example.files, tmp_path)
    outcome = _run(example, tmp_path)
    _compare(outcome, example.expected, tmp_path)
    untold = [one for one in outcome.diagnostics if (one.fix is None) is not bool(one.unfixed)]
    assert untold == [], "a finding has a fix, or says why there is none"


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.fixed], ids=lambda example: example.name)
def test_an_example_is_fixed_as_it_says(example: Example, tmp_path: Path) -> None:
    for unsafe in sorted({fixed.unsafe for fixed in example.fixed}):
        _write(example.files, tmp_path)
        outcome = _run(example, tmp_path, fix=True, unsafe=unsafe)
        assert outcome.errors == ()
        assert [write(change) for change in outcome.changes] == [None] * len(outcome.changes)
        wanted = [fixed for fixed in example.fixed if fixed.unsafe == unsafe]
        for fixed in wanted:
            assert (tmp_path / fixed.path).read_text(encoding="utf-8") == fixed.text
        paths = {fixed.path for fixed in wanted}
        left = [one for one in example.expected if one.path not in paths]
        again = _run(example, tmp_path, fix=True, unsafe=unsafe)
        assert again.changes == (), "fixing again changes something"
        _compare(again, (*left, *(one for fixed in wanted for one in fixed.expected)), tmp_path, rows_of=paths)


_OF_SEVERAL_FILES = [one for one in EXAMPLES if len(one.files) > 1]


# One in three is tried every time, and all by `pytest -m long`.
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(one, id=one.name, marks=pytest.mark.long if number % 3 else ())
        for number, one in enumerate(_OF_SEVERAL_FILES)
    ],
)
def test_what_is_said_of_a_file_does_not_depend_on_the_others(example: Example, tmp_path: Path) -> None:
    _write(
        {"torchrepro-lint.toml": "", **example.files} if "pyproject.toml" not in example.files else example.files,
        tmp_path,
    )
    together = _run(example, tmp_path).diagnostics
    alone = [
        found
        for path in sorted(example.files)
        if path.endswith(".py")
        for found in _run(example, tmp_path, given=path).diagnostics
    ]
    assert [(one.filename, one.start, one.message) for one in alone] == [
        (one.filename, one.start, one.message) for one in sorted(together, key=lambda one: one.filename)
    ]


def test_each_rule_has_one_page_and_each_page_a_rule() -> None:
    assert [(one.code, one.name) for one in pages()] == sorted((rule.code, rule.name) for rule in RULES)


def test_codes_and_names_are_unique() -> None:
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("file", RULE_PAGES, ids=lambda file: file.name)
def test_a_page_has_its_headings(file: Path) -> None:
    text = page(file).text
    found = [heading for heading in re.findall(r"^## (.+)$", text, re.MULTILINE) if heading in HEADINGS]
    assert found == HEADINGS


@pytest.mark.parametrize("file", RULE_PAGES, ids=lambda file: file.name)
def test_a_page_begins_with_a_short_summary(file: Path) -> None:
    summary = page(file).summary
    assert summary
    assert len(summary) <= 160
    assert not summary.startswith(("#", "`" * 3))


def test_the_summary_says_which_rules_are_off() -> None:
    """``torchrepro-lint rule`` lists the summaries alone."""
    said = {found.code for found in map(page, RULE_PAGES) if found.summary.endswith(" Off by default.")}
    assert said == {rule.code for rule in RULES if not rule.default}


def test_a_page_whose_title_differs_from_its_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "TRL999-other-name.md"
    file.write_text("# TRL999 a-name\n\nSummary.\n", encoding="utf-8")
    with pytest.raises(ValueError, match="first line"):
        page(file)


def _write(files: Mapping[str, str], folder: Path) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")


def _run(example: Example, folder: Path, fix: bool = False, unsafe: bool = False, given: str = "") -> RunOutcome:
    options = example.options

    def overrides(settings: Settings) -> Settings:
        select = tuple(options["select"].split(",")) if "select" in options else None
        own = (options["page"],) if "page" in options and select is None else ()
        return settings._replace(
            selections=(*settings.selections, Selection(select, own, (), "the example")),
            torch_version=options.get("torch", settings.torch_version),
            device=options.get("device", settings.device),
            unsafe_fixes=unsafe,
        )

    settings_table.cache_clear()
    planned = plan([str(folder / given)], ConfigOptions(overrides=overrides))
    return run(planned, fix, honour_comments=True, progress=lambda total: lambda: None)


def _compare(
    outcome: RunOutcome, expected: tuple[Expected, ...], folder: Path, rows_of: set[str] | None = None
) -> None:
    """Each finding has its mark and each mark its finding; where ``rows_of`` is given, rows count only in those files."""
    found = [
        Expected(Path(one.filename).relative_to(folder).as_posix(), one.start.row, one.code, one.message)
        for one in outcome.diagnostics
    ]
    for one in expected:
        fits = [
            other
            for other in found
            if (other.path, other.code) == (one.path, one.code)
            and one.part in other.part
            and (other.row == one.row or (rows_of is not None and one.path not in rows_of))
        ]
        assert fits, f"missed: {one}; found: {found}"
        found.remove(fits[0])
    assert not found, f"reported without a mark: {found}"
    assert outcome.errors == ()
