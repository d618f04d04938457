"""``--watch``: the same run again whenever a file of the projects changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable

from torchrepro_lint import terminal
from torchrepro_lint.config.settings import table
from torchrepro_lint.source.errors import UsageError

# Python, settings, and what says which torch will run.
_SUFFIXES = (".py", ".ipynb", ".toml", ".txt", ".lock", ".yml", ".yaml", ".cfg", ".in")
_CLEAR = "\033[2J\033[H"
Batches = Iterable[object]


def watch(
    run: Callable[[], int], folders: Callable[[], Iterable[str]], batches: Callable[..., Batches] | None = None
) -> int:
    """Run, then again after each batch of changes below the folders, until interrupted; the status of the last run.

    A mistake in the settings is told and waited out. Raises ``UsageError`` where watchfiles is not installed.
    """
    changes = batches or _watchfiles()
    status = _once(run)
    try:
        for _ in changes(*_folders(folders), watch_filter=_concerns, raise_interrupt=False):
            table.cache_clear()
            if sys.stdout.isatty():
                terminal.out(_CLEAR)
            status = _once(run)
    except KeyboardInterrupt:
        pass
    return status


def _once(run: Callable[[], int]) -> int:
    try:
        status = run()
    except UsageError as error:
        terminal.note(f"torchrepro-lint: {error}")
        status = 2
    terminal.note("Watching for changes; end with Ctrl-C")
    return status


def _folders(folders: Callable[[], Iterable[str]]) -> list[str]:
    """The folders of the projects; the current one while their settings cannot be read."""
    try:
        return sorted(set(folders())) or [os.getcwd()]
    except UsageError:
        return [os.getcwd()]


def _concerns(_change: object, path: str) -> bool:
    """Whether a changed file may change the report: no hidden folder, nothing that a tool wrote for itself."""
    hidden = any(part.startswith(".") and part not in (".", "..") for part in os.path.relpath(path).split(os.sep))
    return path.endswith(_SUFFIXES) and not hidden


def _watchfiles() -> Callable[..., Batches]:
    try:
        from watchfiles import watch as batches
    except ImportError:
        raise UsageError("--watch needs watchfiles; install torchrepro-lint[watch]") from None
    return batches
