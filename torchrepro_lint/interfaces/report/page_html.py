"""An overview as one self-contained HTML page: no network, and a script only for filtering.

It holds no date and nothing of the machine that made it: equal overviews give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.interfaces.overview.records import Overview
from torchrepro_lint.interfaces.report import page_content as content
from torchrepro_lint.interfaces.report.html_document import Section, counted, html_text, resource, sections_page
from torchrepro_lint.interfaces.report.html_elements import HTML
from torchrepro_lint.interfaces.report.page_entries import entries
from torchrepro_lint.interfaces.report.page_findings import findings
from torchrepro_lint.interfaces.report.page_matrix import matrix
from torchrepro_lint.interfaces.report.page_timeline import legend


def render(overview: Overview) -> str:
    """The page."""
    style, script = resource("page.css"), resource("page.js")
    head = f"""<p class="verdict">{html_text(content.verdict(overview))}</p>
<p class="facts">{html_text(" · ".join(content.facts(overview)))}</p>
</div>
{_first(overview)}"""
    made = f"Made by torchrepro-lint {html_text(overview.version)}, which reads code and never runs it. The same files give the same page."
    return sections_page(html_text(content.title(overview)), style, script, head, list(_sections(overview)), made)


def _sections(overview: Overview) -> Iterator[Section]:
    yield Section("matrix", "Overview", content.MATRIX, matrix(overview))
    if overview.comparison:
        yield Section("changes", "What changed", content.CHANGES, content.changes(overview, overview.comparison, HTML))
    if overview.entries:
        yield Section("timelines", "Timelines", "Entry points one by one", legend() + entries(overview))
    yield Section("findings", f"Findings ({len(overview.findings)})", content.FINDINGS, findings(overview))
    yield Section("operations", "Operations", content.OPERATIONS, content.operations(overview, HTML))
    yield Section("gaps", "Not analysed", content.GAPS, content.gaps(overview, HTML))


def _first(overview: Overview) -> str:
    """The list "Fix first": the most frequent causes."""
    several = sum(entry.matters for entry in overview.entries) > 1
    rows = "".join(
        f'<li><a href="#{each.entries[0].id}-{each.control}"><b>{html_text(each.title)}</b> {html_text(each.says)}</a>'
        + (f' <span class="on">in {counted(len(each.entries), "entry point")}</span></li>' if several else "</li>")
        for each in content.causes(overview)
    )
    return (
        f'<section class="first" aria-labelledby="first"><h2 id="first">Fix first</h2><ol>{rows}</ol></section>'
        if rows
        else ""
    )
