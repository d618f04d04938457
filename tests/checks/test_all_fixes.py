"""Every fix of every example: the result parses, and nothing else changes."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from benchmarks.untouched import compare
from page_examples import Example, examples
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import Selection, Settings, settings_table
from torchrepro_lint.engine.fixer import FixResult, fix_tree
from torchrepro_lint.engine.read_project import read_tree
from torchrepro_lint.engine.run import prepare
from torchrepro_lint.engine.writing import write_all
from torchrepro_lint.source.text import apply_edits

TOP = Path(__file__).parents[2]
PAGES = (
    *sorted(TOP.glob("rules/TRL*.md")),
    *sorted(TOP.glob("tests/rules/*.md")),
    *sorted(TOP.glob("tests/tables/*.md")),
)
EXAMPLES = [one for file in PAGES for one in examples(file)]


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_all_fixes_of_an_example_leave_everything_else(example: Example, tmp_path: Path) -> None:
    for path, text in example.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8", newline="")
    for fixed in fix_all(example, tmp_path):
        check(fixed)
        assert write_all(fixed.changes.values()).errors == ()
    assert not any(fixed.changes for fixed in fix_all(example, tmp_path)), "fixing again changes something"


def check(fixed: FixResult) -> None:
    """No fix was withdrawn, each file still compiles, and its tokens outside the edits are where they were."""
    assert fixed.errors == ()
    for path, change in fixed.changes.items():
        text = change.before.text
        for edits in (each[path] for each in fixed.rounds if path in each):
            assert compare(text, edits).lost == ()
            text = apply_edits(text, edits)
        assert text == change.after.text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, path, "exec", dont_inherit=True)


def fix_all(example: Example, folder: Path) -> list[FixResult]:
    """What ``--select ALL --fix --unsafe-fixes`` does to each project, not yet written."""

    def overrides(settings: Settings) -> Settings:
        return settings._replace(
            selections=(*settings.selections, Selection(("ALL",), (), (), "the example")),
            torch_version=example.options.get("torch", settings.torch_version),
            device=example.options.get("device", settings.device),
            unsafe_fixes=True,
        )

    settings_table.cache_clear()
    trees = plan([str(folder)], ConfigOptions(overrides=overrides)).trees
    return [fix_tree(prepare(tree, honour_comments=False)[0], read_tree(tree).files, unsafe=True) for tree in trees]
