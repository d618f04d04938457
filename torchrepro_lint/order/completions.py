"""Calls that hand out results in the order in which they are finished."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex, Site

_FUNCTIONS = frozenset(
    {
        "concurrent.futures.as_completed",
        "asyncio.as_completed",
        "asyncio.tasks.as_completed",
        "dask.distributed.as_completed",
        "distributed.as_completed",
    }
)


def completions(project: ProgramIndex, path: str) -> Iterator[tuple[Site, str]]:
    """The calls of a module, with the word that people write."""
    for site in project.calls(path):
        word = last_word(site.call.func)
        if not _FUNCTIONS.isdisjoint(site.names) or (
            word == "imap_unordered" and not any(":" in n for n in site.names)
        ):
            yield site, word
