"""Edits that insert statements, functions and imports, with the file's own line ends, indentation and blank lines.

An import is added once, under a name that is free in the file, beside imports of its kind. Also here: fresh names, which nothing in
a file or function binds, and whether a builtin's name still means the builtin where a fix writes it.
"""

from __future__ import annotations

import sys
from itertools import takewhile
from typing import NamedTuple

from torchrepro_lint.checks.fixes.comments import below_comments, comments_above, is_heading, own_comments
from torchrepro_lint.domain.project import Project
from torchrepro_lint.query.memo_tables import SingleEntryMemo
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Span, lines_of
from torchrepro_lint.syntax.control_flow import StaticContext, constant_truth
from torchrepro_lint.syntax.nodes import Function, If, Import, Statement, SyntaxTree, span
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    is_lambda,
    last_word,
    local_symbol,
    split_comprehension,
    split_local,
    top_package,
)
from torchrepro_lint.syntax.visitor import statements

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


_WORDS: SingleEntryMemo[str, frozenset[str]] = SingleEntryMemo(lambda text: frozenset(_WORD.findall(text)))


def free_word(text: str, word: str) -> str:
    """A fresh name that is no word of the text: ``word`` with as many underscores as that takes."""
    used = _WORDS.of(text)
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


_BOUND_NAMES = SingleEntryMemo(_bound_names)


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


# Packages whose imports form one group, above those of the project.
_COMMON_PACKAGES = frozenset(
    (
        "torch",
        "numpy",
        "torchvision",
        "torchaudio",
        "pandas",
        "scipy",
        "sklearn",
        "matplotlib",
        "PIL",
        "cv2",
        "tqdm",
        "yaml",
    )
)


def ensure_import(
    tree: SyntaxTree, text: str, module: str, short: str = "", inside: str | None = None, at: int | None = None
) -> tuple[str, tuple[Edit, ...]]:
    """The name of a module for use anywhere in the file (or ``inside`` a function), and the import to add, if the file
    lacks it.

    It is imported as ``short`` (``np``) if that name is free, and else under a fresh name. An import for type checkers
    only does not count. An import of the function itself counts where it has run at the offset ``at``; its other
    imports are not visible there.
    """
    usual = short or module
    local = [] if at is None or not inside else _imports_around(tree, inside)
    if local and (word := _imported_before(tree, inside or "", module, at or 0)):
        return word, ()
    taken = {word for each in local for word, _ in each.names}
    bound = [
        word
        for word, names in tree.exports
        if module in names and word not in taken and not shadowed(tree, word, inside) and _is_bound(tree, word, module)
    ]
    if bound:
        return min(bound, key=lambda word: (word != usual, word)), ()
    root = top_package(usual)
    others = [names for word, names in tree.exports if word == root and set(names) - {root, module}]
    if others or root in taken or shadowed(tree, root, inside):
        word = free_word(text, f"{last_word(usual)}_")
    elif short and short != module:
        word = short
    else:
        return module, (insert_import(tree, text, f"import {module}"),)
    return word, (insert_import(tree, text, f"import {module} as {word}"),)


def _imports_around(tree: SyntaxTree, inside: str) -> list[Import]:
    """The imports of a function and of those around it."""
    around = (each for each in tree.functions if inside == each.name or inside.startswith(f"{each.name}."))
    return [each for function in around for each in statements(function.body) if isinstance(each, Import)]


def _imported_before(tree: SyntaxTree, inside: str, module: str, at: int) -> str:
    """The name that an import of a function gives to a module, and nothing else there binds, before an offset."""
    for function in tree.functions:
        for statement in function.body if function.name == inside else ():
            if isinstance(statement, Import) and statement.end <= at:
                for word, name in statement.names:
                    if name == module and not _is_ambiguous(tree, function, word, module):
                        return word
    return ""


def _is_ambiguous(tree: SyntaxTree, function: Function, word: str, module: str) -> bool:
    """Whether a function also binds the name of one of its imports to something else."""
    imports = (each for each in statements(function.body) if isinstance(each, Import))
    return shadowed(tree, word, function.name) or any(
        (word, module) not in each.names for each in imports if word in dict(each.names)
    )


def _is_bound(tree: SyntaxTree, word: str, module: str) -> bool:
    """Whether an import that runs at the top level binds the name to a module, not only under ``TYPE_CHECKING``."""
    return any(
        isinstance(inner, Import) and (word, module) in inner.names
        for statement in tree.body
        if not (isinstance(statement, If) and constant_truth(statement.test, StaticContext()) is False)
        for inner in statements((statement,))
    )


def insert_import(tree: SyntaxTree, text: str, statement: str) -> Edit:
    """Write an import on its own line: below those of its kind among the imports that open the file, else below all.

    Without any it goes below the docstring, or below the comments at the top. Imports that share a line with something
    else are skipped.
    """
    opening = list(takewhile(lambda each: isinstance(each, Import), tree.body))
    if not opening:
        return write_lines(text, below_docstring(text), statement, 1)
    module = statement.split()[1]
    wanted = _import_kind(module)
    alike = [each for each in opening if _import_kinds(each) == {wanted}]
    if (
        wanted == "standard"
        and not alike
        and {_import_kind(each) for each in _modules_imported(opening)} != {"__future__"}
    ):
        return _above_all(text, opening, statement)
    other = next((each for each in opening if _import_kinds(each) == {""}), None)
    if wanted == "usual" and not alike and other is not None:
        return _above_others(text, other, statement)
    if not wanted or not alike:
        place = line_end(text, opening[-1].end)
        group = {_import_kind(name) for name in _modules_imported(opening[-1:])}
        apart = group == {"__future__"} or (wanted == "usual" and group == {"standard"})
        return Edit(Span(place, place), newline(text) * (1 + apart) + statement)
    plain = statement.startswith("import ")
    before = [each for each in alike if _sort_key(text, each) <= (not plain, module)]
    if before:
        place = line_end(text, before[-1].end)
        return Edit(Span(place, place), newline(text) + statement)
    first = _above_from_imports(text, opening, alike[0]) if plain else alike[0]
    place = lines_of(text).start_of_line(first.start)
    about_first = own_comments(text, span(first)) not in (0, place)  # a comment at the top is about the file
    if about_first and not is_heading(text, first.start):
        place = line_end(text, first.end)
        return Edit(Span(place, place), newline(text) + statement)
    return Edit(Span(place, place), statement + newline(text))


def _above_from_imports(text: str, opening: list[Statement], first: Statement) -> Statement:
    """The first of the ``from`` imports of others directly above a statement: a plain import goes above these, too."""
    for statement in reversed(opening[: opening.index(first)]):
        beside = not text[statement.end : first.start].strip() and text[statement.end : first.start].count("\n") == 1
        if not beside or _sort_key(text, statement)[0] is False or _import_kinds(statement) != {""}:
            break
        first = statement
    return first


def _above_others(text: str, other: Statement, statement: str) -> Edit:
    """Above the first import that is of neither the standard library nor a common package, and above its comment."""
    lines = lines_of(text)
    start = lines.start_of_line(other.start)
    above = comments_above(lines, start, "")
    if above in (0, start):  # a comment at the top is about the file
        return Edit(Span(start, start), statement + newline(text))
    return Edit(Span(above, above), statement + newline(text) * 2)


def _sort_key(text: str, statement: Statement) -> tuple[bool, str]:
    """Where an import stands among those of its kind: plain ones first, by name."""
    return not text.startswith("import", statement.start), min(_modules_imported([statement]))


def _above_all(text: str, opening: list[Statement], statement: str) -> Edit:
    """Above the first import that is not from ``__future__``, with a blank line between."""
    first = next(each for each in opening if _import_kinds(each) != {"__future__"})
    lines = lines_of(text)
    start = lines.start_of_line(first.start)
    place = comments_above(lines, start, "") or start  # a comment at the top is about the file
    return Edit(Span(place, place), statement + newline(text) * 2)


def _import_kinds(statement: Statement) -> set[str]:
    return {_import_kind(name) for name in _modules_imported([statement])}


def _modules_imported(opening: list[Statement]) -> list[str]:
    return [name for each in opening if isinstance(each, Import) for name in each.modules]


def _import_kind(module: str) -> str:
    """The group of an import: the standard library's, the common packages', others (empty)."""
    root = top_package(module)
    if root == "__future__":
        return root
    return "standard" if root in sys.stdlib_module_names else "usual" if root in _COMMON_PACKAGES else ""


def means_builtin(project: Project, path: str, word: str) -> bool:
    """Whether no function, class, variable or star import of a file rebinds the name of a builtin.

    A star import of a package that is not followed is assumed not to.
    """
    tree = project.files[path]
    if shadowed(tree, word) or any(word == taken for taken, _ in tree.exports):
        return False
    return not any(map(in_project, project.resolver.modules.attribute(path, word) or ()))
