"""Findings as queries: in a project under edit, what a group of rules finds in a file is a memoised answer with its dependencies.

The rules of a group ask for about as much of the project. So an edit runs again what asks for the whole project in many files, and
what asks for a file and its programs in few. A single run remembers nothing: in a new process, most of what the groups asked before
would have to be computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from torchrepro_lint.domain.programs import programs_of
from torchrepro_lint.engine.limits import DeadlineExceededError, guarded_analysis
from torchrepro_lint.source.errors import Fault
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.qualified_names import split_name

if TYPE_CHECKING:
    from torchrepro_lint.checks.rule import Finding, Rule
    from torchrepro_lint.trace.traces import Context, Traces

# Rules that are not named here ask for a file and the programs that start in it.
_GROUPS = {
    "TRL105": "loaders",
    "TRL106": "loaders",
    "TRL107": "programs",
    "TRL110": "functions",
    "TRL204": "loaders",
    "TRL301": "loaders",
    "TRL302": "loaders",
    "TRL303": "loaders",
    "TRL305": "loaders",
    "TRL306": "loaders",
    "TRL401": "loaders",
    "TRL402": "types",
    "TRL403": "types",
    "TRL404": "types",
    "TRL405": "loaders",
    "TRL406": "types",
    "TRL502": "order",
    "TRL503": "loaders",
    "TRL504": "loaders",
    "TRL505": "order",
}
_USUAL = "file"
# In the order of how much of the project they ask for.
_ORDER = (_USUAL, "loaders", "types", "order", "functions", "programs")
_STATES = "states"


class ProgramState(Record, frozen=True):
    """An entry point of a file (``function``, empty for the module), and its first gap: where the file leads there, and what it is."""

    function: str
    offset: int = 0
    gap: str = ""


class GroupResult(Record, frozen=True):
    """What a group of rules found in a file, or which programs start there; faults of the tool, and whether a rule came to the limit
    of the call stack. A result that is not ``is_final`` may come out otherwise in another run.
    """

    findings: tuple[Finding, ...] = ()
    programs: tuple[ProgramState, ...] = ()
    errors: tuple[str, ...] = ()
    too_deep: bool = False
    is_final: bool = True


def run_groups(rules: Sequence[Rule], context: Context, finds_gaps: bool) -> GroupResult:
    """The results of all groups together; only those are run that are not known."""
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(_GROUPS.get(rule.code, _USUAL), []).append(rule)
    found: list[GroupResult] = []
    try:
        found.extend(
            _memoised(context, group, partial(_run_rules, groups[group])) for group in _ORDER if group in groups
        )
        if finds_gaps:
            found.append(_memoised(context, _STATES, _run_programs))
    except DeadlineExceededError as late:
        late.findings = (*(one for each in found for one in each.findings), *late.findings)
        raise
    return GroupResult(
        tuple(one for each in found for one in each.findings),
        tuple(one for each in found for one in each.programs),
        tuple(sorted(one for each in found for one in each.errors)),
        any(each.too_deep for each in found),
        all(each.is_final for each in found),
    )


def _memoised(context: Context, group: str, run: Callable[[Context], GroupResult]) -> GroupResult:
    """The result of a group in a file; it is remembered where files change."""
    if not context.database.reads.early_cutoff:
        return run(context)
    known = context.database.table("findings", compare=False)
    found: GroupResult = known.of((group, context.path), lambda: _run_group(context, run))
    return found


def _run_group(context: Context, run: Callable[[Context], GroupResult]) -> GroupResult:
    context.database.reads.record_read(context.path)
    return run(context)


def _run_rules(rules: Sequence[Rule], context: Context) -> GroupResult:
    """The findings of rules; a rule that raises is an error, and the others go on."""
    findings: list[Finding] = []
    errors: list[str] = []
    too_deep = False
    for rule in rules:
        own: list[Finding] = []
        try:
            fault = guarded_analysis(partial(_collect, rule, context, own))
        except DeadlineExceededError as late:
            late.findings = (*findings, *own)
            raise
        if fault is None or fault.recursion:
            findings += own
        if fault is not None and not fault.recursion:
            errors.append(f"{rule.code} failed: {fault.message}")
        too_deep |= fault is not None and fault.recursion
    # How deep is too deep depends on the memory that there is.
    return GroupResult(tuple(findings), (), tuple(errors), too_deep, not (errors or too_deep))


def _collect(rule: Rule, context: Context, found: list[Finding]) -> None:
    """Collect the findings of a rule, from the first one on if it is tried again; those before a limit stay."""
    found.clear()
    found.extend(rule.check(context))


def _run_programs(context: Context) -> GroupResult:
    """The programs that start in a file. What fails here fails in the rules that ask the same, too, and they say so."""
    states = guarded_analysis(lambda: tuple(_program_states(context.project, context.path)))
    return GroupResult(is_final=False) if isinstance(states, Fault) else GroupResult(programs=states)


def _program_states(project: Traces, path: str) -> Iterator[ProgramState]:
    """The programs that start in a file, each with its first gap."""
    from torchrepro_lint.domain.operations.program_gaps import explained, first_gap_of_program
    from torchrepro_lint.trace.call_paths import entry_statement

    for program in programs_of(project, path):
        name, gap = split_name(program.entry.function or "")[2], first_gap_of_program(project, program)
        if gap is None:
            yield ProgramState(name)
        else:
            statement = entry_statement(program.entry, gap.trace_event)
            yield ProgramState(name, statement.start, explained(project, gap))
