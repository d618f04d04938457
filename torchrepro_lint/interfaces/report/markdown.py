"""The format ``markdown``: for a pull request or the summary of a pipeline step, as GitHub and GitLab render it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchrepro_lint.checks.pages import url
from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.excerpt import changes
from torchrepro_lint.interfaces.report.flake8 import step_location
from torchrepro_lint.interfaces.report.markdown_elements import (
    call_path,
    code_span,
    escaped,
    finding_table,
    fix,
    folded,
)
from torchrepro_lint.interfaces.report.summary import by_severity, counted, unfollowed
from torchrepro_lint.interfaces.report.view import View


def render(diagnostics: Sequence[Diagnostic], view: View) -> str:
    """A table of all diagnostics; below it, folded, their call paths and fixes; then the programs that are not followed."""
    return "".join(f"{line}\n" for line in (*_findings(diagnostics), *_unfollowed(view)))


def _findings(diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    if not diagnostics:
        yield "### torchrepro-lint: no findings"
        return
    found, files = by_severity(one.severity for one in diagnostics), len({one.filename for one in diagnostics})
    yield from (f"### torchrepro-lint: {found} in {counted(files, 'file')}", "")
    yield from finding_table(
        (_place(one), one.severity, one.code, one.name, url(one.code, one.name), one.message) for one in diagnostics
    )
    for one in diagnostics:
        if one.steps or one.fix:
            yield from folded(f"{_place(one)} {one.code} {one.name}", _details(one))


def _unfollowed(view: View) -> Iterator[str]:
    """The programs that lead into code that is not followed, each with its first place and the reason."""
    if not view.unfollowed:
        return
    yield from ("", f"{unfollowed(view.programs, len(view.unfollowed))}:", "")
    for one in view.unfollowed:
        name = f"{one.display}:{one.function}" if one.function else one.display
        yield f"- {code_span(name)}: {escaped(one.message)}"


def _details(one: Diagnostic) -> Iterator[str]:
    yield from call_path((step_location(step), step.text) for step in one.steps)
    if one.fix is not None:
        if one.steps:
            yield ""
        yield from fix(one.fix.title, one.fix.safe, ((line.sign, line.text) for line in changes(one)))


def _place(one: Diagnostic) -> str:
    return f"{one.display}:{one.start}"
