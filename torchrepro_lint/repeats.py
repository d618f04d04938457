"""Whether a place of a program runs more than once: in a loop, for each epoch, batch or sample."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.control_flow import Level, in_loop, level_of
from torchrepro_lint.syntax.nodes import Call, Comprehension, Statement
from torchrepro_lint.syntax.visitor import expressions, within

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex

_OFTEN = re.compile(
    r"(?i)(?=\w*\Z)(?:forward|__getitem__|__getitems__|__iter__|__next__|__call__|"
    r"(\w*_)?(step|batch|collate\w*|augment\w*|sample|transform)|\w*epoch\w*|next_\w+|get_batch\w*)|<lambda>"
)
# Callers of callers are looked at so many times.
_DEPTH = 5


def runs_often(project: ProgramIndex, path: str, call: Call) -> bool:
    """Whether a call of a file runs more than once in a run, as far as loops, names and the calls of the project tell."""
    level = level_of(project.files[path], call.start)
    return level is None or _often(project, path, level, call, _DEPTH)


def function_runs_often(project: ProgramIndex, path: str, level: Level) -> bool:
    """Whether the function of a level runs more than once in a run; the level's own loops do not count."""
    return _is_repeated(project, path, level, _DEPTH)


def _often(project: ProgramIndex, path: str, level: Level, call: Call, depth: int) -> bool:
    if in_loop(level) or _in_comprehension(level.spots[-1].statement, call):
        return True
    return _is_repeated(project, path, level, depth)


def _is_repeated(project: ProgramIndex, path: str, level: Level, depth: int) -> bool:
    if level.function is None or depth == 0:
        return False
    word = level.function.name.rpartition(".")[2].lstrip(":")
    if _OFTEN.fullmatch(word):
        return True
    names = [f"{path}{level.function.name}"]
    if word == "__init__" and level.function.owner:
        names.append(f"{path}{level.function.owner}")
    return any(_site_repeats(project, name, depth) for name in names)


def _site_repeats(project: ProgramIndex, name: str, depth: int) -> bool:
    for path, site in project.sites_of(name):
        level = level_of(project.files[path], site.call.start)
        if level is not None and _often(project, path, level, site.call, depth - 1):
            return True
    return False


def _in_comprehension(statement: Statement, call: Call) -> bool:
    return any(
        isinstance(each, Comprehension) and any(element.start <= call.start < element.end for element in each.elements)
        for expression in expressions(statement)
        for each in within(expression)
    )
