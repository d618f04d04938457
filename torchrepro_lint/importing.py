"""What an import statement binds, and from where, as it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst


def dotted(node: cst.CSTNode | None) -> str:
    """The text of a dotted name; empty for None."""
    match node:
        case cst.Name(value=word):
            return word
        case cst.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr.value}"
        case _:
            return ""


def imported_module(node: cst.ImportFrom) -> str:
    """The module of a ``from`` import as written, with its dots: ``..utils``."""
    return "." * len(node.relative) + dotted(node.module)


def join(module: str, word: str) -> str:
    """A word of a module as written: ``.`` and ``utils`` give ``.utils``."""
    return f"{module}{word}" if module.endswith(".") else f"{module}.{word}"


def import_bindings(node: cst.Import | cst.ImportFrom) -> Iterator[tuple[str, str]]:
    """What an import binds: (word, name). ``import a.b`` binds ``a``; a star binds nothing here."""
    if isinstance(node, cst.ImportFrom):
        module = imported_module(node)
        aliases: Sequence[cst.ImportAlias] = () if isinstance(node.names, cst.ImportStar) else node.names
        for alias in aliases:
            word = dotted(alias.name)
            yield (dotted(alias.asname.name) if alias.asname else word), join(module, word)
    else:
        for alias in node.names:
            name = dotted(alias.name)
            if alias.asname:
                yield dotted(alias.asname.name), name
            else:
                yield (name.partition(".")[0],) * 2
