"""Which statements of a function have run before a place in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchrepro_lint.facts import Loop, Statement, Try, With
from torchrepro_lint.walk import blocks, statements


class Ran(NamedTuple):
    """A statement; ``certain`` says that it has run whenever the place is reached."""

    statement: Statement
    certain: bool


def ran_before(body: tuple[Statement, ...], offset: int) -> Iterator[Ran]:
    """The statements of a body that may have run before the one at ``offset``, in the order of the text.

    Of the branches around the place only its own counts; of a loop around it all may have run, in an earlier round. A
    statement around the place comes before its blocks: its header has run.
    """
    for statement in body:
        if statement.start > offset:
            return
        if offset >= statement.end:
            yield from _whole(statement, certain=True)
            continue
        inner = blocks(statement)
        if inner:
            yield Ran(statement, True)
        if isinstance(statement, Loop):
            yield from (Ran(each, False) for each in statements(statement.body) if each.start > offset)
        for block in inner:
            if block and block[0].start <= offset < block[-1].end:
                yield from ran_before(block, offset)
            elif isinstance(statement, Try):
                yield from (Ran(each, False) for each in statements(block) if each.end <= offset)


def _whole(statement: Statement, *, certain: bool) -> Iterator[Ran]:
    """A statement that is over, and what it may have run inside."""
    yield Ran(statement, certain)
    for block in blocks(statement):
        for each in block:
            yield from _whole(each, certain=certain and isinstance(statement, With))
