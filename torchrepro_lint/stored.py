"""Files that have not changed since an earlier run: their text and facts are read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from torchrepro_lint.put_away import ReadBack
from torchrepro_lint.reading import Reading, read
from torchrepro_lint.source.decoding import Source, decode, is_notebook
from torchrepro_lint.source.files import digest, program

if TYPE_CHECKING:
    from torchrepro_lint.syntax.nodes import Facts, Summary


class StoredReading(Reading):
    """A reading of a file whose bytes have a digest; ``unpack`` gives its facts, as ``parser`` read them, or raises
    ``ValueError``.
    """

    def __init__(self, path: str, digest: str, summary: Summary, unpack: Callable[[], Facts], parser: str) -> None:
        super().__init__(None, None, None)
        self._path = path
        self._digest = digest
        self._summary = summary
        self._unpack = unpack
        self._parser = parser

    @cached_property
    def source(self) -> Source | None:
        """The source, read again; nothing where the file has vanished or changed meanwhile."""
        notebook = is_notebook(self._path)
        try:
            data = program(self._path)
        except OSError:
            return None
        if digest(data, notebook) != self._digest:
            return None
        found = decode(data, notebook)
        return found if isinstance(found, Source) else None

    @cached_property
    def facts(self) -> Facts | None:
        """The facts, of which only the summary is read so far."""
        return cast("Facts", _StoredFacts(self._summary, self))

    def load(self) -> Facts:
        """The facts; collected anew where what was packed is damaged. Raises ``OSError``."""
        try:
            return self._unpack()
        except ValueError:
            found = read(program(self._path), is_notebook(self._path), self._parser).facts
            if found is None:
                raise OSError("the file changed while it was read") from None
            return found


class _StoredFacts(ReadBack):
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

    def let_go(self) -> None:
        vars(self).pop("_facts", None)
