"""The arguments of a call by name: positional or keyword, through ``**`` of dictionaries and ``functools.partial``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.facts import Arg, Assign, Call, Collection, Constant, Expression, Operation, Ref, Subscript
from torchrepro_lint.walk import expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.project import Project


class Arguments(NamedTuple):
    """What a call passes: parameter → the expressions that may be given for it, each with its file.

    ``complete`` is false where a ``*`` or ``**`` may pass more that could not be resolved.
    """

    given: dict[str, list[tuple[str, Expression]]]
    complete: bool

    def passes(self, name: str) -> bool:
        """Whether something other than a literal None may be passed for a parameter."""
        return any(not (isinstance(value, Constant) and value.value is None) for _, value in self.given.get(name, ()))

    def constants(self, name: str) -> list[object] | None:
        """The literal values that may be passed for a parameter; None where any of them is no literal."""
        values = [value for _, value in self.given.get(name, ())]
        return (
            [v.value for v in values if isinstance(v, Constant)]
            if all(isinstance(v, Constant) for v in values)
            else None
        )


def read_arguments(project: Project, path: str, call: Call, parameters: Sequence[str]) -> Arguments:
    """Resolve the arguments of a call whose positional parameters are ``parameters``."""
    given: dict[str, list[tuple[str, Expression]]] = {}
    complete = True
    position = 0
    for file, arg in _all_arguments(project, path, call):
        if arg.star == "**":
            found = list(_entries(project, file, arg.value))
            complete = complete and None not in [key for key, _ in found]
            for key, value in found:
                if key is not None:
                    given.setdefault(key, []).extend(project.values(*value))
        elif arg.star:
            complete = False
        elif arg.keyword is not None:
            given.setdefault(arg.keyword, []).extend(project.values(file, arg.value))
        elif position < len(parameters):
            given.setdefault(parameters[position], []).extend(project.values(file, arg.value))
            position += 1
    return Arguments(given, complete)


def _all_arguments(project: Project, path: str, call: Call) -> Iterator[tuple[str, Arg]]:
    """A partial's own arguments stand before those of the call; a keyword of the call replaces the partial's."""
    overridden = {arg.keyword for arg in call.args}
    for file, value in project.values(path, call.func):
        if isinstance(value, Call) and "functools.partial" in project.names(file, value.func):
            for arg in value.args[1:]:
                if arg.keyword is None or arg.keyword not in overridden:
                    yield file, arg
    yield from ((path, arg) for arg in call.args)


def _entries(
    project: Project, path: str, expression: Expression
) -> Iterator[tuple[str | None, tuple[str, Expression]]]:
    """The entries of a dictionary that is passed on; a key of None stands for entries that are not known."""
    if isinstance(expression, Ref) and not expression.path:
        for root in expression.roots:
            yield from _later_entries(project, path, root)
    for file, value in project.values(path, expression):
        match value:
            case Collection(kind="dict", items=items):
                yield from _displayed(project, file, items)
            case Call(func=Ref(roots=("builtins.dict",), path=()), args=args):
                yield from _named(project, file, args)
            case Operation(op="if", operands=(_, one, other)) | Operation(op="or", operands=(one, other)):
                yield from _entries(project, file, one)
                yield from _entries(project, file, other)
            case Operation(op="|", operands=operands):
                for operand in operands:
                    yield from _entries(project, file, operand)
            case _:
                yield None, (file, value)


def _displayed(
    project: Project, path: str, items: tuple[Expression | None, ...]
) -> Iterator[tuple[str | None, tuple[str, Expression]]]:
    for key, item in zip(items[::2], items[1::2], strict=True):
        assert item is not None
        if isinstance(key, Constant) and isinstance(key.value, str):
            yield key.value, (path, item)
        elif key is None:
            yield from _entries(project, path, item)
        else:
            yield None, (path, item)


def _named(project: Project, path: str, args: tuple[Arg, ...]) -> Iterator[tuple[str | None, tuple[str, Expression]]]:
    """What ``dict(...)`` and ``update(...)`` are given: keywords, and other dictionaries."""
    for arg in args:
        if arg.keyword is not None:
            yield arg.keyword, (path, arg.value)
        else:
            yield from _entries(project, path, arg.value)


def _later_entries(project: Project, path: str, variable: str) -> Iterator[tuple[str | None, tuple[str, Expression]]]:
    """What ``d["k"] = v``, ``d.update(...)`` and ``d.setdefault("k", v)`` add to a dictionary in its file."""
    facts = project.files[path]
    for body in (facts.body, *(each.body for each in facts.functions)):
        for statement in statements(body):
            if isinstance(statement, Assign) and statement.value is not None:
                for target in statement.targets:
                    match target:
                        case Subscript(value=Ref(roots=roots, path=()), indices=(Constant(value=str(key)),)) if (
                            variable in roots
                        ):
                            yield key, (path, statement.value)
            for expression in expressions(statement):
                for each in within(expression):
                    yield from _from_method(project, path, variable, each)


def _from_method(
    project: Project, path: str, variable: str, expression: Expression
) -> Iterator[tuple[str | None, tuple[str, Expression]]]:
    match expression:
        case Call(func=Ref(roots=roots, path=("update",)), args=args) if variable in roots:
            yield from _named(project, path, args)
        case Call(func=Ref(roots=roots, path=("setdefault",)), args=(first, second)) if variable in roots:
            if isinstance(first.value, Constant) and isinstance(first.value.value, str):
                yield first.value.value, (path, second.value)
