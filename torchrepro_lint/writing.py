"""Write changed files: each in one step, and those that one fix changed together all or none."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from typing import NamedTuple

from torchrepro_lint.files import Given
from torchrepro_lint.source import Source, decode, encode


class Change(NamedTuple):
    """A file that fixes changed: its source as it was read, and as it is now.

    ``partners`` are the files (absolute) that a fix changed together with it.
    """

    given: Given
    before: Source
    after: Source
    partners: tuple[str, ...] = ()

    def encoded(self, data: bytes) -> bytes:
        """The new bytes of the file, which were ``data``."""
        return encode(self.after, data)


def write(change: Change) -> str | None:
    """Replace one file on disk; see ``write_all``. Returns an error or None."""
    return next(iter(write_all((change,))), None)


def write_all(changes: Iterable[Change]) -> list[str]:
    """Replace files on disk, keeping their modes; a link's target is written. Returns the errors.

    A file that is no longer what was read, or whose encoding does not give back the same bytes, is left alone, and with it
    those that a fix changed together with it.
    """
    staged: dict[str, tuple[Change, str]] = {}
    errors: dict[str, str] = {}
    known: dict[str, Change] = {}
    for change in changes:
        other = known.setdefault(os.path.realpath(change.given.path), change)
        if other is not change and other.after == change.after:
            continue
        answer = _stage(change) if other is change else (_twice(change, other), "")
        if answer[1]:
            staged[change.given.path] = (change, answer[1])
        else:
            errors[change.given.path] = answer[0]
    while left := [path for path, (change, _) in staged.items() if not errors.keys().isdisjoint(change.partners)]:
        for path in left:
            change, temporary = staged.pop(path)
            _forget(temporary)
            errors[path] = (
                f"{change.given.display}: not fixed: a fix changes it together with a file that is left alone"
            )
    for path, (change, temporary) in staged.items():
        if error := _put_in_place(change, temporary):
            errors[path] = error
    return [errors[path] for path in sorted(errors)]


def _twice(change: Change, other: Change) -> str:
    return f"{change.given.display}: not fixed: it is {other.given.display} by another name, which is fixed; run again"


def _put_in_place(change: Change, temporary: str) -> str:
    try:
        os.replace(temporary, os.path.realpath(change.given.path))
    except OSError as error:
        _forget(temporary)
        return f"{change.given.display}: cannot be written: {error.strerror}"
    return ""


def _stage(change: Change) -> tuple[str, str]:
    """An error, or the temporary file beside the one to replace."""
    path, display = os.path.realpath(change.given.path), change.given.display
    try:
        with open(path, "r+b") as file:
            data = file.read()
        if decode(data, change.before.notebook is not None) != change.before or encode(change.before, data) != data:
            return f"{display}: not fixed: it changed meanwhile, or its encoding cannot be written back", ""
        return "", _temporary(path, change.encoded(data))
    except OSError as error:
        return f"{display}: cannot be written: {error.strerror}", ""
    except UnicodeEncodeError:
        return f"{display}: not fixed: the fix cannot be written in {change.before.encoding}", ""


def _temporary(path: str, data: bytes) -> str:
    handle, temporary = tempfile.mkstemp(prefix=".torchrepro-lint-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, os.stat(path).st_mode & 0o7777)
    except BaseException:
        _forget(temporary)
        raise
    return temporary


def _forget(temporary: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(temporary)
