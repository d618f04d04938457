"""The syntax trees of files as an input of queries: whoever looks into one depends on it."""

from __future__ import annotations

from collections.abc import Mapping

from torchrepro_lint.query.memo_tables import Reads
from torchrepro_lint.syntax.nodes import Facts


class Files(dict[str, Facts]):
    """The facts of files by path, which note that they are looked into."""

    def __init__(self, files: Mapping[str, Facts], reads: Reads) -> None:
        super().__init__(files)
        self._reads = reads

    def __getitem__(self, path: str) -> Facts:
        self._reads.seen |= self._reads.bits.get(path, 0)
        return super().__getitem__(path)

    def get(self, path: str, default: Facts | None = None) -> Facts | None:  # type: ignore[override]
        """The facts of a file, if it is there."""
        self._reads.see(path)
        return super().get(path, default)

    def peek(self, path: str) -> Facts:
        """The facts of a file, for whoever asks all files and so needs no note of it."""
        return super().__getitem__(path)
