"""Client settings: the options that an editor may send, with the keys of the settings file, and the delay of debouncing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import (
    DEVICES,
    SEVERITIES,
    boolean,
    did_you_mean,
    one_of,
    one_string,
    parse_torch_version,
    string_list,
)
from torchrepro_lint.interfaces.cli.arguments import RuleOverrides

SECTION = "torchrepro-lint"


class Preferences(NamedTuple):
    """The client settings for one folder; ``delay`` is in seconds."""

    overrides: RuleOverrides = RuleOverrides()
    config: str | None = None
    isolated: bool = False
    delay: float = 0.2

    def same_findings(self, other: Preferences) -> bool:
        """Whether other settings lead to the same findings."""
        return self._replace(delay=0) == other._replace(delay=0)

    def options(self, folder: str) -> ConfigOptions:
        """The options for finding settings files; ``config`` is relative to the folder."""
        config = Path(folder, self.config) if self.config else None
        return ConfigOptions(config, self.isolated and not config, self.overrides.apply_to)


def preferences(data: Any) -> tuple[Preferences, tuple[str, ...]]:
    """The settings in an editor's JSON, and a line on each that cannot be used; keys may be in camel case.

    The settings may stand under the server's name.
    """
    if isinstance(data, dict) and isinstance(data.get(SECTION), dict):
        data = data[SECTION]
    if data is None or (isinstance(data, list) and not data):  # what Lua makes of an empty table
        data = {}
    if not isinstance(data, dict):
        return Preferences(), (f"the editor's settings of {SECTION}: expected a table",)
    values: dict[str, Any] = {}
    mistakes = []
    for key, value in data.items():
        name = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in str(key)).replace("_", "-")
        reader = _READERS.get(name)
        if reader is None:
            mistakes.append(f"the editor's settings: {key}: unknown key{did_you_mean(name, _READERS)}")
        elif value is not None:
            try:
                values[name.replace("-", "_")] = reader(value)
            except (TypeError, ValueError) as error:
                mistakes.append(f"the editor's settings: {key}: {error}")
    own = {name: values.pop(name) for name in ("config", "isolated", "delay") if name in values}
    return Preferences(RuleOverrides(**values), **own), tuple(mistakes)


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 60_000:
        raise ValueError("expected milliseconds, 0 to 60000")
    return value / 1000


_READERS: dict[str, Callable[[object], object]] = {
    "select": string_list,
    "extend-select": string_list,
    "ignore": string_list,
    "min-severity": one_of(*SEVERITIES),
    "torch-version": parse_torch_version,
    "device": one_of(*DEVICES),
    "config": one_string,
    "isolated": boolean,
    "delay": _seconds,
}
