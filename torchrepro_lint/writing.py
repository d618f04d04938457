"""Write changed files: each in one step, and those that one fix changed together all or none."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from torchrepro_lint.config.discovery import Given
from torchrepro_lint.interrupts import uninterrupted
from torchrepro_lint.saving import forget, refusal, stage, sweep
from torchrepro_lint.source.decoding import Source, decode, encode


class Change(NamedTuple):
    """A file that fixes changed: its source as it was read, and as it is now.

    ``partners`` are the files (absolute) that a fix changed together with it, ``settled`` the codes of the findings that
    the change settles.
    """

    given: Given
    before: Source
    after: Source
    partners: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()

    def encoded(self, data: bytes) -> bytes:
        """The new bytes of the file, which were ``data``."""
        return encode(self.after, data)


class Written(NamedTuple):
    """What became of changes: errors, and the changes that were not made."""

    errors: tuple[str, ...]
    left: tuple[Change, ...]


class _Staged(NamedTuple):
    """A change whose new bytes lie beside the file, and how that was when it was read."""

    change: Change
    temporary: str
    seen: tuple[int, ...]


class _Refusal(Exception):  # noqa: N818  it says why a file is left alone, and is no error of ours
    """Why a file is not written."""


def write(change: Change) -> str | None:
    """Replace one file on disk; see ``write_all``. Returns an error or None."""
    return next(iter(write_all((change,)).errors), None)


def write_all(changes: Iterable[Change], beside: Iterable[str] = ()) -> Written:
    """Replace files on disk, keeping their modes; a link's target is written.

    A file that is no longer what was read, or whose encoding does not give back the same bytes, is left alone, and with it
    those that a fix changed together with it. So is one that has other hard links, or belongs to someone else. However a
    run ends, each file is the old one or the new one; what a killed run has left ``beside`` these and other files goes.
    """
    given = list(changes)
    for folder in sorted(
        {os.path.dirname(os.path.realpath(path)) for path in (*(each.given.path for each in given), *beside)}
    ):
        sweep(folder)
    staged: dict[str, _Staged] = {}
    try:
        errors = _stage_all(given, staged)
        _leave_partners(staged, errors)
        with uninterrupted():
            for path in list(staged):
                if error := _put_in_place(staged.pop(path)):
                    errors[path] = error
    finally:
        for each in staged.values():
            forget(each.temporary)
    left = tuple(each for each in given if each.given.path in errors)
    return Written(tuple(errors[path] for path in sorted(errors)), left)


def _stage_all(changes: list[Change], staged: dict[str, _Staged]) -> dict[str, str]:
    """Put new bytes beside each file that can be written; the errors by path."""
    errors: dict[str, str] = {}
    known: dict[str, Change] = {}
    for change in changes:
        other = known.setdefault(os.path.realpath(change.given.path), change)
        if other is not change and other.after == change.after:
            continue
        try:
            if other is not change:
                raise _Refusal(f"it is {other.given.display} by another name, which is fixed; run again")
            staged[change.given.path] = _stage(change)
        except _Refusal as refusal:
            errors[change.given.path] = f"{change.given.display}: not fixed: {refusal}"
        except OSError as error:
            errors[change.given.path] = f"{change.given.display}: cannot be written: {error.strerror or error}"
    return errors


def _leave_partners(staged: dict[str, _Staged], errors: dict[str, str]) -> None:
    """Take back what a fix changes together with a file that is not written."""
    while left := [path for path, one in staged.items() if not errors.keys().isdisjoint(one.change.partners)]:
        for path in left:
            one = staged.pop(path)
            forget(one.temporary)
            cause = "a fix changes it together with a file that is left alone"
            errors[path] = f"{one.change.given.display}: not fixed: {cause}"


def _stage(change: Change) -> _Staged:
    path = os.path.realpath(change.given.path)
    _require_ours(os.stat(path))  # before it is opened, too: opening a pipe may never end
    with open(path, "r+b") as file:
        state = os.fstat(file.fileno())
        _require_ours(state)
        data = file.read()
    if decode(data, change.before.notebook is not None) != change.before or not _comes_back(change.before, data):
        raise _Refusal("it changed meanwhile, or its encoding cannot be written back")
    try:
        encoded = change.encoded(data)
    except UnicodeEncodeError:
        raise _Refusal(f"the fix cannot be written in {change.before.encoding}") from None
    return _Staged(change, stage(encoded, path), _seen(state))


def _require_ours(state: os.stat_result) -> None:
    if refused := refusal(state):
        raise _Refusal(refused)


def _comes_back(source: Source, data: bytes) -> bool:
    try:
        return encode(source, data) == data
    except UnicodeEncodeError:
        return False


def _put_in_place(staged: _Staged) -> str:
    """Replace the file, unless it is not the one any more that was read; an error."""
    given = staged.change.given
    path = os.path.realpath(given.path)
    try:
        if _seen(os.stat(path)) != staged.seen:
            forget(staged.temporary)
            return f"{given.display}: not fixed: it changed meanwhile"
        os.replace(staged.temporary, path)
    except OSError as error:
        forget(staged.temporary)
        return f"{given.display}: cannot be written: {error.strerror}"
    return ""


def _seen(state: os.stat_result) -> tuple[int, ...]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
