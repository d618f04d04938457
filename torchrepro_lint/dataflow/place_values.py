"""Constant propagation of one place: the value of a variable or an attribute after each statement of a body, in a run
without options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torchrepro_lint.dataflow.constants import DefaultValue, agreed
from torchrepro_lint.dataflow.environment import Closure, Environment
from torchrepro_lint.syntax.definitions import bound_references
from torchrepro_lint.syntax.nodes import Assign, Constant, Expression, If, Loop, Ref, SimpleStatement, Statement, With
from torchrepro_lint.syntax.visitor import blocks

_Place = tuple[tuple[str, ...], tuple[str, ...]]


class PlaceRun:
    """A run through a body, which follows the value of one place: a variable, or an attribute of one."""

    def __init__(
        self, value_of: Callable[[Closure], DefaultValue | None], path: str, environment: Environment, place: _Place
    ) -> None:
        self._value_of, self._path, self._environment, self._place = value_of, path, environment, place
        # The literal that was assigned last.
        self.literal: Constant | None = None

    def through(self, body: tuple[Statement, ...], offset: int, value: DefaultValue | None) -> DefaultValue | None:
        """The value of the place at an offset, or behind the body for -1; ``value`` is that in front of it."""
        for statement in body:
            if 0 <= offset < statement.start:
                return value
            if offset < 0 or statement.end <= offset:
                value = self._after(statement, value)
                continue
            for block in blocks(statement):
                if contains(block, offset):
                    value = None if isinstance(statement, Loop) and self._assigns(block) else value
                    return self.through(block, offset, value)
            return value
        return value

    def _after(self, statement: Statement, value: DefaultValue | None) -> DefaultValue | None:
        match statement:
            case Assign(targets=targets) if any(map(self._is_place, targets)):
                if statement.op not in ("=", ":") or statement.value is None:
                    return None if statement.value is not None else value
                self.literal = statement.value if isinstance(statement.value, Constant) else None
                return self._value_of(Closure(self._path, statement.value, self._environment))
            case Assign(targets=targets):
                return None if any(map(self._binds, targets)) else value
            case If(test=test, body=body, orelse=orelse) if self._assigns(body) or self._assigns(orelse):
                known = self._value_of(Closure(self._path, test, self._environment))
                if known is not None:
                    after = self.through(body if known.value else orelse, -1, value)
                    taken = self._assigns(body if known.value else orelse)
                    return after and (after._replace(declared=after.declared or known.declared) if taken else after)
                ends = [self.through(each, -1, value) for each in (body, orelse) if not leaves(each)]
                return agreed(ends)
            case With(body=body):
                return self.through(body, -1, value)
        return None if any(map(self._assigns, blocks(statement))) else value

    def _assigns(self, body: tuple[Statement, ...]) -> bool:
        return any(
            self._binds(each)
            for statement in all_statements(body)
            if isinstance(statement, Assign)
            for each in statement.targets
        )

    def _binds(self, target: Expression) -> bool:
        return any(map(self._is_place, bound_references(target)))

    def _is_place(self, target: Expression | None) -> bool:
        return isinstance(target, Ref) and (target.roots, target.path) == self._place


def all_statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        for block in blocks(statement):
            yield from all_statements(block)


def contains(body: tuple[Statement, ...], offset: int) -> bool:
    return bool(body) and body[0].start <= offset < body[-1].end


def leaves(body: tuple[Statement, ...]) -> bool:
    """Whether a block ends with a jump out of it."""
    return isinstance(body[-1] if body else None, SimpleStatement) and body[-1].kind in (  # type: ignore[union-attr]
        "return", "raise", "continue", "break",
    )  # fmt: skip
