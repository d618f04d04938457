"""Rows of a table by the names of what they are about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any, Generic, TypeAlias, TypeVar

from torchrepro_lint.source.globs import starred

Indexed = TypeVar("Indexed")
_RESULT = re.compile(r"\(\)(\[\])*\.")
Table: TypeAlias = dict[str, Any]


def plain(name: str) -> str:
    """The name by which the tables know a method of what was made or picked: ``a.b.f`` for ``a.b()[].f``.

    What a package gives when it is called is nothing that they know: ``torch().seed`` is not ``torch.seed``.
    """
    made, called, _ = name.partition("()")
    return _RESULT.sub(".", name) if called and "." in made else name


class Index(Generic[Indexed]):
    """Rows, each made for the name that is asked for.

    ``names`` of a table are absolute, with ``*`` for one or more words, those of ``except`` left out. Where the table has
    ``packages``, they are what any module of those packages offers, since libraries re-export what they define:
    ``Trainer.fit`` of ``lightning`` is ``lightning.Trainer.fit`` and ``lightning.pytorch.trainer.Trainer.fit``.
    """

    def __init__(self, tables: Iterable[tuple[Table, Callable[[Table, str], Indexed]]]) -> None:
        self._known: dict[str, tuple[Indexed, ...]] = {}
        self._named: dict[str, list[_Maker[Indexed]]] = {}
        self._offered: dict[str, list[_Maker[Indexed]]] = {}
        self._patterns: list[_Maker[Indexed]] = []
        self._tables: list[Table] = []
        for table, make in tables:
            self._tables.append(table)
            maker = _Maker(table, make)
            for name in table["names"]:
                if "packages" in table:
                    self._offered.setdefault(name, []).append(maker)
                elif "*" not in name:
                    self._named.setdefault(name, []).append(maker)
            if maker.pattern.pattern:
                self._patterns.append(maker)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that are written out, sorted."""
        return tuple(sorted(self._named))

    def words(self, wanted: Callable[[Table], bool], named: Callable[[str, str], bool]) -> frozenset[str]:
        """The last words of what the rows of ``wanted`` tables are about, where ``named`` says that a top-level package
        and a word of it, a class before its methods, occur.
        """
        return frozenset(
            name.rpartition(".")[2]
            for table in self._tables
            if wanted(table)
            for name in table["names"]
            if any(named(*each) for each in _beginnings(table, name))
        )

    def of(self, name: str) -> tuple[Indexed, ...]:
        """The rows about a dotted name, in the order of the tables: those that name it, else those that it fits."""
        if name not in self._known:
            found = self._named.get(name) or self._offering(name) or self._fitting(name)
            self._known[name] = tuple(each.make(each.table, name) for each in found)
        return self._known[name]

    def _offering(self, name: str) -> list[_Maker[Indexed]]:
        words = name.split(".")
        modules = next((at for at, word in enumerate(words) if word[:1].isupper()), len(words) - 1)
        return [
            maker
            for at in range(1, modules + 1)
            for maker in self._offered.get(".".join(words[at:]), ())
            if f"{'.'.join(words[:at])}.".startswith(maker.packages)
        ]

    def _fitting(self, name: str) -> list[_Maker[Indexed]]:
        fitting = (each for each in self._patterns if each.pattern.fullmatch(name) and not each.barred.fullmatch(name))
        return list(fitting)


def _beginnings(table: Table, name: str) -> Iterator[tuple[str, str]]:
    """The packages of a name, each with the word of it by which a file that uses the name must mention it."""
    words = name.split(".")
    word = next((each for each in words if each[:1].isupper()), words[-1])
    yield from ((each.partition(".")[0], word) for each in table.get("packages", (name,)))


class _Maker(Generic[Indexed]):
    """A table, how a row is made of it, and which names it is about beside those written out."""

    def __init__(self, table: Table, make: Callable[[Table, str], Indexed]) -> None:
        self.table = table
        self.make = make
        self.packages = tuple(f"{package}." for package in table.get("packages", ()))
        names = [] if self.packages else [name for name in table["names"] if "*" in name]
        self.pattern = re.compile(_any_of(names))
        self.barred = re.compile(_any_of(table.get("except", ())) or r"(?!)")


def _any_of(names: Iterable[str]) -> str:
    numbers = count()
    return "|".join(starred(name, r"[\w.]+", numbers) for name in names)
