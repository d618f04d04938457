"""HTML elements of an overview: states, locations, links to entry points, and the ``Writer`` of its content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchrepro_lint.interfaces.overview.controls import STATES
from torchrepro_lint.interfaces.overview.records import EntryRecord, Location
from torchrepro_lint.interfaces.report.html_document import (
    breakable,
    folded,
    heading,
    html_code,
    html_text,
    row,
    status_badge,
    table,
)
from torchrepro_lint.interfaces.report.page_content import Writer, status_label

# Longer lists are folded.
_MOST_OPEN = 8


def html_location(at: Location) -> str:
    """A location as code."""
    return html_code(str(at))


def state_mark(state: str) -> str:
    """The symbol of a state, with its word for screen readers."""
    found = STATES[state]
    return f'<span class="m" aria-hidden="true">{found.mark}</span><span class="vh">{found.word}: </span>'


def entry_link(entry: EntryRecord) -> str:
    """The name of an entry point, linked to its section."""
    return f'<a href="#{entry.id}">{entry_name(entry)}</a>'


def entry_name(entry: EntryRecord) -> str:
    """The name of an entry point with its folders apart, since names differ at their ends."""
    folders, slash, _ = entry.path.rpartition("/")
    before = f'<span class="dir"><bdi>{breakable(folders + slash)}</bdi></span>' if slash else ""
    return f"<code>{before}{breakable(entry.name[len(folders + slash) :])}</code>"


def _state(state: str, says: str, target: str) -> str:
    tag, link = ("a", f' href="#{target}"') if target else ("span", "")
    return f'<{tag} class="c {state}"{link}>{state_mark(state)}{html_text(says)}</{tag}>'


def _statuses(found: Iterable[tuple[str, str, bool]]) -> str:
    items = "".join(
        f"<li{' class=here' if here else ''}>{_status(status)} {releases}</li>" for status, releases, here in found
    )
    return f'<ul class="spans">{items}</ul>'


def _status(status: str) -> str:
    return status_badge(status, *status_label(status))


def _paragraph(kind: str, text: str) -> str:
    return f"<p{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{html_text(text)}</p>\n"


def _list(rows: Iterable[str]) -> str:
    return f"<ul>\n{''.join(f'<li>{each}</li>{chr(10)}' for each in rows)}</ul>"


def _group(sign: str, title: str, kind: str, rows: Sequence[str]) -> str:
    return f'<h3 class="ch {kind}"><span aria-hidden="true">{sign}</span> {title}</h3>\n{_list(rows)}\n'


def _folded(title: str, rows: Sequence[str]) -> str:
    count = f" <small>({len(rows)})</small>" if len(rows) > 1 else ""
    return folded("gap", f"<h3>{title}{count}</h3>", _list(rows), len(rows) <= _MOST_OPEN)


def _table(kind: str, caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    written = "".join(row(*cells) for cells in rows)
    return table(kind, html_text(caption), "".join(map(heading, heads)), written)


HTML = Writer(
    text=html_text,
    code=html_code,
    aside=lambda text: f'<span class="on">{html_text(text)}</span>',
    condition=lambda text: f"<em>{html_text(text)}</em>",
    wrong=lambda text: f'<strong class="wrong">{state_mark("bad")}{html_text(text)}</strong>',
    entry=entry_link,
    finding=lambda name, text: f'<a href="#{name}">{html_text(text)}</a>',
    state=_state,
    status=_status,
    statuses=_statuses,
    place=lambda at, way: f"<span class=at>{html_code(at)}{html_text(way)}</span>",
    places=lambda count, named: f'<b>{count}</b> <span class="at">{named}</span>',
    paragraph=_paragraph,
    group=_group,
    folded=_folded,
    table=_table,
)
