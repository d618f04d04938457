"""What a body does with seeds in namespaces, configurations and objects, worked out by one walk."""

from __future__ import annotations

import re
from typing import TypeAlias
from weakref import WeakKeyDictionary

from torchrepro_lint.domain.project import Project
from torchrepro_lint.syntax.nodes import Assign, Call, Expression, If, Operation, Ref, Statement
from torchrepro_lint.syntax.visitor import expressions, statements, within

WORD = re.compile(r"(?i)(manual|random|global|rng|base|init|main|train|torch|np|numpy)?_?seed|random_state")

_Body: TypeAlias = tuple[Statement, ...]


class SeedUses:
    """By variable: where seeds in it are read, and the statements that assign to them; and what tests ask for."""

    def __init__(self, body: _Body) -> None:
        self.body = body
        self.read: dict[str, list[Ref]] = {}
        self.writes: dict[str, list[Statement]] = {}
        # Answers of ``fields``, by the variable and how it is written.
        self.fields: dict[tuple[str, str], tuple[str, ...]] = {}
        self._tested: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
        every = list(statements(body))
        targets = [each for statement in every for each in targets_of(statement) if is_seed(each)]
        for statement in every:
            for target in targets_of(statement):
                if isinstance(target, Ref) and is_seed(target):
                    self.writes.setdefault(target.roots[0], []).append(statement)
            self._look_at(statement, targets)

    def tests(self, reference: Ref) -> bool:
        """Whether a test of the body asks for a seed, so that it may be None."""
        return (reference.roots, reference.path) in self._tested

    def _look_at(self, statement: Statement, targets: list[Expression]) -> None:
        found = [inner for expression in expressions(statement) for inner in within(expression)]
        called = [each.func for each in found if isinstance(each, Call)]
        for each in found:
            if isinstance(each, Ref) and is_seed(each) and each not in targets and each not in called:
                self.read.setdefault(each.roots[0], []).append(each)
        tests = [each.operands[0] for each in found if isinstance(each, Operation) and each.op in ("if", "or")]
        for test in (*tests, *((statement.test,) if isinstance(statement, If) else ())):
            self._tested.update((each.roots, each.path) for each in within(test) if isinstance(each, Ref))


def seed_uses(project: Project, body: _Body) -> SeedUses:
    """What a body of a file of the project does with seeds."""
    known = _KNOWN.get(project)
    if known is None:
        known = _KNOWN[project] = {}
    if id(body) not in known:  # it is kept, so that no other can have its identity
        known[id(body)] = SeedUses(body)
    return known[id(body)]


_KNOWN: WeakKeyDictionary[Project, dict[int, SeedUses]] = WeakKeyDictionary()


def is_seed(expression: Expression) -> bool:
    """``cfg.train.seed``: an attribute of one variable whose word says that it is a seed."""
    if not isinstance(expression, Ref) or len(expression.roots) != 1 or not expression.path:
        return False
    return bool(WORD.fullmatch(expression.path[-1]))


def targets_of(statement: Statement) -> tuple[Expression, ...]:
    """What an assignment assigns to."""
    return statement.targets if isinstance(statement, Assign) else ()
