"""The target torch of a command that is about torch itself: what ``--torch-version`` asks for, else the project here."""

from __future__ import annotations

import os
from pathlib import Path

from torchrepro_lint.roots import Options, Root, Roots, unmarked
from torchrepro_lint.settings import Settings, version
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import documented_versions
from torchrepro_lint.target import Target, find_target


def options(torch_version: str | None) -> Options:
    """The settings' override by ``--torch-version``. Raises ``UsageError`` for what is no version."""
    if torch_version is None:
        return Options()
    try:
        version(torch_version)
    except ValueError as error:
        raise UsageError(f"--torch-version: {error}") from None

    def override(settings: Settings) -> Settings:
        return settings._replace(torch_version=torch_version)

    return Options(overrides=override)


def target_here(torch_version: str | None) -> Target:
    """The torch of the project around the current directory, or the one asked for."""
    return target_of(Roots(options(torch_version), unmarked(())).of(os.getcwd()))


def target_of(root: Root) -> Target:
    """The torch that a project will run."""
    return find_target(Path(root.path), root.settings.torch_version, documented_versions())


def warning(target: Target) -> str | None:
    """What to tell where another release stands in for the one asked for."""
    if target.asked is None:
        return None
    return f"torch {target.asked} ({target.decided_by}) is not in the catalogue; torch {target.version} is used instead"
