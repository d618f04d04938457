"""The whole-run result cache: the outcome of a run as JSON, returned when the same is asked again and no file has
changed.

The texts of files are not stored; they are read again when a report asks for them.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchrepro_lint.config.configurations import read_configurations
from torchrepro_lint.config.discovery import Plan, ProjectTree, source_roots
from torchrepro_lint.config.target import console_scripts, required_libraries, target_of
from torchrepro_lint.engine.diagnostic import Diagnostic, RunOutcome, UnfollowedProgram
from torchrepro_lint.engine.store.cache import tool_stamp
from torchrepro_lint.source.decoding import Source, SourceProblem, decode
from torchrepro_lint.source.files import FileSignature, digest, file_signature, is_notebook, read_program, unchanged
from torchrepro_lint.source.text import Cell, Edit, Fix, Lines, Message, Position, Reference, Span
from torchrepro_lint.syntax.nodes import Record, fields
from torchrepro_lint.trace.call_paths import CallPathStep

if TYPE_CHECKING:
    from torchrepro_lint.engine.read_project import ReadOptions
    from torchrepro_lint.engine.store.cache import Cache


_TYPES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (Diagnostic, Edit, Fix, Message, Position, Reference, Span, CallPathStep, UnfollowedProgram)
}


def outcome_to_json(outcome: RunOutcome) -> str:
    """An outcome without changes as JSON."""
    return json.dumps([encode_record(each) for each in outcome._replace(changes=())], separators=(",", ":"))


def outcome_from_json(text: str) -> RunOutcome:
    """The outcome from JSON; raises ``ValueError`` for text that ``outcome_to_json`` did not make."""
    try:
        outcome = RunOutcome(*(decode_record(each, _TYPES) for each in json.loads(text)))
        return outcome._replace(diagnostics=tuple(map(_with_texts, outcome.diagnostics)))
    except (TypeError, KeyError, IndexError) as error:
        raise ValueError(f"no outcome: {error}") from error


def encode_record(value: Any) -> Any:
    """A record as a JSON value: a list that begins with the name of its type, empty for a plain tuple; the texts of files become None."""
    if isinstance(value, Lines):
        return None
    if isinstance(value, Message):
        return ["Message", *map(encode_record, value.parts)]
    if isinstance(value, Record):
        return [type(value).__name__, *map(encode_record, fields(value))]
    if isinstance(value, tuple):
        kind = type(value).__name__ if hasattr(value, "_fields") else ""
        return [kind, *map(encode_record, value)]
    return value


def decode_record(value: Any, types: Mapping[str, Any]) -> Any:
    """The record that ``encode_record`` encoded; raises ``KeyError`` or ``TypeError`` for a value of other ``types``."""
    if not isinstance(value, list):
        return value
    kind, *own = value
    items = tuple([decode_record(each, types) for each in own])
    return types[kind](*items) if kind else items


def _with_texts(diagnostic: Diagnostic) -> Diagnostic:
    others = tuple((path, place, _FileLines(place)) for path, place, _ in diagnostic.others)
    lines, written = _FileLines(diagnostic.filename), _FileLines(diagnostic.filename, written=True)
    return diagnostic._replace(lines=lines, written=written, others=others)


class _FileLines(Lines):
    """The lines of a file, read when they are asked for."""

    def __init__(self, path: str, *, written: bool = False) -> None:
        self._path = path
        self._written = written

    @cached_property
    def _decoded(self) -> Source | SourceProblem:
        try:
            return decode(read_program(self._path), is_notebook(self._path))
        except OSError:
            return Source("")

    @cached_property
    def text(self) -> str:  # type: ignore[override]  # read when asked for
        if isinstance(self._decoded, SourceProblem):
            return self._decoded.text
        return self._decoded.text if self._written else self._decoded.program

    @cached_property
    def cells(self) -> tuple[Cell, ...]:  # type: ignore[override]  # read when asked for
        return () if isinstance(self._decoded, SourceProblem) else self._decoded.cells


# The number of records of one project; older ones are removed.
_MAX_RECORDS = 8


class RunRecord(Record, frozen=True):
    """The place of a recorded run in the cache."""

    cache: Cache
    name: str
    plan: Plan


def run_record(plan: Plan, honour_comments: bool, means: ReadOptions) -> RunRecord | None:
    """The record of a run; None if there is no cache, nothing to lint, or a text that does not come from a file."""
    if not plan.trees or plan.errors or any(given.data is not None for tree in plan.trees for _, given in tree.given):
        return None
    cache = means.cache(plan.trees[0].root.path)
    if cache is None:
        return None
    asked = repr((tool_stamp(), honour_comments, [_run_key(tree) for tree in plan.trees]))
    name = digest(asked.encode("utf-8", "surrogatepass"))
    return RunRecord(cache, f"run-{name}", plan)


def load_outcome(record: RunRecord) -> RunOutcome | None:
    """The recorded outcome, if no file has changed since."""
    data = record.cache.read(record.name)
    if data is None:
        return None
    made, files, outcome = json.loads(data)
    if not all(_is_same(path, known, made) for path, known in files.items()):
        return None
    try:
        return outcome_from_json(outcome)
    except ValueError:
        return None


def save_outcome(record: RunRecord, seen: dict[str, tuple[FileSignature, str]], outcome: RunOutcome) -> None:
    """Record the outcome of a run over files in the states ``seen``, unless it has errors or changes, is not final, or missed a file."""
    paths = {tree.place(path) for tree in record.plan.trees for path in tree.files}
    if outcome.errors or outcome.changes or not outcome.is_final or paths != seen.keys():
        return
    files = {path: [*known, name] for path, (known, name) in sorted(seen.items())}
    data = json.dumps([time.time_ns(), files, outcome_to_json(outcome)], separators=(",", ":"))
    record.cache.write(record.name, data.encode("ascii"))
    _remove_old(record.cache.place)


def _run_key(tree: ProjectTree) -> Any:
    """What the outcome of a project depends on besides the contents of its files: not the format that shows it."""
    root = tree.root._replace(settings=tree.root.settings._replace(output_format=""))
    given = [(path, one.display, one.path) for path, one in tree.given]
    place = Path(root.path)
    return (
        root,
        target_of(tree.root),
        required_libraries(place),
        read_configurations(tree),
        console_scripts(place),
        source_roots(tree),
        tree.files,
        given,
    )


def _is_same(path: str, known: list[Any], made: int) -> bool:
    try:
        if unchanged(file_signature(path), known[:4], made):
            return True
        found = digest(read_program(path), is_notebook(path))
    except OSError:
        return False
    return bool(found == known[4])


def _remove_old(place: Path) -> None:
    with contextlib.suppress(OSError):
        records = sorted(place.glob("run-*"), key=lambda each: each.stat().st_mtime_ns)
        for old in records[:-_MAX_RECORDS]:
            old.unlink()
