"""Edits that insert statements and functions, with the file's own line ends, indentation and blank lines.

Also here: fresh names, which nothing in a file or function binds, and whether a builtin's name still means the builtin where a
fix writes it.
"""

from __future__ import annotations

from functools import lru_cache

from torchrepro_lint.checks.fixes.comments import below_comments, comments_above, is_heading
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Fix, Span, lines_of
from torchrepro_lint.syntax.nodes import Import, Record, SyntaxTree
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    is_lambda,
    local_symbol,
    split_comprehension,
    split_local,
)
from torchrepro_lint.trace.traces import Traces

_NEWLINE = lazy_pattern(r"\r\n|\r|\n")
_BLANK_LINES = lazy_pattern(r"(?:\r\n|\r|\n)((?:[ \t\f]*(?:\r\n|\r|\n))*)")
# The lines that may precede the first statement: comments and blank lines.
_HEADER = lazy_pattern(r"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)|[ \t\f]*#[^\r\n]*\Z)*")
_DOCSTRING = lazy_pattern(
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
        if function.body and not is_lambda(function.name):
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


_WORD = lazy_pattern(r"\w+")


@lru_cache(maxsize=1)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def free_word(text: str, word: str) -> str:
    """A fresh name that is no word of the text: ``word`` with as many underscores as that takes."""
    used = _words(text)
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


def binding_function(tree: SyntaxTree, word: str, inside: str) -> str | None:
    """The innermost of the functions around a place (``inside`` and those that contain it) that binds a name."""
    scopes = _BOUND_NAMES.of(tree).scopes.get(word, ())
    around = (each for each in scopes if inside == each or inside.startswith(f"{each}."))
    return max(around, key=len, default=None)


class _BoundNames(Record, frozen=True):
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
    names += [local_symbol(function.name, param.name) for function in tree.functions for param in function.params]
    scopes: dict[str, list[str]] = {}
    comprehended: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if inner := split_comprehension(name):
            comprehended.setdefault(inner[1], []).append(inner[0])
            continue
        scope, word = split_local(name)
        if scope:
            scopes.setdefault(word, []).append(scope)
    return _BoundNames(frozenset(word for word, _ in tree.exports), scopes, comprehended)


class _SingleEntryMemo:
    """The names of the file that was asked for last, by identity: the fixes of a file ask for them one after the other."""

    def __init__(self) -> None:
        self._known: tuple[SyntaxTree, _BoundNames] | None = None

    def of(self, tree: SyntaxTree) -> _BoundNames:
        """The names that a file binds."""
        known = self._known
        if known is None or known[0] is not tree:
            known = self._known = (tree, _bound_names(tree))
        return known[1]


_BOUND_NAMES = _SingleEntryMemo()


def insert_statement(text: str, at: int, statement: str, below_heading: bool = False) -> Edit:
    """Write a statement on its own lines before the one at ``at``, with the same indentation.

    It goes above the comments directly above that one, or, with ``below_heading``, below a single comment line, where
    that may be the heading of several statements. Where that one does not begin its line (``if x: f()``), semicolons join them, and
    each line of the new one must be a simple statement.
    """
    lines = lines_of(text)
    start = lines.start_of_line(at)
    indent = text[start:at]
    if indent.strip() or _continues_line(text, start):
        return Edit(Span(at, at), f"{_joined(statement)}; ")
    above = comments_above(lines, start, indent)
    if not below_heading or lines.position(start).row - lines.position(above).row > 1 or not is_heading(text, at):
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
    place = _below_imports(tree, text, before)
    source = source.replace("    ", indent_unit(tree, text))
    return write_lines(text, place, source, 2) if place <= before or before >= len(text) else None


def insert_constant(tree: SyntaxTree, text: str, source: str, before: int) -> Edit | None:
    """Write an assignment of the top level below the imports above ``before``, with a blank line on each side.

    None where the imports share a line with the statement at ``before``.
    """
    place = _below_imports(tree, text, before)
    return write_lines(text, place, source, 1) if place <= before else None


def _below_imports(tree: SyntaxTree, text: str, before: int) -> int:
    """The end of the last import above an offset, with its comments; without any, the place below the docstring."""
    ends = [each.end for each in tree.body if isinstance(each, Import) and each.end <= before]
    at = tree.imports_end if tree.imports_end <= before else max(ends, default=0)
    return below_comments(text, line_end(text, at)) if at else below_docstring(text)


def means_builtin(project: Traces, path: str, word: str) -> bool:
    """Whether no function, class, variable or star import of a file rebinds the name of a builtin.

    A star import of a package that is not followed is assumed not to.
    """
    tree = project.files[path]
    if shadowed(tree, word) or any(word == taken for taken, _ in tree.exports):
        return False
    return not any(map(in_project, project.resolver.modules.attribute(path, word) or ()))


def fix_in(path: str, own: str, title: str, edits: tuple[Edit, ...]) -> Fix:
    """An unsafe fix with edits of one file, which may not be the finding's ``own``."""
    here, elsewhere = (edits, ()) if path == own else ((), ((path, edits),))
    return Fix(title, here, safe=False, elsewhere=elsewhere)
