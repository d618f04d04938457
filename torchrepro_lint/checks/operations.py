"""TRL402 and TRL404: operations that no setting makes deterministic in the target torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint.catalogue.catalogue import alternatives_for, error_names
from torchrepro_lint.catalogue.conditions import Truth, argument_reader, evaluate
from torchrepro_lint.catalogue.rows import Condition, ErrorName
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.constants import display_name
from torchrepro_lint.domain.operations.cases import Case
from torchrepro_lint.domain.operations.reached_operations import runs_only_without_gradient
from torchrepro_lint.domain.operations.verdicts import verdicts, warn_only_is_reported
from torchrepro_lint.source.text import NoFix
from torchrepro_lint.syntax.nodes import span
from torchrepro_lint.trace.traces import Context

# Where a call may raise either of so many errors, the message names both.
_ALTERNATIVES = 2
_NO_CURE = "no setting makes it deterministic"


def documented(context: Context) -> Iterator[Finding]:
    """TRL402: calls, and constructors whose arguments suffice, of what raises as torch's documentation says."""
    for verdict in verdicts(context, code="TRL402"):
        if verdict.code == "TRL402" and not runs_only_without_gradient(context, verdict.case):
            yield Finding(
                "TRL402",
                span(verdict.case.site.call),
                f"{_raises(context, verdict.case)}; {_cure(context, verdict.case)}",
                _no_fix(context, verdict.case),
            )


def undocumented(context: Context) -> Iterator[Finding]:
    """TRL404: what raises or is silently nondeterministic, and is not documented to."""
    for code, case in verdicts(context, code="TRL404"):
        if code != "TRL404" or runs_only_without_gradient(context, case):
            continue
        if case.row.behaviour != "warns":
            message = f"{_cause(context, case)}; {_cure(context, case)}"
            yield Finding("TRL404", span(case.site.call), message, _no_fix(context, case))
        elif not warn_only_is_reported(context, case.site.function):
            yield Finding("TRL404", span(case.site.call), _warns(case), _WARN_ONLY)


def _raises(context: Context, case: Case) -> str:
    error = f" ({name})" if (name := _error(context, case)) else ""
    supposed = f" for {_assumed_arguments(case)}" if case.truth is Truth.UNKNOWN and _assumed_arguments(case) else ""
    where = f"{_device(context, case)}{case.row.phase} in torch {context.catalogue.version}{supposed}"
    return f"{display_name(case.row.signature.name)} has no deterministic {where}{error}"


def _error(context: Context, case: Case) -> str:
    """The operation's name in torch's error: the first whose own conditions may hold for the call."""
    names = context.catalogue.errors(case.row)
    read = argument_reader(case.row.signature, case.site.call)
    truths = [
        (evaluate(_argument_conditions(each.when), case.row.signature, read), each)
        for each in error_names()
        if each.name in names
    ]
    fitting = [each.name for truth, each in truths if truth is not Truth.FAILS] or list(names)
    unsure = [each.name for truth, each in truths if truth is Truth.UNKNOWN and _asks_for_mode(each)]
    return " or ".join(unsure) if len(unsure) == len(fitting) == _ALTERNATIVES else next(iter(fitting), "")


def _asks_for_mode(error: ErrorName) -> bool:
    return any(condition.of == "mode" for condition in error.when)


def _argument_conditions(when: Iterable[Condition]) -> list[Condition]:
    return [each for each in when if "." not in each.of]


def _cause(context: Context, case: Case) -> str:
    if case.row.behaviour == "raises":
        told = "though" if case.row.kind == "documented_deterministic_but_raising" else "and"
        says = "calls it deterministic" if told == "though" else "does not say so"
        return f"{_raises(context, case)}, {told} torch's documentation {says}"
    name, version = display_name(case.row.signature.name), context.catalogue.version
    return f"{name} has a nondeterministic {_device(context, case)}{case.row.phase} in torch {version}, and torch neither raises an error nor warns"


def _warns(case: Case) -> str:
    name = display_name(case.row.signature.name)
    return f"{name} keeps a nondeterministic backward under warn_only=True; leave warn_only out"


# The setting stands elsewhere, and other operations of the program may need it.
_WARN_ONLY = NoFix("without warn_only other operations of the program may raise an error, so the choice is yours")


def _no_fix(context: Context, case: Case) -> NoFix:
    """Why an operation is not replaced: torch has nothing in its stead, or something that computes otherwise."""
    name = display_name(case.row.signature.name)
    if not alternatives_for(case.row, context.catalogue.version):
        return NoFix(f"torch {context.catalogue.version} has no deterministic replacement for {name}")
    return NoFix(f"the replacement for {name} may give other values, so the choice is yours")


def _cure(context: Context, case: Case) -> str:
    """What to write instead; where there is nothing, the release that no longer needs it."""
    version = context.catalogue.version
    if known := alternatives_for(case.row, version):
        return known[0]
    from torchrepro_lint.catalogue.errors import deterministic_since  # few findings need the later releases

    if since := deterministic_since(case.row, version):
        return f"torch {since} or newer has {'one' if case.row.listed else 'a deterministic one'}"
    return _NO_CURE


def _device(context: Context, case: Case) -> str:
    if "any" in case.row.devices:
        return ""
    device = context.settings.device
    return f"{device if device in case.row.devices else case.row.devices[0]} ".upper()


def _is_passed(case: Case, condition: Condition) -> bool:
    """Whether a call passes what a condition asks for. What a loss was constructed with is not asked."""
    if any(each.of.startswith("input.") for each in case.row.when):
        return False
    read = argument_reader(case.row.signature, case.site.call)
    return evaluate((condition,), case.row.signature, read) is Truth.HOLDS


def _assumed_arguments(case: Case) -> str:
    """The arguments that a row assumes where it is not known to hold: ``mode="linear"``."""
    parts = []
    for condition in case.row.when:
        if "." not in condition.of and condition.test == "one_of" and not _is_passed(case, condition):
            values = " or ".join(repr(value).replace("'", '"') for value in condition.values)
            parts.append(f"{condition.of}={values}")
    return ", ".join(dict.fromkeys(parts))
