"""TRL107: a run that is seeded only if an option is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.rows import FAMILIES
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.constants import DefaultValue, value_by_default
from torchrepro_lint.syntax.nodes import Expression, Ref
from torchrepro_lint.syntax.visitor import subexpressions
from torchrepro_lint.trace.call_paths import entry_statement, first_line

if TYPE_CHECKING:
    from torchrepro_lint.domain.program_effects import Program
    from torchrepro_lint.domain.project import Context
    from torchrepro_lint.domain.rng.effects import Seed


def check(context: Context) -> Iterator[Finding]:
    """One finding for each entry point and family, at its first seeder."""
    for program in context.project.programs_of(context.path):
        if not program.effects.matters:
            continue
        for family in FAMILIES:
            seeds = program.effects.seeds.get(family.key, [])
            offs = [_disabling_default(context, program, seed) for seed in seeds]
            if family.key in program.effects.draws and offs and None not in offs:
                assert offs[0] is not None
                cause = (
                    f"{family.owner} is seeded only if {offs[0].option} is set, and its default is {offs[0].value!r}"
                )
                statement = entry_statement(program.entry, seeds[0].trace_event)
                yield Finding("TRL107", first_line(context.lines, statement), f"{cause}; seed it by default")


def _disabling_default(context: Context, program: Program, seed: Seed) -> DefaultValue | None:
    """The option whose default keeps a seeder from running, with that default."""
    resolver = context.project.resolver
    steps = [(step.path, step.event.guards) for step in seed.trace_event.call_path]
    for path, guards in [*steps, (seed.trace_event.path, seed.trace_event.event.guards)]:
        for guard in guards:
            if guard.kind in ("if", "else"):
                truth = value_by_default(resolver, path, guard.value, program.entry.function)
                if truth is not None and truth.option and bool(truth.value) is (guard.kind == "else"):
                    return _option_value(context, program, path, guard.value, truth)
    return None


def _option_value(context: Context, program: Program, path: str, test: Expression, truth: DefaultValue) -> DefaultValue:
    """The option's own default, where ``truth`` is the value of a test of it."""
    for each in subexpressions(test):
        own = (
            value_by_default(context.project.resolver, path, each, program.entry.function)
            if isinstance(each, Ref)
            else None
        )
        if own is not None and own.option:
            return own
    return truth
