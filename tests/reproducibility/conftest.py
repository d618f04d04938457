"""A fixture: what runs programs under hash seeds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from prepared_python import CAN_PREPARE, Python, in_fresh_process, prepared


@pytest.fixture(scope="session")
def _in_fork(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Python]:
    with prepared(tmp_path_factory.mktemp("prepared"), (1, 2)) as python:
        yield python


@pytest.fixture(params=["in_fork", pytest.param("in_fresh_process", marks=pytest.mark.long)])
def python(request: pytest.FixtureRequest) -> Python:
    """Forks every time, and fresh processes by ``pytest -m long``: those import torch for seconds each."""
    if request.param == "in_fresh_process" or not CAN_PREPARE:
        return in_fresh_process
    in_fork: Python = request.getfixturevalue("_in_fork")
    return in_fork
