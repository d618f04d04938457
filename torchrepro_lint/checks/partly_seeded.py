"""TRL110: a function seeds some generators and draws from another."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.rng.seeding import PartlySeeded, is_settled_by_program, partly_seeded_functions
from torchrepro_lint.source.text import Message, Reference
from torchrepro_lint.syntax.nodes import span
from torchrepro_lint.syntax.qualified_names import is_module, path_of, split_name
from torchrepro_lint.syntax.summary import is_test
from torchrepro_lint.trace.call_paths import call_path
from torchrepro_lint.trace.traces import Context


def check(context: Context) -> Iterator[Finding]:
    """The draws of this module that a partly seeded function of the project reaches."""
    reported = set()
    for partly in partly_seeded_functions(context.project, context.path):
        draw = partly.draw.trace_event
        assert draw.event.value is not None
        place = span(draw.event.value)
        if draw.path != context.path or (place, partly.family) in reported or _is_only_tested(context, partly):
            continue
        if not is_settled_by_program(context.project, partly):
            from torchrepro_lint.checks.fixes.seeding import fix_partly

            reported.add((place, partly.family))
            steps = call_path(context.project, draw, f"{partly.draw.label} draws from {partly.family.owner}")
            fix = fix_partly(context.project, context.path, partly)
            yield Finding("TRL110", place, _message(context, partly), fix, steps=steps)


def _is_only_tested(context: Context, partly: PartlySeeded) -> bool:
    """Whether a function of a test seeds, and the draw is in the code that it tests. What a module like that runs by itself is no test."""
    home = path_of(partly.function)
    return (
        not is_module(partly.function)
        and is_test(home, context.project.files[home].summary)
        and not is_test(context.path, context.tree.summary)
    )


def _message(context: Context, partly: PartlySeeded) -> str:
    seed, draw = partly.seed, partly.draw
    path = seed.trace_event.path
    place = Reference(path, context.project.position(path, seed.trace_event.event.statement.start).line)
    missing = f"{draw.label} draws from {partly.family.owner}, which "
    return Message(
        missing,
        _who(partly),
        f" does not seed although it calls {seed.label} (",
        place,
        f"); call {partly.family.seeder} too",
    )


def _who(partly: PartlySeeded) -> str | Reference:
    """The function that seeds: by its name, or the file of a module's own code."""
    if not partly.draw.trace_event.call_path:
        return "this function"
    path, _, name = split_name(partly.function)
    return name or Reference(path)
