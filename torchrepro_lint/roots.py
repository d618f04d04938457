"""Where a project begins, and which file holds its settings."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.settings import OWN_FILE, PYPROJECT, Settings, load, table


class Options(NamedTuple):
    """What the command line says about settings; it overrules every file."""

    config: Path | None = None
    isolated: bool = False
    overrides: Callable[[Settings], Settings] = lambda settings: settings


class Root(NamedTuple):
    """A project's directory (absolute), the file that its settings come from, and the settings in force."""

    path: str
    config: Path | None
    settings: Settings


class Roots:
    """Finds the root of each directory, once."""

    def __init__(self, options: Options, fallback: str) -> None:
        self._options = options
        self._fallback = fallback
        self._found: dict[str, str] = {}
        self._roots: dict[str, Root] = {}

    def of(self, directory: str) -> Root:
        """The root of an absolute directory.

        It is the nearest directory with our settings, else the nearest with a pyproject.toml, else with .git, else the
        fallback (the common parent of the given paths). Raises ``UsageError`` for settings that cannot be read.
        """
        if directory not in self._found:
            self._found[directory] = self._search(directory)
        path = self._found[directory]
        if path not in self._roots:
            self._roots[path] = self._load(path)
        return self._roots[path]

    def _search(self, directory: str) -> str:
        parents = [directory, *map(str, Path(directory).parents)]
        marks: tuple[Callable[[str], bool], ...] = (
            lambda parent: self._config(parent) is not None,
            lambda parent: os.path.isfile(os.path.join(parent, PYPROJECT)),
            lambda parent: os.path.exists(os.path.join(parent, ".git")),
        )
        return next((parent for mark in marks for parent in parents if mark(parent)), self._fallback)

    def _config(self, directory: str) -> Path | None:
        """The file in a directory that holds settings for us."""
        own, shared = Path(directory, OWN_FILE), Path(directory, PYPROJECT)
        if own.is_file():
            return own
        # Files that are to be overruled are not opened: a mistake in them does not matter.
        if self._options.isolated or self._options.config or not shared.is_file():
            return None
        return shared if table(shared) is not None else None

    def _load(self, path: str) -> Root:
        options = self._options
        config = None if options.isolated else options.config or self._config(path)
        settings = load(config) if config else Settings()
        return Root(path, config, options.overrides(settings))
