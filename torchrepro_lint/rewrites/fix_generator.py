"""TRL301 to TRL303: one seeded generator for the loaders, samplers and splits of a function, passed to each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.domain.loaders.splits import PARAMETERS
from torchrepro_lint.edits import append_argument, replace_argument
from torchrepro_lint.insertions import free_name, insert_statement
from torchrepro_lint.new_imports import ensure_import
from torchrepro_lint.rewrites.generator_place import common
from torchrepro_lint.rewrites.generators import KEYWORD, is_left, known_level, visible, wanting
from torchrepro_lint.rewrites.seed_fields import FALLBACK
from torchrepro_lint.rewrites.seed_values import seed_at
from torchrepro_lint.source.text import Edit, Fix, joined
from torchrepro_lint.syntax.control_flow import Level, hidden, is_elif
from torchrepro_lint.syntax.nodes import Call, Define, Lambda, Ref
from torchrepro_lint.syntax.visitor import expressions, last_word, within
from torchrepro_lint.trace.trace import function_runs_often

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Project

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
        word, making = _made(project, path, level)
        if not making or function_runs_often(project, path, level):
            return ()
    return (*making, _passing(project, path, call, word))


def _made(project: Project, path: str, level: Level) -> tuple[str, tuple[Edit, ...]]:
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
