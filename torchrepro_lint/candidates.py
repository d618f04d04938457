"""The ways to read a call: what its arguments may be, where variables among them have several values."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import Argument, arguments, is_hidden
from torchrepro_lint.infer.kinds import kinds_of
from torchrepro_lint.passed_on import handed_on, not_passed
from torchrepro_lint.syntax.nodes import Arg, Attribute, Call, Constant, Expression, Operation, Ref
from torchrepro_lint.syntax.nodes import Collection as Display

if TYPE_CHECKING:
    from torchrepro_lint.catalogue.rows import Spelling
    from torchrepro_lint.resolve.program_index import Site
    from torchrepro_lint.value_flow import ValueFlow

# Variables with several values each multiply; beyond these counts an argument stays unknown.
_MOST_VARIABLES = 3
_MOST_VALUES = 12
_DEPTH = 4


def readings(
    project: ValueFlow, path: str, spelling: Spelling, site: Site, subjects: Collection[str]
) -> Iterator[Argument]:
    """The ways to read a call's arguments: one for each value that those among ``subjects`` may have."""
    own = not_passed(project, site)
    for call in handed_on(project, site) or _written_out(project, path, site.call):
        read = _without(own, arguments(spelling, call))
        words = [word for word in (*spelling.parameters, *spelling.keywords) if word in subjects]
        found = {word: values for word in words if (values := _candidates(project, path, site, read(word)))}
        if not found or len(found) > _MOST_VARIABLES:
            yield read
            continue
        for chosen in product(*found.values()):
            given = dict(zip(found, chosen, strict=True))
            yield lambda name, read=read, given=given: given.get(name) or read(name)  # type: ignore[misc]


def _without(own: frozenset[str], read: Argument) -> Argument:
    """The arguments, those of these words left out where only a star could give them."""
    return (lambda word: None if word in own and is_hidden(read(word)) else read(word)) if own else read


def _written_out(project: ValueFlow, path: str, call: Call) -> Iterator[Call]:
    """A call with the keywords that ``**options`` stands for: one for each dictionary, where all are literal."""
    double = next((arg for arg in call.args if arg.star == "**"), None)
    dicts = [] if double is None else [_items(each) for _, each in project.values(path, double.value)]
    if double is None or not dicts or None in dicts:
        yield call
        return
    for items in dicts:
        plain = tuple(arg for arg in call.args if arg is not double)
        yield call._replace(args=(*plain, *(Arg(each.start, each.end, word, "", each) for word, each in items or ())))


def _items(display: Expression) -> list[tuple[str, Expression]] | None:
    """The items of a dictionary whose keys are all words, ``{"mode": mode}`` or ``dict(mode=mode)``; else None."""
    match display:
        case Display(kind="dict", items=items):
            pairs = list(zip(items[::2], items[1::2], strict=True))
            words = [key.value for key, _ in pairs if isinstance(key, Constant) and isinstance(key.value, str)]
            return [(w, v) for w, (_, v) in zip(words, pairs, strict=True) if v] if len(words) == len(pairs) else None
        case Call(func=Ref(roots=("builtins.dict",), path=()), args=args) if all(arg.keyword for arg in args):
            return [(arg.keyword or "", arg.value) for arg in args]
    return None


def _candidates(project: ValueFlow, path: str, site: Site, value: Expression | None) -> list[Expression]:
    """The values that an argument may have: those that a test around the call admits, else all that are assigned.

    None for what is written out. The default of a parameter counts where a call passes what is not known.
    """
    if not isinstance(value, Ref | Operation) or (isinstance(value, Ref) and not value.roots):
        return []
    if isinstance(value, Ref):
        for guard in reversed(site.guards):
            if guard.kind == "if" and (admitted := list(_admitted(guard.value, value))):
                return admitted
    found = list(_leaves(project, path, value))
    default = project.resolver.default(path, value)
    default = (_literal(project, path, default) or default) if default is not None else None
    if default is not None and not all(isinstance(each, Constant | Display) for each in found):
        found.append(default)
    return list(dict.fromkeys(found))[:_MOST_VALUES]


def _leaves(project: ValueFlow, path: str, value: Expression, depth: int = 0) -> Iterator[Expression]:
    """The values of variables and of conditional expressions, each branch of them."""
    resolver = project.resolver
    for file, each in project.values(path, value):
        match each:
            case Operation(op="if", operands=(_, *branches)) | Operation(op="or", operands=branches) if depth < _DEPTH:
                for branch in branches:
                    yield from _leaves(project, file, branch, depth + 1)
            case Constant() | Display():
                yield each
            case _:
                default = resolver.default(file, each) or _left_out(each)
                yield _literal(project, file, each) or (_literal(project, file, default) if default else None) or each


def _left_out(value: Expression) -> Expression | None:
    """What a table gives for a key that it does not have: ``options.pop("mode", "bilinear")``."""
    match value:
        case Call(
            func=Ref(path=(*_, "get" | "pop")) | Attribute(name="get" | "pop"), args=(_, Arg(star="", value=given))
        ):
            return given
    return None


def _literal(project: ValueFlow, path: str, value: Expression) -> Expression | None:
    """The constant that inference finds a value to be, a display as it stands; None where it finds none."""
    if isinstance(value, Constant | Display):
        return value
    known = kinds_of(project).of(path, value).value
    return None if known is None else Constant(value.start, value.end, known)


def _admitted(test: Expression, value: Ref) -> Iterator[Expression]:
    """``mode == "nearest"`` and ``mode in ("nearest", "area")`` say what ``mode`` is."""
    match test:
        case Operation(op="==", operands=(Ref(roots=value.roots, path=value.path), Constant() as constant)):
            yield constant
        case Operation(op="in", operands=(Ref(roots=value.roots, path=value.path), Display(items=items))):
            yield from (item for item in items if isinstance(item, Constant))
        case Operation(op="and", operands=operands):
            for operand in operands:
                yield from _admitted(operand, value)
