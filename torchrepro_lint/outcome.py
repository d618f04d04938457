"""What a run found."""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.diagnostic import Diagnostic
from torchrepro_lint.writing import Change


class Outcome(NamedTuple):
    """What a run found, in the order of every report.

    ``changes`` are the files that fixes changed, not yet written, ``settled`` the codes of the findings that they settle;
    ``notes`` are for the user to know, ``errors`` make the run fail.
    """

    diagnostics: tuple[Diagnostic, ...]
    files: int
    changes: tuple[Change, ...]
    settled: tuple[str, ...]
    notes: tuple[str, ...]
    errors: tuple[str, ...]
