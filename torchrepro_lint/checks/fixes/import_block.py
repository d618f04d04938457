"""The import block of a file: its imports from the first to the last, with what stands between them, and edits that add one.

A statement that is inserted below the block leaves the imports at the top (flake8's E402), even where a path, a constant, a
backend or a log is set among them. An import is added once, under a name that is free in the file, beside imports of its kind.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import takewhile

from torchrepro_lint.checks.fixes.comments import comments_above, is_heading, own_comments
from torchrepro_lint.checks.fixes.insertions import (
    below_docstring,
    free_word,
    line_end,
    newline,
    shadowed,
    write_lines,
)
from torchrepro_lint.source.text import Edit, Span, lines_of
from torchrepro_lint.syntax.control_flow import StaticContext, constant_truth, is_main_test
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    DefinitionStatement,
    ExpressionStatement,
    Function,
    If,
    Import,
    Loop,
    SimpleStatement,
    Statement,
    SyntaxTree,
    Try,
    With,
    span,
)
from torchrepro_lint.syntax.qualified_names import last_word, top_package
from torchrepro_lint.syntax.visitor import expressions_within, statements


def only_imports(statement: Statement) -> bool:
    """Whether a statement is an import, or a ``try`` or ``if`` around imports, with what says whether they are there."""
    if not isinstance(statement, (Try, If)):
        return isinstance(statement, Import)
    if isinstance(statement, If) and is_main_test(statement.test):
        return False
    inner = [each for each in statements((statement,)) if each != statement]
    return any(isinstance(each, Import) for each in inner) and all(map(_goes_with_imports, inner))


def _goes_with_imports(statement: Statement) -> bool:
    """``pass``, ``HAS_APEX = False``, ``print("install apex")``, and not ``dataset = Dataset(path)``."""
    if isinstance(statement, Assign):
        return not any(isinstance(each, Call) for each in expressions_within(statement))
    return isinstance(statement, (Import, Try, If, SimpleStatement, ExpressionStatement))


def imports_torch(statement: Statement) -> bool:
    """Whether a statement imports torch, or a module of it."""
    return isinstance(statement, Import) and "torch" in map(top_package, statement.modules)


def last_of_block(body: Sequence[Statement]) -> Statement | None:
    """The last import of the import block at the start of some statements; None where they start otherwise."""
    last = None
    for statement in body:
        if only_imports(statement):
            last = statement
        elif not _may_interrupt(statement):
            break
    return last


def _may_interrupt(statement: Statement) -> bool:
    """Whether an import block may go on below a statement: one that neither defines nor repeats anything."""
    if isinstance(statement, If) and is_main_test(statement.test):
        return False
    if isinstance(statement, (If, Try, With)):
        return not any(isinstance(each, (DefinitionStatement, Loop)) for each in statements((statement,)))
    return isinstance(statement, (Assign, ExpressionStatement, SimpleStatement))


# Packages whose imports form one group, above those of the project.
_COMMON_PACKAGES = frozenset(
    {"torch", "numpy", "torchvision", "torchaudio", "pandas", "scipy"}
    | {"sklearn", "matplotlib", "PIL", "cv2", "tqdm", "yaml"}
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
        return module, (insert_import(tree, text, f"import {module}", at),)
    return word, (insert_import(tree, text, f"import {module} as {word}", at),)


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


def insert_import(tree: SyntaxTree, text: str, statement: str, at: int | None = None) -> Edit:
    """Write an import on its own line: below those of its kind among the imports that open the file, else below all. Where none of these
    is of its kind, the imports before the offset ``at`` count, too.

    Without any it goes below the docstring, or below the comments at the top. Imports that share a line with something
    else are skipped.
    """
    opening: list[Statement] = list(takewhile(lambda each: isinstance(each, Import), tree.body))
    last = last_of_block([each for each in tree.body if at is not None and each.end <= at])
    block: list[Statement] = [
        each for each in tree.body if last is not None and isinstance(each, Import) and each.end <= last.end
    ]
    opening = opening or block  # below ``__author__ = "..."``
    if not opening:
        return write_lines(text, below_docstring(text), statement, 1)
    module = statement.split()[1]
    wanted = _import_kind(module)
    alike = [each for each in opening if _import_kinds(each) == {wanted}]
    if wanted and not alike:
        # Below a statement that has to come early, such as a filter of warnings, the block goes on.
        alike = [each for each in block if _import_kinds(each) == {wanted}]
        opening = block if alike else opening
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
