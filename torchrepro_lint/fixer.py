"""Apply fixes until nothing changes, and write what came out."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import NamedTuple

from torchrepro_lint.checking import Checker, check, link
from torchrepro_lint.files import Given
from torchrepro_lint.reading import Reading, collected
from torchrepro_lint.rule import Finding
from torchrepro_lint.source import Source, encode
from torchrepro_lint.text import Fix, apply_fixes

ROUNDS = 10


class Change(NamedTuple):
    """A file that fixes changed: its source as it was read, its new text, and how many findings that ``settled``."""

    given: Given
    before: Source
    after: str
    settled: int

    def encoded(self) -> bytes:
        """The bytes of the new text."""
        return encode(self.before, self.after)


class Fixed(NamedTuple):
    """The readings with all fixes in, the changes by path, and an error for each file that a fix would have broken."""

    files: dict[str, Reading]
    changes: dict[str, Change]
    errors: tuple[str, ...]


def fix_tree(checker: Checker, files: dict[str, Reading], unsafe: bool) -> Fixed:
    """Fix the given files in memory, relinking between rounds because a fix may settle what stands in another file."""
    state = Fixed(dict(files), {}, ())
    broken: set[str] = set()
    for _ in range(ROUNDS):
        project = link(checker, state.files)
        found = {
            path: check(checker, path, state.files[path], project).findings
            for path, _ in checker.tree.given
            if path in state.files and path not in broken
        }
        after = state
        for path, given in checker.tree.given:
            after = _fix_file(after, path, given, wanted(found.get(path, ()), unsafe), broken)
        if after.changes == state.changes:
            return after
        state = after
    return state


def wanted(findings: tuple[Finding, ...], unsafe: bool) -> list[Fix]:
    """The fixes to apply: the safe ones, and the others when asked for."""
    return [one.fix for one in findings if one.fix is not None and (one.fix.safe or unsafe)]


def write(change: Change) -> str | None:
    """Replace the file on disk in one step, keeping its mode; a link's target is written. Returns an error or None.

    A file that is no longer what was read, or whose encoding does not give back the same bytes, is left alone.
    """
    path, display = os.path.realpath(change.given.path), change.given.display
    try:
        with open(path, "r+b") as file:
            if file.read() != encode(change.before, change.before.text):
                return f"{display}: not fixed: it changed meanwhile, or its encoding cannot be written back"
        _replace(path, change.encoded())
    except OSError as error:
        return f"{display}: cannot be written: {error.strerror}"
    except UnicodeEncodeError:
        return f"{display}: not fixed: the fix cannot be written in {change.before.encoding}"
    return None


def _fix_file(state: Fixed, path: str, given: Given, fixes: list[Fix], broken: set[str]) -> Fixed:
    if not fixes:
        return state
    reading = state.files[path]
    assert reading.source is not None
    text, applied = apply_fixes(reading.text, fixes)
    fresh = collected(reading.source._replace(text=text))
    if fresh.problem is not None:
        broken.add(path)
        titles = "; ".join(dict.fromkeys(fix.title for fix in applied))
        error = f"{given.display}: not fixed: the result would not parse ({titles})"
        return state._replace(errors=(*state.errors, error))
    last = state.changes.get(path, Change(given, reading.source, "", 0))
    change = last._replace(after=text, settled=last.settled + len(applied))
    return state._replace(files={**state.files, path: fresh}, changes={**state.changes, path: change})


def _replace(path: str, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=".torchrepro-lint-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
