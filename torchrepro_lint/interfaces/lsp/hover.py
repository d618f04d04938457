"""The text of a hover: what a rule is about, why there is a finding and why it has no fix, and a link to the rule's page.

It has at most ``MOST`` characters, and ends at a paragraph or a sentence. All findings of a place share one hover.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.pages import find, url
from torchrepro_lint.checks.rule import Finding, Rule, why_unfixed
from torchrepro_lint.interfaces.report.markdown import escaped
from torchrepro_lint.source.patterns import lazy_pattern

MOST = 1500
# A rule that would get fewer characters is only counted.
_FEWEST = 220
_SENTENCE_END = lazy_pattern(r"[.!?](?=\s|$)|;(?=\s)")
_RULES = {rule.code: rule for rule in RULES}


class _Writer(NamedTuple):
    """The mark-up of a client: Markdown or plain text."""

    markdown: bool

    def literal(self, text: str) -> str:
        """A text as it is."""
        return escaped(text) if self.markdown else text

    def prose(self, text: str) -> str:
        """A text of our own pages, which is in Markdown."""
        return text if self.markdown else text.replace("`", "")

    def heading(self, rule: Rule) -> str:
        name = f"{rule.code} {rule.name}"
        return f"**{name}**" if self.markdown else name

    def link(self, rule: Rule) -> str:
        place = url(rule.code, rule.name)
        return f"[More about {rule.code}]({place})" if self.markdown else f"More about {rule.code}: {place}"

    def items(self, lines: Sequence[str]) -> str:
        return "\n".join(f"- {self.literal(line)}" for line in lines)

    @property
    def rule_off(self) -> str:
        return "\n\n---\n\n" if self.markdown else "\n\n"


def hover_text(findings: Iterable[Finding], codes: Iterable[str], markdown: bool) -> str:
    """The hover for the findings of a place and for codes that are written there; empty where there are none."""
    write = _Writer(markdown)
    by_code: dict[str, list[Finding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    for code in codes:
        by_code.setdefault(code, [])
    known = [(_RULES[code], own) for code, own in by_code.items() if code in _RULES]
    shown = known[: MOST // _FEWEST]
    rest = f"{write.rule_off}{len(known) - len(shown)} more rules report this place." if shown != known else ""
    left, parts = MOST - len(rest), list[str]()
    for number, (rule, own) in enumerate(shown):
        room = left // (len(shown) - number) - len(write.rule_off)
        parts.append(_about(rule, own, room, write))
        left -= len(parts[-1]) + len(write.rule_off)
    return write.rule_off.join(parts) + rest if parts else ""


def _about(rule: Rule, findings: Sequence[Finding], room: int, write: _Writer) -> str:
    """All about the findings of one rule, in so many characters: the most important paragraphs are chosen first."""
    link = write.link(rule)
    chosen = [(0, write.heading(rule))]
    left = room - len(chosen[0][1]) - len(link) - 2
    for place, text in _paragraphs(rule, findings, left, write):
        if text and len(text) + 2 <= left:
            chosen.append((place, text))
            left -= len(text) + 2
    return "\n\n".join([*(text for _, text in sorted(chosen)), link])


def _paragraphs(rule: Rule, findings: Sequence[Finding], most: int, write: _Writer) -> Iterator[tuple[int, str]]:
    """The paragraphs about a rule's findings by importance, each with its place in the text."""
    page = find(rule.code)
    messages = list(dict.fromkeys(one.message for one in findings))
    share = max(most - 200, most // 2) // max(len(messages), 1)
    for number, message in enumerate(messages):
        yield 10 + number, _cut(message, share, write)
    yield 1, write.prose(page.summary) if page else ""
    for number, one in enumerate(findings):
        if reason := why_unfixed(one, rule):
            yield 50, _cut(f"There is no fix here: {reason}.", share, write)
        if one.steps:
            lines = [f"{step.path}:{step.place.line}: {step.text}" for step in one.steps]
            yield 30 + number, "How the run gets there:\n\n" + write.items(lines)


def _cut(text: str, most: int, write: _Writer) -> str:
    """As much of a text as fits, in whole sentences; in whole words where not even one sentence fits."""
    if len(write.literal(text)) <= most:
        return write.literal(text)
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    starts = [match.start() for match in re.finditer(r"\s", text)]
    for at in [*ends[::-1], *starts[::-1]]:
        found = f"{write.literal(text[:at].rstrip(';'))} …"
        if len(found) <= most:
            return found
    return ""
