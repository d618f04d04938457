"""The fix of TRL104: move seeding calls, with the switches among them, above the statement that draws first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from torchrepro_lint.checks.fixes.cells import in_one_cell
from torchrepro_lint.checks.fixes.comments import comments_above, own_comments
from torchrepro_lint.checks.fixes.drawn_seed import fix_drawn
from torchrepro_lint.checks.fixes.insertions import line_end, newline
from torchrepro_lint.checks.fixes.seed_place import entry_place, entry_positions, first_offset
from torchrepro_lint.checks.fixes.seeding import fix_start
from torchrepro_lint.domain.programs import Program
from torchrepro_lint.domain.rng.effects import Draw, Seed
from torchrepro_lint.domain.rng.seeding import is_seeding_statement
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Fix, Lines, NoFix, Span, lines_of
from torchrepro_lint.syntax.definitions import targets
from torchrepro_lint.syntax.nodes import (
    DefinitionStatement,
    Import,
    Record,
    Ref,
    Statement,
)
from torchrepro_lint.syntax.scopes import BlockPosition, ControlFlowPosition, in_loop, is_elif
from torchrepro_lint.syntax.visitor import body_expressions, statements, subexpressions
from torchrepro_lint.trace.traces import Traces


class _Move(Record, frozen=True):
    """Lines that move from a span to a place above it; where ``copied``, they stay where they are, too."""

    place: int
    lines: str
    cut: Span
    copied: bool


# Restoring a state belongs where it is, after the model is built.
_RESTORES = lazy_pattern(r"state$")
_ABOUT_SEEDS = lazy_pattern(r"seed|random|determin|reprod|repeat", re.IGNORECASE)
_BLANK = lazy_pattern(r"[ \t]*(?:\r\n|\r|\n)")


def fix_late(project: Traces, program: Program, late: Mapping[str, tuple[Draw, Seed]], draw: Draw) -> Fix | NoFix:
    """Move the seeding, with adjacent seeding, above the statement of the entry file that draws first.

    ``late`` are the draws of all families that come before their seeders; ``draw`` is the one to fix. Adjacent seeding
    calls move together, above the first of the draws; those of another cell of a notebook are copied there, since cells
    run again by themselves. The program is seeded at its start instead where names that the calls use are bound between,
    where they are in a loop, or where no block holds both. A draw that makes the seed is replaced.
    """
    if (drawn := fix_drawn(project, program, draw)) is not None:
        return drawn
    moves = {}
    for other, seed in sorted(late.values(), key=lambda each: each[0].order):
        if (move := _find_move(project, program, other, seed)) is not None:
            moves[other] = move
    own = moves.get(draw)
    if own is None:
        return _seed_at_start(project, program, {family: each for family, each in late.items() if each[0] not in moves})
    first = next(move for move in moves.values() if move.cut.start < own.cut.end and own.cut.start < move.cut.end)
    written = Edit(Span(first.place, first.place), first.lines)
    edits = (written,) if first.copied else (written, Edit(first.cut, ""))
    return Fix(f"Seed before {draw.label} draws", edits, safe=False, seeds=True)


def _seed_at_start(project: Traces, program: Program, late: Mapping[str, tuple[Draw, Seed]]) -> Fix | NoFix:
    """Seed with the program's own seed if it is bound in time, else with the constant of a late seeder."""
    draw, _ = min(late.values(), key=lambda each: each[0].order)
    place = entry_place(project, program, draw.trace_event, list(late))
    return place if isinstance(place, NoFix) else fix_start(project, program.entry.path, place, list(late))


def _find_move(project: Traces, program: Program, draw: Draw, seed: Seed) -> _Move | None:
    path = program.entry.path
    here = _diverging_statements(
        entry_positions(project, program, draw.trace_event), entry_positions(project, program, seed.trace_event)
    )
    if here is None or _RESTORES.search(seed.label):
        return None
    drawing, seeding, function = here
    block = drawing.block
    if in_loop(function) or not is_seeding_statement(project, path, seeding.statement) or drawing.at > seeding.at:
        return None
    first = last = seeding.at
    while first - 1 > drawing.at and is_seeding_statement(project, path, block[first - 1]):
        first -= 1
    while last + 1 < len(block) and is_seeding_statement(project, path, block[last + 1]):
        last += 1
    while first <= seeding.at and _bound_between(block, drawing.at, first, last):
        first += 1
    if first > seeding.at:
        return None
    move = _move(project.text(path), drawing.statement, block[first], block[last])
    apart = not in_one_cell(project, path, drawing.statement.start, block[first].start)
    return move._replace(copied=apart) if move else None


def _diverging_statements(
    draw: list[ControlFlowPosition], seed: list[ControlFlowPosition]
) -> tuple[BlockPosition, BlockPosition, ControlFlowPosition] | None:
    """The statements of one block that lead to the draw and to the seeding, and the position of the block."""
    for one, other in zip(draw, seed, strict=False):
        if one.function != other.function:
            return None
        for number, (here, there) in enumerate(zip(one.spots, other.spots, strict=False)):
            if here.block != there.block:
                return None
            if here.at != there.at:
                return here, there, ControlFlowPosition(one.function, one.spots[: number + 1])
    return None


def _bound_between(block: tuple[Statement, ...], place: int, first: int, last: int) -> bool:
    """Whether the statements from ``place`` to ``first`` bind a name that those from ``first`` to ``last`` use.

    A repeated import of a module does not count.
    """
    used = {root for each in _references(block[first : last + 1]) for root in each.roots}
    imported = {name for each in statements(block[:place]) if isinstance(each, Import) for name in _names_bound(each)}
    bound = {name for each in statements(block[place:first]) for name in _names_bound(each)}
    return not used.isdisjoint(bound - imported)


def _references(body: tuple[Statement, ...]) -> Iterator[Ref]:
    return (each for each in body_expressions(body) if isinstance(each, Ref))


def _names_bound(statement: Statement) -> Iterator[str]:
    """The names that a statement binds, as references name them; for an import, the imported names."""
    if isinstance(statement, Import):
        yield from (name for _, name in statement.names)
    if isinstance(statement, DefinitionStatement):
        yield statement.name
    for target in targets(statement):
        for each in subexpressions(target):
            yield from each.roots if isinstance(each, Ref) else ()


def _move(text: str, before: Statement, first: Statement, last: Statement) -> _Move | None:
    """Move the lines of some statements, with the comments that are about them alone, above another statement of the block.

    None where they share a line with something else.
    """
    lines = lines_of(text)
    start, place = lines.start_of_line(first.start), lines.start_of_line(first_offset(text, before))
    indent, end = text[start : first.start], line_end(text, last.end)
    rest = text[last.end : end].strip()
    alone = not indent.strip() and (not rest or rest.startswith("#"))
    if not alone or text[place : first_offset(text, before)] != indent or is_elif(text, before):
        return None
    start = own_comments(text, Span(first.start, end), _ABOUT_SEEDS)
    place = comments_above(lines, place, indent)
    moved = text[start:end]
    if (after := _BLANK.match(text, end)) is not None:
        end = after.end()
    paragraph = not _line_above(lines, start).strip()
    if paragraph and (more := _BLANK.match(text, end)):
        end = more.end()
    if not paragraph:
        return _Move(place, moved + newline(text), Span(start, end), copied=False)
    # A paragraph stays a paragraph.
    beside = _line_above(lines, place)
    above = newline(text) if beside[len(indent) :].strip() and not beside[len(indent) :][0].isspace() else ""
    return _Move(place, above + moved + newline(text) * 2, Span(start, end), copied=False)


def _line_above(lines: Lines, start: int) -> str:
    row = lines.position(start).row
    return lines.line(row - 1) if row > 1 else ""
