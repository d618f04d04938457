"""The import block of a file: its imports from the first to the last, with what stands between them.

A statement that is inserted below the block leaves the imports at the top (flake8's E402), even where a path, a constant, a
backend or a log is set among them.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchrepro_lint.syntax.control_flow import is_main_test
from torchrepro_lint.syntax.nodes import (
    Assign,
    DefinitionStatement,
    ExpressionStatement,
    If,
    Import,
    Loop,
    SimpleStatement,
    Statement,
    Try,
    With,
)
from torchrepro_lint.syntax.qualified_names import top_package
from torchrepro_lint.syntax.visitor import statements


def only_imports(statement: Statement) -> bool:
    """Whether a statement is an import, or a ``try`` or ``if`` around imports."""
    if not isinstance(statement, (Try, If)):
        return isinstance(statement, Import)
    if isinstance(statement, If) and is_main_test(statement.test):
        return False
    inner = [each for each in statements((statement,)) if each is not statement]
    return any(isinstance(each, Import) for each in inner) and not any(
        isinstance(each, DefinitionStatement) for each in inner
    )


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
