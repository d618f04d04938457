"""Messages: texts for people that know which lines of files they name, so that each report can show those paths in its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple


class Reference(NamedTuple):
    """A line of a file: its path from the project's root, and ``12``, in a notebook ``cell 3:12``. No line stands for the file."""

    path: str
    line: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


class Message(str):
    """A text in parts, some of which are references. As a string it has their paths from the project's root.

    It is made of strings, references and other messages. An f-string of a message is a plain string: it lost the references.
    """

    __slots__ = ("parts",)
    parts: tuple[str | Reference, ...]

    def __new__(cls, *parts: str | Reference) -> Message:  # noqa: PYI034  typing has Self from Python 3.11 on
        flat = tuple(_flattened(parts))
        made = super().__new__(cls, "".join(map(str, flat)))
        made.parts = flat
        return made

    def __getnewargs__(self) -> tuple[str | Reference, ...]:  # type: ignore[override]  # what __new__ takes
        return self.parts


def with_paths(text: str, display: Callable[[str], str]) -> str:
    """A text as a report shows it: ``display`` gives the path to show for one from the project's root."""
    if not isinstance(text, Message):
        return text
    return "".join(
        str(part._replace(path=display(part.path))) if isinstance(part, Reference) else part for part in text.parts
    )


def _flattened(parts: Iterable[str | Reference]) -> Iterator[str | Reference]:
    for part in parts:
        if isinstance(part, Message):
            yield from part.parts
        elif part:
            yield part
