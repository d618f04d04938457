"""What a setting may be: readers of values from TOML or JSON.

Which rules run: codes, prefixes and names, of which the more specific one decides.

The settings of a project: what ``[tool.torchrepro-lint]`` or ``torchrepro-lint.toml`` may say, checked and frozen.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from packaging.version import Version

from torchrepro_lint.source import files
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import load as load_toml
from torchrepro_lint.source.globs import read_line


def strings(value: object) -> tuple[str, ...]:
    """A list of strings; raises ``TypeError``."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError("expected a list of strings")
    return tuple(value)


def globs(value: object) -> tuple[str, ...]:
    """A list of globs; raises ``TypeError`` or ``ValueError``."""
    found = strings(value)
    for each in found:
        require_glob(each)
    return found


def require_glob(text: str) -> None:
    """Raise ``ValueError`` where a text is no glob."""
    try:
        read_line(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no glob: {error}") from None


def string(value: object) -> str:
    """A string; raises ``TypeError``."""
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value


def flag(value: object) -> bool:
    """True or false; raises ``TypeError``."""
    if not isinstance(value, bool):
        raise TypeError("expected true or false")
    return value


def one_of(*choices: str) -> Callable[[object], str]:
    """Reads one of some words; the reader raises ``ValueError``."""

    def read(value: object) -> str:
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, not {told(value)}")
        return str(value)

    return read


def told(value: object) -> str:
    """A wrong value as a message has it: a text or number of thousands of letters is cut short."""
    try:
        return reprlib.repr(value)
    except ValueError:  # a number whose digits Python does not write
        return "so large a number"


EVERYTHING = "ALL"
COMMAND_LINE = "the command line"
_BY_NAME = 1000


class Selectable(Protocol):
    """What is chosen from: a rule, as far as selectors look at it."""

    @property
    def code(self) -> str:
        """``TRL301``."""
        ...

    @property
    def name(self) -> str:
        """``missing-worker-seed``."""
        ...

    @property
    def default(self) -> bool:
        """Whether it belongs to the default selection."""
        ...


class Selection(NamedTuple):
    """One layer of choices; ``origin`` says where they were made. ``select=None`` keeps what the layer below has."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    origin: str = COMMAND_LINE


def selected(rules: Sequence[Selectable], layers: Iterable[Selection]) -> frozenset[str]:
    """The codes of the rules that run.

    As in Ruff: within a layer the most specific selector decides and, at equal specificity, ``ignore`` does; a later
    layer overrules an earlier one. Raises ``UsageError`` for a selector that fits no rule.
    """
    chosen = frozenset(rule.code for rule in rules if rule.default)
    for layer in layers:
        validate(rules, layer)
        start = frozenset[str]() if layer.select is not None else chosen
        chosen = frozenset(rule.code for rule in rules if _decide(rule, layer, rule.code in start))
    return chosen


def matching(rules: Iterable[Selectable], selectors: Iterable[str]) -> frozenset[str]:
    """The codes of the rules that any of the selectors fits."""
    wanted = tuple(selectors)
    return frozenset(rule.code for rule in rules if any(_specificity(rule, one) is not None for one in wanted))


def validate(rules: Sequence[Selectable], layer: Selection) -> None:
    """Raise ``UsageError`` for the first selector of a layer that fits no rule."""
    for key, selectors in (
        ("select", layer.select or ()),
        ("extend-select", layer.extend_select),
        ("ignore", layer.ignore),
    ):
        said = f"--{key}" if layer.origin == COMMAND_LINE else f"{key} of {layer.origin}"
        require_known(rules, selectors, said)


def require_known(rules: Sequence[Selectable], selectors: Iterable[str], where: str) -> None:
    """Raise ``UsageError`` for the first selector that fits no rule, suggesting the nearest one."""
    for selector in selectors:
        if all(_specificity(rule, selector) is None for rule in rules):
            names = [name for rule in rules for name in (rule.code, rule.name)]
            raise UsageError(f"unknown rule {selector!r} in {where}{did_you_mean(selector, names)}")


def did_you_mean(wanted: str, names: Iterable[str]) -> str:
    """``; did you mean 'TRL301'?``, where a name is near without regard to case; else nothing."""
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(wanted.lower(), by_lower, 1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


def _decide(rule: Selectable, layer: Selection, before: bool) -> bool:
    added = _strongest(rule, (*(layer.select or ()), *layer.extend_select))
    removed = _strongest(rule, layer.ignore)
    if added < 0 and removed < 0:
        return before
    return added > removed


def _strongest(rule: Selectable, selectors: Iterable[str]) -> int:
    ranks = (_specificity(rule, selector) for selector in selectors)
    return max((rank for rank in ranks if rank is not None), default=-1)


def _specificity(rule: Selectable, selector: str) -> int | None:
    """How closely a selector names a rule: 0 for ALL, the length of a prefix, most for a name; None if it does not."""
    if selector == EVERYTHING:
        return 0
    if selector and rule.code.startswith(selector):
        return _BY_NAME if selector == rule.code else len(selector)
    return _BY_NAME if selector == rule.name else None


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
