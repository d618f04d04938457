"""Settings: what ``[tool.torchrepro-lint]`` or ``torchrepro-lint.toml`` may say, validated into immutable records, with
rule selection.

Selectors are codes, prefixes and names of rules; the most specific one decides.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from torchrepro_lint.source import files
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import load_toml
from torchrepro_lint.source.patterns import parse_gitignore_line


def string_list(value: object) -> tuple[str, ...]:
    """A list of strings; raises ``TypeError``."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError("expected a list of strings")
    return tuple(value)


def glob_list(value: object) -> tuple[str, ...]:
    """A list of globs; raises ``TypeError`` or ``ValueError``."""
    found = string_list(value)
    for each in found:
        require_glob(each)
    return found


def require_glob(text: str) -> None:
    """Raise ``ValueError`` if a text is no glob."""
    try:
        parse_gitignore_line(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a valid glob: {error}") from None


def one_string(value: object) -> str:
    """A string; raises ``TypeError``."""
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value


def boolean(value: object) -> bool:
    """True or false; raises ``TypeError``."""
    if not isinstance(value, bool):
        raise TypeError("expected true or false")
    return value


class OneOf:
    """A validator that accepts one of some words; it raises ``ValueError``."""

    def __init__(self, choices: tuple[str, ...]) -> None:
        self.choices = choices

    def __call__(self, value: object) -> str:
        if value not in self.choices:
            hint = did_you_mean(value, self.choices) if isinstance(value, str) else ""
            raise ValueError(f"expected one of {', '.join(self.choices)}; found {abbreviated(value)}{hint}")
        return str(value)


def one_of(*choices: str) -> OneOf:
    """A validator that accepts one of some words."""
    return OneOf(choices)


def abbreviated(value: object) -> str:
    """A wrong value as a message quotes it: a long text or number is cut short."""
    try:
        return reprlib.repr(value)
    except ValueError:  # a number whose digits Python does not write
        return "a number of too many digits"


ALL_RULES = "ALL"
COMMAND_LINE = "the command line"
_EXACT = 1000
# Words that are spelt like another one than they mean.
_SYNONYMS = {"gpu": "cuda"}


class Selectable(Protocol):
    """A rule, as far as selectors look at it."""

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
    """One layer of rule selection from one ``origin``. ``select=None`` keeps the selection of the layer below."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    origin: str = COMMAND_LINE


class RuleOverrides(NamedTuple):
    """Options that override the settings files: rules, target and parser; ``None`` where not given."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    min_severity: str | None = None
    torch_version: str | None = None
    device: str | None = None
    parser: str | None = None

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> RuleOverrides:
        """Those among the options of a command, which lose them."""
        return cls(*(options.pop(name) for name in cls._fields))

    def apply_to(self, settings: Settings) -> Settings:
        """The settings overridden by these options."""
        single = ("min_severity", "torch_version", "device", "parser")
        given = {name: getattr(self, name) for name in single if getattr(self, name) is not None}
        layer = Selection(self.select, self.extend_select or (), self.ignore or ())
        return settings._replace(selections=(*settings.selections, layer), **given)


def selected_codes(rules: Sequence[Selectable], layers: Iterable[Selection]) -> frozenset[str]:
    """The codes of the rules that run.

    As in Ruff: within a layer the most specific selector decides and, at equal specificity, ``ignore`` does; a later
    layer overrides an earlier one. Raises ``UsageError`` for a selector that matches no rule.
    """
    chosen = frozenset(rule.code for rule in rules if rule.default)
    for layer in layers:
        validate_selectors(rules, layer)
        start = frozenset[str]() if layer.select is not None else chosen
        chosen = frozenset(rule.code for rule in rules if _is_selected(rule, layer, rule.code in start))
    return chosen


def matching_codes(rules: Iterable[Selectable], selectors: Iterable[str]) -> frozenset[str]:
    """The codes of the rules that any of the selectors matches."""
    wanted = tuple(selectors)
    return frozenset(rule.code for rule in rules if any(_specificity(rule, one) is not None for one in wanted))


def validate_selectors(rules: Sequence[Selectable], layer: Selection) -> None:
    """Raise ``UsageError`` for the first selector of a layer that matches no rule."""
    for key, selectors in (
        ("select", layer.select or ()),
        ("extend-select", layer.extend_select),
        ("ignore", layer.ignore),
    ):
        said = f"--{key}" if layer.origin == COMMAND_LINE else f"{key} of {layer.origin}"
        require_known(rules, selectors, said)


def require_known(rules: Sequence[Selectable], selectors: Iterable[str], where: str) -> None:
    """Raise ``UsageError`` for the first selector that matches no rule, suggesting the nearest one."""
    for selector in selectors:
        if all(_specificity(rule, selector) is None for rule in rules):
            names = [name for rule in rules for name in (rule.code, rule.name)]
            raise UsageError(f"unknown rule {selector!r} in {where}{did_you_mean(selector, names)}")


def did_you_mean(wanted: str, names: Iterable[str]) -> str:
    """``; did you mean 'TRL301'?``, if a name is near without regard to case; else empty."""
    near = nearest(wanted, names)
    return f"; did you mean {near!r}?" if near is not None else ""


def nearest(wanted: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The most similar name without regard to case; None where none is similar enough (0 to 1)."""
    by_lower = {name.lower(): name for name in names}
    if (synonym := _SYNONYMS.get(wanted.lower())) in by_lower:
        return by_lower[synonym]
    found = difflib.get_close_matches(wanted.lower(), by_lower, 1, cutoff)
    return by_lower[found[0]] if found else None


def _is_selected(rule: Selectable, layer: Selection, before: bool) -> bool:
    added = _best_specificity(rule, (*(layer.select or ()), *layer.extend_select))
    removed = _best_specificity(rule, layer.ignore)
    if added < 0 and removed < 0:
        return before
    return added > removed


def _best_specificity(rule: Selectable, selectors: Iterable[str]) -> int:
    ranks = (_specificity(rule, selector) for selector in selectors)
    return max((rank for rank in ranks if rank is not None), default=-1)


def _specificity(rule: Selectable, selector: str) -> int | None:
    """The specificity of a selector for a rule: 0 for ALL, a prefix's length, most for a name; None if it does not match."""
    if selector == ALL_RULES:
        return 0
    if selector and rule.code.startswith(selector):
        return _EXACT if selector == rule.code else len(selector)
    return _EXACT if selector == rule.name else None


PYPROJECT = "pyproject.toml"
OWN_FILE = "torchrepro-lint.toml"
TABLE = "torchrepro-lint"
DEVICES = ("auto", "cuda", "mps", "cpu")
# The parser: ``auto`` is Python's own, with libcst where that cannot parse or is not trusted; ``libcst`` is libcst alone.
PARSERS = ("auto", "libcst")
FAMILIES = ("torch", "numpy", "python")
# ``concise`` and ``flake8`` are the same.
FORMATS = ("full", "concise", "flake8", "json", "json-lines", "sarif", "github", "gitlab", "junit", "markdown")
SEVERITIES = ("note", "warning", "error")


def is_at_least(severity: str, floor: str) -> bool:
    """Whether a severity is the floor or graver."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(floor)


# Ruff's default exclusions.
DEFAULT_EXCLUDE = (
    *(".bzr", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox"),
    *(".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode"),
    *("__pypackages__", "_build", "buck-out", "dist", "node_modules", "site-packages", "venv"),
)


class Settings(NamedTuple):
    """What a project asks for. Globs are those of .gitignore, relative to the project's root.

    Findings of ``fail_on`` and above make the exit status 1. Without an ``output_format`` it depends on where the output goes.
    """

    selections: tuple[Selection, ...] = ()
    fixable: tuple[str, ...] = (ALL_RULES,)
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
    fail_on: str = "warning"
    unsafe_fixes: bool = False
    output_format: str | None = None
    parser: str = "auto"


def load_settings(path: Path) -> Settings:
    """The settings in a file; a pyproject.toml without our table has the defaults. Raises ``UsageError``."""
    return parse_settings(settings_table(path) or {}, str(path), f"tool.{TABLE}." if path.name == PYPROJECT else "")


@cache
def settings_table(path: Path) -> dict[str, Any] | None:
    """The tool's table in a settings file; ``None`` if a pyproject.toml has none. Raises ``UsageError``."""
    try:
        data: dict[str, Any] = load_toml(files.read_settings(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path}: invalid TOML: {' '.join(str(error).split())}") from None
    if path.name != PYPROJECT:
        if isinstance(data.get("tool"), dict) and TABLE in data["tool"]:
            raise UsageError(
                f"{path}: [tool.{TABLE}] is only for pyproject.toml; write the keys in this file without that heading"
            )
        return data
    tools = data.get("tool", {})
    ours = tools.get(TABLE) if isinstance(tools, dict) else None
    if ours is not None and not isinstance(ours, dict):
        raise UsageError(f"{path}: tool.{TABLE}: expected a table")
    return ours


def parse_settings(data: dict[str, Any], origin: str, prefix: str = "") -> Settings:
    """Settings from a table; ``origin`` and ``prefix`` name it in the ``UsageError`` of a bad key or value."""
    values: dict[str, Any] = {}
    for key, value in data.items():
        reader = READERS.get(key)
        if reader is None:
            raise UsageError(f"{origin}: {prefix}{key}: unknown key{_key_suggestion(key)}")
        try:
            values[key.replace("-", "_")] = reader(value)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{origin}: {prefix}{key}: {error}") from None
    select, extend = values.pop("select", None), values.pop("extend_select", ())
    layer = Selection(select, extend, values.pop("ignore", ()), origin)
    return Settings(selections=(layer,), **values)


def _key_suggestion(key: str) -> str:
    near = difflib.get_close_matches(key.replace("_", "-"), READERS, 1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def _table_of_lists(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise TypeError("expected a table of lists of strings")
    return tuple((key, string_list(item)) for key, item in sorted(value.items()))


def _per_file_ignores(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = _table_of_lists(value)
    for pattern, _ in found:
        require_glob(pattern)
    return found


def _seeders(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = _table_of_lists(value)
    family = one_of(*FAMILIES)
    return tuple((name, tuple(family(item) for item in families)) for name, families in found)


def parse_torch_version(value: object) -> str:
    """A torch version as the user writes it: ``"2.1"``, ``"2.1.2"`` or ``"minimum"``; ``ValueError`` otherwise."""
    parts = value.split("+")[0].split(".") if isinstance(value, str) else []
    if value != "minimum" and not (len(parts) >= 2 and all(map(str.isdecimal, parts[:2])) and _is_version(str(value))):
        raise ValueError(f'expected a string like "2.1" or "minimum"; found {abbreviated(value)}')
    return str(value)


def _is_version(text: str) -> bool:
    from packaging.version import Version

    try:
        Version(text)
    except ValueError:  # of too many digits, too
        return False
    return True


# The validator of each key.
READERS: dict[str, Callable[[object], object]] = {
    "select": string_list,
    "extend-select": string_list,
    "ignore": string_list,
    "fixable": string_list,
    "unfixable": string_list,
    "per-file-ignores": _per_file_ignores,
    "exclude": glob_list,
    "extend-exclude": glob_list,
    "torch-version": parse_torch_version,
    "device": one_of(*DEVICES),
    "seeders": _seeders,
    "entry-points": glob_list,
    "source-roots": string_list,
    "min-severity": one_of(*SEVERITIES),
    "fail-on": one_of(*SEVERITIES),
    "unsafe-fixes": boolean,
    "output-format": one_of(*FORMATS),
    "parser": one_of(*PARSERS),
}
