"""Library models of generators: the calls of libraries that draw from a generator of the library's own, or let threads
decide, so that seeding torch, NumPy and Python does not make them repeatable.

The table is ``generators.toml``. Rows may hold for a range of library versions, as those of ``loaders`` do.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from torchrepro_lint.catalogue.loaders import LibraryVersions, admits_range
from torchrepro_lint.catalogue.rows import Condition, NameIndex, Signature, Table, read_row, read_signature
from torchrepro_lint.source.files import read_table
from torchrepro_lint.syntax.qualified_names import in_project, top_package, without_calls


class LibraryGenerator(NamedTuple):
    """A call that is repeatable only with its ``argument``: ``cause`` says why, as a message says it of the call.

    Reported where the argument is left out or None, and none of ``others`` is given; with ``key`` where the argument, a
    dictionary, has no such key; with ``required`` where its value changes between runs. With a ``value`` only that makes the
    call repeatable: it is reported where ``when`` is known to hold, and so is a row without an argument. ``write`` is what a
    fix passes, with ``{}`` for the seed. With ``inner`` one of the transforms that the call is given must draw.
    ``family`` is the global generator that seeds the library's, if one does: then a run must seed neither.
    ``setters`` are calls that seed the library for the
    whole project, with ``*`` for any words. ``uses`` are methods of the result, of which the same file must call one.
    """

    signature: Signature
    library: str
    cause: str
    source: str
    evidence: str
    argument: str = ""
    key: str = ""
    others: tuple[str, ...] = ()
    write: str = "{}"
    value: str = ""
    required: bool = False
    when: tuple[Condition, ...] = ()
    inner: bool = False
    family: str = ""
    setters: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    since: str = ""
    before: str = ""
    run: str = ""

    @property
    def must_hold(self) -> bool:
        """Whether the conditions must be known to hold: nothing else says that the call is not repeatable."""
        return bool(self.value) or not self.argument


def library_generators(name: str, known: LibraryVersions = ()) -> tuple[LibraryGenerator, ...]:
    """The rows of a callable by its absolute name; ``known`` are the required versions of libraries."""
    if in_project(name) or top_package(name) not in _roots():
        return ()
    return tuple(
        row for row in generators().of(without_calls(name)) if admits_range(known, row.library, row.since, row.before)
    )


@lru_cache(maxsize=1)
def generators() -> NameIndex[LibraryGenerator]:
    """All rows."""
    return NameIndex((table, _generator) for table in _tables())


def _generator(table: Table, name: str) -> LibraryGenerator:
    return read_row(LibraryGenerator, table, signature=read_signature(table, name))


@lru_cache(maxsize=1)
def _roots() -> frozenset[str]:
    """The top-level packages of all names."""
    return frozenset(top_package(each) for table in _tables() for each in table.get("packages", ()) or table["names"])


def _tables() -> list[Table]:
    found: list[Table] = read_table("generators.toml")["generator"]
    return found
