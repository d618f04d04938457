"""The record of a whole run: it answers when the same is asked again and nothing has changed, without linking anything."""

from __future__ import annotations

import contextlib
import json
import time
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchrepro_lint.config.discovery import Plan, Tree, source_roots
from torchrepro_lint.config.target import console_scripts, libraries, target_of
from torchrepro_lint.outcome_json import from_json, to_json
from torchrepro_lint.source.decoding import is_notebook
from torchrepro_lint.source.files import State, digest, program, state, unchanged
from torchrepro_lint.stamps import tool_stamp

if TYPE_CHECKING:
    from torchrepro_lint.cache import Cache
    from torchrepro_lint.outcome import Outcome
    from torchrepro_lint.trees import Means

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
