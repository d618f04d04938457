"""What the files of a project define, by full name; a file is looked into when one of its names is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torchrepro_lint.facts import Class, Expression, Facts, Function, Param
from torchrepro_lint.redefinition import in_force


class Parameter(NamedTuple):
    """A parameter of a function, and its position among all of them."""

    function: Function
    param: Param
    position: int


class _Table(NamedTuple):
    functions: dict[str, list[Function]]
    classes: dict[str, list[Class]]
    assigned: dict[str, tuple[tuple[str, Expression], ...]]
    parameters: dict[str, Parameter]


_NOTHING = _Table({}, {}, {}, {})


class Definitions:
    """Look-ups of ``path:name``; a name that a project does not define gives nothing."""

    def __init__(self, files: Mapping[str, Facts]) -> None:
        self._files = files
        self._tables: dict[str, _Table] = {}

    def functions(self, name: str) -> list[Function]:
        """The definitions of a function that are in force."""
        path, _, own = name.partition(":")
        return self._table(path).functions.get(own, [])

    def classes(self, name: str) -> list[Class]:
        """The definitions of a class."""
        path, _, own = name.partition(":")
        return self._table(path).classes.get(own, [])

    def assigned(self, name: str) -> tuple[tuple[str, Expression], ...] | None:
        """What a variable is assigned, as ``Facts.assigned`` has it; None where it is no variable."""
        path, _, own = name.partition(":")
        return self._table(path).assigned.get(own)

    def parameter(self, name: str) -> Parameter | None:
        """The parameter that a variable is."""
        path, _, own = name.partition(":")
        return self._table(path).parameters.get(own)

    def defines(self, name: str) -> bool:
        """Whether a name is a function or class of the project."""
        path, _, own = name.partition(":")
        table = self._table(path)
        return own in table.functions or own in table.classes

    def all_classes(self) -> Iterator[str]:
        """The names of all classes of the project, file by file."""
        for path in sorted(self._files):
            yield from dict.fromkeys(path + each.name for each in self._files[path].classes)

    def _table(self, path: str) -> _Table:
        table = self._tables.get(path)
        if table is None:
            facts = self._files.get(path)
            if facts is None:
                return _NOTHING
            table = self._tables[path] = _table(facts)
        return table


def _table(facts: Facts) -> _Table:
    """The definitions of a file, by names without their colon."""
    table = _Table({}, {}, {name[1:]: values for name, values in facts.assigned}, {})
    for function in in_force(facts):
        table.functions.setdefault(function.name[1:], []).append(function)
        for position, param in enumerate(function.params):
            name = f"{function.name[1:]}.<locals>.{param.name}"
            table.parameters[name] = Parameter(function, param, position)
    for each in facts.classes:
        table.classes.setdefault(each.name[1:], []).append(each)
    return table
