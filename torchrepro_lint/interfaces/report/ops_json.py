"""The catalogue's operations as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchrepro_lint.catalogue.release_history import STATUSES, History, HistoryCase, Period, conditions_text
from torchrepro_lint.interfaces.report.json import dumps


def render(histories: Sequence[History], version: str, *, every: bool) -> str:
    """An object with the target ``torch`` and the ``operations``: each with its cases, or with the cases of every period."""
    operations = [_periods(history) if every else _cases(history, version) for history in histories]
    return dumps({"torch": version, "operations": operations}, ordered=False)


def _head(history: History) -> dict[str, Any]:
    return {"name": history.operation, "spellings": list(dict.fromkeys(one.name for one in history.spellings))}


def _cases(history: History, version: str) -> dict[str, Any]:
    there = [case for case in history.at(version).cases if version in case.releases]
    return {
        **_head(history),
        "status": STATUSES[there[0].behaviour].label if there else None,
        "cases": [_case(case, version) for case in there],
    }


def _periods(history: History) -> dict[str, Any]:
    return {**_head(history), "periods": [_period(period) for period in history.periods]}


def _period(period: Period) -> dict[str, Any]:
    return {
        "since": period.releases[0],
        "until": period.releases[-1],
        "status": STATUSES[period.shown[0][0]].label if period.shown else None,
        "cases": [_case(case) for case in period.cases],
    }


def _case(case: HistoryCase, version: str | None = None) -> dict[str, Any]:
    found = {
        "behaviour": case.behaviour,
        "status": STATUSES[case.behaviour].label,
        "device": list(case.devices),
        "phase": case.phase,
        "conditions": [{"of": one.of, one.test: list(one.values)} for one in case.when],
        "when": conditions_text(case.when),
        "evidence": list(case.evidence),
        "instead": list(case.instead),
    }
    if version is not None:
        errors = [name for name, releases in case.errors if version in releases]
        return {**found, "errors": errors, "documented": version in case.documented}
    return {
        **found,
        "releases": list(case.releases),
        "errors": [{"name": name, "releases": list(releases)} for name, releases in case.errors],
        "documented": list(case.documented),
    }
