"""The fields of dataclasses, in the order in which their constructors take them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Assign, Call, Constant, Expression, Ref, Subscript, path_of

if TYPE_CHECKING:
    from torchrepro_lint.name_context import NameResolution


def fields(names: NameResolution, owner: str) -> list[str]:
    """The variables that are fields of a class (``a.py:Options.rows``), those of its bases first; none of what is no dataclass."""
    return [field for each in reversed(names.ancestry(owner)) for field in _own(names, each)]


def _own(names: NameResolution, owner: str) -> Iterator[str]:
    for definition in names.classes(owner):
        path = path_of(owner)
        decorated = (name for each in definition.decorators for name in names.names(path, each))
        if any(name.startswith(("dataclasses.dataclass", "attr")) for name in decorated):
            for statement in definition.body:
                if isinstance(statement, Assign) and _is_taken(names, path, statement):
                    yield from (f"{path}{r}" for t in statement.targets if isinstance(t, Ref) for r in t.roots)


def _is_taken(names: NameResolution, path: str, statement: Assign) -> bool:
    """Whether a constructor takes a field: not what is the class's own, nor what is made in another way."""
    declared = statement.annotation.value if isinstance(statement.annotation, Subscript) else statement.annotation
    if declared is None or "typing.ClassVar" in names.names(path, declared):
        return False
    given = statement.value.args if isinstance(statement.value, Call) else ()
    return not any(
        arg.keyword == "init" and isinstance(arg.value, Constant) and arg.value.value is False for arg in given
    )


def passed(names: NameResolution, owner: str, word: str) -> Iterator[tuple[str, Expression]]:
    """What the calls of the project that make objects of a class pass for a field, each with the calling file."""
    words = list(dict.fromkeys(each.rpartition(".")[2] for each in fields(names, owner)))
    if word not in words or any(":" in each for each in names.methods(owner, "__init__")):
        return
    index = words.index(word)
    for path, call in names.calls_of.making(owner):
        keyword = next((arg.value for arg in call.args if arg.keyword == word), None)
        plain = [arg.value for arg in call.args[: index + 1] if arg.keyword is None]
        if keyword is not None:
            yield path, keyword
        elif index < len(plain) and not any(arg.star for arg in call.args[: index + 1]):
            yield path, plain[index]
