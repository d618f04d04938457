"""What a number is used for, where that makes it a seed, a bucket or a split."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.entropy import GENERATORS, changing_source
from torchrepro_lint.syntax.nodes import Assign, Call, Expression, Leave, Operation, Ref, Subscript
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.project import Project
    from torchrepro_lint.syntax.use_def import Spot

_DIVIDING = frozenset({"%", "&", "//", ">>"})
_PLAIN = frozenset(
    {"builtins.abs", "builtins.int", "builtins.float", "numpy.abs", "numpy.uint32", "numpy.int64", "math.fabs"}
)
_SEED = re.compile(r"(?=\w*\Z)(\w+_)?(seed|random_state|rng)(_\w+)?")
_MOST_PLACES = 60
_SEEDED = "seeds"


def decided_by(project: Project, path: str, number: Expression) -> str:
    """``is used as a seed``, ``decides a bucket or a split``, or nothing: what becomes of a number.

    Nothing, too, where a seeder takes it as its seed: that is TRL105's business.
    """
    found = ""
    queue: list[tuple[str, Expression]] = [(path, number)]
    seen: set[int] = set()
    while queue and len(seen) < _MOST_PLACES:
        file, node = queue.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        spot = project.uses.spots(file).of(node)
        if spot is None:
            continue
        said, further = _step(project, file, node, spot)
        if said == _SEEDED:
            return ""
        found = found or said
        queue += further
    return found


def _step(project: Project, path: str, node: Expression, spot: Spot) -> tuple[str, list[tuple[str, Expression]]]:
    match spot.parent:
        case Operation(op=op, operands=operands) if op in _DIVIDING and operands[0] is node:
            return "decides a bucket or a split", [(path, spot.parent)]
        case Operation(op="+" | "-" | "*" | "^" | "|" | "/" | "or" | ":=" | "&" | "%"):
            return "", [(path, spot.parent)]
        case Operation(op="if", operands=(_, *values)) if node in values:
            return "", [(path, spot.parent)]
        case Call():
            return _passed(project, path, node, spot.parent)
        case None:
            return _in_statement(project, path, spot)
    return "", []


def _passed(project: Project, path: str, node: Expression, call: Call) -> tuple[str, list[tuple[str, Expression]]]:
    names = project.names(path, call.func)
    if not _PLAIN.isdisjoint(names):
        return "", [(path, call)]
    keyword = next((arg.keyword for arg in call.args if arg.value is node and arg.keyword), "")
    seeds = any(name in GENERATORS or project.seeds(name) for name in names) or last_word(call.func) in (
        "seed",
        "manual_seed",
    )
    if _SEED.fullmatch(keyword) or seeds:
        return _SEEDED if seeds and changing_source(project.resolver, path, node) else "is used as a seed", []
    return "", []


def _in_statement(project: Project, path: str, spot: Spot) -> tuple[str, list[tuple[str, Expression]]]:
    match spot.statement:
        case Assign(targets=targets):
            found: list[tuple[str, Expression]] = []
            for target in targets:
                if isinstance(target, Ref):
                    word = target.path[-1] if target.path else target.roots[0].rpartition(".")[2].lstrip(":")
                    uses = project.uses.of_variable(path, target, spot, spot.statement.end)
                    found += [(file, ref) for file, ref, words in uses if not words]
                    if _SEED.fullmatch(word) and not found:
                        return "is used as a seed", []
                elif isinstance(target, Subscript):
                    continue
            return "", found
        case Leave(kind="return"):
            return "", list(project.uses.of_result(path + spot.function)) if spot.function != ":" else []
    return "", []
