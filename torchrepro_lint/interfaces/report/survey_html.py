"""A survey as one self-contained HTML page: shares and distributions as tables with bars, the worst and the best repositories.

It has no script and needs no network; equal datasets give equal bytes. Each bar repeats a number beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from torchrepro_lint.interfaces.report.html_document import document, resource
from torchrepro_lint.interfaces.report.html_elements import counted, html_code, html_text, state_mark
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
_UNITS = {
    "findings per repository": (1, ""),
    "share of reproducible entry points per repository": (100, " %"),
    "seconds of processor time per repository": (1, " s"),
    "megabytes of memory per repository": (1, " MB"),
}


def render(summary: Summary, title: str) -> str:
    """The page; ``title`` is for its head, and may be empty."""
    heading = html_text(title or "Survey of reproducibility")
    sections = [
        ("verdicts", "Entry points", _verdicts(summary)),
        ("releases", "By release of torch, and by framework", _pair(summary, "torch", "framework")),
        ("repositories", "Worst and best repositories", _tables(summary, "worst", "best")),
        ("rules", "Rules and controls", _tables(summary, "rules", "controls")),
        (
            "distributions",
            "Distributions",
            f'<div class="pair">{"".join(map(_histogram, _distributions(summary)))}</div>',
        ),
        ("operations", "Operations and packages", _pair(summary, "operations", "packages")),
        ("failures", "What failed, and what was not analysed", _tables(summary, "failures", "gaps")),
    ]
    links = "".join(f'<li><a href="#{key}">{html_text(name)}</a></li>' for key, name, _ in sections)
    body = f"""<a class="skip" href="#main">Skip to the content</a>
<header>
<div>
<h1>{heading}</h1>
<p class="verdict">{_verdict(summary)}</p>
<p class="facts">{_facts(summary)}</p>
</div>
</header>
<nav aria-label="Contents"><ul>{links}</ul></nav>
<main id="main" tabindex="-1">
{"".join(_section(*each) for each in sections)}</main>
<footer><p>Made by torchrepro-lint {html_text(", ".join(summary.versions))}, which reads code and never runs it. The same dataset gives the same page.</p></footer>
"""
    return document(heading, resource("page.css") + resource("survey_page.css"), "", body)


def _section(key: str, title: str, content: str) -> str:
    return f'<section id="{key}" aria-labelledby="{key}-head">\n<h2 id="{key}-head">{html_text(title)}</h2>\n{content}</section>\n'


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
    table = summary.tables["verdicts"]
    at, bars = 0.0, []
    for verdict, _, share in table.rows:
        bars.append(f'<rect class="{_STATE_OF[verdict]}" x="{at * 100:.3f}" width="{share * 100:.3f}" height="10"/>')
        at += share
    told = ", ".join(f"{verdict} {share:.1%}" for verdict, _, share in table.rows)
    bar = f'<svg class="stack" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{html_text(told)}">{"".join(bars)}</svg>\n'
    rows = "".join(
        f'<tr role="row"><th scope="row" role="rowheader"><span class="c {_STATE_OF[verdict]}">{state_mark(_STATE_OF[verdict])}{verdict}</span></th>'
        f'<td role="cell" data-title="meaning">{_MEANING[verdict]}</td><td class="n" role="cell" data-title="entry points">{number:,}</td>'
        f'<td class="n" role="cell" data-title="share">{share:.1%}</td></tr>\n'
        for verdict, number, share in table.rows
    )
    return (bar if bars else "") + _framed(
        "Entry points by verdict", ("verdict", "meaning", "entry points", "share"), rows, (2, 3)
    )


def _pair(summary: Summary, *names: str) -> str:
    return f'<div class="pair">{_tables(summary, *names)}</div>\n'


def _tables(summary: Summary, *names: str) -> str:
    return "".join(f"<div>{_table(summary.tables[name])}</div>" for name in names)


def _table(table: Table) -> str:
    """A table with a bar in each cell of a share."""
    if not table.rows:
        return f'<p class="empty">{html_text(table.title)}: nothing.</p>\n'
    numbers = tuple(at for at in range(len(table.columns)) if all(_is_number(row[at]) for row in table.rows))
    rows = "".join(_row(table, row, numbers) for row in table.rows)
    return _framed(
        table.title, table.columns, rows, tuple(at for at in numbers if table.columns[at] not in table.shares)
    )


def _row(table: Table, row: Sequence[Any], numbers: Sequence[int]) -> str:
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
    if isinstance(value, str):
        return html_code(value) if name in _CODE_COLUMNS else html_text(value)
    return html_text(shown(value, share=False))


def _bar(share: float, kind: str) -> str:
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="{kind}" width="{share * 100:.3f}" height="10"/></svg>'
    )


def _framed(caption: str, columns: Sequence[str], rows: str, numbers: Sequence[int]) -> str:
    heads = "".join(
        f'<th scope="col" role="columnheader"{" class=n" if at in numbers else ""}>{html_text(name)}</th>'
        for at, name in enumerate(columns)
    )
    return f"""<table class="survey" role="table">
<caption>{html_text(caption)}</caption>
<thead role="rowgroup"><tr role="row">{heads}</tr></thead>
<tbody role="rowgroup">
{rows}</tbody>
</table>
"""


def _distributions(summary: Summary) -> Iterable[Table]:
    return (summary.tables[name] for name in _UNITS)


def _histogram(table: Table) -> str:
    """The number of repositories in each class of a value."""
    scale, unit = _UNITS[table.title]
    lows = [row[0] * scale for row in table.rows]
    every = sum(row[1] for row in table.rows) or 1
    names = [_class(low, following, unit) for low, following in zip(lows, (*lows[1:], None), strict=True)]
    rows = "".join(
        f'<tr role="row"><th scope="row" role="rowheader">{name}</th><td class="n" role="cell" data-title="repositories">{count:,}</td>'
        f'<td class="share" role="cell" data-title="share">{_bar(count / every, "")}{count / every:.1%}</td></tr>\n'
        for name, (_, count) in zip(names, table.rows, strict=True)
    )
    return f"<div>{_framed(table.title[:1].upper() + table.title[1:], ('class', 'repositories', 'share'), rows, (1,))}</div>"


def _class(low: float, following: float | None, unit: str) -> str:
    """The name of a class of values: ``2 to 5``, ``200 and more``; a class of one value is that value."""
    if following is None:
        return f"{low:g}{unit}" if unit == " %" else f"{low:g}{unit} and more"
    if following - low < 0.1 or (not unit and following - low == 1):
        return f"{low:g}{unit}"
    return f"{'more than 0' if 0 < low < 0.1 else f'{low:g}'} to {following:g}{unit}"
