"""HTML page, section "Operations": their behaviour in the target torch, and what another release would change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.release_history import STATUSES, release_ranges
from torchrepro_lint.interfaces.report.html_elements import counted, html_code, html_location, html_text

if TYPE_CHECKING:
    from torchrepro_lint.interfaces.overview.records import OperationUse, Overview, ReleaseShift

_MOST_PLACES = 4
_NOTHING = ("·", "not known to vary")


def operations(overview: Overview) -> str:
    """The tables of operation uses and of release shifts."""
    if not overview.uses:
        return '<p class="empty">No call was found that any release of torch treats as nondeterministic.</p>\n'
    return f"{_uses(overview)}{_shifts(overview)}"


def status_label(status: str) -> tuple[str, str]:
    """The mark and the label of a status; for none, that nothing is known."""
    return (STATUSES[status].mark, STATUSES[status].label) if status else _NOTHING


def release_spans(use: OperationUse) -> Iterator[tuple[str, str]]:
    """The behaviour of calls by release: ranges of releases, each with its status."""
    for status, run in groupby(use.releases, key=lambda each: each[1]):
        yield release_ranges(version for version, _ in run), status


def shift_text(shift: ReleaseShift) -> str:
    """``2 calls would raise instead of obeying the flag``."""
    parts = (
        f"{counted(number, 'call')} would {_VERBS[after][0]} instead of {_VERBS[before][1]}"
        for before, after, number in shift.changes
    )
    return "; ".join(parts)


_VERBS = {
    "raises": ("raise", "raising"),
    "silent": ("vary silently", "varying silently"),
    "warns": ("only warn", "only warning"),
    "ties": ("leave the order of ties open", "leaving the order of ties open"),
    "deterministic": ("obey the flag", "obeying the flag"),
    "fills": ("be filled with the flag", "being filled with the flag"),
    "none": ("be deterministic", "being deterministic"),
    "": ("not be known to vary", "not being known to vary"),
}


def _uses(overview: Overview) -> str:
    rows = "".join(map(_use, overview.uses))
    return f"""<table class="uses" role="table">
<caption>Calls that some release of torch cannot repeat, or only on request</caption>
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">Operation</th><th scope="col" role="columnheader">In the target torch</th><th scope="col" role="columnheader">Calls</th><th scope="col" role="columnheader">From release to release</th></tr></thead>
<tbody role="rowgroup">
{rows}</tbody>
</table>
"""


def _use(use: OperationUse) -> str:
    shown = ", ".join(map(html_location, use.places[:_MOST_PLACES]))
    more = f" and {len(use.places) - _MOST_PLACES} more" if len(use.places) > _MOST_PLACES else ""
    releases = "".join(_span(use, releases, status) for releases, status in release_spans(use))
    count = f"<b>{len(use.places)}</b>"
    return (
        f'<tr role="row"><th scope="row" role="rowheader">{html_code(use.operation)}</th><td role="cell">{_status(use.status)} '
        f'<span class="on">in&nbsp;torch&nbsp;{html_text(use.torch)}</span></td><td role="cell">{count} <span class="at">{shown}{more}</span></td>'
        f'<td role="cell"><ul class="spans">{releases}</ul></td></tr>\n'
    )


def _span(use: OperationUse, releases: str, status: str) -> str:
    here = use.status == status and use.torch in {version for version, each in use.releases if each == status}
    return f"<li{' class=here' if here else ''}>{_status(status)} {releases}</li>"


def _status(status: str) -> str:
    sign, label = status_label(status)
    return f'<span class="s {status or "nothing"}"><span aria-hidden="true">{sign}</span> {label}</span>'


def _shifts(overview: Overview) -> str:
    rows = "".join(
        f'<tr role="row"><th scope="row" role="rowheader">torch {html_text(each.releases)}</th><td role="cell">{html_text(shift_text(each))}</td></tr>\n'
        for each in overview.shifts
    )
    if not rows:
        return '<p class="about">In no other release of torch would these calls behave otherwise.</p>\n'
    targets = ", ".join(dict.fromkeys(each.torch for each in overview.shifts))
    return f"""<table class="shifts" role="table">
<caption>What another release would change, beside torch {html_text(targets)}</caption>
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">With</th><th scope="col" role="columnheader">These calls would behave otherwise</th></tr></thead>
<tbody role="rowgroup">
{rows}</tbody>
</table>
"""
