"""TRL101, TRL102, TRL103: a run draws from a generator that nothing seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.entrypoints import Entry
from torchrepro_lint.rule import Finding
from torchrepro_lint.text import Lines, Span

if TYPE_CHECKING:
    from torchrepro_lint.effects import Draw
    from torchrepro_lint.facts import Statement
    from torchrepro_lint.project import Program, Project
    from torchrepro_lint.rule import Context


class _Family(NamedTuple):
    key: str
    code: str
    owner: str
    what: str
    seeder: str


_TORCH = _Family("torch", "TRL101", "torch's generator", "torch", "torch.manual_seed(...)")
_NUMPY = _Family("numpy", "TRL102", "numpy's global generator", "it", "np.random.seed(...)")
_PYTHON = _Family("python", "TRL103", "Python's global generator", "it", "random.seed(...)")


def _rule(family: _Family) -> Callable[[Context], Iterator[Finding]]:
    def check(context: Context) -> Iterator[Finding]:
        for program in context.project.programs:
            if program.entry.path == context.path:
                yield from _of_program(context, program, family)

    return check


torch = _rule(_TORCH)
numpy = _rule(_NUMPY)
python = _rule(_PYTHON)


def _of_program(context: Context, program: Program, family: _Family) -> Iterator[Finding]:
    effects = program.effects
    draw = effects.draws.get(family.key)
    if draw is None or family.key in effects.seeds or not effects.matters or effects.unknown_seeder:
        return
    if not effects.acts or _belongs_elsewhere(context.project, program.entry, draw):
        return
    statement = _statement(program.entry, draw)
    message = f"{draw.label}{_place(context, draw)} draws from {family.owner}, and "
    if family.key == "torch" and "torch-cuda" in effects.seeds:
        message += "torch.cuda.manual_seed seeds CUDA only, so the CPU generator is unseeded; call torch.manual_seed(...)"
    else:
        message += f"nothing in this run seeds {family.what}; call {family.seeder} first"
    yield Finding(family.code, _first_line(context.lines, statement), message)


def _statement(entry: Entry, draw: Draw) -> Statement:
    """The statement of the entry file through which the draw is reached.

    Calls to functions of the same file are followed down, since they are the program; constructing or calling an
    object of a class is not.
    """
    at = draw.happening.event.statement if draw.happening.path == entry.path else None
    for step in draw.happening.way:
        if step.path != entry.path:
            break
        at = step.event.statement
        if _is_method(step.into):
            return at
    else:
        if draw.happening.path == entry.path:
            return draw.happening.event.statement
    assert at is not None  # a run starts in the entry's file
    return at


def _is_method(function: str) -> bool:
    """Whether a function's name has a class in it: ``a.py:Net.forward``, not ``a.py:main.<locals>.step``."""
    qualified = function.partition(":")[2].rpartition("<locals>.")[2]
    return "." in qualified


def _place(context: Context, draw: Draw) -> str:
    """Where the draw stands and how it is reached, where that is not the statement itself: ``(model.py:14, via f)``."""
    happening = draw.happening
    if not happening.way:
        return ""
    via = [step.into.partition(":")[2].rpartition(".")[2] for step in happening.way if step.into.partition(":")[2]]
    row = context.project.row(happening.path, happening.event.value.start if happening.event.value else 0)
    place = f"{happening.path}:{row}" if row else happening.path
    named = [word for word in via if not word.startswith("__") and word != "main"]
    return f" ({place}, via {named[0]})" if named else f" ({place})"


def _belongs_elsewhere(project: Project, entry: Entry, draw: Draw) -> bool:
    """Whether the draw lies behind another entry point's function, so that this one only launches it."""
    entered = {step.into for step in draw.happening.way}
    return any(
        other.entry.path != entry.path
        and any(
            name.startswith(f"{other.entry.path}:") and name in other.run.functions and not name.endswith(":")
            for name in entered
        )
        and any(name == other.entry.function or _starts(other, name) for name in entered)
        for other in project.programs
    )


def _starts(program: Program, name: str) -> bool:
    """Whether the program's own file calls ``name`` at its top level, as ``main()`` under the guard."""
    return any(
        name in happening.names and not happening.way for happening in program.run.happenings if not happening.way
    )


def _first_line(lines: Lines, statement: Statement) -> Span:
    """A compound statement is reported up to the end of its first line."""
    row = lines.position(statement.start).row
    end = lines.offset(row) + len(lines.line(row))
    return Span(statement.start, max(min(statement.end, end), statement.start))
