"""Edits that put something new into a file: an import, a statement, a function at module level."""

from __future__ import annotations

import re

from torchrepro_lint.facts import Facts, Import
from torchrepro_lint.text import Edit, Lines, Span

_WORD = re.compile(r"\w+")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_BLANK_LINES = re.compile(r"(?:\r\n|\r|\n)((?:[ \t\f]*(?:\r\n|\r|\n))*)")
_INDENTED_COMMENTS = re.compile(r"(?:(?:\r\n|\r|\n)[ \t]+#[^\r\n]*)+")
# What may stand above the first statement: a comment or nothing on each line.
_HEADER = re.compile(r"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)|[ \t\f]*#[^\r\n]*\Z)*")
_DOCSTRING = re.compile(
    r"""[rRuU]?(?:\"{3}(?s:\\.|.)*?\"{3}|'{3}(?s:\\.|.)*?'{3}|\"[^\"\r\n]*\"|'[^'\r\n]*')[ \t]*(?=[;#\r\n]|\Z)"""
)


def newline(text: str) -> str:
    """The line end that a text uses; the first one decides."""
    found = _NEWLINE.search(text)
    return found[0] if found else "\n"


def free_word(text: str, word: str) -> str:
    """A name that no word of the text is: ``word`` with as many underscores behind it as that takes."""
    used = set(_WORD.findall(text))
    while word in used:
        word += "_"
    return word


def shadowed(facts: Facts, word: str) -> bool:
    """Whether a function or class of the file binds a word for itself."""
    inner = [name for name, _ in facts.assigned]
    inner += [function.name for function in facts.functions]
    inner += [each.name for each in facts.classes]
    inner += [f".{param.name}" for function in facts.functions for param in function.params]
    return any(name.endswith(f".{word}") for name in inner)


def ensure_import(facts: Facts, text: str, module: str) -> tuple[str, tuple[Edit, ...]]:
    """How the file can write a module anywhere, and the import to add for that, unless the file has it.

    Where the module's first word means something else in the file, the import is given a name that nothing has.
    """
    bound = [word for word, names in facts.exports if names == (module,) and not shadowed(facts, word)]
    if bound:
        return min(bound, key=lambda word: (word != module, word)), ()
    root = module.partition(".")[0]
    others = [names for word, names in facts.exports if word == root and names != (root,)]
    if others or shadowed(facts, root):
        word = free_word(text, f"{module.rpartition('.')[2]}_")
        return word, (insert_import(facts, text, f"import {module} as {word}"),)
    return module, (insert_import(facts, text, f"import {module}"),)


def insert_import(facts: Facts, text: str, statement: str) -> Edit:
    """Write an import on a line of its own below the imports that open the file, ``from __future__`` among them.

    Without any it goes below the documentation string, or below the comments at the top.
    """
    opening = 0
    for each in facts.body:
        if not isinstance(each, Import):
            break
        opening = _line_end(text, each.end)
    if opening:
        return Edit(Span(opening, opening), newline(text) + statement)
    return _write(text, _below_docstring(text), statement, 1)


def insert_statement(text: str, at: int, statement: str) -> Edit:
    """Write a statement on lines of its own before the one at ``at``, indented as that one is.

    Where that one does not begin its line (``if x: f()``), a semicolon joins them, and it must be one line.
    """
    start = Lines(text).start_of_line(at)
    indent = text[start:at]
    if indent.strip():
        return Edit(Span(at, at), f"{statement}; ")
    lines = [line and indent + line for line in statement.split("\n")]
    return Edit(Span(start, start), newline(text).join(lines) + newline(text))


def insert_function(facts: Facts, text: str, source: str, before: int) -> Edit | None:
    """Write a function with two blank lines around it below the imports that stand above ``before``.

    ``source`` is its text without the last line end; ``before`` is the start of the first top-level statement that may
    call it. None where the two share a line.
    """
    ends = [each.end for each in facts.body if isinstance(each, Import) and each.end <= before]
    at = facts.imports_end if facts.imports_end <= before else max(ends, default=0)
    place = _below_comments(text, _line_end(text, at)) if at else _below_docstring(text)
    return _write(text, place, source, 2) if place <= before or before >= len(text) else None


def _write(text: str, place: int, source: str, blanks: int) -> Edit:
    """Write lines with blank ones around them: after the line that ends at ``place``, or where the file begins."""
    line = newline(text)
    body = source.replace("\n", line)
    below = bool(text[place:].strip())
    if not text[:place] or text[:place].endswith(("\n", "\r")):
        return Edit(Span(place, place), body + line * (blanks + 1 if below else 1))
    found = _BLANK_LINES.match(text, place)
    present = len(_NEWLINE.findall(found[1])) if found else 0
    after = line * max(0, blanks - present) if below else line * (not text[place:])
    return Edit(Span(place, place), line * (blanks + 1) + body + after)


def _below_docstring(text: str) -> int:
    """The end of the documentation string's line; without one, where the first statement's line begins."""
    header = _HEADER.match(text)
    assert header is not None
    docstring = _DOCSTRING.match(text, header.end())
    return _line_end(text, docstring.end()) if docstring else header.end()


def _below_comments(text: str, place: int) -> int:
    """The end of the indented comments that follow a line: they belong to the block that ends there."""
    found = _INDENTED_COMMENTS.match(text, place)
    return found.end() if found else place


def _line_end(text: str, offset: int) -> int:
    """The end of the line of an offset, before its line end."""
    found = _NEWLINE.search(text, offset)
    return found.start() if found else len(text)
