"""Seeding calls that stand together, with the switches among them.

TRL104: move seeding above the statement that draws first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.checks.fixes.insertions import comments_above, line_end, newline
from torchrepro_lint.checks.fixes.program_seed import FALLBACK
from torchrepro_lint.checks.fixes.seeding import entry_levels, entry_place, first_offset, fix_drawn, fix_start
from torchrepro_lint.source.text import Edit, Fix, Lines, Span, lines_of
from torchrepro_lint.syntax.control_flow import Level, Spot, in_loop, is_elif, level_of
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Constant,
    Define,
    Do,
    Expression,
    If,
    Import,
    Loop,
    Ref,
    Statement,
    With,
)
from torchrepro_lint.syntax.visitor import blocks, expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.domain.rng.effects import Draw, Seed


_FLAGS = "torch.backends."


def last_of_block(project: Project, path: str, seeding: Statement) -> Statement:
    """The last of the statements that follow a seeding one and only seed or set torch's switches, too."""
    level = level_of(project.files[path], seeding.start)
    if level is None:
        return seeding
    spot, last = level.spots[-1], seeding
    for statement in spot.block[spot.at + 1 :]:
        if not only_seeds(project, path, statement):
            break
        last = statement
    return last


def only_seeds(project: Project, path: str, statement: Statement) -> bool:
    """Whether a statement only seeds or sets torch's switches, in a branch or not."""
    match statement:
        case Do(value=Call() as call):
            return project.only_seeds(path, call)
        case Assign(targets=targets, value=Constant() | Ref()):
            return all(any(name.startswith(_FLAGS) for name in project.names(path, target)) for target in targets)
        case If(orelse=()):
            return any(
                project.only_seeds(path, each.value)
                for each in statements((statement,))
                if isinstance(each, Do) and isinstance(each.value, Call)
            ) and all(only_seeds(project, path, each) for block in blocks(statement) for each in block)
    return False


class _Move(NamedTuple):
    """Lines that are cut out of a span and written at a place above it."""

    place: int
    lines: str
    cut: Span


# Putting back a state belongs where it stands, after the model is built.
_RESTORES = re.compile(r"state$")
_BLANK = re.compile(r"[ \t]*(?:\r\n|\r|\n)")


def fix_late(project: Project, program: Program, late: Mapping[str, tuple[Draw, Seed]], draw: Draw) -> Fix | None:
    """Move the seeding, with what seeds beside it, above the statement of the entry file that draws first.

    ``late`` are the draws of all families that come before their seeders, ``draw`` is the one to settle; calls that stand
    together move together, above the first of the draws. Where something that they use is defined in between, where they
    stand in a loop, or where no block holds both, the program is seeded at its start instead, too. A draw that makes the
    seed is replaced.
    """
    if drawn := fix_drawn(project, program, draw):
        return drawn
    moves = {}
    for other, seed in sorted(late.values(), key=lambda each: each[0].order):
        if (move := _move_of(project, program, other, seed)) is not None:
            moves[other] = move
    own = moves.get(draw)
    if own is None:
        return _at_the_start(project, program, {family: each for family, each in late.items() if each[0] not in moves})
    first = next(move for move in moves.values() if move.cut.start < own.cut.end and own.cut.start < move.cut.end)
    edits = (Edit(Span(first.place, first.place), first.lines), Edit(first.cut, ""))
    return Fix(f"seed before {draw.label} draws", edits, safe=False)


def _at_the_start(project: Project, program: Program, late: Mapping[str, tuple[Draw, Seed]]) -> Fix | None:
    """Seed with the program's own seed, where it is known in time, else with the constant that seeds later, else with one."""
    draw, seed = min(late.values(), key=lambda each: each[0].order)
    place = entry_place(project, program, draw.happening)
    if place is None:
        return None
    if place.seed.text == FALLBACK and isinstance(seed.happening.event.value, Call):
        given = [arg.value for arg in seed.happening.event.value.args[:1]]
        if given and isinstance(given[0], Constant) and type(given[0].value) is int:
            place = place._replace(seed=place.seed._replace(text=str(given[0].value)))
    return fix_start(project, program.entry.path, place, list(late))


def _move_of(project: Project, program: Program, draw: Draw, seed: Seed) -> _Move | None:
    path = program.entry.path
    here = _parting(entry_levels(project, program, draw.happening), entry_levels(project, program, seed.happening))
    if here is None or _RESTORES.search(seed.label):
        return None
    drawing, seeding, function = here
    block = drawing.block
    if in_loop(function) or not only_seeds(project, path, seeding.statement) or drawing.at > seeding.at:
        return None
    first = last = seeding.at
    while first - 1 > drawing.at and only_seeds(project, path, block[first - 1]):
        first -= 1
    while last + 1 < len(block) and only_seeds(project, path, block[last + 1]):
        last += 1
    while first <= seeding.at and _bound_between(block, drawing.at, first, last):
        first += 1
    return _move(project.text(path), drawing.statement, block[first], block[last]) if first <= seeding.at else None


def _parting(draw: list[Level], seed: list[Level]) -> tuple[Spot, Spot, Level] | None:
    """The statements of one block that lead to the draw and to the seeding, and how that block is reached."""
    for one, other in zip(draw, seed, strict=False):
        if one.function != other.function:
            return None
        for number, (here, there) in enumerate(zip(one.spots, other.spots, strict=False)):
            if here.block is not there.block:
                return None
            if here.at != there.at:
                return here, there, Level(one.function, one.spots[: number + 1])
    return None


def _bound_between(block: tuple[Statement, ...], place: int, first: int, last: int) -> bool:
    """Whether the statements between ``place`` and ``first`` bind a name that those from ``first`` to ``last`` use.

    A module that is imported once more does not count.
    """
    used = {root for each in _references(block[first : last + 1]) for root in each.roots}
    imported = {name for each in statements(block[:place]) if isinstance(each, Import) for name in _binds(each)}
    bound = {name for each in statements(block[place:first]) for name in _binds(each)}
    return not used.isdisjoint(bound - imported)


def _references(body: tuple[Statement, ...]) -> Iterator[Ref]:
    for statement in statements(body):
        for expression in expressions(statement):
            yield from (each for each in within(expression) if isinstance(each, Ref))


def _binds(statement: Statement) -> Iterator[str]:
    """The names that a statement binds, as references have them; what an import binds is known by what it stands for."""
    if isinstance(statement, Import):
        yield from (name for _, name in statement.names)
    if isinstance(statement, Define):
        yield statement.name
    targets: list[Expression | None] = []
    if isinstance(statement, Assign):
        targets += statement.targets
    if isinstance(statement, Loop):
        targets.append(statement.target)
    if isinstance(statement, With):
        targets += [target for _, target in statement.items]
    for target in targets:
        for each in within(target) if target is not None else ():
            yield from each.roots if isinstance(each, Ref) else ()


def _move(text: str, before: Statement, first: Statement, last: Statement) -> _Move | None:
    """Cut the lines of some statements, with the comments on them, and write them above another of the block.

    None where they share a line with something else.
    """
    lines = lines_of(text)
    start, place = lines.start_of_line(first.start), lines.start_of_line(first_offset(text, before))
    indent, end = text[start : first.start], line_end(text, last.end)
    rest = text[last.end : end].strip()
    alone = not indent.strip() and (not rest or rest.startswith("#"))
    if not alone or text[place : first_offset(text, before)] != indent or is_elif(text, before):
        return None
    start, place = comments_above(lines, start, indent), comments_above(lines, place, indent)
    moved = text[start:end]
    if (after := _BLANK.match(text, end)) is not None:
        end = after.end()
    paragraph = not _line_above(lines, start).strip()
    if paragraph and (more := _BLANK.match(text, end)):
        end = more.end()
    if not paragraph:
        return _Move(place, moved + newline(text), Span(start, end))
    # What stands as a paragraph stays one.
    beside = _line_above(lines, place)
    above = newline(text) if beside[len(indent) :].strip() and not beside[len(indent) :][0].isspace() else ""
    return _Move(place, above + moved + newline(text) * 2, Span(start, end))


def _line_above(lines: Lines, start: int) -> str:
    row = lines.position(start).row
    return lines.line(row - 1) if row > 1 else ""
