"""The finding store: the durable answers to "what do the rules find in the files of this component?".

An answer depends on the bytes of all files of the component, and on what the checker was given. The next run asks the rules
again only about components of which something differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.engine.checker import CheckResult
from torchrepro_lint.engine.rule_groups import ProgramState
from torchrepro_lint.engine.store.cache import tool_stamp
from torchrepro_lint.engine.store.query_store import component_key, compress_json, decompress_json, forget_others
from torchrepro_lint.engine.store.run_store import decode_record, encode_record
from torchrepro_lint.source.files import digest
from torchrepro_lint.source.text import Edit, Fix, Message, NoFix, Position, Reference, Span
from torchrepro_lint.trace.call_paths import CallPathStep

if TYPE_CHECKING:
    from torchrepro_lint.engine.checker import Checker
    from torchrepro_lint.engine.partition import Partition
    from torchrepro_lint.engine.store.cache import Cache

_NAME = "findings"
_TYPES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        CallPathStep,
        CheckResult,
        Edit,
        Finding,
        Fix,
        Message,
        NoFix,
        Position,
        ProgramState,
        Reference,
        Span,
    )
}


class FindingStore:
    """The findings of the last runs, for the components of a partition whose files are the same as then.

    ``digests`` are those of all files with a syntax tree; the others are checked in each run.
    """

    def __init__(self, checker: Checker, partition: Partition, digests: Mapping[str, str], cache: Cache) -> None:
        self._partition = partition
        self._digests = digests
        self._cache = cache
        self._settings = _fingerprint(checker)
        self._stored: dict[tuple[str, ...], dict[str, Any]] = {}
        self._keys: dict[tuple[str, ...], str] = {}

    def known(self) -> dict[str, CheckResult]:
        """The results of files whose components have not changed since they were checked."""
        found: dict[str, CheckResult] = {}
        for paths in self._partition.paths:
            stored = self._read(paths)
            try:
                found.update({path: decode_record(each, _TYPES) for path, each in stored.items()})
                self._stored[paths] = stored
            except (KeyError, TypeError):  # not what ``update`` wrote: written anew
                continue
        return found

    def update(self, checks: Mapping[str, CheckResult]) -> None:
        """Store the results of a run. One of a file whose check broke off is not stored, since the next one may not."""
        for paths in self._partition.paths:
            stored = self._stored.get(paths, {})
            fresh = {path: checks[path] for path in paths if path in checks and path not in stored}
            kept = {path: encode_record(each) for path, each in fresh.items() if each.is_final}
            if kept:
                rows = sorted({**stored, **kept}.items())
                self._cache.write(self._file(paths), compress_json([self._key(paths), dict(rows)]))

    def forget_others(self) -> None:
        """Remove the findings of components that no longer exist."""
        forget_others(self._cache, (_NAME,), self._partition.paths)

    def _read(self, paths: tuple[str, ...]) -> dict[str, Any]:
        data = self._cache.read(self._file(paths))
        key, stored = decompress_json(data) if data else ("", {})
        return stored if key == self._key(paths) else {}

    def _key(self, paths: tuple[str, ...]) -> str:
        """A digest of all that the findings in a component depend on."""
        if paths not in self._keys:
            files = [[path, self._digests[path]] for path in paths]
            resolution = self._partition.tree.key_of({path: self._partition.facts[path] for path in paths})
            self._keys[paths] = _digest(repr((self._settings, files, resolution)))
        return self._keys[paths]

    def _file(self, paths: Sequence[str]) -> str:
        return f"{_NAME}-{component_key(paths)}"


def _fingerprint(checker: Checker) -> str:
    """A digest of what findings depend on besides the files of their component."""
    root = checker.tree.root._replace(settings=checker.tree.root.settings._replace(output_format=""))
    torch = checker.catalogue
    versions = torch.version, torch.asked, torch.admitted, torch.declared
    rules = [rule.code for rule in checker.rules], sorted(checker.fixable)
    given = checker.honour_comments, bool(checker.table), checker.finds_gaps
    return _digest(repr((tool_stamp(), root, versions, rules, given, checker.manifest)))


def _digest(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))
