"""The details of the HTML page of ``ops``: the release history of each operation in words, which the table links to."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from torchrepro_lint.catalogue.release_history import (
    STATUSES,
    History,
    HistoryCase,
    Period,
    conditions_text,
    devices_and_phase,
    release_ranges,
)
from torchrepro_lint.interfaces.report.ops_table import documented, evidence


def articles(histories: Iterable[History]) -> str:
    """One article for each operation, with a section for each period; the table links to their ids."""
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
    badge = f'<span class="s {case.behaviour}"><span aria-hidden="true">{status.mark}</span> {status.label}</span>'
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
