"""HTML documents with their style and script inline, a content security policy that allows nothing else, and common elements.

Untrusted text is escaped, and has no characters that hide or reorder others.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from torchrepro_lint.source.errors import escape_sequence


class Section(NamedTuple):
    """A section of a page: its anchor, its name in the list of contents, its heading, and its content."""

    anchor: str
    name: str
    heading: str
    content: str


def document(title: str, style: str, script: str, body: str) -> str:
    """The document; ``title`` and ``body`` are HTML. It contains no workflow command for GitHub's log."""
    title, body = (each.replace("##[", "#&#35;[") for each in (title, body))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}<script>{script}</script>
</body>
</html>
"""


def sections_page(title: str, style: str, script: str, head: str, sections: Sequence[Section], made: str) -> str:
    """A document with a list of contents and sections; ``head`` stands beside or below the title, ``made`` at the end."""
    links = "".join(f'<li><a href="#{each.anchor}">{each.name}</a></li>' for each in sections)
    body = f"""<a class="skip" href="#main">Skip to the content</a>
<header>
<div>
<h1>{title}</h1>
{head}
</header>
<nav aria-label="Contents"><ul>{links}</ul></nav>
<main id="main" tabindex="-1">
{"".join(map(_section, sections))}</main>
<footer><p>{made}</p></footer>
"""
    return document(title, style, script, body)


def _section(each: Section) -> str:
    head = f"{each.anchor}-head"
    return f'<section id="{each.anchor}" aria-labelledby="{head}">\n<h2 id="{head}">{each.heading}</h2>\n{each.content}</section>\n'


def table(kind: str, caption: str, heads: str, rows: str, hidden: bool = False) -> str:
    """A table of a kind; its roles are named because narrow screens lay it out in another way. ``heads`` are ``heading`` cells;
    a ``hidden`` caption is for screen readers only.
    """
    return f"""<table class="{kind}" role="table">
<caption{' class="vh"' if hidden else ""}>{caption}</caption>
<thead role="rowgroup"><tr role="row">{heads}</tr></thead>
<tbody role="rowgroup">
{rows}</tbody>
</table>
"""


def heading(name: str, more: str = "") -> str:
    """The head of a column."""
    return f'<th scope="col" role="columnheader"{more}>{name}</th>'


def row(head: str, *cells: str) -> str:
    """A row of a table: its head, and cells without attributes of their own."""
    written = "".join(f'<td role="cell">{cell}</td>' for cell in cells)
    return f'<tr role="row"><th scope="row" role="rowheader">{head}</th>{written}</tr>\n'


def folded(kind: str, summary: str, content: str, opened: bool = False) -> str:
    """Content below a summary that opens it."""
    return f'<details class="{kind}"{" open" if opened else ""}><summary>{summary}</summary>\n{content}</details>\n'


def options(every: str, choices: Iterable[tuple[str, str]], chosen: str | None = None) -> str:
    """The options of a filter: values and their texts, behind one for all of them."""
    return f'<option value="">{every}</option>' + "".join(
        f'<option value="{html_text(value)}"{" selected" if value and value == chosen else ""}>{html_text(text)}</option>'
        for value, text in choices
    )


def status_badge(status: str, mark: str, label: str) -> str:
    """The mark and the label of a behaviour of the catalogue."""
    return f'<span class="s {status or "nothing"}"><span aria-hidden="true">{mark}</span> {label}</span>'


def visible(text: str) -> str:
    """Text with every character visible: those that do not print, or change text direction, as escapes."""
    return "".join(one if one.isprintable() else escape_sequence(one) for one in text)


def html_text(text: str) -> str:
    """Text escaped for HTML content or a quoted attribute."""
    return escape(visible(text))


def breakable(text: str) -> str:
    """A name or a path with line-break opportunities."""
    return html_text(text).replace("/", "/<wbr>").replace("_", "_<wbr>")


def html_code(text: str) -> str:
    """A name or a path as code, with line-break opportunities."""
    return f"<code>{breakable(text)}</code>"


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 entry point``, ``2 entry points``."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def and_more(number: int, most: int) -> str:
    """`` and 3 more`` behind the first of more things than are shown; else empty."""
    return f" and {number - most} more" if number > most else ""


def resource(name: str) -> str:
    """The text of a data file of this package."""
    return files(__package__ or "").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
