"""Parsed command-line arguments as records, and how they override the settings files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import Selection, Settings
from torchrepro_lint.config.target import torch_version_options
from torchrepro_lint.source.errors import UsageError


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

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> RuleOverrides:
        """Those among the options of a command, which lose them."""
        return cls(*(options.pop(name) for name in cls._fields))

    def config_options(
        self, config: Path | None, isolated: bool, more: Callable[[Settings], Settings] = lambda settings: settings
    ) -> ConfigOptions:
        """The options for finding settings files, which these override, and then ``more``. Raises ``UsageError``."""
        if config is not None and isolated:
            raise UsageError("--config cannot be combined with --isolated")
        options = torch_version_options(self.torch_version)
        return options._replace(
            config=config, isolated=isolated, overrides=lambda settings: more(self.apply_to(settings))
        )


_SINGLE = ("min_severity", "torch_version", "device", "parser")


class Arguments(NamedTuple):
    """The options of ``check``; ``None`` where not given."""

    paths: tuple[str, ...]
    fix: bool
    fix_only: bool
    unsafe_fixes: bool | None
    diff: bool
    exit_non_zero_on_fix: bool
    overrides: RuleOverrides
    fail_on: str | None
    ignore_noqa: bool
    add_noqa: bool
    baseline: Path | None
    write_baseline: Path | None
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
        """The settings overridden by the options beside ``overrides``."""
        names = ("unsafe_fixes", "output_format", "exclude", "fail_on")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return settings._replace(extend_exclude=(*settings.extend_exclude, *(self.extend_exclude or ())), **given)
