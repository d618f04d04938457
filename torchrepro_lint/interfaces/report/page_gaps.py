"""HTML page, section "What was not analysed, and why"."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from torchrepro_lint.interfaces.overview.gaps import GAP_KINDS
from torchrepro_lint.interfaces.report.html_elements import counted, html_code, html_text

if TYPE_CHECKING:
    from torchrepro_lint.interfaces.overview.records import Gap, Overview

_MOST_OPEN = 8


def gaps(overview: Overview) -> str:
    """The gaps by kind; long lists are folded."""
    known = f"<p>{counted(overview.files, 'file was', 'files were')} analysed. {_LIMITS}</p>\n"
    return known + "".join(_kind(kind, list(found)) for kind, found in groupby(overview.gaps, key=lambda gap: gap.kind))


_LIMITS = (
    "A name that the program makes at run time is unknown, and an unknown name makes no finding. What a call runs that is not "
    "followed is not known to be clean: the cells of its entry point say so. "
    "Shapes and dtypes are known only where the source states them. No finding is no proof."
)


def _kind(kind: str, found: list[Gap]) -> str:
    rows = "".join(f"<li>{html_code(gap.what)}: <span>{html_text(gap.why)}</span></li>\n" for gap in found)
    opened = " open" if len(found) <= _MOST_OPEN else ""
    count = f" <small>({len(found)})</small>" if len(found) > 1 else ""
    return f'<details class="gap"{opened}><summary><h3>{GAP_KINDS[kind]}{count}</h3></summary>\n<ul>\n{rows}</ul></details>\n'
