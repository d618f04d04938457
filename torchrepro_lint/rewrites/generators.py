"""Where a file needs generators of torch, and which it has: what each fix of the file asks again, worked out once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from torchrepro_lint.domain.loaders.sites import Loader
from torchrepro_lint.domain.loaders.splits import loose_draws, random_splits
from torchrepro_lint.insertions import shadowed
from torchrepro_lint.syntax.control_flow import Level, function_at, hidden, level_of
from torchrepro_lint.syntax.nodes import Arg, Assign, Call, Constant, Expression, Function, Ref, Statement
from torchrepro_lint.syntax.visitor import within

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Project

KEYWORD = "generator"
_MADE = "torch.Generator()"


def wanting(project: Project, path: str) -> frozenset[int]:
    """Where the functions of a file begin that need a generator and have none."""
    known = _answers(project)
    if path not in known.wanting:
        needed = (each for found in _needing_all(project, path).values() for each in found)
        levels = ((start, known_level(project, path, start)) for start in needed)
        known.wanting[path] = frozenset(
            level.function.start
            for start, level in levels
            if level is not None
            and level.function is not None
            and not visible(project, path, level, hidden(level, start))
        )
    return known.wanting[path]


def known_level(project: Project, path: str, offset: int) -> Level | None:
    """``level_of`` an offset of a file."""
    known = _answers(project).levels
    if (path, offset) not in known:
        known[path, offset] = level_of(project.files[path], offset)
    return known[path, offset]


def needing(project: Project, path: str, level: Level) -> list[int]:
    """Where the function calls what draws from a generator and is given none."""
    function = f"{path}{level.function.name}" if level.function else f"{path}:"
    return _needing_all(project, path).get(function, [])


def _needing_all(project: Project, path: str) -> dict[str, list[int]]:
    known = _answers(project).needing
    if path not in known:
        sites = [loader.site for loader in project.readable_loaders(path) if _needs(project, loader)]
        sites += [site for site, _ in random_splits(project, path)]
        found: dict[str, list[int]] = {}
        for site in sites:
            if not is_left(project, path, site.call):
                found.setdefault(site.function, []).append(site.call.start)
        known[path] = found
    return known[path]


class _Answers(NamedTuple):
    """What each fix of a file asks again: where each function needs generators, and which functions do, by their starts;
    whether a value, known by its identity, is one; the levels of offsets; where in a block, known by its identity, too,
    which variables are given one; and the module's own.
    """

    needing: dict[str, dict[str, list[int]]]
    wanting: dict[str, frozenset[int]]
    generators: dict[int, bool]
    levels: dict[tuple[str, int], Level | None]
    made: dict[int, tuple[tuple[int, str], ...]]
    own: dict[str, tuple[str, ...]]


def _answers(project: Project) -> _Answers:
    found = _KNOWN.get(project)
    if found is None:
        found = _KNOWN[project] = _Answers({}, {}, {}, {}, {}, {})
    return found


_KNOWN: WeakKeyDictionary[Project, _Answers] = WeakKeyDictionary()


def _needs(project: Project, loader: Loader) -> bool:
    return not loader.passes(KEYWORD) and (loader.shuffles or bool(loose_draws(project, loader, before=False)))


def visible(project: Project, path: str, level: Level, taken: frozenset[str]) -> str:
    """A generator of torch for the CPU that the function has before, by a variable or a parameter, or the module has; by none
    of the words that are ``taken`` for something else at the place.
    """
    return next((word for word in _visible(project, path, level) if word not in taken), "")


def _visible(project: Project, path: str, level: Level) -> Iterator[str]:
    for spot in level.spots:
        for at, word in _made(project, path, spot.block):
            if at < spot.at:
                yield word
    if level.function is None:
        return
    for param in level.function.params:
        variable = Ref(0, 0, (f"{level.function.name}.<locals>.{param.name}",), (), 0)
        if _MADE in project.resolver.names_of(path, variable) and param.default is None:
            yield param.name
    known = _answers(project).own
    if path not in known:
        known[path] = tuple(_own(project, path))
    for word in known[path]:
        if not shadowed(project.files[path], word, level.function.name):
            yield word


def _made(project: Project, path: str, block: tuple[Statement, ...]) -> tuple[tuple[int, str], ...]:
    """Which statements of a block give a variable a generator, and which variable."""
    known = _answers(project).made
    if id(block) not in known:  # the facts stay as long as the project
        known[id(block)] = tuple(_find_made(project, path, block))
    return known[id(block)]


def _find_made(project: Project, path: str, block: tuple[Statement, ...]) -> Iterator[tuple[int, str]]:
    for at, statement in enumerate(block):
        if isinstance(statement, Assign) and statement.value is not None:
            plain = (each for each in statement.targets if isinstance(each, Ref) and not each.path)
            target = next(plain, None)
            if target is not None and _is_generator(project, path, statement.value):
                yield at, target.roots[0].rpartition(".")[2].lstrip(":")


def _own(project: Project, path: str) -> Iterator[str]:
    """The variables of the module that are given nothing but a generator."""
    for name, values in project.files[path].assigned.items():
        if name.startswith(":") and "." not in name and len(values) == 1 and _is_generator(project, path, values[0][1]):
            yield name[1:]


def _is_generator(project: Project, path: str, value: Expression) -> bool:
    """``torch.Generator()``, seeded or to be seeded, but none for a device."""
    known = _answers(project).generators
    if id(value) not in known:  # the facts stay as long as the project
        known[id(value)] = _makes_generator(project, path, value)
    return known[id(value)]


def _makes_generator(project: Project, path: str, value: Expression) -> bool:
    if _MADE not in project.names(path, value):
        return False
    made = [
        each for each in within(value) if isinstance(each, Call) and "torch.Generator" in project.names(path, each.func)
    ]
    return all(not each.args or _is_cpu(each.args[0].value) for each in made)


def _is_cpu(value: Expression) -> bool:
    return isinstance(value, Constant) and value.value == "cpu"


def is_left(project: Project, path: str, call: Call) -> bool:
    """Whether whoever calls the function may pass a generator."""
    function = function_at(project.files[path], call.start)
    return function is not None and any(_is_open(function, arg) for arg in call.args)


def _is_open(function: Function, arg: Arg) -> bool:
    """Whether an argument is the function's own ``**kwargs``: who calls it may pass a generator that way."""
    own = {f"{function.name}.<locals>.{param.name}" for param in function.params if param.kind == "**"}
    return arg.star == "**" and isinstance(arg.value, Ref) and not own.isdisjoint(arg.value.roots)
