"""HTML text: escaping of untrusted strings, without characters that hide or reorder others, and small common elements."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from torchrepro_lint.interfaces.overview.controls import STATES
from torchrepro_lint.source.errors import escape_sequence

if TYPE_CHECKING:
    from torchrepro_lint.interfaces.overview.records import EntryRecord, Location


def visible(text: str) -> str:
    """Text with every character visible: those that do not print, or change text direction, as escapes."""
    return "".join(one if one.isprintable() else escape_sequence(one) for one in text)


def html_text(text: str) -> str:
    """Text escaped for HTML content or a quoted attribute."""
    return escape(visible(text))


def html_code(text: str) -> str:
    """A name or a path as code, with line-break opportunities."""
    return f"<code>{_breakable(text)}</code>"


def html_location(at: Location) -> str:
    """A location as code."""
    return html_code(str(at))


def state_mark(state: str) -> str:
    """The symbol of a state, with its word for screen readers."""
    found = STATES[state]
    return f'<span class="m" aria-hidden="true">{found.mark}</span><span class="vh">{found.word}: </span>'


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 entry point``, ``2 entry points``."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def entry_link(entry: EntryRecord) -> str:
    """The name of an entry point, linked to its section."""
    return f'<a href="#{entry.id}">{entry_name(entry)}</a>'


def entry_name(entry: EntryRecord) -> str:
    """The name of an entry point with its folders apart, since names differ at their ends."""
    folders, slash, _ = entry.path.rpartition("/")
    before = f'<span class="dir"><bdi>{_breakable(folders + slash)}</bdi></span>' if slash else ""
    return f"<code>{before}{_breakable(entry.name[len(folders + slash) :])}</code>"


def _breakable(text: str) -> str:
    return html_text(text).replace("/", "/<wbr>").replace("_", "_<wbr>")
