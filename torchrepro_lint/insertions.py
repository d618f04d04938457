"""Edits that put something new into a file: an import, a statement, a function at module level."""

from __future__ import annotations

import re
import sys
from itertools import takewhile

from torchrepro_lint.facts import Facts, If, Import, Statement
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
from torchrepro_lint.text import Edit, Lines, Span
from torchrepro_lint.truth import Setting, constant_truth
from torchrepro_lint.walk import statements

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
_WORD = re.compile(r"\w+")


def free_word(text: str, word: str) -> str:
    """A name that no word of the text is: ``word`` with as many underscores behind it as that takes."""
    used = set(_WORD.findall(text))
    while word in used:
        word += "_"
    return word


def free_name(facts: Facts, word: str, inside: str) -> str:
    """A variable that neither the top level nor a function (``inside``, empty for none) binds, ``word`` if it can be."""
    while any(word == taken for taken, _ in facts.exports) or shadowed(facts, word, inside):
        word += "_"
    return word


def shadowed(facts: Facts, word: str, inside: str | None = None) -> bool:
    """Whether a function of the file binds a word for itself; with ``inside``, one of the functions around a place.

    ``inside`` is the name of the function there, empty for the top level.
    """
    names = [name for name, _ in facts.assigned]
    names += [each.name for each in facts.functions]
    names += [each.name for each in facts.classes]
    names += [f"{function.name}.<locals>.{param.name}" for function in facts.functions for param in function.params]
    scopes = {name.removesuffix(f".<locals>.{word}") for name in names if name.endswith(f".<locals>.{word}")}
    return any(inside is None or inside == scope or inside.startswith(f"{scope}.") for scope in scopes)


def ensure_import(
    facts: Facts, text: str, module: str, short: str = "", inside: str | None = None
) -> tuple[str, tuple[Edit, ...]]:
    """How the file can write a module anywhere (or ``inside`` a function), and the import to add, unless the file has it.

    It is imported as ``short`` (``np``) where nothing is called so. Where the word means something else in the file, the
    import is given a name that nothing has. An import that is there for type checkers only does not count.
    """
    usual = short or module
    bound = [
        word
        for word, names in facts.exports
        if module in names and not shadowed(facts, word, inside) and _is_bound(facts, word, module)
    ]
    if bound:
        return min(bound, key=lambda word: (word != usual, word)), ()
    root = usual.partition(".")[0]
    others = [names for word, names in facts.exports if word == root and set(names) - {root, module}]
    if others or shadowed(facts, root, inside):
        word = free_word(text, f"{usual.rpartition('.')[2]}_")
    elif short and short != module:
        word = short
    else:
        return module, (insert_import(facts, text, f"import {module}"),)
    return word, (insert_import(facts, text, f"import {module} as {word}"),)


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
    alike = [each for each in opening if {_kind(name) for name in _modules([each])} == {wanted}]
    if wanted == "standard" and not alike and {_kind(each) for each in _modules(opening)} != {"__future__"}:
        return _above_all(text, opening, statement)
    if not wanted or not alike:
        place = line_end(text, opening[-1].end)
        return Edit(Span(place, place), newline(text) + statement)
    plain = statement.startswith("import ")
    before = [each for each in alike if _order(text, each) <= (not plain, module)]
    if before:
        place = line_end(text, before[-1].end)
        return Edit(Span(place, place), newline(text) + statement)
    place = Lines(text).start_of_line(alike[0].start)
    return Edit(Span(place, place), statement + newline(text))


def _order(text: str, statement: Statement) -> tuple[bool, str]:
    """Where an import stands among those of its kind: plain ones first, by name."""
    return not text.startswith("import", statement.start), min(_modules([statement]))


def _above_all(text: str, opening: list[Statement], statement: str) -> Edit:
    """Above the first import that is not from the future, with a blank line between."""
    first = next(each for each in opening if {_kind(name) for name in _modules([each])} != {"__future__"})
    place = Lines(text).start_of_line(first.start)
    return Edit(Span(place, place), statement + newline(text) * 2)


def _modules(opening: list[Statement]) -> list[str]:
    return [name for each in opening if isinstance(each, Import) for name in each.modules]


def _kind(module: str) -> str:
    """Which imports one belongs to: the standard library's, the usual packages', others (empty)."""
    root = module.partition(".")[0]
    if root == "__future__":
        return root
    return "standard" if root in sys.stdlib_module_names else "usual" if root in _USUAL else ""


def insert_statement(text: str, at: int, statement: str) -> Edit:
    """Write a statement on lines of its own before the one at ``at``, indented as that one is.

    It goes above the comments that stand directly over that one. Where that one does not begin its line (``if x: f()``), semicolons
    join them, and each line of it must be a simple statement.
    """
    lines = Lines(text)
    start = lines.start_of_line(at)
    indent = text[start:at]
    if indent.strip():
        return Edit(Span(at, at), f"{statement.replace(chr(10), '; ')}; ")
    start = comments_above(lines, start, indent)
    return Edit(Span(start, start), indented(text, statement, indent) + newline(text))


def insert_below(text: str, statement: Span, source: str) -> Edit:
    """Write a statement on lines of its own below another, indented as that one is; ``statement`` is that one's span.

    Where more follows on the line of that one, or something stands before it, semicolons join them, and each line of
    it must be a simple statement.
    """
    start = Lines(text).start_of_line(statement.start)
    indent = text[start : statement.start]
    end = line_end(text, statement.end)
    rest = text[statement.end : end].strip()
    if indent.strip() or (rest and not rest.startswith("#")):
        return Edit(Span(statement.end, statement.end), f"; {source.replace(chr(10), '; ')}")
    return Edit(Span(end, end), newline(text) + indented(text, source, indent))


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
