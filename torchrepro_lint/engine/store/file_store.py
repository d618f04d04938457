"""The file store: the facts of a project's files in one cache file.

The table of the cache file is read at once, facts when they are asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from torchrepro_lint.engine.store.cache import SIGNATURE_BYTES, Cache, tool_stamp, trim
from torchrepro_lint.source.files import FileSignature, digest, unchanged
from torchrepro_lint.syntax.file_encoding import decode_tree, encode_tree
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.serialization import summary_from, summary_json

if TYPE_CHECKING:
    from torchrepro_lint.syntax.nodes import ModuleSummary, SyntaxTree


_NAME = "facts"
_LENGTH = 8


class PackedFacts(Record, frozen=True):
    """A file's facts as they are stored: the summary as JSON, the rest compressed."""

    summary: Any
    blob: bytes


def pack_facts(facts: SyntaxTree) -> PackedFacts | None:
    """Serialise facts for the store; None if they are nested too deeply."""
    try:
        text = encode_tree(facts)
        return PackedFacts(summary_json(facts.summary), zlib.compress(text.encode("ascii"), 1))
    except RecursionError:
        return None


class FileStore:
    """The file store of a project: the facts that the last run left; empty unless this copy of the tool wrote them.

    Each ``parser`` of the settings has a file of its own.
    """

    def __init__(self, cache: Cache, parser: str = "auto") -> None:
        self._cache = cache
        self._name = _NAME if parser == "auto" else f"{_NAME}-{parser}"
        self._table, self._start = _open_table(cache, self._name)
        self._summaries: dict[str, ModuleSummary] = {}

    def digest(self, path: str, seen: FileSignature) -> str | None:
        """The digest of a file that has not changed since the last run; None where it may have."""
        known = self._table["files"].get(path)
        if known is None or not unchanged(seen, known[:4], self._table["made"]):
            return None
        found: str = known[4]
        return found if found in self._table["facts"] else None

    def known(self, path: str) -> tuple[FileSignature, str] | None:
        """The stored state and digest of a file, changed or not."""
        known = self._table["files"].get(path)
        return (FileSignature(*known[:4]), known[4]) if known is not None and known[4] in self._table["facts"] else None

    @property
    def digests(self) -> frozenset[str]:
        """The digests of all stored facts."""
        return frozenset(self._table["facts"])

    def summary(self, digest: str) -> ModuleSummary | None:
        """The summary of the facts under a digest, if there are any."""
        summary = self._summaries.get(digest)
        if summary is None and (known := self._table["facts"].get(digest)):
            summary = self._summaries[digest] = summary_from(known[3])
        return summary

    def facts(self, digest: str) -> SyntaxTree:
        """The facts under a digest; raises ``ValueError`` where they cannot be read."""
        try:
            summary = self.summary(digest)
            assert summary is not None
            return decode_tree(zlib.decompress(self._blob(digest)).decode("ascii"), summary)
        except (zlib.error, KeyError, OSError) as error:
            raise ValueError(f"no facts: {error}") from error

    def update(self, files: Mapping[str, tuple[FileSignature, str]], fresh: Mapping[str, PackedFacts]) -> None:
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

    def _packed(self, name: str) -> PackedFacts | None:
        try:
            return PackedFacts(self._table["facts"][name][3], self._blob(name))
        except (KeyError, ValueError, OSError):
            return None

    def _blob(self, name: str) -> bytes:
        """The blob stored under a digest; raises ``ValueError`` if it does not match, as after another run rewrote the file."""
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
            # From now on offsets refer to the new file.
            self._table, self._start = table, len(signed)
        trim(self._cache.place.parent)


def _open_table(cache: Cache, name: str) -> tuple[dict[str, Any], int]:
    """The table of the cache file, and the offset at which the facts begin."""
    with contextlib.suppress(OSError), open(cache.path(name), "rb") as file:
        signature = file.read(SIGNATURE_BYTES)
        length = int.from_bytes(file.read(_LENGTH), "big")
        header = file.read(length) if length <= os.fstat(file.fileno()).st_size else b""
        if header and signature == cache.sign(name, header):
            table: dict[str, Any] = json.loads(header)
            if table["stamp"] == tool_stamp():
                return table, file.tell()
    return {"stamp": "", "made": 0, "files": {}, "facts": {}}, 0
