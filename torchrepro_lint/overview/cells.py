"""What is said of one entry point and each control."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.domain.operations.reached import on_request, raising
from torchrepro_lint.overview.controls import CONTROL_OF, CONTROLS, STATES, WORDS
from torchrepro_lint.overview.lanes import lane_key
from torchrepro_lint.overview.loader_cells import loader_cells
from torchrepro_lint.overview.records import Cell, Item
from torchrepro_lint.overview.seed_cells import at, seed_cells
from torchrepro_lint.overview.switch_cells import switch_cells

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.domain.timeline import Timeline

_BY_RULES = ("loaders", "workers", "operations", "order")
_WEIGHTS = ("note", "warning", "error")


def cells(
    context: Context, program: Program, timeline: Timeline, items: Iterable[Item], off: Collection[str] = ()
) -> tuple[Cell, ...]:
    """In the order of ``CONTROLS``; ``items`` are the findings that the run comes by, ``off`` the rules that did not run
    though they do by default.

    What the run does decides, and findings make it no better: so a cell and its findings never disagree.
    """
    by_control: dict[str, list[Item]] = {}
    for item in items:
        by_control.setdefault(item.control, []).append(item)
    found = {each.control: _troubled(each, timeline) for each in _all(context, program, timeline, by_control)}
    checked = (_unchecked(found[each.key], off) for each in CONTROLS)
    return tuple(_with_findings(cell, by_control.get(cell.control, ())) for cell in checked)


def _all(context: Context, program: Program, timeline: Timeline, items: Mapping[str, Sequence[Item]]) -> Iterable[Cell]:
    yield from seed_cells(program, timeline, items)
    yield from switch_cells(context, program, timeline, items)
    yield from loader_cells(context, program)
    yield _operations(context, program)
    yield Cell(
        "order",
        "good",
        "none found",
        "No order of a set, a directory or a hash was found to decide anything.",
    )


def _operations(context: Context, program: Program) -> Cell:
    stopping = {each.row.operation for each in raising(context, program)}
    if stopping:
        named = ", ".join(sorted(stopping))
        return Cell("operations", "risk", "one that no setting repeats", f"Deterministic mode stops at {named}.")
    waiting = {each.row.operation for each in on_request(context, program)}
    if waiting:
        count = "1 operation has" if len(waiting) == 1 else f"{len(waiting)} operations have"
        told = f"{count} a deterministic implementation, which deterministic mode asks for; none lacks one."
        return Cell("operations", "good", "none raises", told)
    return Cell(
        "operations", "unused", "none of the listed", "No operation was found that torch has trouble repeating."
    )


def _troubled(cell: Cell, timeline: Timeline) -> Cell:
    """What a run does to a switch counts also where no finding says that it is wrong."""
    for each in timeline.moments:
        wrong = each.trouble is not None and each.kind == "set" and lane_key(each) == cell.control
        if wrong and each.trouble and STATES[cell.state].rank > STATES["risk"].rank:
            told = f"{each.text} at {at(each)} {each.trouble.text}. No finding says so: a test decides it, or it is hidden."
            return Cell(cell.control, "risk", WORDS[each.trouble.code], told)
    return cell


def _unchecked(cell: Cell, off: Collection[str]) -> Cell:
    """Of what only rules look for, nothing is known where they did not run."""
    missing = sorted(code for code in off if CONTROL_OF.get(code) == cell.control)
    if missing and cell.control in _BY_RULES and cell.state == "good":
        return Cell(cell.control, "unknown", "not checked", f"Rules that would tell did not run: {', '.join(missing)}.")
    return cell


def _with_findings(cell: Cell, items: Sequence[Item]) -> Cell:
    if not items:
        return cell
    ids = tuple(item.id for item in items)
    worst = max(items, key=lambda item: _WEIGHTS.index(item.severity))
    state = "risk" if worst.severity == "note" else "bad"
    if STATES[cell.state].rank < STATES[state].rank:
        return cell._replace(findings=ids)
    more = f" And {len(items) - 1} more." if len(items) > 1 else ""
    return Cell(cell.control, state, WORDS[worst.code], f"{sentence(worst.message)}{more}", ids)


def sentence(message: str) -> str:
    """A message as a sentence: names of code at its beginning keep their letters."""
    word = message.partition(" ")[0]
    begun = message[:1].upper() + message[1:] if word.isalpha() and word.islower() else message
    return begun if begun.endswith((".", "…")) else f"{begun}."
