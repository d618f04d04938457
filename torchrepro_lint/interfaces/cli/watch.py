"""Watching files: a run that is repeated after each change of a file of the projects (``check --watch``)."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from torchrepro_lint.config.discovery import ProjectTree
from torchrepro_lint.config.settings import settings_table
from torchrepro_lint.interfaces.cli import terminal
from torchrepro_lint.source.errors import UsageError

# Files of Python, of settings, configurations, and those that decide the target torch.
_SUFFIXES = (".py", ".ipynb", ".toml", ".json", ".txt", ".lock", ".yml", ".yaml", ".cfg", ".in")
_CLEAR = "\033[2J\033[H"
# Milliseconds without a change after which those before it are taken to be all.
_STEP = 20
# Milliseconds without a change after which there is time to prepare for the next one.
_IDLE = 200
Batches = Iterable[object]


class Watched(NamedTuple):
    """Folders to watch, with all that is below them or not."""

    folders: tuple[str, ...]
    recursive: bool = True


def watched(trees: Sequence[ProjectTree]) -> Watched:
    """The folders of projects; of one that is not taken whole the folders of its files, without what is below them.

    Beside other projects its files are watched one by one, since all that is watched is watched in one way. Many editors
    put a new file in the place of the old one, which is seen only in a folder.
    """
    if trees and all(tree.partial for tree in trees):
        files = (tree.place(path) for tree in trees for path in tree.files)
        tops = (tree.root.top for tree in trees)
        return Watched(tuple(sorted({*map(os.path.dirname, files), *tops})), recursive=False)
    places = (map(tree.place, tree.files) if tree.partial else (tree.root.top,) for tree in trees)
    return Watched(tuple(sorted({each for some in places for each in some})))


def watch(
    run: Callable[[], int],
    folders: Callable[[], Watched],
    batches: Callable[..., Batches] | None = None,
    idle: Callable[[], None] = lambda: None,
    written: Path | None = None,
) -> int:
    """Run, then again after each batch of changes in the folders, until ``KeyboardInterrupt``, which is not caught.

    ``idle`` is called again and again while nothing changes; ``written`` is the report, whose change is none. A mistake in the settings is reported, and the next change awaited. Raises ``UsageError`` where watchfiles is not installed.
    """
    changes = partial(batches or _watchfiles(), watch_filter=partial(_may_change_report, written))
    status = _run_once(run)
    for batch in _batches(changes, folders):
        settings_table.cache_clear()
        if not batch:
            _guarded(idle)
            continue
        if sys.stdout.isatty():
            terminal.out(_CLEAR)
        status = _run_once(run)
    return status


def _batches(changes: Callable[..., Batches], folders: Callable[[], Watched]) -> Iterator[object]:
    """The batches of changes, empty where nothing changes. A run may find other folders to watch: of a file that is imported now."""
    known = _folders(folders)
    waiting = iter(_changes_in(known, changes))
    while (batch := next(waiting, None)) is not None:
        yield batch
        if batch and (found := _folders(folders)) != known:
            known, waiting = found, iter(_changes_in(found, changes))


def _changes_in(places: Watched, changes: Callable[..., Batches]) -> Batches:
    return changes(*places.folders, recursive=places.recursive, **_OPTIONS)


def _guarded(work: Callable[[], None]) -> None:
    with contextlib.suppress(UsageError):  # the next run says so
        work()


def _run_once(run: Callable[[], int]) -> int:
    try:
        status = run()
    except UsageError as error:
        status = terminal.errors([str(error)])
    terminal.note("Watching for changes; press Ctrl-C to stop")
    return status


def _folders(folders: Callable[[], Watched]) -> Watched:
    """The folders of the projects; the current one while their settings cannot be read."""
    try:
        found = folders()
    except UsageError:
        found = Watched(())
    return found if found.folders else Watched((os.getcwd(),))


def _may_change_report(written: Path | None, _change: object, path: str) -> bool:
    """Whether a changed file may change the report: it has a relevant suffix, lies in no hidden folder, and is not the report that
    a run has written.
    """
    if written is not None and os.path.realpath(path) == os.path.realpath(written):
        return False
    hidden = any(part.startswith(".") and part not in (".", "..") for part in os.path.relpath(path).split(os.sep))
    return path.endswith(_SUFFIXES) and not hidden


_OPTIONS: dict[str, Any] = {
    "raise_interrupt": True,
    "step": _STEP,
    "rust_timeout": _IDLE,
    "yield_on_timeout": True,
}


def _watchfiles() -> Callable[..., Batches]:
    try:
        from watchfiles import watch as batches
    except ImportError:
        raise UsageError("--watch needs watchfiles; install torchrepro-lint[watch]") from None
    # A folder that cannot be read is reported by each run. Older releases have neither this variable nor an option for it.
    os.environ.setdefault("WATCHFILES_IGNORE_PERMISSION_DENIED", "1")
    return batches
