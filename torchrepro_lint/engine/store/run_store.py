"""The outcome of a run to JSON and back, for a run over the same files; their texts are read again when asked for.

The record of a whole run: it answers when the same is asked again and nothing has changed, without linking anything.
"""

from __future__ import annotations

import contextlib
import json
import time
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchrepro_lint.config.discovery import Plan, Tree, source_roots
from torchrepro_lint.config.target import console_scripts, libraries, target_of
from torchrepro_lint.engine.diagnostic import Diagnostic, Outcome
from torchrepro_lint.engine.store.cache import tool_stamp
from torchrepro_lint.source.decoding import Problem, Source, decode, is_notebook
from torchrepro_lint.source.files import State, digest, program, state, unchanged
from torchrepro_lint.source.text import Cell, Edit, Fix, Lines, Position, Span
from torchrepro_lint.trace.contexts import Step

if TYPE_CHECKING:
    from torchrepro_lint.engine.read_project import Means
    from torchrepro_lint.engine.store.cache import Cache


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


# How many different questions about one project are remembered.
_MOST = 8


class Record(NamedTuple):
    """Where the answer to a question lies."""

    cache: Cache
    name: str
    plan: Plan


def record_of(plan: Plan, honour_comments: bool, means: Means) -> Record | None:
    """The record of a run; None where there is no cache, nothing to lint, or a text that does not come from a file."""
    if not plan.trees or plan.errors or any(given.data is not None for tree in plan.trees for _, given in tree.given):
        return None
    cache = means.cache(plan.trees[0].root.path)
    if cache is None:
        return None
    asked = repr((tool_stamp(), honour_comments, [_question(tree) for tree in plan.trees]))
    name = blake2b(asked.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return Record(cache, f"run-{name}", plan)


def recall(record: Record) -> Outcome | None:
    """What the run found last time, if each of its files is as it was then."""
    data = record.cache.read(record.name)
    if data is None:
        return None
    made, files, outcome = json.loads(data)
    if not all(_is_same(path, known, made) for path, known in files.items()):
        return None
    try:
        return from_json(outcome)
    except ValueError:
        return None


def keep(record: Record, seen: dict[str, tuple[State, str]], outcome: Outcome) -> None:
    """Remember what a run found in files that were seen so; a run with errors, or one that missed a file, is not."""
    paths = {tree.place(path) for tree in record.plan.trees for path in tree.files}
    if outcome.errors or outcome.changes or paths != seen.keys():
        return
    files = {path: [*known, name] for path, (known, name) in sorted(seen.items())}
    data = json.dumps([time.time_ns(), files, to_json(outcome)], separators=(",", ":"))
    record.cache.write(record.name, data.encode("ascii"))
    _forget_old(record.cache.place)


def _question(tree: Tree) -> Any:
    """What an answer about a tree depends on beside the contents of its files."""
    root = tree.root
    given = [(path, one.display, one.path) for path, one in tree.given]
    place = Path(root.path)
    return root, target_of(root), libraries(place), console_scripts(place), source_roots(tree), tree.files, given


def _is_same(path: str, known: list[Any], made: int) -> bool:
    try:
        if unchanged(state(path), known[:4], made):
            return True
        found = digest(program(path), is_notebook(path))
    except OSError:
        return False
    return bool(found == known[4])


def _forget_old(place: Path) -> None:
    with contextlib.suppress(OSError):
        records = sorted(place.glob("run-*"), key=lambda each: each.stat().st_mtime_ns)
        for old in records[:-_MOST]:
            old.unlink()
