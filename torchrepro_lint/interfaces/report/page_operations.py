"""The operations of a project by what they do in the target torch, and what another release would change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.release_history import STATUSES, ranges
from torchrepro_lint.interfaces.report.page_words import code, counted, place, words

if TYPE_CHECKING:
    from torchrepro_lint.interfaces.overview.records import Overview, Shift, Use

_MOST_PLACES = 4
_NOTHING = ("·", "not known to vary")


def operations(overview: Overview) -> str:
    """Both tables."""
    if not overview.uses:
        return '<p class="empty">No call was found that any release of torch treats as nondeterministic.</p>\n'
    return f"{_uses(overview)}{_shifts(overview)}"


def told(status: str) -> tuple[str, str]:
    """The mark and the label of a status; of none, that nothing is known."""
    return (STATUSES[status].mark, STATUSES[status].label) if status else _NOTHING


def spans(use: Use) -> Iterator[tuple[str, str]]:
    """What calls do from release to release: ranges of releases, each with the status."""
    for status, run in groupby(use.releases, key=lambda each: each[1]):
        yield ranges(version for version, _ in run), status


def shift_words(shift: Shift) -> str:
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


def _use(use: Use) -> str:
    shown = ", ".join(map(place, use.places[:_MOST_PLACES]))
    more = f" and {len(use.places) - _MOST_PLACES} more" if len(use.places) > _MOST_PLACES else ""
    releases = "".join(_span(use, releases, status) for releases, status in spans(use))
    count = f"<b>{len(use.places)}</b>"
    return (
        f'<tr role="row"><th scope="row" role="rowheader">{code(use.operation)}</th><td role="cell">{_status(use.status)} '
        f'<span class="on">in&nbsp;torch&nbsp;{words(use.torch)}</span></td><td role="cell">{count} <span class="at">{shown}{more}</span></td>'
        f'<td role="cell"><ul class="spans">{releases}</ul></td></tr>\n'
    )


def _span(use: Use, releases: str, status: str) -> str:
    here = use.status == status and use.torch in {version for version, each in use.releases if each == status}
    return f"<li{' class=here' if here else ''}>{_status(status)} {releases}</li>"


def _status(status: str) -> str:
    sign, label = told(status)
    return f'<span class="s {status or "nothing"}"><span aria-hidden="true">{sign}</span> {label}</span>'


def _shifts(overview: Overview) -> str:
    rows = "".join(
        f'<tr role="row"><th scope="row" role="rowheader">torch {words(each.releases)}</th><td role="cell">{words(shift_words(each))}</td></tr>\n'
        for each in overview.shifts
    )
    if not rows:
        return '<p class="about">In no other release of torch would these calls behave otherwise.</p>\n'
    targets = ", ".join(dict.fromkeys(each.torch for each in overview.shifts))
    return f"""<table class="shifts" role="table">
<caption>What another release would change, beside torch {words(targets)}</caption>
<thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader">With</th><th scope="col" role="columnheader">These calls would behave otherwise</th></tr></thead>
<tbody role="rowgroup">
{rows}</tbody>
</table>
"""
