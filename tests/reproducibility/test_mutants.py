"""The reverse of the proof: reproducible programs are silent, and each way to break one is reported where it is broken."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mutations
from mutating import Files, Mutant
from mutations import mutants
from torchrepro_lint.checks import RULES
from torchrepro_lint.config.discovery import plan
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.config.settings import Selection, Settings, settings_table
from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.engine.run import run

PROGRAMS = sorted(Path(__file__).parent.joinpath("steady").iterdir())
CODES = {rule.code for rule in RULES}


def program(folder: Path) -> Files:
    """A steady program, for a torch whose cuBLAS needs a workspace."""
    files = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    return {**files, "torchrepro-lint.toml": 'torch-version = "2.9"\n'}


@pytest.mark.parametrize("folder", PROGRAMS, ids=lambda folder: folder.name)
def test_a_steady_program_is_silent_and_each_mutant_is_reported(folder: Path, tmp_path: Path) -> None:
    files = program(folder)
    assert [shown(one) for one in lint(files, tmp_path / "steady")] == []
    known = [each for each in mutants(files) if each.code in CODES]
    missed = [each for number, each in enumerate(known) if not is_reported(each, tmp_path / str(number))]
    print(f"{folder.name}: {len(known) - len(missed)} of {len(known)} mutants reported")  # noqa: T201  the score
    assert [f"{each.name}: {each.code} at {each.path}:{each.row}" for each in missed] == []


def is_reported(mutant: Mutant, folder: Path) -> bool:
    found = lint(mutant.files, folder, mutant.select)
    return any(
        (one.code, Path(one.filename).relative_to(folder).as_posix(), one.start.row)
        == (mutant.code, mutant.path, mutant.row)
        for one in found
    )


def lint(files: Files, folder: Path, select: str = "") -> tuple[Diagnostic, ...]:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")

    def overrides(settings: Settings) -> Settings:
        more = Selection(None, (select,) if select else (), (), "the mutant")
        return settings._replace(selections=(*settings.selections, more))

    settings_table.cache_clear()
    outcome = run(plan([str(folder)], ConfigOptions(overrides=overrides)), False, True, lambda total: lambda: None)
    assert outcome.errors == ()
    return outcome.diagnostics


def shown(one: Diagnostic) -> str:
    return f"{one.filename}:{one.start.row} {one.code} {one.message}"


def every() -> Iterator[Mutant]:
    return (each for folder in PROGRAMS for each in mutants(program(folder)))


def test_mutants_parse_and_differ_from_their_programs_and_point_into_them() -> None:
    originals = [program(folder) for folder in PROGRAMS]
    found = list(every())
    for each in found:
        for path, text in each.files.items():
            if path.endswith(".py"):
                ast.parse(text)
        assert each.files not in originals, each.name
        assert 1 <= each.row <= len(each.files[each.path].splitlines()), each.name
    assert len({(each.code, each.path, each.row, tuple(each.files.items())) for each in found}) == len(found)


def test_every_rule_that_is_on_has_a_mutant() -> None:
    assert {each.code for each in every()} >= {rule.code for rule in RULES if rule.default} - {"TRL001"}


def test_each_operator_mutates_something() -> None:
    silent = [
        operator.__name__
        for operator in mutations.OPERATORS
        if not any(True for folder in PROGRAMS for _ in operator(program(folder)))
    ]
    assert silent == []
