"""Whether a word of the scanned code has come out as more than a word: as a tag, an attribute, a comment or a link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

# The word.
MARK = "zqv"
_EMPTY = frozenset({"br", "circle", "input", "meta", "path", "rect", "wbr"})
# Attributes that hold words of the scanned code, to be read or compared and never followed.
_WORDS = frozenset({"aria-label", "data-file", "title", "value"})
_DANGEROUS = frozenset({"style", "src", "srcdoc", "srcset", "action", "formaction", "background", "ping", "xlink:href"})
_FENCED = re.compile(r"^(`{3,})[^`\n]*\n.*?^\1`*$", re.MULTILINE | re.DOTALL)
# A line of tags, in which nothing but tags counts.
_SUMMARY = re.compile(r"^(<details><summary>)[^<>]*(?=</summary>$)", re.MULTILINE)
_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(.*?)(?<!`)\1(?!`)")
_RAW = (
    re.compile(rf"<(?!/?(?:details|summary|a|br|sub)\b)[^>\s]*{MARK}", re.IGNORECASE),
    re.compile(rf"(?<!\\)\]\([^)]*{MARK}"),
    re.compile(rf"(?<![\w\\&])[@]{MARK}"),
    re.compile(r"</?(?:script|img|title|style)\b", re.IGNORECASE),
)
_URI = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=@%/-]*|file:///[A-Za-z0-9._~!$&'()*+,;=@%/-]*")
_LINK = re.compile(r"(?<!\\)\]\(")


class _Page(HTMLParser):
    """All that is wrong with a page, as it is met."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.open: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        if MARK in tag:
            self.wrong.append("a tag of the scanned code")
        if tag not in _EMPTY:
            self.open.append(tag)
        for name, value in attrs:
            if MARK in name or name.startswith("on") or name in _DANGEROUS:
                self.wrong.append(f"<{tag}> has an attribute of the scanned code, or that runs something")
            if MARK in (value or "") and name not in _WORDS:
                self.wrong.append(f"<{tag} {name}> holds words of the scanned code")
            if name == "href" and not (value or "").startswith(("#", "https://github.com/torchrepro/torchrepro-lint/")):
                self.wrong.append("a link that leads elsewhere")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> ends what is not open")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _EMPTY:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style") and MARK in data:
            self.wrong.append(f"<{self.open[-1]}> holds words of the scanned code")

    def handle_comment(self, data: str) -> None:
        self.wrong.append("a comment")

    def handle_pi(self, data: str) -> None:
        self.wrong.append("an instruction")

    def unknown_decl(self, data: str) -> None:
        self.wrong.append("a declaration")


def wrong_html(text: str) -> Iterator[str]:
    """What of a page is not ours."""
    page = _Page()
    page.feed(text)
    page.close()
    yield from dict.fromkeys(page.wrong)
    if page.open or page.scripts != 1:
        yield "tags are left open, or scripts are more than one"
    if not all(one.isprintable() or one == "\n" for one in text):
        yield "letters that do not show"


def wrong_markdown(text: str) -> Iterator[str]:
    """Tags, links and mentions of the scanned code outside code."""
    told = _SPAN.sub("", _SUMMARY.sub(r"\1", _FENCED.sub("", text)))
    for pattern in _RAW:
        if found := pattern.search(told):
            yield f"{found[0][:40]!r} is no text any more"
    if not all(one.isprintable() or one in "\n\t" for one in text):
        yield "letters that do not show"


def wrong_links(log: Any) -> Iterator[str]:
    """URIs that are none, and texts that a reader of SARIF takes for links, anywhere in a log."""
    if isinstance(log, list):
        for each in log:
            yield from wrong_links(each)
    elif isinstance(log, dict):
        for key, value in log.items():
            if key == "uri" and not _URI.fullmatch(value):
                yield f"{value!r} is no reference"
            if key in ("message", "description") and _LINK.search(value["text"]):
                yield f"a {key} that is a link"
            yield from wrong_links(value)
