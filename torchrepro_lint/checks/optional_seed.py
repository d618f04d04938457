"""TRL107: a run that is seeded only if an option, a parameter or a configuration is changed."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.catalogue.rows import FAMILIES, Family
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.checks.unseeded import first_own_draw
from torchrepro_lint.dataflow.constants import ENTROPY, describe
from torchrepro_lint.domain.programs import Program, programs_in
from torchrepro_lint.domain.rng.seeders import OptionalSeed
from torchrepro_lint.source.text import Message, Reference, Span
from torchrepro_lint.syntax.nodes import Call, Collection, Constant, Expression, Operation, SyntaxTree
from torchrepro_lint.syntax.visitor import last_identifier
from torchrepro_lint.trace.traces import Context


def check(context: Context) -> Iterator[Finding]:
    """One finding for each entry point and family, at the declaration of the default."""
    configured = bool(context.project.resolver.modules.configurations)
    if not configured and not _may_declare(context.project.files[context.path]):
        return
    for program in programs_in(context.project, context.path):
        for optional in program.effects.optional:
            family = next(each for each in FAMILIES if each.key == optional.family)
            if optional.declared.path == context.path and _is_drawn(context, program, family):
                place = Span(optional.declared.start, optional.declared.end)
                yield Finding("TRL107", place, _message(context, optional, family))


def _may_declare(tree: SyntaxTree) -> bool:
    """Whether a file may declare a default: of an option, a parameter, a field or a literal configuration."""
    return (
        bool(tree.summary.options)
        or any(param.default is not None for function in tree.functions for param in function.params)
        or any(_is_literal(value) for values in tree.assigned.values() for _, value in values)
    )


def _is_literal(value: Expression) -> bool:
    if isinstance(value, Call):
        return last_identifier(value.func) in _DECLARING
    return isinstance(value, Constant | Collection)


# Functions whose results are fields or options.
_DECLARING = frozenset({"field", "Field", "ib", "attrib", "Option", "Argument", "Namespace", "SimpleNamespace"})
# So are those that a default is computed by: ``seed: int = int(time.time())``.
_DECLARING |= {"int", "time", "randint"}


def _is_drawn(context: Context, program: Program, family: Family) -> bool:
    """Whether a relevant run draws from the family, and this entry point is the one to report."""
    entropic = family.key in program.effects.entropic
    return not entropic and first_own_draw(context, program, family) is not None


def _message(context: Context, optional: OptionalSeed, family: Family) -> Message:
    declared, test = optional.declared, optional.test
    is_new = declared.default is ENTROPY
    default = (
        f"the default of {declared.text} is new in each run"
        if is_new
        else f"{declared.text} is {declared.default!r} by default"
    )
    default += f" in {declared.source}" if declared.source else ""
    if test is not None:
        line = context.project.position(test.path, test.test.start).line
        where = Reference(test.path, line)
        seeded = f"{family.owner} is seeded only if {_wanted(test.test, wanted=not test.value.value)} ("
        return Message(seeded, where, f"), and {default}; seed it by default")
    if optional.changes:
        return Message(f"{family.owner} gets a new seed in each run, since {default}; give it a constant default")
    return Message(f"{family.owner} is not seeded, since {default}; seed it by default")


def _wanted(test: Expression, *, wanted: bool) -> str:
    """What must hold for the seeder to run: the test, or its opposite."""
    if wanted:
        return describe(test)
    match test:
        case Operation(op="not", operands=(operand,)):
            return describe(operand)
        case Operation(op=op, operands=(left, right)) if op in _OPPOSITES:
            return f"{describe(left)} {_OPPOSITES[op]} {describe(right)}"
        case Operation(op="and" | "or"):
            return f"not ({describe(test)})"
    return f"not {describe(test)}"


_OPPOSITES = {"is": "is not", "is not": "is", "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
