"""The library versions that a project requires, and the rows of the tables that apply to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchrepro_lint.catalogue.libraries import admits_release_from, transform_models
from torchrepro_lint.config.target import VERSIONED_LIBRARIES, required_libraries
from torchrepro_lint.source.files import read_table


def test_the_libraries_with_versions_are_those_of_the_tables() -> None:
    rows = (*read_table("transforms.toml")["transform"], *read_table("generators.toml")["generator"])
    versioned = {row["library"] for row in rows if "since" in row or "before" in row}
    assert tuple(sorted(versioned)) == VERSIONED_LIBRARIES


@pytest.mark.parametrize(
    ("specifiers", "release", "expected"),
    [
        ("", "1.4.21", True),
        ("==1.4.20", "1.4.21", False),
        ("==1.4.21", "1.4.21", True),
        ("==2.0.8", "1.4.21", True),
        ("<1.4", "1.4.21", False),
        ("<2", "1.4.21", True),
        (">=1.0", "1.4.21", True),
        (">=1.5,<2", "1.4.21", True),
        (">1.5,<2", "1.4.21", True),
        (">=1.2,<1.4.21", "1.4.21", False),
        ("~=1.3.0", "1.4.21", False),
        ("~=1.3", "1.4.21", True),
        ("==1.3.*", "1.4.21", False),
        ("==1.4.*", "1.4.21", True),
        ("!=1.4.21", "1.4.21", True),
        ("==1.4.21+cpu", "1.4.21", True),
        ("<=1.4.20", "1.4.21", False),
    ],
)
def test_specifiers_come_to_a_release(specifiers: str, release: str, expected: bool) -> None:
    assert admits_release_from(specifiers, release) is expected


@pytest.mark.parametrize(
    ("files", "asked"),
    [
        ({}, ""),
        ({"requirements.txt": "albumentations==1.3.1\n"}, "==1.3.1"),
        ({"requirements.txt": "Albumentations>=1.0\n"}, ">=1.0"),
        ({"requirements.txt": "albumentations\n"}, ""),
        ({"environment.yml": "dependencies:\n  - conda-forge::albumentations=1.3\n"}, "==1.3.*"),
        ({"pyproject.toml": '[tool.poetry.dependencies]\nalbumentations = "^1.3"\n'}, "<2,>=1.3"),
        (
            {
                "uv.lock": '[[package]]\nname = "albumentations"\nversion = "1.4.0"\n',
                "requirements.txt": "albumentations\n",
            },
            "==1.4.0",
        ),
        ({"requirements.txt": "albumentations<2\n", "requirements-dev.txt": "albumentations==1.2.0\n"}, "==1.2.0"),
    ],
)
def test_the_project_decides(tmp_path: Path, files: dict[str, str], asked: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert required_libraries(tmp_path) == ((("albumentations", asked),) if asked else ())


@pytest.mark.parametrize(
    ("asked", "draws"),
    [("", {"own"}), ("==2.0.8", {"own"}), ("==1.4.20", {"python"}), ("<1.2", {"python", "numpy"})],
)
def test_rows_are_those_of_the_release(asked: str, draws: set[str]) -> None:
    (row,) = transform_models("albumentations.HorizontalFlip", (("albumentations", asked),) if asked else ())
    assert row.draws == draws
