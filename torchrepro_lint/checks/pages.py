"""Rule pages: the documentation that the ``rule`` command prints and the reports link to."""

from __future__ import annotations

import json
import sys
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import rules_dir
from torchrepro_lint.source.patterns import lazy_pattern

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

_FILE = lazy_pattern(r"(TRL\d{3})-([a-z0-9-]+)\.md")
_TITLE = lazy_pattern(r"# (TRL\d{3}) ([a-z0-9-]+)\n")
# The columns that a summary needs beside the name, and its indentation below it.
_LEAST = 40
_BELOW = 8
_SITE = "https://github.com/torchrepro/torchrepro-lint/blob/main/rules"


class Page(NamedTuple):
    """A page: ``summary`` is its first paragraph on one line, ``text`` the whole Markdown."""

    code: str
    name: str
    summary: str
    text: str


def pages() -> tuple[Page, ...]:
    """All pages in the order of their codes."""
    files = (entry for entry in rules_dir().iterdir() if _FILE.fullmatch(entry.name))
    return tuple(page(entry) for entry in sorted(files, key=lambda entry: entry.name))


def find(wanted: str) -> Page | None:
    """The page of a code or name in any case; ``None`` where there is none."""
    return next((one for one in pages() if wanted.upper() == one.code or wanted.lower() == one.name), None)


def page(file: Traversable) -> Page:
    """Parse a page; raises ``ValueError`` where it does not begin with ``# CODE name`` as its file name does."""
    text = file.read_text(encoding="utf-8")
    title, named = _TITLE.match(text), _FILE.fullmatch(file.name)
    if title is None or named is None or title.groups() != named.groups():
        raise ValueError(f"{file.name}: the first line must be '# CODE name' with the code and name of the file")
    summary = text[title.end() :].strip().partition("\n\n")[0]
    return Page(title[1], title[2], " ".join(summary.split()), text)


def url(code: str, name: str) -> str:
    """Where a rule's page can be read."""
    return f"{_SITE}/{code}-{name}.md"


def render(wanted: str | None, output_format: str, width: int = 0) -> str:
    """A rule's Markdown, or a table of all rules or of those whose code begins with a prefix.

    As JSON it is one object or a list. With a ``width`` the summaries of the table are wrapped. Raises ``UsageError``.
    """
    found = find(wanted) if wanted is not None else None
    if found is not None:
        return _json(_record(found)) if output_format == "json" else found.text
    every = tuple(one for one in pages() if one.code.startswith((wanted or "").upper()))
    if not every:
        from torchrepro_lint.config.settings import did_you_mean  # not needed for a rule that there is

        names = [name for one in pages() for name in (one.code, one.name)]
        raise UsageError(f"no rule {wanted!r}{did_you_mean(wanted or '', names)}")
    return _json([_record(one) for one in every]) if output_format == "json" else _table(every, width)


def _table(every: tuple[Page, ...], width: int) -> str:
    longest = max((len(one.name) for one in every), default=0)
    return "".join(_row(f"{one.code}  {one.name:<{longest}}  ", one.summary, width) for one in every)


def _row(head: str, summary: str, width: int) -> str:
    """A row of the table; in a narrow terminal the summary stands below the name."""
    if not width:
        return f"{head}{summary}\n"
    beside = width - len(head) >= _LEAST
    indent = " " * (len(head) if beside else _BELOW)
    lines = wrap(summary, max(width, _LEAST), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    text = "\n".join(lines)
    return f"{head}{text.lstrip()}\n" if beside else f"{head.rstrip()}\n{text}\n"


def _record(one: Page) -> dict[str, object]:
    from torchrepro_lint.checks import RULES

    rule = next((each for each in RULES if each.code == one.code), None)
    kind = {"severity": rule.severity, "default": rule.default} if rule else {}
    return {**one._asdict(), **kind, "url": url(one.code, one.name)}


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"
