"""Explanations of torch's run-time errors, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

from torchrepro_lint.catalogue.errors import ATTENTION, CUBLAS, Explanation
from torchrepro_lint.catalogue.release_history import conditions_text, devices_and_phase, release_ranges
from torchrepro_lint.config.target import Target
from torchrepro_lint.engine.error_sites import ErrorSite
from torchrepro_lint.interfaces.report.json import dumps
from torchrepro_lint.source.errors import escaped, escaped_message
from torchrepro_lint.source.files import release

_WARN_ONLY = (1, 11)
_LABEL = 10
_LONGEST = 90
_WIDTH = 108
_SPECIAL = {
    CUBLAS: "cuBLAS products are not deterministic without a fixed workspace; every matrix product on CUDA may end here "
    "(nn.Linear, @, matmul, einsum, attention), also where it is not listed below",
    ATTENTION: "under warn_only=True the fused attention kernels keep their nondeterministic backward",
}

ExplainedError = tuple[Explanation, Sequence[ErrorSite]]


def render(answers: Iterable[ExplainedError], target: Target) -> str:
    """Text: one paragraph for each error name."""
    return "\n".join(_text(one, places, target) for one, places in answers)


def render_json(answers: Iterable[ExplainedError], target: Target) -> str:
    """JSON: a list of objects, one for each error name."""
    return dumps([_record(one, places, target) for one, places in answers], ordered=False)


def _text(one: Explanation, places: Sequence[ErrorSite], target: Target) -> str:
    lines = [f"{one.name}: {_SPECIAL.get(one.name, _meaning(one))}"]
    lines += _field("torch", [_span(one, target)])
    lines += _field(
        "cases",
        [
            _case(row.operation, devices_and_phase(row.devices, row.phase), conditions_text(row.when))
            for row in one.rows
        ],
    )
    lines += _field("calls", wrap(", ".join(one.calls), _WIDTH, break_long_words=False, break_on_hyphens=False))
    lines += _field("places", [_place(place) for place in places] or ["none in the given paths"])
    lines += _field("instead", _advice(one, target))
    lines += _field("evidence", dict.fromkeys(each.evidence for each in one.meant))
    return "\n".join(lines) + "\n"


def _field(label: str, values: Iterable[str]) -> list[str]:
    names = [label]
    return [f"  {names.pop() if names else '':<{_LABEL}}{value}" for value in values]


def _meaning(one: Explanation) -> str:
    operations = ", ".join(dict.fromkeys(row.operation for row in one.rows))
    if not one.reached:
        return f"a kernel of {operations}: with the flag on no public call is known to end there"
    phases = " or ".join(dict.fromkeys(devices_and_phase(row.devices, row.phase) for row in one.rows))
    return f"no deterministic {phases} of {operations}"


def _span(one: Explanation, target: Target) -> str:
    text = f"{release_ranges(one.releases)} knows this error"
    asked = f"torch {target.version}, the target ({escaped(target.decided_by)}),"
    if target.version == one.read_as:
        return f"{text}; so does {asked.rstrip(',')}"
    has = "has it, but no call is known to end there" if target.version in one.releases else "does not have it"
    return f"{text}; {asked} {has}; the lines below describe torch {one.read_as}"


def _case(operation: str, place: str, condition: str) -> str:
    return f"{operation}, {place}" + (f": {condition}" if condition else "")


def _place(place: ErrorSite) -> str:
    text = escaped_message(place.text if len(place.text) <= _LONGEST else f"{place.text[: _LONGEST - 1]}…")
    marks = [*([] if place.sure else ["may be such a case"]), *(["in the traceback"] if place.traced else [])]
    return f"{place.display}:{place.start}: {text}" + (f"  ({', '.join(marks)})" if marks else "")


def _advice(one: Explanation, target: Target) -> list[str]:
    several = len({row.operation for row in one.rows}) > 1
    by_advice: dict[str, list[str]] = {}
    for operation, write in one.instead:
        by_advice.setdefault(write, []).append(operation)
    advice = [f"{', '.join(names)}: {write}" if several else write for write, names in by_advice.items()]
    since: dict[str, list[str]] = {}
    for operation, later in one.settled:
        since.setdefault(later, []).append(operation)
    advice += [f"torch {later} or newer does not raise for {', '.join(names)}" for later, names in since.items()]
    newest = max(release(target.version), release(one.read_as))
    if newest >= _WARN_ONLY and one.name not in _SPECIAL:
        advice.append(
            "torch.use_deterministic_algorithms(True, warn_only=True) warns; the result stays nondeterministic"
        )
    return advice


def _record(one: Explanation, places: Sequence[ErrorSite], target: Target) -> dict[str, Any]:
    return {
        "name": one.name,
        "torch": {"target": target.version, "decided_by": target.decided_by, "read_as": one.read_as},
        "releases": list(one.releases),
        "reached": one.reached,
        "cases": [
            {
                "operation": row.operation,
                "behaviour": row.behaviour,
                "device": list(row.devices),
                "phase": row.phase,
                "when": conditions_text(row.when),
            }
            for row in one.rows
        ],
        "calls": list(one.calls),
        "places": [
            {
                "filename": place.path,
                "location": {"row": place.start.row, "column": place.start.column},
                "call": place.name,
                "text": place.text,
                "sure": place.sure,
                "in_traceback": place.traced,
            }
            for place in places
        ],
        "instead": [{"operation": operation, "write": write} for operation, write in one.instead],
        "settled": [{"operation": operation, "since": since} for operation, since in one.settled],
        "evidence": list(dict.fromkeys(each.evidence for each in one.meant)),
    }
