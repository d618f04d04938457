"""Which bindings hold at an offset of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.facts import Comprehension, Expression, Facts, Function, Statement
from torchrepro_lint.infer.bindings import Env
from torchrepro_lint.infer.flow import Flow
from torchrepro_lint.infer.targets import bound
from torchrepro_lint.walk import expressions, parts

if TYPE_CHECKING:
    from torchrepro_lint.infer.bindings import Binding


class Places:
    """The flows of the functions of one file, each made when something in it is first asked for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._flows: dict[int, Flow] = {}
        self._bodies = sorted((_inside(each), each.end, number) for number, each in enumerate(facts.functions))

    def env(self, offset: int) -> Env:
        """The bindings at an offset, those of comprehensions around it included."""
        flow = self._flow(self.function(offset))
        place = flow.place(offset)
        return flow.start if place is None else _comprehended(place.statement, offset, place.env)

    def function(self, offset: int) -> Function | None:
        """The innermost function in whose body an offset stands; None at the top level and in class bodies."""
        found = None
        for start, end, number in self._bodies:
            if start > offset:
                break
            if offset < end:
                found = self._facts.functions[number]
        return found

    def _flow(self, function: Function | None) -> Flow:
        key = -1 if function is None else id(function)
        if key not in self._flows:
            self._flows[key] = Flow(self._facts.body if function is None else function.body, function)
        return self._flows[key]


def _inside(function: Function) -> int:
    """Where the body begins: decorators, defaults and annotations belong to what stands around."""
    return function.body[0].start if function.body else function.end


def _comprehended(statement: Statement, offset: int, env: Env) -> Env:
    """The bindings inside the comprehensions of a statement that stand around an offset."""
    around = [each for each in expressions(statement) if each.start <= offset < each.end]
    while around:
        expression = around[0]
        if isinstance(expression, Comprehension):
            env = comprehended(expression, env, offset)
        around = [each for each in parts(expression) if each.start <= offset < each.end]
    return env


def comprehended(comprehension: Comprehension, env: Env, offset: int = 1 << 60) -> Env:
    """The bindings where the elements of a comprehension are evaluated, or before the clause in whose source an offset is."""
    for clause in comprehension.clauses:
        if _stands_in(clause.source, offset):
            return env
        changes: dict[str, Binding] = bound(clause.target, clause.source, env, "[]")
        env = {**env, **changes}
    return env


def _stands_in(expression: Expression, offset: int) -> bool:
    return expression.start <= offset < expression.end
