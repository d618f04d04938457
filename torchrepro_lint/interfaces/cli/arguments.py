"""Parsed command-line arguments as records, and how they override the settings files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from torchrepro_lint.config.settings import Selection, Settings


class RuleOverrides(NamedTuple):
    """Options that override the settings files: rules, target and parser; ``None`` where not given."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    min_severity: str | None = None
    torch_version: str | None = None
    device: str | None = None
    parser: str | None = None

    def apply_to(self, settings: Settings) -> Settings:
        """The settings overridden by these options."""
        given = {name: getattr(self, name) for name in _SINGLE if getattr(self, name) is not None}
        layer = Selection(self.select, self.extend_select or (), self.ignore or ())
        return settings._replace(selections=(*settings.selections, layer), **given)


_SINGLE = ("min_severity", "torch_version", "device", "parser")


class Arguments(NamedTuple):
    """The options of ``check``; ``None`` where not given."""

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
    fail_on: str | None
    ignore_noqa: bool
    add_noqa: bool
    baseline: Path | None
    write_baseline: Path | None
    torch_version: str | None
    device: str | None
    parser: str | None
    output_format: str | None
    output_file: Path | None
    color: str
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

    def apply_to(self, settings: Settings) -> Settings:
        """The settings overridden by the command line."""
        names = ("unsafe_fixes", "output_format", "exclude", "fail_on")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        rules = (self.select, self.extend_select, self.ignore, self.min_severity)
        over = RuleOverrides(*rules, self.torch_version, self.device, self.parser)
        return over.apply_to(settings)._replace(
            extend_exclude=(*settings.extend_exclude, *(self.extend_exclude or ())), **given
        )
