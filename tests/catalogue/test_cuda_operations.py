"""The catalogue against a CUDA device: each operation is run many times with and without the flag, and bits compared.

With ``TORCHREPRO_RECORD=file.toml`` what was seen is written there. ``observed`` keeps such files, one for a card and a
release, and the rows are held against them everywhere. Without a device, the same calls are run small on the CPU, so
that the table is known to work, and the table is held against the rows.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import installed

torch = installed.torch()

from operation_calls import Case  # noqa: E402
from operation_cases import CASES  # noqa: E402
from operation_runs import Seen, deciding, record, watch  # noqa: E402
from torchrepro_lint.catalogue.catalogue import load, signatures  # noqa: E402
from torchrepro_lint.catalogue.rows import OperationRow  # noqa: E402
from torchrepro_lint.source.files import documented_versions, parse_toml  # noqa: E402

RUNS, SCALE = 30, 16
# What each card did with a release of torch: the release, the case's title, and what was seen.
OBSERVED = [
    (path.stem.partition("torch-")[2], title, seen)
    for path in sorted(Path(__file__).with_name("observed").glob("*.toml"))
    for title, seen in parse_toml(path.read_text(encoding="utf-8")).items()
]
SERIES = pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
# Its alert is in the kernel for quantized tensors of the CPU.
NOT_ON_CUDA = {"torch.Tensor.resize_"}


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@SERIES
def test_a_cuda_device_does_what_the_row_says(case: Case) -> None:
    present(case)
    row = deciding(case, torch.__version__, "cuda")
    if row is None:
        pytest.skip(f"no row for {case.title} in torch {torch.__version__}")
    mode = "warn" if case.known.get("program.warn_only") else "on"
    off, on = (watch(case, "cuda", RUNS, SCALE, phase=row.phase, mode=one) for one in ("off", mode))
    record(case, row, off, on)
    assert off.alert is None, off
    assert fits(row, off, on, torch.__version__), f"{row.behaviour}, but with the flag {on} and without it {off}"


@pytest.mark.parametrize(("version", "title", "seen"), OBSERVED)
def test_a_row_says_what_a_cuda_device_did(version: str, title: str, seen: dict[str, str]) -> None:
    (case,) = (case for case in CASES if case.title == title)
    row = deciding(case, version, "cuda")
    assert row is not None
    assert row.phase == seen["phase"]
    off, on = (Seen.parse(seen[key], row.phase) for key in ("off", "on"))
    assert fits(row, off, on, version), f"{row.behaviour}, but with the flag {on} and without it {off}"


def fits(row: OperationRow, off: Seen, on: Seen, version: str) -> bool:
    """Whether runs agree with a row. A race need not show: bits may be the same where they are not promised."""
    match row.behaviour:
        case "raises":
            return on.phase == row.phase and on.alert in (load(version).errors(row) or ("cuBLAS",))
        case "deterministic" | "fills":
            return on.alert is None and not on.differ
        case "none":
            return on.alert is None and not on.differ and not off.differ
        case "warns":
            return on.alert is None and on.warned
    return on.alert is None


def present(case: Case) -> None:
    if case.operation.startswith("torchvision"):
        pytest.importorskip("torchvision")
    if case.known.get("program.CUBLAS_WORKSPACE_CONFIG") == "" and "CUBLAS_WORKSPACE_CONFIG" in os.environ:
        pytest.skip("CUBLAS_WORKSPACE_CONFIG is set")


@SERIES
def test_a_case_runs_on_the_cpu(case: Case) -> None:
    if not case.cpu:
        pytest.skip("no such kernel on the CPU")
    present(case)
    phases = {row.phase for version in documented_versions() if (row := deciding(case, version, "cuda"))}
    for phase in sorted(phases):
        assert watch(case, "cpu", 2, 1, phase=phase, mode="off").alert is None


@SERIES
def test_a_case_has_a_row_in_some_release(case: Case) -> None:
    assert any(deciding(case, version, "cuda") for version in documented_versions())


def test_every_row_of_cuda_has_a_case() -> None:
    ran = {_key(row) for version in documented_versions() for case in CASES if (row := deciding(case, version, "cuda"))}
    assert _rows() - ran == set()


def _rows() -> set[tuple[object, ...]]:
    return {
        _key(row)
        for version in documented_versions()
        for name in signatures()
        for row in load(version).operation(name)
        if {"cuda", "any"} & set(row.devices) and row.operation not in NOT_ON_CUDA
    }


def _key(row: OperationRow) -> tuple[object, ...]:
    return row.operation, row.behaviour, row.phase, row.when, row.kind


def test_an_alert_of_torch_is_seen_under_its_name() -> None:
    """As on a CUDA device, by an operation that raises on every one."""
    (case,) = (case for case in CASES if case.title == "Tensor.put_ accumulate=False")
    row = deciding(case, torch.__version__, "cuda")
    assert row is not None
    off, on = (watch(case, "cpu", 2, 1, phase="forward", mode=mode) for mode in ("off", "on"))
    assert (off.alert, on.alert, on.phase) == (None, "put_", "forward")
    assert fits(row, off, on, torch.__version__)
    assert not fits(row, off, off, torch.__version__)


def test_other_bits_are_seen() -> None:
    drawn = Case("torch.rand", lambda n: (torch.ones(8),), torch.rand_like)
    kept = drawn._replace(call=lambda x: x * 2)
    assert watch(drawn, "cpu", 2, 1, phase="forward", mode="off").differ
    assert not watch(kept, "cpu", 2, 1, phase="forward", mode="off").differ
    assert not watch(kept, "cpu", 2, 1, phase="backward", mode="off").differ


def test_an_observation_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHREPRO_RECORD", str(tmp_path / "seen.toml"))
    taken, sorted_ = (next(case for case in CASES if case.operation == name) for name in ("torch.take", "torch.sort"))
    off, on = Seen(None, "backward", True, True), Seen("put_", "forward", False, False)
    for case in (taken, sorted_):
        row = deciding(case, torch.__version__, "cuda")
        assert row is not None
        record(case, row, off, on)
    found = parse_toml((tmp_path / "seen.toml").read_text())
    assert list(found) == [taken.title, sorted_.title]
    seen = found[taken.title]
    assert seen == {"phase": "backward", "off": "different bits, warned", "on": "raises put_ in forward"}
    assert [Seen.parse(seen[key], seen["phase"]) for key in ("off", "on")] == [off, on]
