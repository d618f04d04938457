"""An overview as one self-contained HTML page: no network, and a script only for filtering.

It holds no date and nothing of the machine that made it: equal overviews give equal bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.interfaces.overview.comparison import causes, severities, verdict
from torchrepro_lint.interfaces.report.html_document import document, resource
from torchrepro_lint.interfaces.report.html_elements import counted, html_text
from torchrepro_lint.interfaces.report.page_changes import changes
from torchrepro_lint.interfaces.report.page_entries import entries
from torchrepro_lint.interfaces.report.page_findings import findings
from torchrepro_lint.interfaces.report.page_gaps import gaps
from torchrepro_lint.interfaces.report.page_matrix import matrix
from torchrepro_lint.interfaces.report.page_operations import operations
from torchrepro_lint.interfaces.report.page_timeline import legend

if TYPE_CHECKING:
    from torchrepro_lint.interfaces.overview.records import Overview


def render(overview: Overview) -> str:
    """The page."""
    title = f"Reproducibility of {html_text(overview.title)}" if overview.title else "Reproducibility report"
    style, script = resource("page.css"), resource("page.js")
    body = f"""<a class="skip" href="#main">Skip to the content</a>
<header>
<div>
<h1>{title}</h1>
<p class="verdict">{html_text(verdict(overview))}</p>
<p class="facts">{_facts(overview)}</p>
</div>
{_first(overview)}
</header>
{_contents(overview)}
<main id="main">
{_section("matrix", "Entry points and controls", matrix(overview))}{changes(overview)}{_section("timelines", "Entry points one by one", legend() + entries(overview)) if overview.entries else ""}{_section("findings", "Findings", findings(overview))}{_section("operations", "Operations by release of torch", operations(overview))}{_section("gaps", "What was not analysed, and why", gaps(overview))}</main>
<footer><p>Made by torchrepro-lint {html_text(overview.version)}, which reads code and never runs it. The same files give the same page.</p></footer>
"""
    return document(title, style, script, body)


def _facts(overview: Overview) -> str:
    """The line of facts: target torch, and the numbers of files, findings and fixes."""
    parts = [
        f"torch {html_text(aim.torch)} ({html_text(aim.decided_by)}){f' in {html_text(aim.root)}' if aim.root else ''}"
        for aim in overview.aims
    ]
    parts.append(counted(overview.files, "file"))
    if overview.findings:
        counts = ", ".join(counted(number, name) for name, number in severities(overview))
        fixes = sum(item.fix is not None for item in overview.findings)
        parts.append(f"{counted(len(overview.findings), 'finding')} ({counts})")
        parts.append(f"{counted(fixes, 'fix', 'fixes')} available")
    return " · ".join(parts)


def _first(overview: Overview) -> str:
    """The list "Fix first": the most frequent causes."""
    several = sum(entry.matters for entry in overview.entries) > 1
    rows = "".join(
        f'<li><a href="#{each.entries[0].id}-{each.control}"><b>{html_text(each.title)}</b> {html_text(each.says)}</a>'
        + (f' <span class="on">in {counted(len(each.entries), "entry point")}</span></li>' if several else "</li>")
        for each in causes(overview)
    )
    return (
        f'<section class="first" aria-labelledby="first"><h2 id="first">Fix first</h2><ol>{rows}</ol></section>'
        if rows
        else ""
    )


def _section(name: str, title: str, content: str) -> str:
    return (
        f'<section id="{name}" aria-labelledby="{name}-head">\n<h2 id="{name}-head">{title}</h2>\n{content}</section>\n'
    )


def _contents(overview: Overview) -> str:
    links = [("matrix", "Overview"), ("findings", f"Findings ({len(overview.findings)})"), ("operations", "Operations")]
    links.append(("gaps", "Not analysed"))
    if overview.entries:
        links.insert(1, ("timelines", "Timelines"))
    if overview.comparison:
        links.insert(1, ("changes", "What changed"))
    items = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in links)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'
