"""TRL405: operations of other libraries that torch's flag neither makes deterministic nor reports."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.catalogue.catalogue import ThirdPartyOperation, third_party_operations
from torchrepro_lint.catalogue.conditions import Truth, argument_reader, evaluate
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.dataflow.alternative_arguments import alternative_arguments
from torchrepro_lint.domain.gradients.liveness import call_without_gradient, called_without_gradient, is_gradient_dead
from torchrepro_lint.domain.programs import may_use_accelerator
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.text import Fix, NoFix
from torchrepro_lint.syntax.nodes import Constant, span
from torchrepro_lint.trace.traces import Context

CODE = "TRL405"


def check(context: Context) -> Iterator[Finding]:
    """Each call that may run on CUDA, except those whose argument is a variable."""
    known = third_party_operations()
    for site in context.project.calls(context.path):
        row = next(
            (row for name in site.names for row in known.get(name, ()) if _is_reported(context, site, row)), None
        )
        if row is not None:
            yield Finding(CODE, span(site.call), _message(row), _remedy(context, site, row))


def _is_reported(context: Context, site: CallSite, row: ThirdPartyOperation) -> bool:
    project = context.project
    if context.settings.device == "mps" or not may_use_accelerator(project, site.function):
        return False
    if row.argument and not _is_off(site, row):
        return False
    if row.phase == "backward" and (
        call_without_gradient(project, site) or called_without_gradient(project, site.function)
    ):
        return False
    if row.phase == "backward" and is_gradient_dead(project, context.path, site.call):
        return False
    subjects = {condition.of for condition in row.when}
    truths = (
        evaluate(row.when, row.signature, each)
        for each in alternative_arguments(context.project, context.path, row.signature, site, subjects)
    )
    return any(truth is not Truth.FAILS for truth in truths)


def _is_off(site: CallSite, row: ThirdPartyOperation) -> bool:
    """Whether the argument is left out or a literal false; a star argument may pass it."""
    given = argument_reader(row.signature, site.call)(row.argument)
    if given is None:
        return not any(arg.star for arg in site.call.args)
    return isinstance(given, Constant) and not given.value


def _message(row: ThirdPartyOperation) -> str:
    name = row.signature.name
    since = f" (from {row.library} {row.since} on)" if row.since else ""
    cure = f"pass {row.argument}=True{since}" if row.argument else row.instead
    return f"on CUDA, {name} {row.cause}; {cure}"


def _remedy(context: Context, site: CallSite, row: ThirdPartyOperation) -> Fix | NoFix:
    if not row.argument:
        return NoFix(
            f"{row.signature.name} has no argument that makes it deterministic, and its replacement is another operation"
        )
    from torchrepro_lint.checks.fixes.arguments import append_argument, replace_argument

    given = argument_reader(row.signature, site.call)(row.argument)
    if given is None:
        edit = append_argument(site.call, context.lines.text, f"{row.argument}=True")
    else:
        edit = replace_argument(next(arg for arg in site.call.args if arg.value == given), "True")
    return Fix(f"Pass {row.argument}=True", (edit,), safe=False)
