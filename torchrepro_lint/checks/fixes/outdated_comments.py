"""Outdated comments: what is said of a statement that a fix makes untrue goes with the fix.

A switch that is turned over no longer makes a run fast, and a seed that is written down no longer comes from the clock.
"""

from __future__ import annotations

import re

from torchrepro_lint.checks.fixes.comments import DIRECTIVE, own_comments
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Fix, Span, lines_of
from torchrepro_lint.syntax.nodes import Assign, ExpressionStatement, Record, SyntaxTree, span
from torchrepro_lint.syntax.scopes import control_flow_position


class Subject(Record, frozen=True):
    """What comments speak of that a fix makes untrue: its ``words``; with words of ``weighing`` they stay true.

    ``others`` finds a statement to which a comment above may refer, too.
    """

    words: re.Pattern[str]
    weighing: re.Pattern[str]
    others: re.Pattern[str]


SPEED = Subject(
    lazy_pattern(
        r"\b(fast\w*|speed\w*|quick\w*|slow\w*|accelerat\w+|perform(ance|s)?|optimi[sz]\w+|(auto-?)?tun(e[sd]?|ing|er)"
        r"|benchmark\w*|efficien\w+|throughput|boost\w*|(best|optimal) algorithm\w*)\b",
        re.IGNORECASE,
    ),
    lazy_pattern(r"determin|reprod|repeat", re.IGNORECASE),
    lazy_pattern(r"cudnn|backends|tf32|precision|compile|jit|amp\b|threads|channels_last"),
)
ENTROPY = Subject(
    lazy_pattern(
        r"\b(clock|(current|system|wall|the) time|timestamp|entropy|urandom|uuid|process id|pid|different|differs"
        r"|(each|every) (run|time|start)|(truly|really|fully) random|(non-?|in)determin\w+)\b",
        re.IGNORECASE,
    ),
    lazy_pattern(r"reprod|repeat|\bdetermin", re.IGNORECASE),
    lazy_pattern(r"seed|time|random"),
)
_COMMENT_BEHIND = lazy_pattern(r"(?:[ \t]*,)?(?P<space>[ \t]*)(?P<comment>#[^\r\n]*)")


def outdated_comments(text: str, statement: Span, subject: Subject) -> tuple[Edit, ...]:
    """Remove the comment behind a statement, and the one above it, if they speak of a subject.

    One above several statements of that subject stays.
    """
    lines = lines_of(text)
    start, row = lines.start_of_line(statement.start), lines.position(statement.end).row + 1
    below = lines.line(row) if row <= len(lines) else ""
    above = own_comments(text, statement, None if subject.others.search(below) else subject.words)
    edits = (Edit(Span(above, start), ""),) if _is_about(text[above:start], subject) else ()
    return (*edits, *outdated_comment_behind(text, statement.end, subject))


def outdated_comment_behind(text: str, end: int, subject: Subject) -> tuple[Edit, ...]:
    """Remove the comment that follows an offset in its line, perhaps after a comma, if it speaks of a subject."""
    found = _COMMENT_BEHIND.match(text, end)
    if found is None or DIRECTIVE.match(found["comment"]) or not _is_about(found["comment"], subject):
        return ()
    return (Edit(Span(found.start("space"), found.end()), ""),)


def without_outdated_comments(tree: SyntaxTree, text: str, fix: Fix, subject: Subject) -> Fix:
    """A fix that also removes what the comments of the statements that it changes say of a subject."""
    edits = list(fix.edits)
    for edit in fix.edits:
        position = control_flow_position(tree, edit.span.start)
        statement = position.spots[-1].statement if position and edit.span.start < edit.span.end else None
        if isinstance(statement, (Assign, ExpressionStatement)):
            edits += (each for each in outdated_comments(text, span(statement), subject) if each not in edits)
    return fix._replace(edits=tuple(sorted(edits)))


def _is_about(comment: str, subject: Subject) -> bool:
    return subject.words.search(comment) is not None and subject.weighing.search(comment) is None
