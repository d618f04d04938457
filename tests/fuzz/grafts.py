"""Programs whose expressions and statements stand where those of other programs stood: mostly still Python."""

from __future__ import annotations

import ast
import warnings
from random import Random

from .corpus import Corpus


def grafted(chance: Random, corpus: Corpus) -> bytes:
    """A program with parts of its own and of another in other places."""
    text, other = corpus.program(chance), corpus.program(chance)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        kind: type[ast.AST] = chance.choice((ast.expr, ast.expr, ast.stmt))
        places, gifts = _parts(text, kind), [source for _, source in (*_parts(other, kind), *_parts(text, kind))]
        if not places or not gifts:
            break
        (start, end), old = chance.choice(places)
        text = text[:start] + _fitted(chance.choice(gifts), text, start, kind, old) + text[end:]
    return text.encode("utf-8", "replace")


def _fitted(gift: str, text: str, start: int, kind: type[ast.AST], old: str) -> str:
    """What is to stand there: in parentheses where it is an expression, indented where it is a statement."""
    if kind is ast.expr:
        return gift if gift.isidentifier() or old.startswith("(") else f"({gift})"
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    return gift.replace("\n", "\n" + indent) if not indent.strip() else gift


def _parts(text: str, kind: type[ast.AST]) -> list[tuple[tuple[int, int], str]]:
    """The spans of nodes, and what is written there; of some ASCII text that parses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    if not text.isascii() or "\r" in text or "\f" in text:
        return []
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    found = []
    for node in ast.walk(tree):
        if (
            isinstance(node, kind)
            and isinstance(node, (ast.expr, ast.stmt))
            and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
        ):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            span = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            found.append((span, text[span[0] : span[1]]))
    return found
