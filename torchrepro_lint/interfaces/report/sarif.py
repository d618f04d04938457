"""The format ``sarif``: SARIF 2.1.0 for code scanning, with rule pages as help, call paths as code flows, and fixes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchrepro_lint import __version__
from torchrepro_lint.checks.pages import find, url
from torchrepro_lint.engine.diagnostic import Diagnostic, UnfollowedProgram
from torchrepro_lint.interfaces.report.fingerprints import fingerprints
from torchrepro_lint.interfaces.report.json import dumps
from torchrepro_lint.interfaces.report.view import View, uri
from torchrepro_lint.source.text import Position
from torchrepro_lint.trace.call_paths import CallPathStep

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME = "https://github.com/torchrepro/torchrepro-lint"
_FINGERPRINT = "torchreproLint/v1"


def render(diagnostics: Sequence[Diagnostic], view: View) -> str:
    """A log of one run; it lists the rules that reported something. Programs that are not followed are notifications of the tool."""
    rules = {one.code: one.name for one in sorted(diagnostics, key=lambda one: one.code)}
    codes = list(rules)
    names = fingerprints(diagnostics, view.base)
    driver = {
        "informationUri": _HOME,
        "name": "torchrepro-lint",
        "rules": [_rule(code, name) for code, name in rules.items()],
        "semanticVersion": __version__,
        "version": __version__,
    }
    results = [
        {**_result(one, view.base), "partialFingerprints": {_FINGERPRINT: name}, "ruleIndex": codes.index(one.code)}
        for one, name in zip(diagnostics, names, strict=True)
    ]
    run: dict[str, Any] = {"columnKind": "unicodeCodePoints", "results": results, "tool": {"driver": driver}}
    if view.unfollowed:
        told = [_notification(one, view.base) for one in view.unfollowed]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": told}]
    return dumps({"$schema": _SCHEMA, "runs": [run], "version": "2.1.0"})


def _notification(one: UnfollowedProgram, base: str) -> dict[str, Any]:
    """A program that leads into code that is not followed: the first place, and why."""
    region = None if one.place.cell else _range(one.place)
    return {
        "associatedRule": {"id": "TRL003"},
        "level": "note",
        "locations": [{"physicalLocation": _physical(one.filename, base, region), **_logical(one.place)}],
        "message": {"text": _unlinked(one.message)},
    }


def _rule(code: str, name: str) -> dict[str, Any]:
    from torchrepro_lint.checks import RULES

    page = find(code)
    rule: dict[str, Any] = {"helpUri": url(code, name), "id": code, "name": name}
    if page is not None:
        rule["shortDescription"] = rule["fullDescription"] = {"text": page.summary}
        rule["help"] = {"markdown": page.text, "text": page.text}
        rule["properties"] = {"tags": ["pytorch", "reproducibility"]}
    for each in RULES:
        if each.code == code:
            rule["defaultConfiguration"] = {"enabled": each.default, "level": each.severity}
    return rule


def _result(one: Diagnostic, base: str) -> dict[str, Any]:
    """A result. In a notebook the region is a line of the JSON file; message and logical location have the cell."""
    text = f"{one.start}: {one.message}" if one.start.cell else one.message
    location = {"physicalLocation": _physical(one.filename, base, _region(one))}
    result: dict[str, Any] = {
        "level": one.severity,
        "locations": [{**location, **_logical(one.start)}],
        "message": {"text": _unlinked(text)},
        "ruleId": one.code,
    }
    if one.steps:
        steps = [{"location": _step(step, base)} for step in one.steps]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    if one.fix is not None and not one.start.cell:
        result["fixes"] = [{"artifactChanges": _changes(one, base), "description": {"text": _unlinked(one.fix.title)}}]
    return result


def _region(one: Diagnostic) -> dict[str, Any]:
    if one.start.cell:
        return {"startLine": one.lines.file_row(one.span.start)}
    snippet = one.written.text[one.span.start : one.span.end]
    return {**_range(one.start, one.end), **({"snippet": {"text": snippet}} if snippet else {})}


def _step(step: CallPathStep, base: str) -> dict[str, Any]:
    region = None if step.place.cell else _range(step.place)
    return {
        "message": {"text": _unlinked(f"{step.place}: {step.text}" if step.place.cell else step.text)},
        "physicalLocation": _physical(step.path, base, region),
        **_logical(step.place),
    }


def _unlinked(text: str) -> str:
    """A message without Markdown links, which readers would make of ``[text](place)`` in the scanned code."""
    return text.replace("](", "\\](")


def _changes(one: Diagnostic, base: str) -> list[dict[str, Any]]:
    return [
        {
            "artifactLocation": _artifact(file.filename, base),
            "replacements": [
                {
                    "deletedRegion": _range(*(file.lines.place(offset) for offset in edit.span)),
                    "insertedContent": {"text": edit.text},
                }
                for edit in file.edits
            ],
        }
        for file in one.edits()
        if file.edits
    ]


def _physical(path: str, base: str, region: dict[str, Any] | None) -> dict[str, Any]:
    return {"artifactLocation": _artifact(path, base), **({"region": region} if region else {})}


def _artifact(path: str, base: str) -> dict[str, str]:
    name = uri(path, base)
    return {"uri": name} if name.startswith("file:") else {"uri": name, "uriBaseId": "%SRCROOT%"}


def _logical(place: Position) -> dict[str, Any]:
    return {"logicalLocations": [{"name": f"cell {place.cell}"}]} if place.cell else {}


def _range(start: Position, end: Position | None = None) -> dict[str, int]:
    found = {"startColumn": start.column, "startLine": start.row}
    return {**found, "endColumn": end.column, "endLine": end.row} if end else found
