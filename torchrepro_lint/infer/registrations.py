"""The buffers, parameters and modules that the methods of a class register by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Call, Ref, path_of
from torchrepro_lint.syntax.visitor import expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex

_REGISTERING = frozenset({"register_buffer", "register_parameter", "add_module", "register_module"})


def registrations(project: ProgramIndex, owner: str) -> Iterator[tuple[str, str, Call]]:
    """Each ``self.register_buffer(...)`` of a class: the file, the method's word, and the call."""
    path = path_of(owner)
    for definition in project.resolver.classes(owner):
        for _, method in definition.methods:
            for function in project.resolver.functions(path + method):
                for statement in statements(function.body):
                    for expression in expressions(statement):
                        for each in within(expression):
                            match each:
                                case Call(func=Ref(path=(word,)), args=(_, *_)) if word in _REGISTERING:
                                    yield path, word, each
