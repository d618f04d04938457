"""Optional requirements of tests: where one is missing, tests are skipped and name it."""

from __future__ import annotations

from typing import Any

import pytest


def torch(minversion: str | None = None) -> Any:
    """The installed torch. Asked for at the top of a file, it skips the file's tests where there is none."""
    reason = "torch is not installed, or too old: `pip install -e .[test]` has the release that the tests are made for"
    return pytest.importorskip("torch", minversion=minversion, reason=reason)
