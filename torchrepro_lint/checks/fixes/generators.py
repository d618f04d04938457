"""Where a file needs generators of torch, and which it has: what each fix of the file asks again, worked out once.

Where a function can make the one generator for all its calls that need one.

TRL301 to TRL303: one seeded generator for the loaders, samplers and splits of a function, passed to each.

TRL301: a function that seeds each worker, for torch before 1.9 and for datasets with a generator of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from torchrepro_lint.checks.fixes.arguments import append_argument, replace_argument
from torchrepro_lint.checks.fixes.helpers import Helper, provide
from torchrepro_lint.checks.fixes.imports import ensure_import
from torchrepro_lint.checks.fixes.insertions import free_name, insert_statement, shadowed
from torchrepro_lint.checks.fixes.program_seed import FALLBACK, seed_at
from torchrepro_lint.domain.loaders.sites import Loader
from torchrepro_lint.domain.loaders.splits import PARAMETERS, loose_draws, random_splits
from torchrepro_lint.source.text import Edit, Fix, joined
from torchrepro_lint.syntax.control_flow import Level, function_at, hidden, is_elif, level_of
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Call,
    Constant,
    Define,
    Expression,
    Function,
    Lambda,
    Loop,
    Ref,
    Statement,
    path_of,
)
from torchrepro_lint.syntax.visitor import expressions, last_word, within
from torchrepro_lint.trace.trace import function_runs_often

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


def common(project: Project, path: str, level: Level) -> Level:
    """The first statement of the innermost block around all calls of the function that need a generator, and around
    ``level``, in no loop.
    """
    known = _KNOWN_PLACES.get(project)
    if known is None:
        known = _KNOWN_PLACES[project] = {}
    key = path, level.function.start if level.function else -1
    if key not in known:
        found = (known_level(project, path, start) for start in needing(project, path, level))
        levels = [each for each in found if each is not None and each.function == level.function]
        known[key] = _Place(tuple(levels), frozenset(map(id, levels)), _around(levels) if levels else level)
    place = known[key]
    return place.level if id(level) in place.known else _around((level, *place.levels))


class _Place(NamedTuple):
    """The levels of a function's calls that need a generator, by their identity, too, and what is around them all."""

    levels: tuple[Level, ...]
    known: frozenset[int]
    level: Level


_KNOWN_PLACES: WeakKeyDictionary[Project, dict[tuple[str, int], _Place]] = WeakKeyDictionary()


def _around(levels: Iterable[Level]) -> Level:
    every = tuple(levels)
    first = min(every, key=lambda each: each.spots[-1].statement.start)
    depth = 1
    while depth < min(len(each.spots) for each in every):
        spot = first.spots[depth]
        if isinstance(spot.around, Loop) or any(each.spots[depth].block is not spot.block for each in every):
            break
        depth += 1
    return Level(first.function, first.spots[:depth])


_PLAIN = re.compile(r"[\w.]+")
# torch's own generator, which is as good as none.
_GLOBAL = frozenset({"torch.default_generator", "torch.random.default_generator"})


def fix_generator(project: Project, path: str, call: Call) -> Fix | None:
    """Pass a generator that the function has, or one that is made before the first call that needs it.

    None in a function that runs for each epoch, batch or sample, where each would give the same numbers again, and where
    no statement can stand before the call.
    """
    found = generator_edits(project, path, call)
    return Fix("pass a seeded generator", found, safe=False) if found else None


def generator_edits(project: Project, path: str, call: Call) -> tuple[Edit, ...]:
    """The edits that make a generator, where there is none, and pass it; the last one passes."""
    level = known_level(project, path, call.start)
    if level is None or isinstance(level.spots[-1].statement, Define) or _in_lambda(level, call):
        return ()
    given = next((arg for arg in call.args if arg.keyword == KEYWORD), None)
    if given is not None and isinstance(given.value, Ref) and _GLOBAL.isdisjoint(project.names(path, given.value)):
        return ()  # what is handed on is made elsewhere
    if is_left(project, path, call):
        return ()
    word = visible(project, path, level, hidden(level, call.start))
    making: tuple[Edit, ...] = ()
    if not word:
        word, making = _generator_made(project, path, level)
        if not making or function_runs_often(project, path, level):
            return ()
    return (*making, _passing(project, path, call, word))


def _generator_made(project: Project, path: str, level: Level) -> tuple[str, tuple[Edit, ...]]:
    """The statement that makes a generator, before the one of the function's body that needs one first."""
    facts, text = project.files[path], project.text(path)
    outer = common(project, path, level)
    statement_of = outer.spots[-1].statement
    if is_elif(text, statement_of) or isinstance(statement_of, Define):
        return "", ()
    inside = level.function.name if level.function else ""
    torch, imports = ensure_import(facts, text, "torch", inside=inside, at=statement_of.start)
    word = free_name(facts, KEYWORD, inside)
    seed = seed_at(project, path, outer)
    value = _apart(seed.text if seed else str(FALLBACK), _earlier(project, path, level))
    statement = f"{word} = {torch}.Generator().manual_seed({value})"
    return word, joined((*imports, insert_statement(text, statement_of.start, statement, below_heading=True)))


def _earlier(project: Project, path: str, level: Level) -> int:
    """How many functions above need a generator, too: with the same seed, their loaders would go in step with this one's."""
    own = level.function.start if level.function else -1
    return sum(start < own for start in wanting(project, path)) if level.function else 0


def _apart(seed: str, number: int) -> str:
    """The seed of the second, third, … generator of a file: ``0`` and ``1``, ``args.seed`` and ``args.seed + 1``."""
    if number == 0:
        return seed
    if seed.isdecimal():
        return str(int(seed) + number)
    return f"{seed} + {number}" if _PLAIN.fullmatch(seed) else f"({seed}) + {number}"


def _passing(project: Project, path: str, call: Call, word: str) -> Edit:
    parameters = PARAMETERS.get(last_word(call.func))
    for at, arg in enumerate(call.args):
        here = arg.keyword is None and (parameters is None or parameters[at : at + 1] == (KEYWORD,))
        is_global = here and not arg.star and _GLOBAL.intersection(project.names(path, arg.value))
        if arg.keyword == KEYWORD or is_global:
            return replace_argument(arg, word)
    return append_argument(call, project.text(path), f"{KEYWORD}={word}")


def _in_lambda(level: Level, call: Call) -> bool:
    """Whether a call stands in a lambda, which may run again and again."""
    return any(
        isinstance(each, Lambda) and each.start <= call.start < each.end
        for expression in expressions(level.spots[-1].statement)
        for each in within(expression)
    )


_WORD = "worker_init_fn"
_TORCH, _NUMPY, _RANDOM = ("torch", "torch"), ("numpy", "np"), ("random", "random")

SEED_WORKER = Helper(
    "seed_worker",
    '''\
def seed_worker(worker_id):
    """Seed NumPy and Python's random from the seed that torch gives each worker."""
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)''',
    modules=(_RANDOM, _NUMPY, _TORCH),
)
# For each generator that a dataset may own: how it is made anew, and the module for that.
_AGAIN = {
    "numpy.random.default_rng()": ("np.random.default_rng(torch.initial_seed())", _NUMPY),
    "numpy.random.RandomState()": ("np.random.RandomState(torch.initial_seed() % 2**32)", _NUMPY),
    "random.Random()": ("random.Random(torch.initial_seed())", _RANDOM),
}


def fix_workers(project: Project, path: str, loader: Loader, *, owns: bool) -> Fix | None:
    """Pass a function that seeds each worker, and a seeded generator, from which the workers' seeds come."""
    call, text = loader.site.call, project.text(path)
    helper = _of_dataset(project, loader) if owns else SEED_WORKER
    if helper is None:
        return None
    given = provide(project, path, text, helper, _first(project, path, call.start))
    if given is None:
        return None
    word, function = given
    generator = () if loader.passes("generator") else generator_edits(project, path, call)
    if not generator and not loader.passes("generator"):
        return None
    named = next((arg for arg in call.args if arg.keyword == _WORD), None)
    init = replace_argument(named, word) if named else append_argument(call, text, f"{_WORD}={word}")
    return Fix("seed each worker", _together((*function, *generator[:-1], init, *generator[-1:])), safe=False)


def _together(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Both arguments go to one place; what is written at one place is one edit, and an import that both need is one line."""
    kept: list[Edit] = []
    for edit in edits:
        if not any(edit.span == each.span and _lines(edit) <= _lines(each) for each in kept):
            kept.append(edit)
    return joined(kept)


def _lines(edit: Edit) -> set[str]:
    return set(edit.text.splitlines())


def _of_dataset(project: Project, loader: Loader) -> Helper | None:
    """For the one generator that the dataset itself owns."""
    found: set[tuple[str, str]] = set()
    for each in loader.values("dataset"):
        for name in project.names(each.path, each.value):
            if ":" not in name or not name.endswith("()"):
                return None
            for owner in project.resolver.ancestry(name[:-2]):
                for word, values in project.resolver.instance_attributes(owner).items() if ":" in owner else ():
                    for _, method, value in values:
                        kinds = project.names(path_of(method), value)
                        found.update((word, kind) for kind in kinds if kind in _AGAIN)
    if len(found) != 1:
        return None
    word, kind = found.pop()
    made, module = _AGAIN[kind]
    source = f'''\
def seed_worker(worker_id):
    """Give the dataset of each worker a generator that is seeded from torch's."""
    torch.utils.data.get_worker_info().dataset.{word} = {made}'''
    return Helper("seed_worker", source, modules=(module, _TORCH))


def _first(project: Project, path: str, offset: int) -> int:
    """The start of the top-level statement that may call the function first."""
    level = level_of(project.files[path], offset)
    return level.spots[0].statement.start if level and level.function is None else len(project.text(path))
