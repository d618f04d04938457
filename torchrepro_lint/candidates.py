"""The ways to read a call: what its arguments may be, where variables among them have several values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Collection, Constant, Expression, Operation, Ref
from torchrepro_lint.signatures import Argument, arguments

if TYPE_CHECKING:
    from torchrepro_lint.entries import Spelling
    from torchrepro_lint.project import Site
    from torchrepro_lint.rule import Context

# Variables with several values each multiply; beyond these counts an argument stays unknown.
_MOST_VARIABLES = 3
_MOST_VALUES = 12


def readings(context: Context, spelling: Spelling, site: Site) -> Iterator[Argument]:
    """The ways to read a call's arguments: one for each value that a variable among them may have."""
    read = arguments(spelling, site.call)
    words = [word for word in (*spelling.parameters, *spelling.keywords) if isinstance(read(word), Ref)]
    open_ended = {word: values for word in words if len(values := _candidates(context, site, read(word))) > 0}
    combinations = product(*open_ended.values()) if len(open_ended) <= _MOST_VARIABLES else ()
    tried = False
    for chosen in combinations:
        tried = True
        given = dict(zip(open_ended, chosen, strict=True))
        yield lambda name, given=given: given.get(name) or read(name)  # type: ignore[misc]
    if not tried:
        yield read


def _candidates(context: Context, site: Site, value: Expression | None) -> list[Expression]:
    """The values that an argument may have: those that a test around the call admits, else all that are assigned."""
    assert isinstance(value, Ref)
    for guard in reversed(site.guards):
        if guard.kind == "if" and (admitted := list(_admitted(guard.value, value))):
            return admitted
    resolver = context.project.resolver
    leaves = context.project.values(context.path, value) if value.roots else []
    found = [resolver.default(path, each) or each for path, each in leaves]
    return list(dict.fromkeys(found))[:_MOST_VALUES]


def _admitted(test: Expression, value: Ref) -> Iterator[Expression]:
    """``mode == "nearest"`` and ``mode in ("nearest", "area")`` say what ``mode`` is."""
    match test:
        case Operation(op="==", operands=(Ref(roots=value.roots, path=value.path), Constant() as constant)):
            yield constant
        case Operation(op="in", operands=(Ref(roots=value.roots, path=value.path), Collection(items=items))):
            yield from (item for item in items if isinstance(item, Constant))
        case Operation(op="and", operands=operands):
            for operand in operands:
                yield from _admitted(operand, value)
