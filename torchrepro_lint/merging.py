"""Several fixes at once: which of them fit together, and where an offset lies afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torchrepro_lint.text import Edit, Fix, Span, apply_edits


class Merged(NamedTuple):
    """The edits of fixes that fit together, by path in order, and which of the given fixes (by position) they are."""

    edits: dict[str, tuple[Edit, ...]]
    taken: tuple[int, ...]


def merge(fixes: Iterable[tuple[str, Fix]]) -> Merged:
    """Take fixes, each with the path of its finding, in the order of their first edits; skip those that touch an earlier one.

    An edit that an earlier fix makes too (the import that both need) is made once. A skipped fix is left for another round.
    """
    given = list(fixes)
    edits: dict[str, dict[Edit, None]] = {}
    taken: list[int] = []
    for number in sorted(range(len(given)), key=lambda each: (_by_path(*given[each]), given[each][1].title)):
        wanted = _by_path(*given[number])
        fresh = [(path, edit) for path, own in wanted for edit in own if edit not in edits.get(path, ())]
        if any(_clash(edit.span, other.span) for path, edit in fresh for other in edits.get(path, ())):
            continue
        for path, edit in fresh:
            edits.setdefault(path, {})[edit] = None
        taken.append(number)
    return Merged({path: tuple(sorted(edits[path])) for path in sorted(edits)}, tuple(taken))


def touched(path: str, fix: Fix) -> tuple[str, ...]:
    """The files that a fix changes, in order; ``path`` is that of its finding."""
    return tuple(each for each, _ in _by_path(path, fix))


def apply_fixes(text: str, fixes: Iterable[Fix]) -> tuple[str, tuple[Fix, ...]]:
    """Apply the fixes of one file that fit together. Returns the new text and the fixes that are in it."""
    given = list(fixes)
    merged = merge(("", fix) for fix in given)
    return apply_edits(text, merged.edits.get("", ())), tuple(given[number] for number in merged.taken)


def joined(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Edits in order, those that insert at one place as one: what was written first comes first."""
    merged: dict[Span, str] = {}
    for edit in edits:
        merged[edit.span] = merged.get(edit.span, "") + edit.text
    return tuple(Edit(place, merged[place]) for place in sorted(merged))


def moved(offset: int, edits: Iterable[Edit]) -> tuple[int, int]:
    """Where an offset lies after edits: before and behind what is written at that very place."""
    before = behind = offset
    for edit in edits:
        growth = len(edit.text) - (edit.span.end - edit.span.start)
        if edit.span.end < offset:
            before, behind = before + growth, behind + growth
        elif edit.span.end == offset:
            behind += growth
            before += growth if edit.span.start < offset else 0
    return before, behind


def _by_path(path: str, fix: Fix) -> list[tuple[str, tuple[Edit, ...]]]:
    own: Mapping[str, tuple[Edit, ...]] = {path: fix.edits} if fix.edits else {}
    return sorted((each, tuple(sorted(edits))) for each, edits in {**dict(fix.elsewhere), **own}.items())


def _clash(one: Span, other: Span) -> bool:
    """Whether two edits touch: overlapping ranges, or two insertions at one place."""
    if one.start == one.end or other.start == other.end:
        return one.start <= other.end and other.start <= one.end
    return one.start < other.end and other.start < one.end
