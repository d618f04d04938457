"""A survey as one self-contained HTML page: shares and distributions as tables with bars, the worst and the best repositories.

It has no script and needs no network; equal datasets give equal bytes. Each bar repeats a number beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from torchrepro_lint.interfaces.report.html_document import (
    Section,
    counted,
    heading,
    html_code,
    html_text,
    resource,
    sections_page,
)
from torchrepro_lint.interfaces.report.html_document import table as html_table
from torchrepro_lint.interfaces.report.html_elements import state_mark
from torchrepro_lint.interfaces.report.survey_queries import Summary, Table
from torchrepro_lint.interfaces.report.survey_tables import shown

# The state of a control that each verdict on an entry point stands for.
_STATE_OF = {"reproducible": "good", "unknown": "unknown", "depends": "risk", "to fix": "bad"}
_MEANING = {
    "reproducible": "everything that decides the run is settled, and all of its code was followed",
    "unknown": "the source does not say, or the run leads into code that was not followed",
    "depends": "the run repeats under a condition",
    "to fix": "two runs differ, or one of them crashes",
}
_CODE_COLUMNS = ("repository", "example", "operation", "package", "code")
_SHARES = frozenset({"share"})
_UNITS = {
    "findings per repository": (1, ""),
    "share of reproducible entry points per repository": (100, " %"),
    "seconds of processor time per repository": (1, " s"),
    "megabytes of memory per repository": (1, " MB"),
}


def render(summary: Summary, title: str) -> str:
    """The page; ``title`` is for its head, and may be empty."""
    distributions = "".join(f"<div>{_table(_histogram(summary.tables[name]))}</div>" for name in _UNITS)
    sections = (
        ("verdicts", "Entry points", _verdicts(summary)),
        ("releases", "By release of torch, and by framework", _pair(summary, "torch", "framework")),
        ("repositories", "Worst and best repositories", _tables(summary, "worst", "best")),
        ("rules", "Rules and controls", _tables(summary, "rules", "controls")),
        ("distributions", "Distributions", f'<div class="pair">{distributions}</div>'),
        ("operations", "Operations and packages", _pair(summary, "operations", "packages")),
        ("failures", "What failed, and what was not analysed", _tables(summary, "failures", "gaps")),
    )
    return sections_page(
        html_text(title or "Survey of reproducibility"),
        resource("page.css") + resource("survey_page.css"),
        "",
        f'<p class="verdict">{_verdict(summary)}</p>\n<p class="facts">{_facts(summary)}</p>\n</div>',
        [Section(anchor, name, name, content) for anchor, name, content in sections],
        f"Made by torchrepro-lint {html_text(', '.join(summary.versions))}, which reads code and never runs it. The same dataset gives the same page.",
    )


def _verdict(summary: Summary) -> str:
    figures = summary.figures
    entries, good = figures["entry_points"], figures["reproducible"]
    if not entries:
        return "No entry point was found whose run uses torch, and saves or measures anything."
    which = f"{counted(entries, 'entry point')} whose run uses torch, and saves or measures something,"
    return f"{good:,} of {which} {'is' if good == 1 else 'are'} reproducible: {good / entries:.1%}."


def _facts(summary: Summary) -> str:
    figures = summary.figures
    failed = f"{figures['failed']:,} failed" if figures["failed"] else ""
    partly = f"{figures['partial']:,} in part" if figures["partial"] else ""
    parts = (
        counted(figures["repositories"], "repository", "repositories"), failed, partly,
        counted(figures["files"], "file"), counted(figures["findings"], "finding"),
    )  # fmt: skip
    return " · ".join(filter(None, parts))


def _verdicts(summary: Summary) -> str:
    """The shares of the verdicts as one bar, and what each means."""
    rows = summary.tables["verdicts"].rows
    at, bars = 0.0, []
    for verdict, _, share in rows:
        bars.append(f'<rect class="{_STATE_OF[verdict]}" x="{at * 100:.3f}" width="{share * 100:.3f}" height="10"/>')
        at += share
    told = ", ".join(f"{verdict} {share:.1%}" for verdict, _, share in rows)
    bar = f'<svg class="stack" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{html_text(told)}">{"".join(bars)}</svg>\n'
    described = tuple((verdict, _MEANING[verdict], number, share) for verdict, number, share in rows)
    columns = ("verdict", "meaning", "entry points", "share")
    return (bar if bars else "") + _table(Table("Entry points by verdict", columns, described, _SHARES))


def _pair(summary: Summary, *names: str) -> str:
    return f'<div class="pair">{_tables(summary, *names)}</div>\n'


def _tables(summary: Summary, *names: str) -> str:
    return "".join(f"<div>{_table(summary.tables[name])}</div>" for name in names)


def _table(table: Table) -> str:
    """A table with a bar in each cell of a share."""
    if not table.rows:
        return f'<p class="empty">{html_text(table.title)}: nothing.</p>\n'
    numbers = {at for at in range(len(table.columns)) if all(_is_number(row[at]) for row in table.rows)}
    rows = "".join(_row(table, row, numbers) for row in table.rows)
    right = (" class=n" if at in numbers and name not in table.shares else "" for at, name in enumerate(table.columns))
    heads = "".join(heading(html_text(name), kind) for name, kind in zip(table.columns, right, strict=True))
    return html_table("survey", html_text(table.title), heads, rows)


def _row(table: Table, row: Sequence[Any], numbers: Collection[int]) -> str:
    kind = "good" if "reproducible" in table.columns else ""
    head, *cells = (
        f"{_bar(value, kind)}{value:.1%}" if name in table.shares else _cell(name, value)
        for name, value in zip(table.columns, row, strict=True)
    )
    kinds = ["share" if name in table.shares else "n" if at in numbers else "" for at, name in enumerate(table.columns)]
    told = "".join(
        f'<td{f" class={kind}" if kind else ""} role="cell" data-title="{html_text(name)}">{cell}</td>'
        for name, kind, cell in zip(table.columns[1:], kinds[1:], cells, strict=True)
    )
    return f'<tr role="row"><th scope="row" role="rowheader">{head}</th>{told}</tr>\n'


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(name: str, value: Any) -> str:
    if name == "verdict":
        return f'<span class="c {_STATE_OF[value]}">{state_mark(_STATE_OF[value])}{value}</span>'
    if isinstance(value, str):
        return html_code(value) if name in _CODE_COLUMNS else html_text(value)
    return html_text(shown(value, share=False))


def _bar(share: float, kind: str) -> str:
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="{kind}" width="{share * 100:.3f}" height="10"/></svg>'
    )


def _histogram(table: Table) -> Table:
    """The number of repositories in each class of a value, and their share."""
    scale, unit = _UNITS[table.title]
    lows = [row[0] * scale for row in table.rows]
    every = sum(row[1] for row in table.rows) or 1
    names = [_class(low, following, unit) for low, following in zip(lows, (*lows[1:], None), strict=True)]
    rows = tuple((name, count, count / every) for name, (_, count) in zip(names, table.rows, strict=True))
    title = table.title[:1].upper() + table.title[1:]
    return Table(title, ("class", "repositories", "share"), rows, _SHARES)


def _class(low: float, following: float | None, unit: str) -> str:
    """The name of a class of values: ``2 to 5``, ``200 and more``; a class of one value is that value."""
    if following is None:
        return f"{low:g}{unit}" if unit == " %" else f"{low:g}{unit} and more"
    if following - low < 0.1 or (not unit and following - low == 1):
        return f"{low:g}{unit}"
    return f"{'more than 0' if 0 < low < 0.1 else f'{low:g}'} to {following:g}{unit}"
