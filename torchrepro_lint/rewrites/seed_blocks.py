"""Seeding calls that stand together, with the switches among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.syntax.control_flow import level_of
from torchrepro_lint.syntax.nodes import Assign, Call, Constant, Do, If, Ref, Statement
from torchrepro_lint.syntax.visitor import blocks, statements

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Project

_FLAGS = "torch.backends."


def last_of_block(project: Project, path: str, seeding: Statement) -> Statement:
    """The last of the statements that follow a seeding one and only seed or set torch's switches, too."""
    level = level_of(project.files[path], seeding.start)
    if level is None:
        return seeding
    spot, last = level.spots[-1], seeding
    for statement in spot.block[spot.at + 1 :]:
        if not only_seeds(project, path, statement):
            break
        last = statement
    return last


def only_seeds(project: Project, path: str, statement: Statement) -> bool:
    """Whether a statement only seeds or sets torch's switches, in a branch or not."""
    match statement:
        case Do(value=Call() as call):
            return project.only_seeds(path, call)
        case Assign(targets=targets, value=Constant() | Ref()):
            return all(any(name.startswith(_FLAGS) for name in project.names(path, target)) for target in targets)
        case If(orelse=()):
            return any(
                project.only_seeds(path, each.value)
                for each in statements((statement,))
                if isinstance(each, Do) and isinstance(each.value, Call)
            ) and all(only_seeds(project, path, each) for block in blocks(statement) for each in block)
    return False
