"""The calls that seed generators, and where they are written: beside those that are there, or at the start of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torchrepro_lint.domain.project import Project
from torchrepro_lint.domain.rng.effects import Effects, Seed
from torchrepro_lint.insertions import free_name, insert_below
from torchrepro_lint.new_imports import ensure_import
from torchrepro_lint.source.text import Edit, Fix, joined
from torchrepro_lint.syntax.control_flow import is_main_test
from torchrepro_lint.syntax.nodes import Call, Constant, Do, Expression, Facts, Operation, Ref, parted, span
from torchrepro_lint.syntax.visitor import within
from torchrepro_lint.trace.trace import CallFrame, Happening, guards

_TORCH = ("torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
# Calls whose one argument is a seed as an integer.
PLAIN_SEEDERS = frozenset(
    (*_TORCH, "torch.cuda.random.manual_seed", "torch.cuda.random.manual_seed_all", "numpy.random.seed", "random.seed")
)
# For each family its module, how that is usually imported, and the call; in the order in which they are written.
_CALLS = {
    "python": ("random", "", "{}.seed"),
    "numpy": ("numpy", "np", "{}.random.seed"),
    "torch": ("torch", "", "{}.manual_seed"),
}
# What starts a function in another process, whose generators are its own.
_SPAWNERS = re.compile(r"(torch\.)?multiprocessing\.|torch\.distributed\.launcher|concurrent\.futures\.ProcessPool")
_ABOUT_SEEDS = re.compile(r"seed|determin|reprod|repeat|debug", re.IGNORECASE)
# The seeds that numpy takes are below this.
_HIGHEST = 2**32


def names_of(families: Iterable[str]) -> str:
    """The families as a title says them: ``torch and numpy``."""
    words = [{"python": "random"}.get(each, each) for each in families]
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


class Seeding(NamedTuple):
    """The ``lines`` that seed families, the ``imports`` that they need in a file, and the words that those give to modules."""

    lines: str
    imports: tuple[Edit, ...]
    words: tuple[tuple[str, str], ...]


def seeding(facts: Facts, text: str, families: Sequence[str], seed: str, inside: str, at: int) -> Seeding:
    """How to seed families at an offset inside a function (empty: at the top level). A seed that takes words to write is named first."""
    lines: list[str] = []
    imports: list[Edit] = []
    words: list[tuple[str, str]] = []
    if len(families) > 1 and " if " in seed:
        variable = free_name(facts, "seed", inside)
        lines, seed = [f"{variable} = {seed}"], variable
    for family, (module, short, call) in _CALLS.items():
        if family in families:
            word, edits = ensure_import(facts, text, module, short, inside, at)
            lines.append(f"{call.format(word)}({seed})")
            imports += edits
            words.append((module, word))
    return Seeding("\n".join(lines), tuple(imports), tuple(words))


def beside(project: Project, seed: Seed, families: Sequence[str]) -> tuple[str, tuple[Edit, ...]] | None:
    """Seed families below a call that seeds another, with the same seed: the file, and its edits."""
    path, call = seed.happening.path, seed.happening.event.value
    facts, text = project.files[path], project.text(path)
    if not is_plain(seed.happening) or not isinstance(call, Call):
        return None
    value = call.args[0].value
    written = " ".join(text[call.args[0].start : call.args[0].end].split())
    if isinstance(value, Constant) and isinstance(value.value, int) and not 0 <= value.value < _HIGHEST:
        written = f"{written} % 2**32"
    inside = parted(seed.happening.function)[2]
    above = span(seed.happening.event.statement)
    found = seeding(facts, text, families, written, f":{inside}" if inside else "", above.end)
    return path, joined((*found.imports, insert_below(text, above, found.lines)))


def existing(project: Project, effects: Effects, draw: Happening, order: int, family: str = "") -> Seed | None:
    """The seeding call of a run, of any family, that others can stand beside: the first before a draw, in its process.

    One that runs whatever the options say is preferred, and then one of ``family``.
    """
    found = [
        (is_conditional(seed.happening, draw), seeded != family, seed.order, seed)
        for seeded, seeds in effects.seeds.items()
        for seed in seeds
        if seed.order < order
        and is_plain(seed.happening)
        and not _is_incidental(seed.happening, draw)
        and spawning(project, draw) <= spawning(project, seed.happening)
    ]
    return min(found, key=lambda each: each[:3], default=(None,))[-1]


def is_plain(happening: Happening) -> bool:
    """Whether a seeding call is a statement of its own, of a plain seeder, with a seed that can be written again."""
    call, statement = happening.event.value, happening.event.statement
    if not isinstance(statement, Do) or statement.value is not call or not isinstance(call, Call):
        return False
    if not PLAIN_SEEDERS.intersection(happening.names) or len(call.args) != 1 or call.args[0].star:
        return False
    return all(_is_repeatable(each) for each in within(call.args[0].value))


def spawning(project: Project, happening: Happening) -> frozenset[CallFrame]:
    """The steps of the way that start another process."""
    return frozenset(
        step
        for step in happening.way
        if isinstance(step.event.value, Call)
        and any(_SPAWNERS.match(name) for name in project.names(step.path, step.event.value.func))
    )


def _is_incidental(happening: Happening, draw: Happening) -> bool:
    """Whether a constant seeds on a test that is about something else: a split that is always the same, where there is one."""
    call = happening.event.value
    if not (isinstance(call, Call) and isinstance(call.args[0].value, Constant) and is_conditional(happening, draw)):
        return False
    tests = [guard.value for guard in guards(happening) if guard.kind in ("if", "else") and guard.value is not None]
    read = (each for test in tests for each in within(test) if isinstance(each, Ref))
    return not any(_ABOUT_SEEDS.search(word) for each in read for word in (*each.roots, *each.path))


def fix_in(path: str, own: str, title: str, edits: tuple[Edit, ...]) -> Fix:
    """An unsafe fix with edits of one file, which may be another than the finding's ``own``."""
    return Fix(title, edits, safe=False) if path == own else Fix(title, (), safe=False, elsewhere=((path, edits),))


def _is_repeatable(part: Expression) -> bool:
    match part:
        case Constant(value=value):
            return type(value) is int
        case Call(func=Ref(roots=("builtins.int",), path=())):
            return True
        case Operation(op=op):
            return op not in ("await", "yield", ":=", "f", "*")
    return isinstance(part, Ref)


def is_conditional(happening: Happening, other: Happening) -> bool:
    """Whether something hangs on a test on which another thing of the run does not hang; that for ``__main__`` is none."""
    shared = {id(guard.value) for guard in guards(other)}
    return any(
        guard.kind in ("if", "else")
        and not guard.certain
        and id(guard.value) not in shared
        and not is_main_test(guard.value)
        for guard in guards(happening)
    )
