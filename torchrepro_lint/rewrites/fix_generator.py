"""TRL301 to TRL303: one seeded generator for the loaders, samplers and splits of a function, passed to each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from torchrepro_lint.edits import append_argument, replace_argument
from torchrepro_lint.facts import Arg, Assign, Call, Constant, Define, Expression, Function, Lambda, Loop, Ref
from torchrepro_lint.insertions import free_name, insert_statement
from torchrepro_lint.loaders import Loader, loaders
from torchrepro_lint.loose import loose_draws
from torchrepro_lint.merging import joined
from torchrepro_lint.nesting import Level, function_at, is_elif, level_of
from torchrepro_lint.new_imports import ensure_import
from torchrepro_lint.repeats import function_runs_often
from torchrepro_lint.rewrites.seed_fields import FALLBACK
from torchrepro_lint.rewrites.seed_values import seed_at
from torchrepro_lint.splitting import random_splits
from torchrepro_lint.text import Edit, Fix
from torchrepro_lint.walk import expressions, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchrepro_lint.project import Project

_PLAIN = re.compile(r"[\w.]+")
_MADE = "torch.Generator()"
_KEYWORD = "generator"
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
    level = level_of(project.files[path], call.start)
    if level is None or isinstance(level.spots[-1].statement, Define) or _in_lambda(level, call):
        return ()
    given = next((arg for arg in call.args if arg.keyword == _KEYWORD), None)
    if given is not None and isinstance(given.value, Ref) and _GLOBAL.isdisjoint(project.names(path, given.value)):
        return ()  # what is handed on is made elsewhere
    if _is_left(project, path, call):
        return ()
    word = _visible(project, path, level)
    making: tuple[Edit, ...] = ()
    if not word:
        word, making = _made(project, path, level)
        if not making or function_runs_often(project, path, level):
            return ()
    return (*making, _passing(project, path, call, word))


def _is_left(project: Project, path: str, call: Call) -> bool:
    """Whether whoever calls the function may pass a generator."""
    function = function_at(project.files[path], call.start)
    return function is not None and any(_is_open(function, arg) for arg in call.args)


def _is_open(function: Function, arg: Arg) -> bool:
    """Whether an argument is the function's own ``**kwargs``: who calls it may pass a generator that way."""
    own = {f"{function.name}.<locals>.{param.name}" for param in function.params if param.kind == "**"}
    return arg.star == "**" and isinstance(arg.value, Ref) and not own.isdisjoint(arg.value.roots)


def _visible(project: Project, path: str, level: Level) -> str:
    """A generator of torch for the CPU that the function has before, by a variable or a parameter, or the module has."""
    for statement in level.before:
        if (
            isinstance(statement, Assign)
            and statement.value is not None
            and _is_generator(project, path, statement.value)
        ):
            for target in statement.targets:
                if isinstance(target, Ref) and not target.path:
                    return target.roots[0].rpartition(".")[2].lstrip(":")
    if level.function is None:
        return ""
    for param in level.function.params:
        variable = Ref(0, 0, (f"{level.function.name}.<locals>.{param.name}",), (), 0)
        if _MADE in project.resolver.names_of(path, variable) and param.default is None:
            return param.name
    for name, values in project.files[path].assigned:
        if name.startswith(":") and "." not in name and len(values) == 1 and _is_generator(project, path, values[0][1]):
            return name[1:]
    return ""


def _is_generator(project: Project, path: str, value: Expression) -> bool:
    """``torch.Generator()``, seeded or to be seeded, but none for a device."""
    if _MADE not in project.names(path, value):
        return False
    made = [
        each for each in within(value) if isinstance(each, Call) and "torch.Generator" in project.names(path, each.func)
    ]
    return all(not each.args or _is_cpu(each.args[0].value) for each in made)


def _is_cpu(value: Expression) -> bool:
    return isinstance(value, Constant) and value.value == "cpu"


def _made(project: Project, path: str, level: Level) -> tuple[str, tuple[Edit, ...]]:
    """The statement that makes a generator, before the one of the function's body that needs one first."""
    facts, text = project.files[path], project.text(path)
    outer = _common(project, path, level)
    statement_of = outer.spots[-1].statement if outer else None
    if outer is None or statement_of is None or is_elif(text, statement_of) or isinstance(statement_of, Define):
        return "", ()
    inside = level.function.name if level.function else ""
    torch, imports = ensure_import(facts, text, "torch", inside=inside)
    word = free_name(facts, _KEYWORD, inside)
    seed = seed_at(project, path, outer)
    value = _apart(seed.text if seed else str(FALLBACK), _earlier(project, path, level))
    statement = f"{word} = {torch}.Generator().manual_seed({value})"
    return word, joined((*imports, insert_statement(text, statement_of.start, statement, below_heading=True)))


def _earlier(project: Project, path: str, level: Level) -> int:
    """How many functions above need a generator, too: with the same seed, their loaders would go in step with this one's."""
    own = level.function.start if level.function else -1
    found = {each.function.start for each in _levels(project, path) if each.function is not None}
    return sum(start < own for start in found) if level.function else 0


def _levels(project: Project, path: str) -> Iterator[Level]:
    """Where the functions of a file need a generator that none of them has."""
    for _, start in _needing_all(project, path):
        level = level_of(project.files[path], start)
        if level is not None and not _visible(project, path, level):
            yield level


def _apart(seed: str, number: int) -> str:
    """The seed of the second, third, … generator of a file: ``0`` and ``1``, ``args.seed`` and ``args.seed + 1``."""
    if number == 0:
        return seed
    if seed.isdecimal():
        return str(int(seed) + number)
    return f"{seed} + {number}" if _PLAIN.fullmatch(seed) else f"({seed}) + {number}"


def _common(project: Project, path: str, level: Level) -> Level | None:
    """The first statement of the innermost block around all calls of the function that need a generator, in no loop."""
    found = [level_of(project.files[path], start) for start in _needing(project, path, level)]
    levels = [each for each in (level, *found) if each is not None and each.function == level.function]
    first = min(levels, key=lambda each: each.spots[-1].statement.start)
    depth = 1
    while depth < min(len(each.spots) for each in levels):
        spot = first.spots[depth]
        if isinstance(spot.around, Loop) or any(each.spots[depth].block is not spot.block for each in levels):
            break
        depth += 1
    return Level(first.function, first.spots[:depth])


def _needing(project: Project, path: str, level: Level) -> list[int]:
    """Where the function calls what draws from a generator and is given none."""
    function = f"{path}{level.function.name}" if level.function else f"{path}:"
    return [start for name, start in _needing_all(project, path) if name == function]


def _needing_all(project: Project, path: str) -> tuple[tuple[str, int], ...]:
    known = _KNOWN.setdefault(project, {})
    if path not in known:
        sites = [loader.site for loader in loaders(project, path) if _needs(project, loader)]
        sites += [site for site, _ in random_splits(project, path)]
        known[path] = tuple(
            (site.function, site.call.start) for site in sites if not _is_left(project, path, site.call)
        )
    return known[path]


_KNOWN: WeakKeyDictionary[Project, dict[str, tuple[tuple[str, int], ...]]] = WeakKeyDictionary()


def _needs(project: Project, loader: Loader) -> bool:
    return not loader.passes(_KEYWORD) and (loader.shuffles or bool(loose_draws(project, loader, before=False)))


def _passing(project: Project, path: str, call: Call, word: str) -> Edit:
    for arg in call.args:
        if arg.keyword == _KEYWORD or (not arg.star and _GLOBAL.intersection(project.names(path, arg.value))):
            return replace_argument(arg, word)
    return append_argument(call, project.text(path), f"{_KEYWORD}={word}")


def _in_lambda(level: Level, call: Call) -> bool:
    """Whether a call stands in a lambda, which may run again and again."""
    return any(
        isinstance(each, Lambda) and each.start <= call.start < each.end
        for expression in expressions(level.spots[-1].statement)
        for each in within(expression)
    )
