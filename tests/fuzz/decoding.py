"""A lazy syntax tree, fully decoded, to be compared with what was encoded."""

from __future__ import annotations

from torchrepro_lint.syntax.definitions import DefinitionTable
from torchrepro_lint.syntax.nodes import Function, SyntaxTree


def fully_decoded(facts: SyntaxTree) -> SyntaxTree:
    """The same tree with all parts read."""
    functions = tuple(Function(*[getattr(each, field) for field in Function._fields]) for each in facts.functions)
    return SyntaxTree(
        facts.body, functions, facts.classes, DefinitionTable(facts.assigned), facts.imports_end, facts.summary
    )
