"""A rule's page as an editor shows it: what the examples tell our tests is said in words."""

from __future__ import annotations

import re
from functools import cache

from torchrepro_lint.checks.pages import find, url

_FENCE = re.compile(r"^```(?P<language>\w+) (?P<words>.+)$", re.MULTILINE)
_MARKS = re.compile(r"(?<![ \t])[ \t]*# error: \[TRL\d{3}\].*$", re.MULTILINE)
_MARKED = re.compile(r"# error: \[(TRL\d{3})\]")


@cache
def page(code: str) -> str | None:
    """The page of a rule in Markdown, with where to read it."""
    found = find(code)
    if found is None:
        return None
    text = _MARKS.sub(_codes, _FENCE.sub(_opening, found.text.rstrip()))
    return f"{text}\n\n[{found.code} on the web]({url(found.code, found.name)})\n"


def _opening(fence: re.Match[str]) -> str:
    """Of the words behind a fence editors know the first only."""
    words = fence["words"].split()
    options = dict(word.partition("=")[::2] for word in words if "=" in word)
    said = [f"`{options['path']}`"] if "path" in options else []
    said += ["fixed (unsafe)" if "unsafe" in words else "fixed"] if "fixed" in words else []
    said += [f"with torch {options['torch']}"] if "torch" in options else []
    said += [f"on {options['device']}"] if "device" in options else []
    caption = ", ".join(said)
    opening = f"```{fence['language']}"
    return f"{caption[0].upper()}{caption[1:]}:\n\n{opening}" if caption else opening


def _codes(marks: re.Match[str]) -> str:
    return f"  # {', '.join(_MARKED.findall(marks[0]))}"
