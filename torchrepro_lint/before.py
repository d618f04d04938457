"""Which statements of a function have run before a place in it."""

from __future__ import annotations

from collections.abc import Sequence

from torchrepro_lint.facts import Loop, Statement, Try, With
from torchrepro_lint.small import Small
from torchrepro_lint.walk import blocks, statements


class Ran(Small, frozen=True):
    """A statement; ``certain`` says that it has run whenever the place is reached."""

    statement: Statement
    certain: bool


def ran_before(body: tuple[Statement, ...], offset: int) -> Sequence[Ran]:
    """The statements of a body that may have run before the one at ``offset``, in the order of the text.

    Of the branches around the place only its own counts; of a loop around it all may have run, in an earlier round. A
    statement around the place comes before its blocks: its header has run.
    """
    found: list[Ran] = []
    _add_before(body, offset, found)
    return found


def _add_before(body: tuple[Statement, ...], offset: int, found: list[Ran]) -> None:
    for statement in body:
        if statement.start > offset:
            return
        inner = blocks(statement)
        if offset >= statement.end:
            found.append(Ran(statement, True))
            _add_inside(inner, isinstance(statement, With), found)
            continue
        if inner:
            found.append(Ran(statement, True))
        if isinstance(statement, Loop):
            found += (Ran(each, False) for each in statements(statement.body) if each.start > offset)
        for block in inner:
            if block and block[0].start <= offset < block[-1].end:
                _add_before(block, offset, found)
            elif isinstance(statement, Try):
                found += (Ran(each, False) for each in statements(block) if each.end <= offset)


def _add_inside(inner: tuple[tuple[Statement, ...], ...], certain: bool, found: list[Ran]) -> None:
    """What a statement that is over may have run in its blocks."""
    for block in inner:
        for each in block:
            found.append(Ran(each, certain))
            _add_inside(blocks(each), certain and isinstance(each, With), found)
