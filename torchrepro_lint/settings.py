"""The settings of a project: what ``[tool.torchrepro-lint]`` or ``torchrepro-lint.toml`` may say, checked and frozen."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from packaging.version import Version

from torchrepro_lint.selection import EVERYTHING, Selection
from torchrepro_lint.source import files
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import load as load_toml
from torchrepro_lint.typed import flag, globs, one_of, require_glob, strings, told

PYPROJECT = "pyproject.toml"
OWN_FILE = "torchrepro-lint.toml"
TABLE = "torchrepro-lint"
DEVICES = ("auto", "cuda", "mps", "cpu")
# What reads the code: Python's own parser, with libcst for what that cannot read or may not be trusted with; libcst alone.
PARSERS = ("auto", "libcst")
FAMILIES = ("torch", "numpy", "python")
FORMATS = ("flake8", "full", "json", "json-lines", "sarif", "github", "gitlab", "junit", "markdown")
SEVERITIES = ("note", "warning", "error")
# What Ruff leaves out by default.
DEFAULT_EXCLUDE = (
    *(
        ".bzr",
        ".direnv",
        ".eggs",
        ".git",
        ".git-rewrite",
        ".hg",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pants.d",
    ),
    *(".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode", "__pypackages__"),
    *("_build", "buck-out", "dist", "node_modules", "site-packages", "venv"),
)


class Settings(NamedTuple):
    """What a project asks for. Globs are those of .gitignore, relative to the project's root."""

    selections: tuple[Selection, ...] = ()
    fixable: tuple[str, ...] = (EVERYTHING,)
    unfixable: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    torch_version: str | None = None
    device: str = "auto"
    seeders: tuple[tuple[str, tuple[str, ...]], ...] = ()
    entry_points: tuple[str, ...] = ()
    source_roots: tuple[str, ...] = ()
    min_severity: str = "note"
    unsafe_fixes: bool = False
    output_format: str = "flake8"
    parser: str = "auto"


def load(path: Path) -> Settings:
    """The settings in a file; a pyproject.toml without our table has the defaults. Raises ``UsageError``."""
    return parse(table(path) or {}, str(path), f"tool.{TABLE}." if path.name == PYPROJECT else "")


@cache
def table(path: Path) -> dict[str, Any] | None:
    """Our table of a file as TOML has it, ``None`` where a pyproject.toml has none. Raises ``UsageError``."""
    try:
        data: dict[str, Any] = load_toml(files.settings(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path}: invalid TOML: {' '.join(str(error).split())}") from None
    if path.name != PYPROJECT:
        if isinstance(data.get("tool"), dict) and TABLE in data["tool"]:
            raise UsageError(
                f"{path}: [tool.{TABLE}] is for pyproject.toml; here the settings stand without that heading"
            )
        return data
    tools = data.get("tool", {})
    ours = tools.get(TABLE) if isinstance(tools, dict) else None
    if ours is not None and not isinstance(ours, dict):
        raise UsageError(f"{path}: tool.{TABLE}: expected a table")
    return ours


def parse(data: dict[str, Any], origin: str, prefix: str = "") -> Settings:
    """Settings from a table; ``origin`` and ``prefix`` name it in the ``UsageError`` of a bad key or value."""
    values: dict[str, Any] = {}
    for key, value in data.items():
        reader = _READERS.get(key)
        if reader is None:
            raise UsageError(f"{origin}: {prefix}{key}: unknown key{_nearest(key)}")
        try:
            values[key.replace("-", "_")] = reader(value)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{origin}: {prefix}{key}: {error}") from None
    select, extend = values.pop("select", None), values.pop("extend_select", ())
    layer = Selection(select, extend, values.pop("ignore", ()), origin)
    return Settings(selections=(layer,), **values)


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key.replace("_", "-"), _READERS, 1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def _lists(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise TypeError("expected a table of lists of strings")
    return tuple((key, strings(item)) for key, item in sorted(value.items()))


def _ignores(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = _lists(value)
    for pattern, _ in found:
        require_glob(pattern)
    return found


def _seeders(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = _lists(value)
    family = one_of(*FAMILIES)
    return tuple((name, tuple(family(item) for item in families)) for name, families in found)


def version(value: object) -> str:
    """A torch version as the user writes it: ``"2.1"``, ``"2.1.2"`` or ``"minimum"``; ``ValueError`` otherwise."""
    parts = value.split("+")[0].split(".") if isinstance(value, str) else []
    if value != "minimum" and not (len(parts) >= 2 and all(map(str.isdecimal, parts[:2])) and _is_version(str(value))):
        raise ValueError(f'expected a string like "2.1" or "minimum", not {told(value)}')
    return str(value)


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except ValueError:  # of too many digits, too
        return False
    return True


_READERS: dict[str, Callable[[object], object]] = {
    "select": strings,
    "extend-select": strings,
    "ignore": strings,
    "fixable": strings,
    "unfixable": strings,
    "per-file-ignores": _ignores,
    "exclude": globs,
    "extend-exclude": globs,
    "torch-version": version,
    "device": one_of(*DEVICES),
    "seeders": _seeders,
    "entry-points": globs,
    "source-roots": strings,
    "min-severity": one_of(*SEVERITIES),
    "unsafe-fixes": flag,
    "output-format": one_of(*FORMATS),
    "parser": one_of(*PARSERS),
}
