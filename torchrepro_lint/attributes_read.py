"""Which attributes a file reads, in the order of its bodies."""

from __future__ import annotations

from torchrepro_lint.facts import Attribute, Comprehension, Define, Expression, Facts, Lambda, Ref, Statement
from torchrepro_lint.spots import targets
from torchrepro_lint.walk import blocks, expressions, parts


def attributes_read(facts: Facts) -> list[Ref | Attribute]:
    """All references with attributes, and attributes of what is no name, but for those that a statement assigns to as such."""
    found: list[Ref | Attribute] = []
    for body in (facts.body, *(each.body for each in facts.functions)):
        _in_body(body, found)
    return found


def _in_body(body: tuple[Statement, ...], found: list[Ref | Attribute]) -> None:
    for statement in body:
        written = set(map(id, targets(statement)))
        for expression in expressions(statement):
            if type(expression) is not Ref or id(expression) not in written:
                _in_expression(expression, found)
        for block in blocks(statement):
            _in_body(block, found)
        if type(statement) is Define:
            _in_body(statement.body, found)


def _in_expression(expression: Expression, found: list[Ref | Attribute]) -> None:
    kind = type(expression)
    if kind is Ref:
        if expression.path:  # type: ignore[union-attr]  # narrowed by exact type
            found.append(expression)  # type: ignore[arg-type]
        return
    if kind is Lambda:
        return
    if kind is Attribute:
        found.append(expression)  # type: ignore[arg-type]
    if kind is Comprehension:
        for clause in expression.clauses:  # type: ignore[union-attr]
            _in_expression(clause.target, found)
    for part in parts(expression):
        _in_expression(part, found)
