"""The table of libraries' generators: its rows are well formed, and the rule's page lists them all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from torchrepro_lint.catalogue.libraries import library_generators
from torchrepro_lint.catalogue.rows import FAMILIES
from torchrepro_lint.source.files import read_table

TOP = Path(__file__).parents[2]
ROWS: list[dict[str, Any]] = read_table("generators.toml")["generator"]
_NAME = re.compile(r"(\*|[A-Za-z_]\w*)(\.(\*|[A-Za-z_]\w*))*")
_ROW = [pytest.param(row, id=f"{row['library']} {row['names'][0]}") for row in ROWS]


@pytest.mark.parametrize("row", _ROW)
def test_a_row_is_well_formed(row: dict[str, Any]) -> None:
    names = [*row["names"], *row.get("packages", ()), *row.get("setters", ())]
    assert [each for each in names if not _NAME.fullmatch(each)] == []
    known = {*row.get("parameters", ()), *row.get("keywords", ())}
    asked = {row.get("argument"), *row.get("others", ()), *(each["of"] for each in row.get("when", ()))} - {None}
    assert asked <= known
    assert row.get("family", "numpy") in {each.key for each in FAMILIES}
    assert row["cause"]
    assert "argument" in row or not {"value", "write", "key", "required"} & set(row)
    assert "{}" in row.get("write", "{}").replace("{{", "").replace("}}", "")


@pytest.mark.parametrize("row", _ROW)
def test_a_row_says_what_was_read(row: dict[str, Any]) -> None:
    assert re.fullmatch(r"[\w-]+ [\w.]+(, [\w.]+)*", row["source"])
    assert len(row["evidence"]) > 20


@pytest.mark.parametrize("row", _ROW)
def test_each_name_leads_to_its_row(row: dict[str, Any]) -> None:
    packages = row.get("packages")
    known = (
        ((row["library"], f"=={row['since']}" if "since" in row else f"<{row['before']}"),) if "before" in row else ()
    )
    for name in row["names"]:
        full = f"{packages[0]}.{name}" if packages else name.replace("*", "Thing")
        assert row["evidence"] in [each.evidence for each in library_generators(full, known)]
        assert library_generators(f"other.{full}", ()) == ()


def test_a_row_holds_for_the_releases_that_it_names() -> None:
    assert {row["library"] for row in ROWS if "since" in row or "before" in row} == {
        "albumentations",
        "hyperopt",
        "scikit-image",
    }
    writes = [library_generators("hyperopt.fmin", (("hyperopt", each),)) for each in ("==0.1.1", "==0.2.7", ">=0.2")]
    assert [["default_rng" in row.write for row in rows] for rows in writes] == [[False], [True], [True]]
    assert library_generators("albumentations.Compose", (("albumentations", "==1.3.1"),)) == ()
    assert library_generators("albumentations.Compose", (("albumentations", "==2.0.8"),)) != ()
    assert library_generators("albumentations.Compose", ()) != ()
    noise = {
        version: [
            row.argument for row in library_generators("skimage.util.random_noise", (("scikit-image", f"=={version}"),))
        ]
        for version in ("0.18.3", "0.19.3", "0.20.0", "0.21.0", "0.25.2")
    }
    assert noise == {"0.18.3": [], "0.19.3": ["seed"], "0.20.0": ["seed"], "0.21.0": ["rng"], "0.25.2": ["rng"]}


def test_the_page_lists_the_rows() -> None:
    page = (TOP / "rules/TRL106-unseeded-generator.md").read_text(encoding="utf-8")
    written = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| library ")]
    assert written == page_table()


def page_table() -> list[str]:
    """The lines of the table in the rule's page, one for the rows of a library that the same argument makes repeatable."""
    keyed = sorted((_key(row), [_short(name) for name in row["names"]]) for row in ROWS)
    return [
        f"| {key[0]} | {_listed(name for _, names in group for name in names)} | {key[1]} | {key[2]} |"
        for key, group in groupby(keyed, key=lambda each: each[0])
    ]


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    library = row["library"] + (f" from {row['since']}" if "since" in row else "")
    library += f" before {row['before']}" if "before" in row else ""
    argument = row.get("argument", "")
    passed = row.get("value") or row.get("write", "{}").format("...")
    others = "".join(f" or `{each}`" for each in row.get("others", ()) if argument)
    setters = _listed(_short(each) for each in row.get("setters", ()))
    constant = "a constant " if row.get("required") else ""
    return library, f"{constant}`{argument}={passed}`{others}" if argument else "none", setters or "none"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))


def _short(name: str) -> str:
    """The last word of a name; of a method of a class, with its class."""
    *_, owner, word = ("", *name.split("."))
    return f"{owner}.{word}" if owner in ("Index", "augmenters") else word
