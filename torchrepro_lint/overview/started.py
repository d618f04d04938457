"""The entry points of a project, each with its timeline and what is said of its controls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from torchrepro_lint.domain.timeline import timeline
from torchrepro_lint.overview.cells import cells
from torchrepro_lint.overview.items import entry_id
from torchrepro_lint.overview.records import Entry, Gap, Item
from torchrepro_lint.source.errors import Fault, guarded
from torchrepro_lint.syntax.nodes import parted

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.domain.timeline import Timeline


def started(
    contexts: Mapping[str, Context], items: tuple[Item, ...], off: Collection[str], prefix: str
) -> tuple[tuple[Entry, ...], tuple[Gap, ...]]:
    """Those of the files in ``contexts`` in which something happens; the others, and those over which the tool broke, by name.

    ``off`` are the default rules that did not run.
    """
    entries: list[Entry] = []
    beside: list[Gap] = []
    by_entry = _by_entry(items)
    every = ((contexts[path], each) for path in sorted(contexts) for each in contexts[path].project.programs_of(path))
    for context, program in every:
        own = by_entry.get(entry_id(prefix, program), [])
        entry = guarded(lambda context=context, program=program, own=own: _entry(context, program, own, off, prefix))  # type: ignore[misc]
        if isinstance(entry, Fault):
            beside.append(Gap("fault", prefix + program.entry.path, f"its run broke off: {entry.message}"))
        elif entry.timeline.moments or own:
            entries.append(entry)
        else:
            beside.append(Gap("idle", entry.name, "it touches no generator, flag, variable or device that is known"))
    return tuple(entries), tuple(beside)


def _by_entry(items: tuple[Item, ...]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in items:
        for each in item.entries:
            found.setdefault(each, []).append(item)
    return found


def _entry(context: Context, program: Program, items: list[Item], off: Collection[str], prefix: str) -> Entry:
    found = _prefixed(timeline(context, program), prefix)
    return Entry(
        entry_id(prefix, program),
        prefix + program.entry.path,
        parted(program.entry.function or "")[2],
        found.torch,
        found.device,
        program.effects.matters and program.effects.acts,
        cells(context, program, found, items, off),
        found,
    )


def _prefixed(found: Timeline, prefix: str) -> Timeline:
    """A timeline with the paths of an overview of several projects."""
    if not prefix:
        return found
    moments = (
        each._replace(path=prefix + each.path, way=tuple(step._replace(path=prefix + step.path) for step in each.way))
        for each in found.moments
    )
    return found._replace(path=prefix + found.path, moments=tuple(moments))
