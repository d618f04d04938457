"""Edits that put something new into a file: a statement, a function at module level."""

from __future__ import annotations

import re
from typing import NamedTuple

from torchrepro_lint.layout import (
    below_comments,
    below_docstring,
    comments_above,
    indent_unit,
    indented,
    line_end,
    newline,
    write_lines,
)
from torchrepro_lint.query.memo_tables import Latest
from torchrepro_lint.source.text import Edit, Span, lines_of
from torchrepro_lint.syntax.nodes import Facts, Import

_WORD = re.compile(r"\w+")
# The variable of a comprehension, which may stand in others: ``:f.<locals>.<comp>.x``, at the top level ``:<locals>.<comp>.x``.
_COMPREHENDED = re.compile(r"(?P<function>.*?)(?:(?:^:|\.)<locals>\.<comp>\d*)+\.(?P<word>\w+)")


def free_word(text: str, word: str) -> str:
    """A name that no word of the text is: ``word`` with as many underscores behind it as that takes."""
    used = set(_WORD.findall(text))
    while word in used:
        word += "_"
    return word


def free_name(facts: Facts, word: str, inside: str) -> str:
    """A variable that neither the top level nor a function (``inside``, empty for none) binds, ``word`` if it can be.

    It can be read everywhere in that function: no comprehension of it binds it either.
    """
    known = _BOUND.of(facts)
    while word in known.exported or shadowed(facts, word, inside) or inside in known.comprehended.get(word, ()):
        word += "_"
    return word


def shadowed(facts: Facts, word: str, inside: str | None = None) -> bool:
    """Whether a function or comprehension of the file binds a word for itself; with ``inside``, one of the functions around
    a place.

    ``inside`` is the name of the function there, empty for the top level.
    """
    known = _BOUND.of(facts)
    if inside is None and word in known.comprehended:
        return True
    scopes = known.scopes.get(word, ())
    return any(inside is None or inside == scope or inside.startswith(f"{scope}.") for scope in scopes)


class _Bound(NamedTuple):
    """What a file exports, and by each word the functions that bind it for themselves, and those in whose comprehensions
    it is bound: the name of each, empty for the top level.
    """

    exported: frozenset[str]
    scopes: dict[str, list[str]]
    comprehended: dict[str, list[str]]


def _bound(facts: Facts) -> _Bound:
    names = [*facts.assigned]
    names += [each.name for each in facts.functions]
    names += [each.name for each in facts.classes]
    names += [f"{function.name}.<locals>.{param.name}" for function in facts.functions for param in function.params]
    scopes: dict[str, list[str]] = {}
    comprehended: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if inner := _COMPREHENDED.fullmatch(name):
            comprehended.setdefault(inner["word"], []).append(inner["function"])
            continue
        scope, local, word = name.rpartition(".<locals>.")
        if local:
            scopes.setdefault(word, []).append(scope)
    return _Bound(frozenset(word for word, _ in facts.exports), scopes, comprehended)


_BOUND = Latest(_bound)


def insert_statement(text: str, at: int, statement: str, below_heading: bool = False) -> Edit:
    """Write a statement on lines of its own before the one at ``at``, indented as that one is.

    It goes above the comments that stand directly over that one, or below a single line that is the
    heading of what follows. Where that one does not begin its line (``if x: f()``), semicolons
    join them, and each line of it must be a simple statement.
    """
    lines = lines_of(text)
    start = lines.start_of_line(at)
    indent = text[start:at]
    if indent.strip() or _goes_on(text, start):
        return Edit(Span(at, at), f"{_joined(statement)}; ")
    above = comments_above(lines, start, indent)
    if not below_heading or lines.position(start).row - lines.position(above).row > 1:
        start = above
    return Edit(Span(start, start), indented(text, statement, indent) + newline(text))


def insert_below(text: str, statement: Span, source: str) -> Edit:
    """Write a statement on lines of its own below another, indented as that one is; ``statement`` is that one's span.

    Where more follows on the line of that one, or something stands before it, semicolons join them, and each line of
    it must be a simple statement.
    """
    start = lines_of(text).start_of_line(statement.start)
    indent = text[start : statement.start]
    end = line_end(text, statement.end)
    rest = text[statement.end : end].strip()
    if indent.strip() or _goes_on(text, start) or (rest and not rest.startswith("#")):
        return Edit(Span(statement.end, statement.end), f"; {_joined(source)}")
    return Edit(Span(end, end), newline(text) + indented(text, source, indent))


def _joined(statements: str) -> str:
    """Simple statements in one line."""
    return "; ".join(line for line in statements.splitlines() if line)


def _goes_on(text: str, start: int) -> bool:
    """Whether the line before the one at ``start`` goes on in it, by a backslash: nothing can stand between the two."""
    lines = lines_of(text)
    row = lines.position(start).row
    line = lines.line(row - 1) if row > 1 else ""
    return line.endswith("\\") and "#" not in line


def insert_paragraph(text: str, after: int, source: str) -> Edit:
    """Write top-level lines with a blank one on each side below the line of an offset: the end of an import, mostly."""
    return write_lines(text, line_end(text, after), source, 1)


def insert_function(facts: Facts, text: str, source: str, before: int) -> Edit | None:
    """Write a function with two blank lines around it below the imports that stand above ``before``.

    ``source`` is its text, indented by four spaces, without the last line end; ``before`` is the start of the first top-level
    statement that may call it. None where the two share a line.
    """
    source = source.replace("    ", indent_unit(facts, text))
    ends = [each.end for each in facts.body if isinstance(each, Import) and each.end <= before]
    at = facts.imports_end if facts.imports_end <= before else max(ends, default=0)
    place = below_comments(text, line_end(text, at)) if at else below_docstring(text)
    return write_lines(text, place, source, 2) if place <= before or before >= len(text) else None
