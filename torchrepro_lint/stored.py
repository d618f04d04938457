"""Files that have not changed since an earlier run: their text and facts are read when they are asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from torchrepro_lint.reading import Reading, read
from torchrepro_lint.source import Source, decode, is_notebook

if TYPE_CHECKING:
    from torchrepro_lint.facts import Facts, Summary
    from torchrepro_lint.pack import Pack


class StoredReading(Reading):
    """A reading whose facts lie in a pack under the digest of the file's bytes."""

    def __init__(self, path: Path, pack: Pack, digest: str, summary: Summary) -> None:
        super().__init__(None, None, None)
        self._path = path
        self._pack = pack
        self._digest = digest
        self._summary = summary

    @cached_property
    def source(self) -> Source | None:
        """The source, read again; nothing where the file has vanished meanwhile."""
        try:
            found = decode(self._path.read_bytes(), is_notebook(self._path.name))
        except OSError:
            return None
        return found if isinstance(found, Source) else None

    @cached_property
    def facts(self) -> Facts | None:
        """The facts, of which only the summary is read so far."""
        return cast("Facts", _StoredFacts(self._summary, self))

    def load(self) -> Facts:
        """The facts from the pack; collected anew where that is damaged. Raises ``OSError``."""
        try:
            return self._pack.facts(self._digest)
        except ValueError:
            found = read(self._path.read_bytes(), is_notebook(self._path.name)).facts
            if found is None:
                raise OSError("the file changed while it was read") from None
            return found


class _StoredFacts:
    """Facts that are read when more than their summary is asked for."""

    def __init__(self, summary: Summary, reading: StoredReading) -> None:
        self.summary = summary
        self._reading = reading

    @property
    def exports(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return self.summary.exports

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if "_facts" not in vars(self):
            self._facts = self._reading.load()
        return getattr(self._facts, name)
