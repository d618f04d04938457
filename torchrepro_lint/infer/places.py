"""Which bindings hold at an offset of a file."""

from __future__ import annotations

from torchrepro_lint.infer.bindings import FLOW, Binding, Env
from torchrepro_lint.infer.flow import Flow
from torchrepro_lint.infer.targets import bound
from torchrepro_lint.syntax.nodes import Comprehension, Facts, Function, Statement
from torchrepro_lint.syntax.visitor import expressions, parts


class Places:
    """The flows of the functions of one file, each made when something in it is first asked for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._flows: dict[int, Flow] = {}
        self._inside: dict[tuple[int, int, int | None], tuple[Env, Env]] = {}
        self._owners: dict[Binding, Flow] = {}
        self._bodies = sorted((_inside(each), each.end, number) for number, each in enumerate(facts.functions))

    def env(self, offset: int) -> Env:
        """The bindings at an offset, those of comprehensions around it included."""
        flow = self.flow(self.function(offset))
        place = flow.place(offset)
        return flow.start if place is None else self._around(place.statement, offset, place.env)

    def inside(self, comprehension: Comprehension, env: Env, clauses: int | None = None) -> Env:
        """The bindings where the elements of a comprehension are evaluated, or behind so many of its clauses.

        They are made once: what is known of a binding is remembered by its identity.
        """
        key = (id(comprehension), id(env), clauses)
        if key not in self._inside:
            inner = env
            for clause in comprehension.clauses[:clauses]:
                inner = {**inner, **bound(clause.target, clause.source, inner, "[]")}
            self._inside[key] = (env, inner)
        return self._inside[key][1]

    def _around(self, statement: Statement, offset: int, env: Env) -> Env:
        """The bindings inside the comprehensions of a statement that stand around an offset."""
        around = [each for each in expressions(statement) if each.start <= offset < each.end]
        while around:
            expression = around[0]
            if isinstance(expression, Comprehension):
                sources = (each.source for each in expression.clauses)
                place = next((at for at, each in enumerate(sources) if each.start <= offset < each.end), None)
                env = self.inside(expression, env, place)
            around = [each for each in parts(expression) if each.start <= offset < each.end]
        return env

    def function(self, offset: int) -> Function | None:
        """The innermost function in whose body an offset stands; None at the top level and in class bodies."""
        found = None
        for start, end, number in self._bodies:
            if start > offset:
                break
            if offset < end:
                found = self._facts.functions[number]
        return found

    def flow(self, function: Function | None) -> Flow:
        """The flow of a function, or of the top level."""
        key = -1 if function is None else id(function)
        if key not in self._flows:
            flow = self._flows[key] = Flow(self._facts.body if function is None else function.body, function)
            self._owners[flow.start[FLOW]] = flow
        return self._flows[key]

    def owner(self, env: Env) -> Flow | None:
        """The flow that bindings are of."""
        return self._owners.get(env[FLOW]) if FLOW in env else None


def _inside(function: Function) -> int:
    """Where the body begins: decorators, defaults and annotations belong to what stands around."""
    return function.body[0].start if function.body else function.end
