"""A seed that is itself drawn: the fix writes a constant for it, ``args.seed = random.randint(1, 10000)``."""

from __future__ import annotations

from collections.abc import Sequence

from torchrepro_lint.checks.fixes.insertions import fix_in
from torchrepro_lint.checks.fixes.program_seed import FALLBACK, SEED_NAME
from torchrepro_lint.domain.programs import Program
from torchrepro_lint.domain.rng.effects import Draw
from torchrepro_lint.domain.rng.seeders import PLAIN_SEEDERS
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Fix, NoFix
from torchrepro_lint.syntax.nodes import Arg, Assign, Call, Expression, ExpressionStatement, Operation, Ref, span
from torchrepro_lint.syntax.visitor import last_identifier
from torchrepro_lint.trace.events import TraceEvent, tested_references
from torchrepro_lint.trace.traces import Traces

_NO_DEFAULT = "the program draws a seed when its user gives none, and only its author can choose a default"
_INTEGER_DRAWS = lazy_pattern(r"random\.(randint|randrange|getrandbits)|numpy\.random\.randint")


def fix_drawn(project: Traces, program: Program, draw: Draw) -> Fix | NoFix | None:
    """Write a constant for a draw whose result is a seed; None where it is something else, or may be no plain number.

    A seed that the user can give, and that is drawn only where they give none, stays drawn.
    """
    statement, call = draw.trace_event.event.statement, draw.trace_event.event.value
    if _is_drawn_for_none(project, draw.trace_event):
        return NoFix(_NO_DEFAULT)
    if not isinstance(statement, Assign) or statement.op not in ("=", ":") or statement.value is None or call is None:
        return None
    if not all(SEED_NAME.fullmatch(last_identifier(target)) for target in statement.targets):
        return None
    drawn = _drawn_part(statement.value, call)
    if drawn is None or not _is_number(project, draw.trace_event.path, drawn):
        return None
    if drawn != statement.value or _is_tested(draw.trace_event, statement.targets):
        return NoFix(_NO_DEFAULT)
    edit = Edit(span(drawn), FALLBACK)
    return fix_in(draw.trace_event.path, program.entry.path, f"Use {FALLBACK} as the seed", (edit,))._replace(
        seeds=True
    )


def _is_drawn_for_none(project: Traces, trace_event: TraceEvent) -> bool:
    """Whether a draw is itself what seeds where no seed is given: ``if seed is None: torch.manual_seed(randint(…))``."""
    match trace_event.event.statement:
        case ExpressionStatement(value=Call(func=func, args=(Arg(value=drawn),))) if drawn == trace_event.event.value:
            read = tested_references(trace_event.event.guards)
            seeds = not PLAIN_SEEDERS.isdisjoint(project.names(trace_event.path, func))
            return seeds and any(SEED_NAME.fullmatch(last_identifier(each)) for each in read)
    return False


def _is_tested(trace_event: TraceEvent, targets: Sequence[Expression]) -> bool:
    """Whether a test around an event reads one of some variables: ``if args.seed is None``."""
    bound = {each.access_path for each in targets if isinstance(each, Ref)}
    return any(each.access_path in bound for each in tested_references(trace_event.event.guards))


def _drawn_part(value: Expression, call: Expression) -> Expression | None:
    """The part of ``args.seed or random.randint(…)`` that draws; the test of a conditional expression does not count."""
    if isinstance(value, Operation) and value.op in ("or", "if"):
        found = [each for each in value.operands[-2:] if each.start <= call.start < each.end]
        return _drawn_part(found[0], call) if found else None
    return value if value.start <= call.start < value.end else None


def _is_number(project: Traces, path: str, drawn: Expression) -> bool:
    """``random.randint(…)``, ``int(…)``, ``….item()``: a plain number, and no tensor or array."""
    if not isinstance(drawn, Call):
        return False
    names = project.names(path, drawn.func)
    sized = len(drawn.args) > 2 or any(arg.keyword == "size" for arg in drawn.args)
    return last_identifier(drawn.func) == "item" or any(
        name == "builtins.int" or (_INTEGER_DRAWS.fullmatch(name) is not None and not sized) for name in names
    )
