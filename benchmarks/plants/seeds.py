"""Causes of seeds: an option that leaves the seeder out, a seed that falls back to the clock, an environment without a seed, a
generator that takes the name of a module.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from benchmarks.plants import Edit, Operator, Plant, Source, word

_TORCH = r"\bimport torch\b"
_TRAINS = r"\.backward\(\)|torch\.save\("
_SEEDERS = ("torch.manual_seed", "np.random.seed", "random.seed")


def optional(default: str, wrapped: Callable[[str, str], str]) -> Callable[[Source], Iterator[Plant]]:
    """TRL107: the default of a seed option no longer seeds. ``wrapped`` gives a seeding statement from its text and the seed."""

    def find(source: Source) -> Iterator[Plant]:
        for option in source.calls("add_argument"):
            given = next((each.value for each in option.keywords if each.arg == "default"), None)
            flags = [each.value for each in option.args if isinstance(each, ast.Constant)]
            names = [flag.lstrip("-").replace("-", "_") for flag in flags if str(flag).startswith("--")]
            if not names or "seed" not in names[0].lower() or not isinstance(given, ast.Constant):
                continue
            for seeder in _SEEDERS:
                places = [each for each in source.calls("manual_seed", "seed") if ast.unparse(each.func) == seeder]
                edits = [_guarded(source, each, names[0], wrapped) for each in places]
                if edits and all(edits) and _is_drawn(source, seeder):
                    guarded = tuple(edit for edit in edits if edit is not None)
                    imported = source.importing("time as planted_time")
                    yield Plant((Edit(*source.span(given), default), *guarded, imported), source.span(option))

    return find


def _guarded(source: Source, call: ast.Call, name: str, wrapped: Callable[[str, str], str]) -> Edit | None:
    statement = source.statement(call)
    match call.args:
        case [ast.Attribute(attr=attr) as seed] if attr == name and isinstance(statement, ast.Expr):
            alone = statement.value is call and isinstance(source.parents[statement], ast.FunctionDef | ast.Module)
            return Edit(*source.span(call), wrapped(source.segment(call), source.segment(seed))) if alone else None
    return None


def _is_drawn(source: Source, seeder: str) -> bool:
    """Whether the file itself draws from the generator, so that its run needs the seed."""
    owner = seeder.rpartition(".")[0]
    if owner == "torch":
        return "torch.randn(" in source.text or "nn.Linear(" in source.text or "nn.Conv2d(" in source.text
    return any(
        ast.unparse(call.func).startswith(f"{owner}.") and word(call.func) not in ("seed", "Random", "get_state")
        for call in ast.walk(source.tree)
        if isinstance(call, ast.Call)
    )


def unseeded_reset(source: Source) -> Iterator[Plant]:
    """TRL108: the first reset of an environment loses its seed."""
    if "gym.make" not in source.text and "gymnasium.make" not in source.text and "VectorEnv" not in source.text:
        return
    seen: set[str] = set()
    for call in source.calls("reset"):
        name = ast.unparse(call.func)
        seeded = [each for each in call.keywords if each.arg == "seed"]
        if name not in seen and seeded and len(call.keywords) == 1 and not call.args:
            start, end = source.span(call.func)
            yield Plant((Edit(end, source.span(call)[1], "()"),), (start, source.span(call)[1]))
        seen.add(name)


def rebound(source: Source) -> Iterator[Plant]:
    """TRL106: a generator without a seed takes the name of the module that it comes from."""
    for statement in source.tree.body:
        if isinstance(statement, ast.Import) and [each.name for each in statement.names] == ["random"]:
            end = source.span(statement)[1]
            if statement.names[0].asname is None and source.text[end : end + 1] == "\n":
                yield Plant((Edit(end + 1, end + 1, "random = random.Random()\n"),))


OPERATORS = (
    Operator(
        "a seed option is None by default",
        "TRL107",
        (_TORCH, _TRAINS, r"add_argument\([^)]*seed", r"seed\(\w+\.\w*seed"),
        optional("None", lambda call, seed: f"{call} if {seed} is not None else None"),
    ),
    Operator(
        "a seed option is -1 by default, and then the time",
        "TRL107",
        (_TORCH, _TRAINS, r"add_argument\([^)]*seed", r"seed\(\w+\.\w*seed"),
        optional(
            "-1",
            lambda call, seed: f"{call[: -len(seed) - 1]}{seed} if {seed} >= 0 else planted_time.time_ns() % 2**32)",
        ),
    ),
    Operator("an environment's first reset has no seed", "TRL108", (r"gym", r"\.reset\(.*seed"), unseeded_reset),
    Operator("an unseeded generator takes the name of random", "TRL106", (_TORCH, r"^import random$"), rebound),
)
