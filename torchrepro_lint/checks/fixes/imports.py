"""Edits that import a module: once, under a word that means nothing else in the file, beside imports of its kind.

Whether a word that a fix writes means the builtin where it is written.
"""

from __future__ import annotations

import sys
from itertools import takewhile
from typing import TYPE_CHECKING

from torchrepro_lint.checks.fixes.insertions import (
    below_docstring,
    comments_above,
    free_word,
    line_end,
    newline,
    shadowed,
    write_lines,
)
from torchrepro_lint.source.text import Edit, Span, lines_of
from torchrepro_lint.syntax.control_flow import Setting, constant_truth
from torchrepro_lint.syntax.nodes import Facts, Function, If, Import, Statement
from torchrepro_lint.syntax.visitor import statements

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Project


# Packages whose imports stand together, above a project's own.
_USUAL = frozenset(
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
    facts: Facts, text: str, module: str, short: str = "", inside: str | None = None, at: int | None = None
) -> tuple[str, tuple[Edit, ...]]:
    """How the file can write a module anywhere (or ``inside`` a function), and the import to add, unless the file has it.

    It is imported as ``short`` (``np``) where nothing is called so. Where the word means something else in the file, the
    import is given a name that nothing has. An import that is there for type checkers only does not count. One of the
    function itself does where it has run at the offset ``at``; what the function imports otherwise is not seen there.
    """
    usual = short or module
    local = [] if at is None or not inside else _imports_around(facts, inside)
    if local and (word := _imported_before(facts, inside or "", module, at or 0)):
        return word, ()
    taken = {word for each in local for word, _ in each.names}
    bound = [
        word
        for word, names in facts.exports
        if module in names
        and word not in taken
        and not shadowed(facts, word, inside)
        and _is_bound(facts, word, module)
    ]
    if bound:
        return min(bound, key=lambda word: (word != usual, word)), ()
    root = usual.partition(".")[0]
    others = [names for word, names in facts.exports if word == root and set(names) - {root, module}]
    if others or root in taken or shadowed(facts, root, inside):
        word = free_word(text, f"{usual.rpartition('.')[2]}_")
    elif short and short != module:
        word = short
    else:
        return module, (insert_import(facts, text, f"import {module}"),)
    return word, (insert_import(facts, text, f"import {module} as {word}"),)


def _imports_around(facts: Facts, inside: str) -> list[Import]:
    """The imports of a function and of those around it."""
    around = (each for each in facts.functions if inside == each.name or inside.startswith(f"{each.name}."))
    return [each for function in around for each in statements(function.body) if isinstance(each, Import)]


def _imported_before(facts: Facts, inside: str, module: str, at: int) -> str:
    """The word for a module that an import of a function gives it and nothing else there does, before an offset."""
    for function in facts.functions:
        for statement in function.body if function.name == inside else ():
            if isinstance(statement, Import) and statement.end <= at:
                for word, name in statement.names:
                    if name == module and not _means_more(facts, function, word, module):
                        return word
    return ""


def _means_more(facts: Facts, function: Function, word: str, module: str) -> bool:
    """Whether a function binds the word of one of its imports to something else, too."""
    imports = (each for each in statements(function.body) if isinstance(each, Import))
    return shadowed(facts, word, function.name) or any(
        (word, module) not in each.names for each in imports if word in dict(each.names)
    )


def _is_bound(facts: Facts, word: str, module: str) -> bool:
    """Whether an import of the top level that runs binds a word to a module; else only ``TYPE_CHECKING`` may say so."""
    return any(
        isinstance(inner, Import) and (word, module) in inner.names
        for statement in facts.body
        if not (isinstance(statement, If) and constant_truth(statement.test, Setting()) is False)
        for inner in statements((statement,))
    )


def insert_import(facts: Facts, text: str, statement: str) -> Edit:
    """Write an import on a line of its own: below those of its kind among the imports that open the file, else below all.

    Without any it goes below the documentation string, or below the comments at the top. Imports that share a line with
    something else are passed.
    """
    opening = list(takewhile(lambda each: isinstance(each, Import), facts.body))
    if not opening:
        return write_lines(text, below_docstring(text), statement, 1)
    module = statement.split()[1]
    wanted = _kind(module)
    alike = [each for each in opening if _kinds(each) == {wanted}]
    if wanted == "standard" and not alike and {_kind(each) for each in _modules(opening)} != {"__future__"}:
        return _above_all(text, opening, statement)
    other = next((each for each in opening if _kinds(each) == {""}), None)
    if wanted == "usual" and not alike and other is not None:
        return _above_others(text, other, statement)
    if not wanted or not alike:
        place = line_end(text, opening[-1].end)
        group = {_kind(name) for name in _modules(opening[-1:])}
        apart = group == {"__future__"} or (wanted == "usual" and group == {"standard"})
        return Edit(Span(place, place), newline(text) * (1 + apart) + statement)
    plain = statement.startswith("import ")
    before = [each for each in alike if _order(text, each) <= (not plain, module)]
    if before:
        place = line_end(text, before[-1].end)
        return Edit(Span(place, place), newline(text) + statement)
    first = _above_names(text, opening, alike[0]) if plain else alike[0]
    place = lines_of(text).start_of_line(first.start)
    return Edit(Span(place, place), statement + newline(text))


def _above_names(text: str, opening: list[Statement], first: Statement) -> Statement:
    """The first of the ``from`` imports of others that stand directly above one: a plain import goes above these, too."""
    for statement in reversed(opening[: opening.index(first)]):
        beside = not text[statement.end : first.start].strip() and text[statement.end : first.start].count("\n") == 1
        if not beside or _order(text, statement)[0] is False or _kinds(statement) != {""}:
            break
        first = statement
    return first


def _above_others(text: str, other: Statement, statement: str) -> Edit:
    """Above the first import that is neither the standard library's nor usual, and above a comment on it."""
    lines = lines_of(text)
    start = lines.start_of_line(other.start)
    above = comments_above(lines, start, "")
    if above in (0, start):  # what opens the file is about the file
        return Edit(Span(start, start), statement + newline(text))
    return Edit(Span(above, above), statement + newline(text) * 2)


def _order(text: str, statement: Statement) -> tuple[bool, str]:
    """Where an import stands among those of its kind: plain ones first, by name."""
    return not text.startswith("import", statement.start), min(_modules([statement]))


def _above_all(text: str, opening: list[Statement], statement: str) -> Edit:
    """Above the first import that is not from the future, with a blank line between."""
    first = next(each for each in opening if _kinds(each) != {"__future__"})
    place = lines_of(text).start_of_line(first.start)
    return Edit(Span(place, place), statement + newline(text) * 2)


def _kinds(statement: Statement) -> set[str]:
    return {_kind(name) for name in _modules([statement])}


def _modules(opening: list[Statement]) -> list[str]:
    return [name for each in opening if isinstance(each, Import) for name in each.modules]


def _kind(module: str) -> str:
    """Which imports one belongs to: the standard library's, the usual packages', others (empty)."""
    root = module.partition(".")[0]
    if root == "__future__":
        return root
    return "standard" if root in sys.stdlib_module_names else "usual" if root in _USUAL else ""


def means_builtin(project: Project, path: str, word: str) -> bool:
    """Whether nothing in a file has the word of a builtin: no function or class, no variable, nothing of a star import.

    What a package that is not followed brings in by a star is taken to be no builtin's word.
    """
    facts = project.files[path]
    if shadowed(facts, word) or any(word == taken for taken, _ in facts.exports):
        return False
    return not any(":" in found for found in project.resolver.modules.attribute(path, word) or ())
