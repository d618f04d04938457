"""TRL108: an environment of reinforcement learning that starts from entropy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.rng.seeders import families
from torchrepro_lint.syntax.nodes import Call, Constant, Ref, span
from torchrepro_lint.trace.framework_models import receiver_of, rows_of

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.trace.trace import Happening

_CODE = "TRL108"
# What a file calls, or keeps in a variable, in which something may be reported.
_WORDS = frozenset({"reset", "sample"})
_MOST_WRAPPERS = 6
_SPACES = frozenset({"action_space", "single_action_space", "observation_space", "single_observation_space"})


def check(context: Context) -> Iterator[Finding]:
    """The first reset of each environment of a run, and the first sample of its spaces, that no seed comes before."""
    mentioned = {*context.facts.summary.calls, *context.facts.summary.values}
    for program in context.project.programs_in(context.path) if not mentioned.isdisjoint(_WORDS) else ():
        for happening, message in _unseeded(context, program):
            if happening.path == context.path and happening.event.value is not None:
                yield Finding(_CODE, span(happening.event.value), message)


def _unseeded(context: Context, program: Program) -> Iterator[tuple[Happening, str]]:
    seen: set[object] = set()
    # Vectors of environments make them late, and a copy keeps the seed: one anywhere counts.
    spaces_seeded = any(_seeds_space(happening) for happening in program.run.happenings)
    for happening in program.run.happenings:
        call = happening.event.value
        if happening.event.kind != "call" or not isinstance(call, Call):
            continue
        match call.func:
            case Ref(path=(*_, "sample")) as func if _SPACES.intersection(func.path):
                if not spaces_seeded and _is_space(happening.names):
                    space = next(each for each in func.path if each in _SPACES)
                    yield happening, f"{space}.sample() draws from a generator of its own; call {space}.seed(...) first"
                    spaces_seeded = True  # told once
            case _ if word := _method(happening.names):
                key = _environment(context, happening, call)
                if key not in seen and word == "reset" and not _seeds(context, happening, call):
                    yield happening, _message(happening.names)
                seen.add(key)


def _seeds_space(happening: Happening) -> bool:
    match happening.event.value:
        case Call(func=Ref(path=(*owners, "seed"))) if happening.event.kind == "call":
            return not _SPACES.isdisjoint(owners)
    return False


def _message(names: tuple[str, ...]) -> str:
    if any(name.startswith("stable_baselines3.") for name in names):
        return "the environments' first reset() starts from entropy; call seed(...) on them first"
    return "the environment's first reset() has no seed and starts from entropy; pass seed=..."


def _method(names: tuple[str, ...]) -> str:
    """``reset`` or ``seed``, called on what a library's environment or wrapper may be."""
    for name in names:
        owner, _, word = name.rpartition(".")
        if word in ("reset", "seed") and ":" not in name and owner.endswith("()") and _makes(owner[:-2]):
            return word
    return ""


def _makes(name: str) -> bool:
    return any(row.makes == "environment" for row in rows_of([name]))


def _is_space(names: tuple[str, ...]) -> bool:
    return any(":" not in name and "()." in name and _makes(name.partition("().")[0]) for name in names)


def _environment(context: Context, happening: Happening, call: Call) -> object:
    """Which environment a method is called on: by the calls that may have made it."""
    receiver = receiver_of(call.func)
    made = context.project.resolver.made(happening.path, receiver) if receiver is not None else ()
    return tuple(sorted(id(value) for _, value in made)) or happening.names


def _seeds(context: Context, happening: Happening, call: Call) -> bool:
    """Whether a reset is given a seed, or may be; or what made the environment was."""
    for arg in call.args:
        if arg.star or arg.keyword == "seed":
            return not (isinstance(arg.value, Constant) and arg.value.value is None)
    receiver = receiver_of(call.func)
    made = context.project.resolver.made(happening.path, receiver) if receiver is not None else ()
    return any(_seeded_when_made(context, path, value) for path, value in made if isinstance(value, Call))


def _seeded_when_made(context: Context, path: str, call: Call, depth: int = 0) -> bool:
    """By the tables, or by a ``seed`` that something which is not known takes; through wrappers."""
    if any(arg.keyword and arg.keyword.endswith("seed") for arg in call.args):
        return True
    inside = context.project.resolver.made(path, call.args[0].value) if call.args and depth < _MOST_WRAPPERS else ()
    if any(_seeded_when_made(context, file, each, depth + 1) for file, each in inside if isinstance(each, Call)):
        return True
    for name in context.project.names(path, call.func):
        seeder = context.catalogue.seeder(name) if ":" not in name else None
        if seeder is not None and "environment" in families(seeder, call):
            return True
    return False
