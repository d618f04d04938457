"""Where in a file a statement stands: its function, and the blocks around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchrepro_lint.facts import Comprehension, Define, Facts, Function, If, Loop, Statement
from torchrepro_lint.walk import blocks, expressions, last_word, within


class Spot(NamedTuple):
    """A statement in its block; ``around`` is the statement whose block that is, None for the body of the function."""

    block: tuple[Statement, ...]
    at: int
    around: Statement | None

    @property
    def statement(self) -> Statement:
        return self.block[self.at]

    @property
    def before(self) -> tuple[Statement, ...]:
        """The statements of the block that run before this one."""
        return self.block[: self.at]


class Level(NamedTuple):
    """A function of a file (None: its top level) and the spots that lead to a statement in it, outermost first."""

    function: Function | None
    spots: tuple[Spot, ...]

    @property
    def body(self) -> tuple[Statement, ...]:
        return self.spots[0].block

    @property
    def before(self) -> Iterator[Statement]:
        """The statements of the function that have run before, in order: those of the blocks around, without their own."""
        for spot in self.spots:
            yield from spot.before


def level_of(facts: Facts, offset: int) -> Level | None:
    """The function and the spots of the innermost statement at an offset; None in a class body or a lambda's file part."""
    function = function_at(facts, offset)
    spots = tuple(_spots(function.body if function else facts.body, offset, None))
    return Level(function, spots) if spots else None


def function_at(facts: Facts, offset: int) -> Function | None:
    """The innermost ``def`` whose body holds an offset."""
    around = [
        each
        for each in facts.functions
        if each.body and each.body[0].start <= offset < each.end and "<lambda>" not in each.name.rpartition(".")[2]
    ]
    return max(around, key=lambda each: each.start, default=None)


def in_loop(level: Level) -> bool:
    """Whether a statement is run more than once each time that its function is, as far as blocks tell."""
    return any(isinstance(spot.around, Loop) for spot in level.spots)


def hidden(level: Level, offset: int) -> frozenset[str]:
    """The words that comprehensions around an offset in the innermost statement bind: a variable outside is not seen there."""
    return frozenset(
        last_word(target)
        for expression in expressions(level.spots[-1].statement)
        for each in within(expression)
        if isinstance(each, Comprehension) and each.start <= offset < each.end
        for clause in each.clauses
        for target in within(clause.target)
    )


def is_elif(text: str, statement: Statement) -> bool:
    """Whether nothing can be written before a statement, since it is an ``elif``."""
    return isinstance(statement, If) and text.startswith("elif", statement.start)


def _spots(body: tuple[Statement, ...], offset: int, around: Statement | None) -> Iterable[Spot]:
    for at, statement in enumerate(body):
        if statement.start <= offset < statement.end:
            yield Spot(body, at, around)
            if not isinstance(statement, Define):
                for block in blocks(statement):
                    yield from _spots(block, offset, statement)
            return
