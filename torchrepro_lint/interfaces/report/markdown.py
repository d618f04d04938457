"""The format ``markdown``: for a pull request or the summary of a pipeline step, as GitHub and GitLab render it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchrepro_lint.checks.pages import url
from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.excerpt import changes, terminal_text
from torchrepro_lint.interfaces.report.flake8 import step_location
from torchrepro_lint.interfaces.report.summary import by_severity, counted, unfollowed
from torchrepro_lint.interfaces.report.view import View
from torchrepro_lint.source.errors import without_workflow_commands
from torchrepro_lint.source.patterns import lazy_pattern

_SPECIAL = lazy_pattern(r"[\\`*_{}\[\]|~^$]")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "#": "&#35;"}


def render(diagnostics: Sequence[Diagnostic], view: View) -> str:
    """A table of all diagnostics; below it, folded, their call paths and fixes; then the programs that are not followed."""
    return f"{_findings(diagnostics)}{_unfollowed(view)}"


def _findings(diagnostics: Sequence[Diagnostic]) -> str:
    if not diagnostics:
        return "### torchrepro-lint: no findings\n"
    found, files = by_severity(one.severity for one in diagnostics), len({one.filename for one in diagnostics})
    head = f"### torchrepro-lint: {found} in {counted(files, 'file')}\n\n"
    rows = "".join(_row(one) for one in diagnostics)
    details = "".join(_details(one) for one in diagnostics if one.steps or one.fix)
    return f"{head}| place | severity | rule | finding |\n|---|---|---|---|\n{rows}{details}"


def _unfollowed(view: View) -> str:
    """The programs that lead into code that is not followed, each with its first place and the reason."""
    if not view.unfollowed:
        return ""
    rows = []
    for one in view.unfollowed:
        name = f"{one.display}:{one.function}" if one.function else one.display
        rows.append(f"- {code_span(terminal_text(name))}: {escaped(one.message)}\n")
    return f"\n{unfollowed(view.programs, len(view.unfollowed))}:\n\n{''.join(rows)}"


def _row(one: Diagnostic) -> str:
    rule = f"[{one.code}]({url(one.code, one.name)}) {one.name}"
    return f"| {code_span(_place(one))} | {one.severity} | {rule} | {escaped(one.message)} |\n"


def _details(one: Diagnostic) -> str:
    lines = "".join(f"{line}\n" for line in _body(one))
    return f"\n<details><summary>{_html(_place(one))} {one.code} {one.name}</summary>\n\n{lines}\n</details>\n"


def _body(one: Diagnostic) -> Iterator[str]:
    for number, step in enumerate(one.steps, 1):
        yield f"{number}. {code_span(step_location(step))} {escaped(step.text)}"
    if one.fix is not None:
        if one.steps:
            yield ""
        yield f"Fix{'' if one.fix.safe else ' (unsafe)'}: {escaped(one.fix.title)}"
        lines = [f"{line.sign} {without_workflow_commands(line.text)}" for line in changes(one)]
        fence = "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))
        yield from ("", f"{fence}diff", *lines, fence)


def _place(one: Diagnostic) -> str:
    return terminal_text(f"{one.display}:{one.start}")


def code_span(text: str) -> str:
    """A code span for a table; a bar must be escaped even there."""
    if "##[" in text:  # nothing can be escaped in a code span
        return f"<code>{escaped(text)}</code>"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{terminal_text(text)}{pad}{fence}".replace("|", "\\|")


def escaped(text: str) -> str:
    """Text escaped so that it renders literally: no mark-up, tags or mentions."""
    return _html(_SPECIAL.sub(r"\\\g<0>", terminal_text(text)))


def _html(text: str) -> str:
    return "".join(_HTML.get(letter, letter) for letter in text)
