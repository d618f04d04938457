"""What was asked for on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.config.settings import Selection, Settings


class Over(NamedTuple):
    """What is said of rules, target and parser beside the settings files; ``None`` is what was not said."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    min_severity: str | None = None
    torch_version: str | None = None
    device: str | None = None
    parser: str | None = None

    def applied(self, settings: Settings) -> Settings:
        """The settings with that instead."""
        given = {name: getattr(self, name) for name in _SINGLE if getattr(self, name) is not None}
        layer = Selection(self.select, self.extend_select or (), self.ignore or ())
        return settings._replace(selections=(*settings.selections, layer), **given)


_SINGLE = ("min_severity", "torch_version", "device", "parser")


class Arguments(NamedTuple):
    """The options of the command line; ``None`` is what was not given."""

    paths: tuple[str, ...]
    fix: bool
    fix_only: bool
    unsafe_fixes: bool | None
    diff: bool
    exit_non_zero_on_fix: bool
    select: tuple[str, ...] | None
    extend_select: tuple[str, ...] | None
    ignore: tuple[str, ...] | None
    min_severity: str | None
    ignore_noqa: bool
    add_noqa: bool
    baseline: Path | None
    write_baseline: Path | None
    torch_version: str | None
    device: str | None
    parser: str | None
    output_format: str | None
    output_file: Path | None
    exit_zero: bool
    quiet: bool
    verbose: bool
    watch: bool
    statistics: bool
    config: Path | None
    isolated: bool
    exclude: tuple[str, ...] | None
    extend_exclude: tuple[str, ...] | None
    force_exclude: bool
    stdin_filename: str | None
    show_files: bool
    show_settings: bool
    jobs: int | None
    cache_dir: str | None
    no_cache: bool

    def over(self, settings: Settings) -> Settings:
        """The settings with what the command line says instead."""
        names = ("unsafe_fixes", "output_format", "exclude")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        rules = (self.select, self.extend_select, self.ignore, self.min_severity)
        over = Over(*rules, self.torch_version, self.device, self.parser)
        return over.applied(settings)._replace(
            extend_exclude=(*settings.extend_exclude, *(self.extend_exclude or ())), **given
        )
