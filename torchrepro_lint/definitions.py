"""What the files of a project define, by full name; a file is looked into when one of its names is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torchrepro_lint.query.memo_tables import Reads, tight
from torchrepro_lint.redefinition import in_force
from torchrepro_lint.syntax.nodes import Class, Expression, Facts, Function, Param, Statement, Values


class Parameter(NamedTuple):
    """A parameter of a function, and its position among all of them."""

    function: Function
    param: Param
    position: int


class _Table(NamedTuple):
    """The definitions of a file by their names in it: ``Net.forward``, those of variables with their colon."""

    functions: Mapping[str, tuple[Function, ...]]
    classes: Mapping[str, tuple[Class, ...]]
    assigned: Mapping[str, Values]


_NOTHING = _Table({}, {}, {})


class Definitions:
    """Look-ups of ``path:name``; a name that a project does not define gives nothing."""

    def __init__(self, files: Mapping[str, Facts], reads: Reads) -> None:
        self._files = files
        self.reads = reads
        self._keeps = reads.keeps  # asked for at every name
        self._tables: dict[str, _Table] = {}
        self._outlines: dict[str, dict[str, tuple[Expression, ...]]] = {}

    def top_level(self, module: str) -> tuple[Statement, ...]:
        """The top-level statements of a module (``path:``)."""
        return self._files[module[:-1]].body

    def facts(self, path: str) -> Facts:
        """All that is known of a file of the project."""
        self.reads.see(path)
        return self._files[path]

    def functions(self, name: str) -> tuple[Function, ...]:
        """The definitions of a function that are in force."""
        path, colon, own = name.rpartition(":")
        return self._table(path).functions.get(own, ()) if colon else ()

    def classes(self, name: str) -> tuple[Class, ...]:
        """The definitions of a class."""
        path, colon, own = name.rpartition(":")
        return self._table(path).classes.get(own, ()) if colon else ()

    def assigned(self, name: str) -> Values | None:
        """What a variable is assigned, as ``Facts.assigned`` has it; None where it is no variable."""
        path, colon, _ = name.rpartition(":")
        return self._table(path).assigned.get(name[len(path) :]) if colon else None

    def parameter(self, name: str) -> Parameter | None:
        """The parameter that a variable is, of the last definition that has it."""
        function, _, word = name.rpartition(".<locals>.")
        for definition in reversed(self.functions(function)) if function else ():
            for position, param in enumerate(definition.params):
                if param.name == word:
                    return Parameter(definition, param, position)
        return None

    def defines(self, name: str) -> bool:
        """Whether a name is a function or class of the project."""
        path, colon, own = name.rpartition(":")
        if not colon or own in self._outline(path):
            return bool(colon)
        table = self._table(path)
        return own in table.functions or own in table.classes

    def outlines(self, name: str) -> bool:
        """Whether a name is known to be a class, or a function outside classes and functions, without a look inside."""
        path, colon, own = name.rpartition(":")
        return bool(colon) and own in self._outline(path)

    def bases(self, name: str) -> tuple[Expression, ...]:
        """The bases of a class of the project, of all its definitions."""
        path, colon, own = name.rpartition(":")
        return self._outline(path).get(own, ()) if colon else ()

    def forget(self, path: str) -> None:
        """A file has changed."""
        self._tables.pop(path, None)
        self._outlines.pop(path, None)

    def _outline(self, path: str) -> dict[str, tuple[Expression, ...]]:
        """The functions and classes of a file that its summary tells of, without a look inside; classes with their bases."""
        if self._keeps:
            self.reads.see(path)
        outline = self._outlines.get(path)
        if outline is None:
            facts = self._files.get(path)
            if facts is None:
                return {}
            outline = self._outlines[path] = {name[1:]: () for name in facts.summary.functions}
            for name, bases in facts.summary.classes:
                outline[name[1:]] = outline.get(name[1:], ()) + bases
        return outline

    def _table(self, path: str) -> _Table:
        if self._keeps:
            self.reads.see(path)
        table = self._tables.get(path)
        if table is None:
            facts = self._files.get(path)
            if facts is None:
                return _NOTHING
            table = self._tables[path] = _table(facts)
        return table


def _table(facts: Facts) -> _Table:
    functions: dict[str, list[Function]] = {}
    for function in in_force(facts):
        functions.setdefault(function.name[1:], []).append(function)
    classes: dict[str, list[Class]] = {}
    for each in facts.classes:
        classes.setdefault(each.name[1:], []).append(each)
    return _Table(tight(functions), tight(classes), facts.assigned)
