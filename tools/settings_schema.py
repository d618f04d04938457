"""The JSON Schemas of the settings, for editors: ``python -m tools.settings_schema``.

It writes two files below ``torchrepro_lint/config/``, from the readers of ``config.settings``, the table of rules and the help of
the command line: one for ``torchrepro-lint.toml``, and one for the table in ``pyproject.toml``. ``--check`` writes nothing and
exits with status 1 where a file differs. The draft is 07, the newest that Taplo and SchemaStore take.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.pages import pages
from torchrepro_lint.config.settings import (
    ALL_RULES,
    FAMILIES,
    READERS,
    TABLE,
    OneOf,
    Settings,
    _per_file_ignores,
    _seeders,
    boolean,
    glob_list,
    parse_torch_version,
    string_list,
)
from torchrepro_lint.interfaces.cli.app import check

_FOLDER = Path(__file__).parents[1] / "torchrepro_lint" / "config"
_BASE = "https://raw.githubusercontent.com/torchrepro/torchrepro-lint/main/torchrepro_lint/config"
_DRAFT = "http://json-schema.org/draft-07/schema#"
# Of .gitignore: a comment, or characters, escapes and brackets that are closed; an exclamation mark precedes something.
_BRACKET = r"\[([!^](\]|\\.|[^\]\\])|\]|\\.|[^!^\]\\])([^\]\\]|\\.)*\]"
_GLOB = rf"^(#.*|([^\\\[!#]|\\.|{_BRACKET})([^\\\[]|\\.|{_BRACKET})*|!([^\\\[]|\\.|{_BRACKET})+)?$"
_LOCAL = r"(\+[A-Za-z0-9._-]+)?"
_VERSION = rf"^(minimum|[0-9]+\.[0-9]+(\.[0-9A-Za-z][0-9A-Za-z._-]*)?{_LOCAL})$"
# The keys without an option of the command line that says the same.
_DESCRIPTIONS = {
    "fixable": "The rules whose fixes are offered; all by default.",
    "unfixable": "Rules whose fixes are not offered.",
    "per-file-ignores": "Rules not to run on the files that a glob fits; a leading ! negates it.",
    "seeders": "Your seeding functions in installed libraries, by their full names, and what each of them seeds.",
    "entry-points": "Globs of scripts that would not be recognised as entry points.",
    "source-roots": "Folders, from the project's root, in which imports are looked for.",
    "unsafe-fixes": "Whether --fix applies the unsafe fixes, too.",
    "output-format": "How findings are printed.",
    "exclude": "Globs to leave out, instead of the usual ones.",
}
# What a list of these keys holds are rules.
_OF_RULES = frozenset({"select", "extend-select", "ignore", "fixable", "unfixable"})


def main() -> None:
    """Write the schemas, or compare them."""
    parser = argparse.ArgumentParser(prog="python -m tools.settings_schema", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 where a file is not of the code")
    options = parser.parse_args()
    found = {_FOLDER / name: f"{json.dumps(each, indent=2)}\n" for name, each in schemas().items()}
    if options.check:
        sys.exit(any(not file.exists() or file.read_text(encoding="utf-8") != text for file, text in found.items()))
    for file, text in found.items():
        file.write_text(text, encoding="utf-8")


def schemas() -> Mapping[str, dict[str, Any]]:
    """The schemas by the names of their files."""
    own = {"type": "object", "additionalProperties": False, "properties": dict(_properties())}
    tool = {"type": "object", "properties": {TABLE: {"description": "Settings of torchrepro-lint.", **own}}}
    return {
        "torchrepro-lint.schema.json": _schema("torchrepro-lint.schema.json", "torchrepro-lint.toml", own),
        "pyproject.schema.json": _schema(
            "pyproject.schema.json",
            f"[tool.{TABLE}] of pyproject.toml",
            {"type": "object", "properties": {"tool": tool}},
        ),
    }


def _schema(name: str, title: str, body: Mapping[str, Any]) -> dict[str, Any]:
    head = {"$schema": _DRAFT, "$id": f"{_BASE}/{name}", "title": title}
    return {**head, **body, "definitions": {"rule": _rule(), "glob": {"type": "string", "pattern": _GLOB}}}


def _rule() -> dict[str, Any]:
    """A selector: a code, a prefix of codes, a name or ALL; what matches no rule is an error. Each is offered with a summary."""
    offered = {ALL_RULES: "All rules."}
    for length in range(len("TRL"), len("TRL000")):
        offered |= {rule.code[:length]: f"The rules {rule.code[:length]}." for rule in RULES}
    for page in pages():
        offered |= {page.code: f"{page.name}: {page.summary}", page.name: f"{page.code}: {page.summary}"}
    described = {"docs": {"enumValues": list(offered.values())}}
    named = {"enum": list(offered), "x-taplo": described, "enumDescriptions": list(offered.values())}
    return {"type": "string", "anyOf": [named, {"pattern": "^TR?$"}]}


def _properties() -> Iterator[tuple[str, dict[str, Any]]]:
    usual = Settings()._asdict()
    help_of = {option.name: getattr(option, "help", None) for option in check.params}
    for key, reader in READERS.items():
        name = key.replace("-", "_")
        description = _DESCRIPTIONS.get(key) or help_of[name]
        default = usual.get(name)
        more = {} if default is None else {"default": dict(default) if reader in _TABLES else default}
        yield key, {"description": description, **_TYPES.get(reader, _words)(key, reader), **more}


def _words(key: str, reader: Any) -> dict[str, Any]:
    """The type of a key that takes one of some words; raises ``TypeError`` for a reader that this tool does not know."""
    if not isinstance(reader, OneOf):
        raise TypeError(f"{key}: teach tools/settings_schema.py what {reader} takes")
    return {"type": "string", "enum": list(reader.choices)}


def _list(key: str, _: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": "#/definitions/rule"} if key in _OF_RULES else {"type": "string"}}


def _table(items: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": {"type": "array", "items": items}, **names}


_TYPES: Mapping[Any, Any] = {
    string_list: _list,
    glob_list: lambda *_: {"type": "array", "items": {"$ref": "#/definitions/glob"}},
    boolean: lambda *_: {"type": "boolean"},
    parse_torch_version: lambda *_: {"type": "string", "pattern": _VERSION},
    _per_file_ignores: lambda *_: _table(
        {"$ref": "#/definitions/rule"}, {"propertyNames": {"$ref": "#/definitions/glob"}}
    ),
    _seeders: lambda *_: _table({"enum": list(FAMILIES)}, {}),
}
_TABLES = (_per_file_ignores, _seeders)

if __name__ == "__main__":
    main()
