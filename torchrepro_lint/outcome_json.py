"""The outcome of a run to JSON and back, for a run over the same files; their texts are read again when asked for."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from torchrepro_lint.diagnostic import Diagnostic
from torchrepro_lint.outcome import Outcome
from torchrepro_lint.source.decoding import Problem, Source, decode, is_notebook
from torchrepro_lint.source.files import program
from torchrepro_lint.source.text import Cell, Edit, Fix, Lines, Position, Span
from torchrepro_lint.trace.contexts import Step

_TYPES: dict[str, Any] = {kind.__name__: kind for kind in (Diagnostic, Edit, Fix, Position, Span, Step)}


def to_json(outcome: Outcome) -> str:
    """The text of an outcome that changed nothing."""
    return json.dumps([_encoded(each) for each in outcome._replace(changes=())], separators=(",", ":"))


def from_json(text: str) -> Outcome:
    """The outcome of a text; raises ``ValueError`` for one that ``to_json`` did not make."""
    try:
        return Outcome(*map(_decoded, json.loads(text)))
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"no outcome: {error}") from error


def _encoded(value: Any) -> Any:
    if isinstance(value, Lines):
        return None
    if isinstance(value, tuple):
        kind = type(value).__name__ if hasattr(value, "_fields") else ""
        return [kind, *map(_encoded, value)]
    return value


def _decoded(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, *fields = value
    items = tuple(map(_decoded, fields))
    if not kind:
        return items
    found = _TYPES[kind](*items)
    return _with_texts(found) if kind == "Diagnostic" else found


def _with_texts(diagnostic: Any) -> Diagnostic:
    others = tuple((path, place, _FileLines(place)) for path, place, _ in diagnostic.others)
    lines, written = _FileLines(diagnostic.filename), _FileLines(diagnostic.filename, written=True)
    found: Diagnostic = diagnostic._replace(lines=lines, written=written, others=others)
    return found


class _FileLines(Lines):
    """The lines of a file that is read when they are asked for."""

    def __init__(self, path: str, *, written: bool = False) -> None:
        self._path = path
        self._written = written

    @cached_property
    def _decoded(self) -> Source | Problem:
        try:
            return decode(program(self._path), is_notebook(self._path))
        except OSError:
            return Source("")

    @cached_property
    def text(self) -> str:  # type: ignore[override]  # read when asked for
        if isinstance(self._decoded, Problem):
            return self._decoded.text
        return self._decoded.text if self._written else self._decoded.program

    @cached_property
    def cells(self) -> tuple[Cell, ...]:  # type: ignore[override]  # read when asked for
        return () if isinstance(self._decoded, Problem) else self._decoded.cells
