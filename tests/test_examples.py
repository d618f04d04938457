"""The bundled example: its README lists the findings of the tool."""

from __future__ import annotations

import re
from pathlib import Path

from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.engine.run import run

EXAMPLES = Path(__file__).parents[1] / "examples"
ROW = re.compile(r"^\| `(?P<path>[^`:]+):(?P<row>\d+)` \| (?P<code>TRL\d{3}) \|", re.MULTILINE)


def test_the_readme_lists_what_is_reported() -> None:
    listed = sorted((match["path"], int(match["row"]), match["code"]) for match in rows())
    outcome = run(plan([str(EXAMPLES)], ConfigOptions()), False, honour_comments=True, progress=lambda _: lambda: None)
    found = [
        (Path(one.filename).relative_to(EXAMPLES).as_posix(), one.start.row, one.code) for one in outcome.diagnostics
    ]
    assert sorted(found) == listed


def rows() -> list[re.Match[str]]:
    found = list(ROW.finditer((EXAMPLES / "README.md").read_text(encoding="utf-8")))
    assert found
    return found
