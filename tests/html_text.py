"""An HTML page parsed by Python's own parser: its tags, attributes and visible text."""

from __future__ import annotations

from html.parser import HTMLParser

_HIDDEN = ("style", "script", "title", "desc")
_EMPTY = frozenset({"meta", "input", "wbr", "path", "circle", "rect", "br"})


class Taken(HTMLParser):
    """What a page is made of; ``open`` are the tags that are left open at the end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.values: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self._parts: list[str] = []
        self.feed(page)
        self.close()

    @property
    def text(self) -> str:
        """The text, with single spaces."""
        return " ".join("".join(self._parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add((tag, name))
            self.values.append((tag, name, value or ""))
            if name == "id":
                self.ids.append(value or "")
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in ("li", "p", "td", "th", "div", "h3", "dd", "dt", "span", "b", "pre", "option"):
            self._parts.append(" ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _EMPTY:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in _HIDDEN:
            self._parts.append(data)
