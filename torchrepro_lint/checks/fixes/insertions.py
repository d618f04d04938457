"""Edits that insert or remove statements and functions, with the file's own line ends, indentation and blank lines.

Also here: fresh names, which nothing in a file or function binds.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from torchrepro_lint.query.memo_tables import SingleEntryMemo
from torchrepro_lint.source.text import Edit, Lines, Span, lines_of
from torchrepro_lint.syntax.control_flow import BlockPosition
from torchrepro_lint.syntax.nodes import Import, SyntaxTree

_NEWLINE = re.compile(r"\r\n|\r|\n")
_BLANK_LINES = re.compile(r"(?:\r\n|\r|\n)((?:[ \t\f]*(?:\r\n|\r|\n))*)")
_INDENTED_COMMENTS = re.compile(r"(?:(?:\r\n|\r|\n)[ \t]+#[^\r\n]*)+")
# The lines that may precede the first statement: comments and blank lines.
_HEADER = re.compile(r"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)|[ \t\f]*#[^\r\n]*\Z)*")
_DOCSTRING = re.compile(
    r"""[rRuU]?(?:\"{3}(?s:\\.|[^\\])*?\"{3}|'{3}(?s:\\.|[^\\])*?'{3}|\"[^\"\r\n]*\"|'[^'\r\n]*')[ \t]*(?=[;#\r\n]|\Z)"""
)


def newline(text: str) -> str:
    """The line end of a text, by its first one."""
    found = _NEWLINE.search(text)
    return found[0] if found else "\n"


def line_break(text: str, offset: int) -> str:
    """The line end at an offset; empty where the text ends."""
    found = _NEWLINE.match(text, offset)
    return found[0] if found else ""


def line_end(text: str, offset: int) -> int:
    """The end of an offset's line, without its line end; of the last line where a backslash joins several."""
    found = _NEWLINE.search(text, offset)
    while found and text[offset : found.start()].endswith("\\") and "#" not in text[offset : found.start()]:
        offset = found.end()
        found = _NEWLINE.search(text, offset)
    return found.start() if found else len(text)


def indent_unit(tree: SyntaxTree, text: str) -> str:
    """The indentation of a file, by its first function with a body on its own line; else four spaces."""
    lines = lines_of(text)
    for function in tree.functions:
        if function.body and "<lambda>" not in function.name.rpartition(".")[2]:
            outer = text[lines.start_of_line(function.start) : function.start]
            inner = text[lines.start_of_line(function.body[0].start) : function.body[0].start]
            if not (outer + inner).strip() and inner.startswith(outer) and inner != outer:
                return inner[len(outer) :]
    return "    "


def indented(text: str, source: str, indent: str) -> str:
    return newline(text).join(line and indent + line for line in source.split("\n"))


def write_lines(text: str, place: int, source: str, blanks: int) -> Edit:
    """Write lines with blank ones around them: after the line that ends at ``place``, or at the start of the file."""
    line = newline(text)
    body = source.replace("\n", line)
    below = bool(text[place:].strip())
    before = text[:place]
    if not before or (before.endswith(("\n", "\r")) and not before.rstrip("\r\n").endswith("\\")):
        return Edit(Span(place, place), body + line * (blanks + 1 if below else 1))
    found = _BLANK_LINES.match(text, place)
    present = len(_NEWLINE.findall(found[1])) if found else 0
    after = line * max(0, blanks - present) if below else line * (not text[place:])
    return Edit(Span(place, place), line * (blanks + 1) + body + after)


def below_docstring(text: str) -> int:
    """The end of the docstring's line; without one, the start of the first statement's line."""
    header = _HEADER.match(text)
    assert header is not None
    docstring = _DOCSTRING.match(text, header.end())
    return line_end(text, docstring.end()) if docstring else header.end()


def below_comments(text: str, place: int) -> int:
    """The end of the indented comments that follow a line and belong to its block."""
    found = _INDENTED_COMMENTS.match(text, place)
    return found.end() if found else place


def comments_above(lines: Lines, start: int, indent: str) -> int:
    """The start of the first of the comment lines, of the same indentation, directly above a line."""
    row = lines.position(start).row
    while (
        row > 1
        and lines.line(row - 1).startswith(f"{indent}#")
        and not _is_special_comment(lines.line(row - 1), row - 1)
    ):
        row -= 1
    return lines.offset(row)


def _is_special_comment(line: str, row: int) -> bool:
    """Whether a comment has a meaning of its own: a shebang, an encoding, a notebook cell."""
    return line.startswith("# %%") or (row <= 2 and ("coding" in line or line.startswith("#!")))


_WORD = re.compile(r"\w+")
# The variable of a comprehension, perhaps a nested one: ``:f.<locals>.<comp>.x``; at the top level ``:<locals>.<comp>.x``.
_COMPREHENSION_VARIABLE = re.compile(r"(?P<function>.*?)(?:(?:^:|\.)<locals>\.<comp>\d*)+\.(?P<word>\w+)")


def free_word(text: str, word: str) -> str:
    """A fresh name that is no word of the text: ``word`` with as many underscores as that takes."""
    used = set(_WORD.findall(text))
    while word in used:
        word += "_"
    return word


def free_name(tree: SyntaxTree, word: str, inside: str) -> str:
    """A fresh variable that neither the top level nor a function (``inside``, empty for none) binds: ``word`` if
    possible.

    No comprehension of the function binds it, so that it can be read everywhere there.
    """
    known = _BOUND_NAMES.of(tree)
    while word in known.exported or shadowed(tree, word, inside) or inside in known.comprehended.get(word, ()):
        word += "_"
    return word


def shadowed(tree: SyntaxTree, word: str, inside: str | None = None) -> bool:
    """Whether a function or comprehension of the file binds a name locally; with ``inside``, only the functions around
    a place.

    ``inside`` is the name of the function there, empty for the top level.
    """
    known = _BOUND_NAMES.of(tree)
    if inside is None and word in known.comprehended:
        return True
    scopes = known.scopes.get(word, ())
    return any(inside is None or inside == scope or inside.startswith(f"{scope}.") for scope in scopes)


class _BoundNames(NamedTuple):
    """The names that a file exports, and by name the functions that bind it locally and those whose comprehensions do;
    each function by its name, empty for the top level.
    """

    exported: frozenset[str]
    scopes: dict[str, list[str]]
    comprehended: dict[str, list[str]]


def _bound_names(tree: SyntaxTree) -> _BoundNames:
    names = [*tree.assigned]
    names += [each.name for each in tree.functions]
    names += [each.name for each in tree.classes]
    names += [f"{function.name}.<locals>.{param.name}" for function in tree.functions for param in function.params]
    scopes: dict[str, list[str]] = {}
    comprehended: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if inner := _COMPREHENSION_VARIABLE.fullmatch(name):
            comprehended.setdefault(inner["word"], []).append(inner["function"])
            continue
        scope, local, word = name.rpartition(".<locals>.")
        if local:
            scopes.setdefault(word, []).append(scope)
    return _BoundNames(frozenset(word for word, _ in tree.exports), scopes, comprehended)


_BOUND_NAMES = SingleEntryMemo(_bound_names)


def insert_statement(text: str, at: int, statement: str, below_heading: bool = False) -> Edit:
    """Write a statement on its own lines before the one at ``at``, with the same indentation.

    It goes above the comments directly above that one, or, with ``below_heading``, below a single comment line, which
    is the heading of what follows. Where that one does not begin its line (``if x: f()``), semicolons join them, and
    each line of the new one must be a simple statement.
    """
    lines = lines_of(text)
    start = lines.start_of_line(at)
    indent = text[start:at]
    if indent.strip() or _continues_line(text, start):
        return Edit(Span(at, at), f"{_joined(statement)}; ")
    above = comments_above(lines, start, indent)
    if not below_heading or lines.position(start).row - lines.position(above).row > 1:
        start = above
    return Edit(Span(start, start), indented(text, statement, indent) + newline(text))


def insert_below(text: str, statement: Span, source: str) -> Edit:
    """Write a statement on its own lines below another, of span ``statement``, with the same indentation.

    Where that one shares its line, semicolons join them, and each line of the new one must be a simple statement.
    """
    start = lines_of(text).start_of_line(statement.start)
    indent = text[start : statement.start]
    end = line_end(text, statement.end)
    rest = text[statement.end : end].strip()
    if indent.strip() or _continues_line(text, start) or (rest and not rest.startswith("#")):
        return Edit(Span(statement.end, statement.end), f"; {_joined(source)}")
    return Edit(Span(end, end), newline(text) + indented(text, source, indent))


def _joined(statements: str) -> str:
    """Join simple statements in one line."""
    return "; ".join(line for line in statements.splitlines() if line)


def _continues_line(text: str, start: int) -> bool:
    """Whether a backslash joins the line at ``start`` to the one before: nothing can be inserted between."""
    lines = lines_of(text)
    row = lines.position(start).row
    line = lines.line(row - 1) if row > 1 else ""
    return line.endswith("\\") and "#" not in line


def insert_paragraph(text: str, after: int, source: str) -> Edit:
    """Write top-level lines, with a blank one on each side, below the line of an offset: mostly the end of an import."""
    return write_lines(text, line_end(text, after), source, 1)


def insert_function(tree: SyntaxTree, text: str, source: str, before: int) -> Edit | None:
    """Write a function, with two blank lines around it, below the imports above ``before``.

    ``source`` is its text, indented by four spaces, without the last line end; ``before`` is the start of the first
    top-level statement that may call it. None where the two share a line.
    """
    source = source.replace("    ", indent_unit(tree, text))
    ends = [each.end for each in tree.body if isinstance(each, Import) and each.end <= before]
    at = tree.imports_end if tree.imports_end <= before else max(ends, default=0)
    place = below_comments(text, line_end(text, at)) if at else below_docstring(text)
    return write_lines(text, place, source, 2) if place <= before or before >= len(text) else None


def remove_statement(text: str, block_position: BlockPosition, others: bool = False) -> Edit | None:
    """Remove a statement with its line; ``pass`` stays where the block would be empty. None where it shares its line.

    ``others`` says that other fixes may remove all other statements of the block.
    """
    statement = block_position.statement
    start, end = lines_of(text).start_of_line(statement.start), line_end(text, statement.end)
    rest = text[statement.end : end].strip()
    if text[start : statement.start].strip() or (rest and not rest.startswith("#")):
        return None
    if len(block_position.block) == 1 or (others and block_position.at == 0):
        return Edit(Span(statement.start, statement.end), "pass")
    return Edit(Span(start, end + len(line_break(text, end))), "")
