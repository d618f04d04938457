"""Each row of the catalogue is reported by a rule where it holds, and by none elsewhere, release by release."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import pytest

from one_file import NAME, facts_of
from operation_lines import LINES, WAITING, Line, Waiting
from torchrepro_lint.catalogue import catalogue
from torchrepro_lint.catalogue.catalogue import error_names
from torchrepro_lint.catalogue.conditions import Subjects
from torchrepro_lint.catalogue.rows import ErrorName, OperationRow
from torchrepro_lint.checks import index_select, needs_flag, operations, ties
from torchrepro_lint.config.settings import Settings
from torchrepro_lint.domain.operations.cases import cases
from torchrepro_lint.domain.operations.verdicts import reporting_rule
from torchrepro_lint.source.files import documented_versions, read_table, release
from torchrepro_lint.source.text import Lines
from torchrepro_lint.trace.traces import Context, Traces

VERSIONS = documented_versions()
DEVICES = ("cuda", "cpu", "mps")
CHECKS = (index_select.check, operations.documented, operations.undocumented, needs_flag.check, ties.check)
HEAD = """import torch
import torch.nn.functional as F
from torch import nn
from torchvision import ops


def run(x: torch.Tensor, i, s):
"""


class Seen(NamedTuple):
    """A row that a line is a case of, and the code of what is reported there (empty: nothing)."""

    row: OperationRow
    line: int
    version: str
    device: str
    code: str


def context_of(text: str, version: str, device: str) -> Context:
    settings = Settings(device=device)
    project = Traces({NAME: facts_of(text)}, settings, catalogue.load(version))
    return Context(NAME, project.files[NAME], Lines(text), project, catalogue.load(version), settings)


@lru_cache(maxsize=1)
def groups() -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The texts that hold the lines, with the numbers of their lines: most share one, a program is one of its own."""
    plain = tuple(number for number, line in enumerate(LINES) if not line.before)
    alone = [number for number, line in enumerate(LINES) if line.before]
    body = HEAD + "".join(f"    yield {LINES[number].call}\n" for number in plain)
    return (
        (body, plain),
        *((f"{HEAD}    yield {LINES[n].call}\n\n\n{LINES[n].before}\nrun()\n", (n,)) for n in alone),
    )


@lru_cache(maxsize=len(VERSIONS) * len(DEVICES))
def reported(version: str, device: str) -> dict[int, tuple[str, ...]]:
    """The codes of what is reported of each line."""
    found: dict[int, list[str]] = defaultdict(list)
    for text, numbers in groups():
        context = context_of(text, version, device)
        for check in CHECKS:
            for finding in check(context):
                found[_number(context, numbers, finding.span.start)].append(finding.code)
    return {number: tuple(codes) for number, codes in found.items() if number >= 0}


def _number(context: Context, numbers: tuple[int, ...], offset: int) -> int:
    row = context.lines.position(offset).row - HEAD.count("\n") - 1
    return numbers[row] if row < len(numbers) else -1


@lru_cache(maxsize=1)
def seen() -> tuple[Seen, ...]:
    """All rows that the lines are cases of, on all devices in all releases."""
    found = []
    for version in VERSIONS:
        for device in DEVICES:
            for text, numbers in groups():
                context = context_of(text, version, device)
                for case in cases(context):
                    number = _number(context, numbers, case.site.call.start)
                    if number >= 0:
                        (code,) = reported(version, device).get(number, ("",))
                        found.append(Seen(plain(case.row), number, version, device, code))
    return tuple(found)


def plain(row: OperationRow) -> OperationRow:
    """A row without the spelling that it was found by."""
    return row._replace(when=row.when[len(row.signature.when) :], signature=row.signature._replace(name="", when=()))


def key(row: OperationRow) -> tuple[str, str, tuple[str, ...], str, object, str]:
    return row.operation, row.behaviour, row.devices, row.phase, row.when[len(row.signature.when) :], row.kind


@pytest.mark.parametrize("number", range(len(LINES)), ids=lambda number: LINES[number].call)
@pytest.mark.parametrize("device", DEVICES)
def test_a_call_is_reported_from_release_to_release(number: int, device: str) -> None:
    line: Line = LINES[number]
    wanted = {version: (code,) for version, code in line.expected(device).items()}
    assert {v: codes for v in VERSIONS if (codes := reported(v, device).get(number, ()))} == wanted


@pytest.mark.parametrize("line", WAITING, ids=lambda line: f"{line.call} {line.value}")
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_what_waits_is_a_case_as_soon_as_its_subject_is_known(line: Waiting, device: str) -> None:
    found = {}
    for version in VERSIONS:
        context = context_of(f"{HEAD}    yield {line.call}\n", version, device)
        codes = [code for case in cases(context, waiting(line)) if (code := reporting_rule(case)) not in ("", "TRL406")]
        if codes:
            found[version] = codes[0]
    assert found == Line(line.call, line.cuda, line.cpu).expected(device)


def waiting(line: Waiting) -> Subjects:
    return {line.subject: line.value}


@pytest.mark.parametrize("line", WAITING, ids=lambda line: f"{line.call} {line.value}")
def test_what_waits_is_not_known_yet(line: Waiting) -> None:
    """As soon as it is, the line belongs to the others."""
    context = context_of(f"{HEAD}    yield {line.call}\n", VERSIONS[-1], "cuda")
    assert not any(one.of == line.subject for case in cases(context) for one in case.row.when)


def test_every_row_is_told_or_waits() -> None:
    """Also those that say that there is nothing to tell."""
    told = {key(one.row) for one in (*seen(), *_waiting_cases())}
    assert {key(row) for row in rows()} - told == set()


def rows() -> list[OperationRow]:
    """The rows that hold in some release, each under its operation's own name."""
    found = {}
    for version in VERSIONS:
        for name in catalogue.load(version).operations:
            for row in catalogue.load(version).operation(name):
                found[key(row)] = plain(row)
    return list(found.values())


def test_every_line_is_silent_of_each_of_its_codes_somewhere() -> None:
    """In another release, or on another device."""
    everywhere = {(version, device) for version in VERSIONS for device in DEVICES}
    for number, line in enumerate(LINES):
        told = {place: reported(*place).get(number, ()) for place in sorted(everywhere)}
        for code in sorted({code for codes in told.values() for code in codes}):
            assert any(code not in codes for codes in told.values()), (line, code)


def test_what_is_documented_has_lines() -> None:
    """Also the rows that others of the same operation replace."""
    spoken = {one.row.operation for one in seen()} | {row.operation for row in rows()}
    for version in VERSIONS:
        for table in read_table(f"torch-{version}.toml")["operation"]:
            for row in catalogue.load(version).operation(table["name"]):
                assert row.operation in spoken, table


UNTOLD_NAMES = {
    # Told where indexing is found out to be by tensors of integers.
    ("index_put_with_accumulate_mps", ("torch.Tensor.__getitem__",)),
    # In the binaries, behind a deterministic route that public calls take under the flag.
    ("roi_align_backward_kernel", ("torchvision.ops.roi_align",)),
    ("scatter_reduce_cuda_mean_", ("torch.Tensor.scatter_reduce",)),
    ("scatter_reduce_cuda_sum_", ("torch.Tensor.scatter_reduce",)),
}


def test_an_error_name_is_told_in_its_releases_and_in_no_other() -> None:
    told: dict[str, set[str]] = defaultdict(set)
    every: dict[str, set[str]] = defaultdict(set)
    for error in error_names():
        every[error.name] |= set(_releases(error))
    untold = set()
    for one in [*seen(), *_waiting_cases()]:
        if one.row.behaviour == "raises" and one.code in ("TRL401", "TRL402", "TRL404"):
            for name in catalogue.load(one.version).errors(one.row):
                told[f"{name} {one.row.operation}"].add(one.version)
    for error in error_names():
        releases = set().union(*(told[f"{error.name} {operation}"] for operation in error.operations))
        assert releases <= every[error.name], error
        if error.operations and not releases.intersection(_releases(error)):
            untold.add((error.name, error.operations))
    assert untold == UNTOLD_NAMES


def _releases(error: ErrorName) -> tuple[str, ...]:
    last = release(error.until or "9.9")
    return tuple(version for version in VERSIONS if release(error.since) <= release(version) <= last)


def _waiting_cases() -> Iterator[Seen]:
    for line in WAITING:
        for version in VERSIONS:
            for device in DEVICES:
                context = context_of(f"{HEAD}    yield {line.call}\n", version, device)
                for case in cases(context, waiting(line)):
                    yield Seen(plain(case.row), -1, version, device, reporting_rule(case))
