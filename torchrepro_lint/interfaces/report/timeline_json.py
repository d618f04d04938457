"""Timelines as JSON, with stable keys for scripts and pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchrepro_lint.domain.timeline import Timeline, TimelineDiagnostic, TimelineEvent, TimelineGap
from torchrepro_lint.interfaces.report.json import dumps
from torchrepro_lint.source.text import Position
from torchrepro_lint.syntax.qualified_names import split_name
from torchrepro_lint.trace.call_paths import CallPathStep

# Raised when a field changes its meaning or is removed, not for new fields.
FORMAT = 1


def render(timelines: Iterable[Timeline]) -> str:
    """A list of objects, one for each entry point of the file."""
    return dumps([record(one) for one in timelines], ordered=False)


def record(timeline: Timeline) -> dict[str, Any]:
    """A timeline as plain values; rows and columns start at 1."""
    return {
        "format": FORMAT,
        "entry": {"path": timeline.path, "function": timeline.function and split_name(timeline.function)[2]},
        "torch": timeline.torch,
        "device": timeline.device,
        "lanes": [lane._asdict() for lane in timeline.lanes],
        "moments": [_moment(moment) for moment in timeline.moments],
        "missing": [_trouble(trouble) for trouble in timeline.missing],
        "gaps": [_gap(gap) for gap in timeline.gaps],
    }


def _moment(moment: TimelineEvent) -> dict[str, Any]:
    return {
        "lane": moment.lane,
        "kind": moment.kind,
        "what": moment.what,
        "text": moment.text,
        "value": moment.value,
        "conditions": list(moment.conditions),
        "path": moment.path,
        **_place(moment.place),
        "times": moment.times,
        "way": [_step(step) for step in moment.way],
        "trouble": _trouble(moment.trouble) if moment.trouble else None,
    }


def _gap(gap: TimelineGap) -> dict[str, Any]:
    way = [_step(step) for step in gap.way]
    return {"reason": gap.reason, "text": gap.text, "path": gap.path, **_place(gap.place), "way": way}


def _step(step: CallPathStep) -> dict[str, Any]:
    return {"path": step.path, **_place(step.place), "text": step.text}


def _place(place: Position) -> dict[str, int]:
    found = {"row": place.row, "column": place.column}
    return {**found, "cell": place.cell} if place.cell else found


def _trouble(trouble: TimelineDiagnostic) -> dict[str, str]:
    return {"lane": trouble.lane, "code": trouble.code, "text": trouble.text}
