"""TRL003: a program leads into code that is not followed."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.operations.program_gaps import causes_of_gaps, explained
from torchrepro_lint.domain.programs import programs_of
from torchrepro_lint.source.text import Message
from torchrepro_lint.trace.call_paths import call_path, entry_statement, first_line
from torchrepro_lint.trace.traces import Context


def check(context: Context) -> Iterator[Finding]:
    """One finding for each gap of an entry point, at the statement that leads there."""
    for program in programs_of(context.project, context.path):
        for gap in causes_of_gaps(context.project, program):
            statement = entry_statement(program.entry, gap.trace_event)
            steps = call_path(context.project, gap.trace_event, "leads into code that is not followed")
            message = Message(explained(context.project, gap), "; nothing behind it is checked")
            yield Finding("TRL003", first_line(context.lines, statement), message, steps=steps)
