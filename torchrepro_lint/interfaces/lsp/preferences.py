"""What an editor's settings may say: the words of the settings file, and how long to wait for more typing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from torchrepro_lint.config.roots import Options
from torchrepro_lint.config.settings import DEVICES, SEVERITIES, did_you_mean, flag, one_of, string, strings, version
from torchrepro_lint.interfaces.cli.arguments import Over

SECTION = "torchrepro-lint"


class Preferences(NamedTuple):
    """An editor's settings for one folder; ``delay`` is in seconds."""

    over: Over = Over()
    config: str | None = None
    isolated: bool = False
    delay: float = 0.2

    def same_findings(self, other: Preferences) -> bool:
        """Whether the same is reported under others."""
        return self._replace(delay=0) == other._replace(delay=0)

    def options(self, folder: str) -> Options:
        """What they say beside the settings files; ``config`` counts from the folder."""
        config = Path(folder, self.config) if self.config else None
        return Options(config, self.isolated and not config, self.over.applied)


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
    return Preferences(Over(**values), **own), tuple(mistakes)


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 60_000:
        raise ValueError("expected milliseconds, 0 to 60000")
    return value / 1000


_READERS: dict[str, Callable[[object], object]] = {
    "select": strings,
    "extend-select": strings,
    "ignore": strings,
    "min-severity": one_of(*SEVERITIES),
    "torch-version": version,
    "device": one_of(*DEVICES),
    "config": string,
    "isolated": flag,
    "delay": _seconds,
}
