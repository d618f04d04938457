"""The catalogue as one self-contained HTML page: operations by release, a "can I use" of determinism in PyTorch.

The page reads without its script, which adds the filter and opens details in place. It holds no date and nothing of the
machine that made it: equal catalogues give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from torchrepro_lint.catalogue.release_history import (
    STATUSES,
    History,
    HistoryCase,
    Period,
    conditions_text,
    devices_and_phase,
    devices_text,
    release_ranges,
)
from torchrepro_lint.interfaces.report.html_document import document, options, resource, status_badge
from torchrepro_lint.interfaces.report.ops_table import documented, evidence
from torchrepro_lint.source.files import documented_versions

_TITLE = "PyTorch determinism, operation by release"
_DEVICES = ("cuda", "cpu", "mps")


def render(histories: Sequence[History], version: str | None) -> str:
    """The page; ``version`` is the release that is marked and selected first, if any."""
    style, script = resource("ops_page.css") + _spans(), resource("ops_page.js")
    body = f"""<a class="skip" href="#table">Skip to the table</a>
<header>
<h1>{_TITLE}</h1>
<p>What operations do once <code>torch.use_deterministic_algorithms(True)</code> (the flag) is on, in torch
{documented_versions()[0]} to {documented_versions()[-1]}. Read off torch's documentation, its binaries and its source, and
corrected where they disagree. Open a cell for the condition, the error's name and the evidence.</p>
{_legend()}
</header>
<main>
{_filter(version, len(histories))}
{_table(histories, version)}
<section aria-labelledby="details">
<h2 id="details">Every operation in detail</h2>
{_articles(histories)}</section>
</main>
<dialog id="dialog" aria-labelledby="dialog-title">
<form method="dialog"><button class="close">Close</button></form>
<div id="dialog-body"></div>
</dialog>
"""
    return document(_TITLE, style, script, body)


def _spans() -> str:
    """CSS for the width of a period where rows are laid out as grids; the policy forbids inline styles."""
    count = len(documented_versions())
    rules = "".join(f".n{number}{{grid-column:span {number}}}" for number in range(1, count + 1))
    return f"@media (max-width:64rem){{tr{{grid-template-columns:repeat({count},minmax(0,1fr))}}{rules}}}\n"


def _legend() -> str:
    items = (
        f"<li>{status_badge(name, status.mark, status.label)} {status.meaning}</li>"
        for name, status in STATUSES.items()
    )
    return (
        '<details class="legend" open><summary>Legend</summary>\n<ul>\n'
        + "\n".join(items)
        + f"\n<li>{status_badge('', '·', 'not listed')} The catalogue says nothing of it in this release.</li>\n</ul></details>"
    )


def _filter(version: str | None, count: int) -> str:
    releases = options("any release", ((each, f"torch {each}") for each in reversed(documented_versions())), version)
    statuses = options("any status", ((name, status.label) for name, status in STATUSES.items()))
    devices = options("any device", ((each, each.upper()) for each in _DEVICES))
    return f"""<form id="filter" role="search" aria-label="Operations" hidden>
<label>Name or error <input id="text" type="search" autocomplete="off" spellcheck="false" placeholder="interpolate, index_add_cuda_"></label>
<label>Release <select id="release">{releases}</select></label>
<label>Status <select id="status">{statuses}</select></label>
<label>Device <select id="device">{devices}</select></label>
<button type="reset">Reset</button>
<p id="count" role="status" aria-live="polite">{count} of {count} operations</p>
</form>"""


def _table(histories: Sequence[History], version: str | None) -> str:
    heads = "".join(
        f'<th scope="col" role="columnheader" data-release="{each}"{" class=here" if each == version else ""}>{each}</th>'
        for each in documented_versions()
    )
    rows = "\n".join(_row(history, version) for history in histories)
    return f"""<table id="table" role="table" aria-describedby="hint">
<caption>Status of each operation in each release of torch</caption>
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader" class="name">Operation</th>{heads}</tr></thead>
<tbody role="rowgroup">
{rows}
</tbody>
</table>
<p id="hint">A cell spans the releases in which nothing changes. In the table the arrow keys move, Enter opens.</p>
<p id="none" hidden>No operation fits. Reset the filter to see all.</p>"""


def _row(history: History, version: str | None) -> str:
    names = {one.name for one in history.spellings}
    errors = {name for period in history.periods for case in period.cases for name, _ in case.errors}
    text = escape(" ".join(sorted(names | errors)).lower())
    prefix, _, last = history.operation.rpartition(".")
    head = (
        f'<a href="#{escape(history.operation)}"><span class="prefix">{escape(prefix)}.</span><wbr>{escape(last)}</a>'
    )
    cells = "".join(_cell(history.operation, period, version) for period in history.periods)
    return f'<tr role="row" data-text="{text}"><th scope="row" role="rowheader" class="name">{head}</th>{cells}</tr>'


def _cell(operation: str, period: Period, version: str | None) -> str:
    count = len(period.releases)
    here = " here" if version in period.releases else ""
    known = documented_versions()
    place = f'data-since="{known.index(period.releases[0])}" data-until="{known.index(period.releases[-1])}"'
    start = f'<td role="cell" class="n{count}{here}" colspan="{count}" {place}>'
    span = f'<span class="vh">torch {release_ranges(period.releases)}: </span>'
    if not period.shown:
        return f'{start}{span}<span class="s nothing"><span aria-hidden="true">·</span><span class="vh">not listed</span></span></td>'
    parts = "<span class=vh>, </span>".join(_segment(behaviour, devices) for behaviour, devices in period.shown)
    return f'{start}<a class="cell" href="#{escape(operation)}-{period.releases[0]}">{span}{parts}</a></td>'


def _segment(behaviour: str, devices: tuple[str, ...]) -> str:
    status = STATUSES[behaviour]
    # Nearly every row is about CUDA: only other devices are named.
    device = "" if devices == ("cuda",) else f"<span class=label>on {devices_text(devices).rstrip(',')}</span>"
    label = f'<span class="label">{status.label}</span>{device}'
    return f'<span class="s {behaviour}" data-d="{" ".join(devices)}"><span aria-hidden="true">{status.mark}</span> {label}</span>'


def _articles(histories: Iterable[History]) -> str:
    """The details: an article for each operation, with a section for each period; the table links to their ids."""
    return "".join(map(_article, histories))


def _article(history: History) -> str:
    also = sorted({one.name for one in history.spellings} - {history.operation})
    names = f"<p>Also {', '.join(map(_code, also))}.</p>\n" if also else ""
    periods = "".join(_section(history.operation, period) for period in history.periods if period.cases)
    name = escape(history.operation)
    return f'<article id="{name}" tabindex="-1">\n<h3>{_breakable(name)}</h3>\n{names}{periods}</article>\n'


def _section(operation: str, period: Period) -> str:
    name = escape(operation)
    cases = "".join(map(_case, period.cases))
    return (
        f'<section id="{name}-{period.releases[0]}" tabindex="-1">\n'
        f'<h4><span class="of">{_breakable(name)} in </span>torch {release_ranges(period.releases)}</h4>\n<ul class="cases">\n{cases}</ul>\n</section>\n'
    )


def _case(case: HistoryCase) -> str:
    status = STATUSES[case.behaviour]
    badge = status_badge(case.behaviour, status.mark, status.label)
    said = f": <strong>{escape(conditions_text(case.when))}</strong>" if case.when else ""
    terms = "".join(f"<dt>{label}</dt><dd>{text}</dd>" for label, text in _terms(case))
    return f'<li data-d="{" ".join(case.devices)}">{badge} {devices_and_phase(case.devices, case.phase)}{said}\n<dl>{terms}</dl></li>\n'


def _terms(case: HistoryCase) -> Iterable[tuple[str, str]]:
    yield "Releases", release_ranges(case.releases)
    if case.errors:
        yield "Error", "<br>".join(_error(name, releases, case) for name, releases in case.errors)
    yield "Documented", escape(documented(case))
    yield "Evidence", "<br>".join(map(escape, evidence(case)))
    if case.instead:
        yield "Instead", "<br>".join(map(escape, case.instead))


def _error(name: str, releases: tuple[str, ...], case: HistoryCase) -> str:
    return _code(name) + ("" if releases == case.releases else f" (torch {release_ranges(releases)})")


def _code(name: str) -> str:
    return f"<code>{escape(name)}</code>"


def _breakable(name: str) -> str:
    """A name with line-break opportunities after its dots."""
    return name.replace(".", ".<wbr>")
