"""The facts of a project's files in one file of its cache: a table that is read at once, and facts that are when asked for.

Facts in little room, until they are asked for: of a project's parts one is looked into at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from zlib import compress, decompress

from torchrepro_lint.engine.store.cache import SIGNED, Cache, tool_stamp, trim
from torchrepro_lint.source.files import State, digest, unchanged
from torchrepro_lint.syntax.file_encoding import from_text, to_text
from torchrepro_lint.syntax.serialization import packed, summary_from, summary_json, unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchrepro_lint.syntax.nodes import Facts, Summary


_NAME = "facts"
_LENGTH = 8


class Packed(NamedTuple):
    """A file's facts as they are stored, with their summary."""

    summary: Any
    blob: bytes


def pack_facts(facts: Facts) -> Packed | None:
    """Facts, ready to be stored; None for those that are nested too deeply to be written down."""
    try:
        text = to_text(facts)
        return Packed(summary_json(facts.summary), zlib.compress(text.encode("ascii"), 1))
    except RecursionError:
        return None


class Pack:
    """The facts that the last run over a project left; empty where there are none that this copy of the tool made.

    Those of each ``parser`` of the settings lie in a file of their own.
    """

    def __init__(self, cache: Cache, parser: str = "auto") -> None:
        self._cache = cache
        self._name = _NAME if parser == "auto" else f"{_NAME}-{parser}"
        self._table, self._start = _opened(cache, self._name)
        self._summaries: dict[str, Summary] = {}

    def digest(self, path: str, seen: State) -> str | None:
        """The digest of a file that has not changed since the last run; None where it may have."""
        known = self._table["files"].get(path)
        if known is None or not unchanged(seen, known[:4], self._table["made"]):
            return None
        found: str = known[4]
        return found if found in self._table["facts"] else None

    def known(self, path: str) -> tuple[State, str] | None:
        """What is stored of a file, changed or not: its state and digest."""
        known = self._table["files"].get(path)
        return (State(*known[:4]), known[4]) if known is not None and known[4] in self._table["facts"] else None

    @property
    def digests(self) -> frozenset[str]:
        """The digests of all stored facts."""
        return frozenset(self._table["facts"])

    def summary(self, digest: str) -> Summary | None:
        """The summary of the facts under a digest, if there are any."""
        summary = self._summaries.get(digest)
        if summary is None and (known := self._table["facts"].get(digest)):
            summary = self._summaries[digest] = summary_from(known[3])
        return summary

    def facts(self, digest: str) -> Facts:
        """The facts under a digest; raises ``ValueError`` where they cannot be read."""
        try:
            summary = self.summary(digest)
            assert summary is not None
            return from_text(zlib.decompress(self._blob(digest)).decode("ascii"), summary)
        except (zlib.error, KeyError, OSError) as error:
            raise ValueError(f"no facts: {error}") from error

    def update(self, files: Mapping[str, tuple[State, str]], fresh: Mapping[str, Packed]) -> None:
        """Store the facts of ``files`` (state and digest by path): the ``fresh`` ones, the others as they are."""
        unchanged = {path: [*seen, name] for path, (seen, name) in files.items()}
        if not fresh and unchanged == self._table["files"]:
            return
        known: dict[str, list[Any]] = {}
        blobs: list[bytes] = []
        offset = 0
        for name in sorted({name for _, name in files.values()}):
            if (stored := fresh.get(name) or self._packed(name)) is not None:
                known[name] = [offset, len(stored.blob), digest(stored.blob), stored.summary]
                blobs.append(stored.blob)
                offset += len(stored.blob)
        self._write({"stamp": tool_stamp(), "made": time.time_ns(), "files": unchanged, "facts": known}, blobs)

    def _packed(self, name: str) -> Packed | None:
        try:
            return Packed(self._table["facts"][name][3], self._blob(name))
        except (KeyError, ValueError, OSError):
            return None

    def _blob(self, name: str) -> bytes:
        """What is stored under a digest. Another run may have written the file anew: then it is damaged for this one."""
        offset, length, check, _ = self._table["facts"][name]
        with open(self._cache.path(self._name), "rb") as file:
            file.seek(self._start + offset)
            blob = file.read(length)
        if digest(blob) != check:
            raise ValueError("damaged facts")
        return blob

    def _write(self, table: dict[str, Any], blobs: Iterable[bytes]) -> None:
        header = json.dumps(table, separators=(",", ":")).encode("ascii")
        signed = self._cache.sign(self._name, header) + len(header).to_bytes(_LENGTH, "big") + header
        if self._cache.replace(self._name, b"".join((signed, *blobs))):
            # From here on facts are where they stand in the new file.
            self._table, self._start = table, len(signed)
        trim(self._cache.place.parent)


def _opened(cache: Cache, name: str) -> tuple[dict[str, Any], int]:
    """The table of the file, and where the facts begin."""
    with contextlib.suppress(OSError), open(cache.path(name), "rb") as file:
        signature = file.read(SIGNED)
        length = int.from_bytes(file.read(_LENGTH), "big")
        header = file.read(length) if length <= os.fstat(file.fileno()).st_size else b""
        if header and signature == cache.sign(name, header):
            table: dict[str, Any] = json.loads(header)
            if table["stamp"] == tool_stamp():
                return table, file.tell()
    return {"stamp": "", "made": 0, "files": {}, "facts": {}}, 0


_FIELDS = ("body", "functions", "classes", "assigned", "imports_end")


def put_away(facts: Facts) -> Facts:
    """The same facts, of which all but the summary is read back when it is asked for; themselves where they are nested too
    deeply to be written down.
    """
    try:
        data = packed([getattr(facts, each) for each in _FIELDS])
    except RecursionError:
        return facts
    return cast("Facts", PutAwayFacts(facts.summary, compress(data, 1)))


def stay(facts: object) -> None:
    """If facts were put away, read them back for good."""
    if isinstance(facts, PutAwayFacts):
        facts.keep()


def let_go(facts: object) -> None:
    """Of facts that can be had again, let go of what was read back since."""
    if isinstance(facts, ReadBack):
        facts.let_go()


class ReadBack:
    """Facts that lie elsewhere, and are read when they are asked for."""

    def let_go(self) -> None:
        """Forget what was read: the next time it is made anew, of other records."""


class PutAwayFacts(ReadBack):
    """``Facts`` that were put away."""

    def __init__(self, summary: Any, data: bytes) -> None:
        self.summary = summary
        self._data: bytes | None = data

    @property
    def exports(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """As ``Summary`` has them."""
        return cast("Facts", self).summary.exports

    def calling(self, _word: str) -> Sequence[int | None]:
        """See ``Facts``."""
        return (None,)

    def __getattr__(self, name: str) -> Any:
        if name not in _FIELDS or self._data is None:
            raise AttributeError(name)
        self.read()
        return vars(self)[name]

    def read(self) -> None:
        """Read all of it back."""
        if self._data is not None and "body" not in vars(self):
            vars(self).update(zip(_FIELDS, unpacked(decompress(self._data)), strict=True))

    def keep(self) -> None:
        """Read it back for good."""
        self.read()
        self._data = None

    def let_go(self) -> None:
        if self._data is not None:
            for each in _FIELDS:
                vars(self).pop(each, None)
