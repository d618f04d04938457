"""Markdown elements: escaped text, code spans, tables, folded details and fenced code, as GitHub and GitLab render them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from torchrepro_lint.interfaces.report.excerpt import terminal_text
from torchrepro_lint.source.errors import without_workflow_commands
from torchrepro_lint.source.patterns import lazy_pattern

_SPECIAL = lazy_pattern(r"[\\`*_{}\[\]|~^$]")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "#": "&#35;"}
_FINDING_COLUMNS = ("place", "severity", "rule", "finding")


def escaped(text: str) -> str:
    """Text escaped so that it renders literally: no mark-up, tags or mentions."""
    return _html(_SPECIAL.sub(r"\\\g<0>", terminal_text(text)))


def code_span(text: str) -> str:
    """A code span for a table; a bar must be escaped even there."""
    if "##[" in text:  # nothing can be escaped in a code span
        return f"<code>{escaped(text)}</code>"
    fence = "`" * (1 + _longest_run([text]))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{terminal_text(text)}{pad}{fence}".replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, whose cells are Markdown already."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def finding_table(findings: Iterable[tuple[str, str, str, str, str, str]]) -> Iterator[str]:
    """The table of findings, each by its place, severity, code, name, address of its rule's page, and message."""
    rows = (
        (code_span(place), severity, f"[{code}]({url}) {name}", escaped(message))
        for place, severity, code, name, url, message in findings
    )
    yield from table(_FINDING_COLUMNS, rows)


def folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    """Lines below a summary that opens them."""
    yield from ("", f"<details><summary>{_html(terminal_text(summary))}</summary>", "", *lines, "", "</details>")


def call_path(steps: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A numbered list of places and what happens there."""
    yield from (f"{number}. {code_span(place)} {escaped(text)}" for number, (place, text) in enumerate(steps, 1))


def fix(title: str, safe: bool, changes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The title of a fix, and its changed lines with their signs as a diff."""
    yield f"Fix{'' if safe else ' (unsafe)'}: {escaped(title)}"
    yield from fenced("diff", [f"{sign} {text}" for sign, text in changes])


def fenced(language: str, lines: Sequence[str]) -> Iterator[str]:
    """An empty line and lines of code as they are, but for commands that GitHub's log would obey."""
    written = [without_workflow_commands(line) for line in lines]
    fence = "`" * max(3, 1 + _longest_run(written))
    yield from ("", f"{fence}{language}", *written, fence)


def _longest_run(lines: Iterable[str]) -> int:
    """The length of the longest run of backquotes."""
    return max((len(run) for line in lines for run in re.findall("`+", line)), default=0)


def _html(text: str) -> str:
    return "".join(_HTML.get(letter, letter) for letter in text)
