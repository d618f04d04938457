"""A seed that is drawn itself: ``args.seed = random.randint(1, 10000)``. A constant in its place is what a person writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.rewrites.seed_calls import fix_in
from torchrepro_lint.rewrites.seed_fields import FALLBACK
from torchrepro_lint.rewrites.seed_uses import WORD
from torchrepro_lint.source.text import Edit, Fix
from torchrepro_lint.syntax.nodes import Assign, Call, Expression, Operation, span
from torchrepro_lint.syntax.visitor import last_word

if TYPE_CHECKING:
    from torchrepro_lint.domain.programs import Program
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.domain.rng.effects import Draw

_NUMBERS = re.compile(r"random\.(randint|randrange|getrandbits)|numpy\.random\.randint")


def fix_drawn(project: Project, program: Program, draw: Draw) -> Fix | None:
    """Write a constant for a draw whose result is a seed; None where it is something else, or may be no plain number."""
    statement, call = draw.happening.event.statement, draw.happening.event.value
    if not isinstance(statement, Assign) or statement.op not in ("=", ":") or statement.value is None or call is None:
        return None
    if not all(WORD.fullmatch(last_word(target)) for target in statement.targets):
        return None
    drawn = _drawn(statement.value, call)
    if drawn is None or not _is_number(project, draw.happening.path, drawn):
        return None
    edit = Edit(span(drawn), FALLBACK)
    return fix_in(draw.happening.path, program.entry.path, f"take {FALLBACK} for the seed", (edit,))


def _drawn(value: Expression, call: Expression) -> Expression | None:
    """The part of ``args.seed or random.randint(…)`` that draws; the test of a conditional expression is none."""
    if isinstance(value, Operation) and value.op in ("or", "if"):
        found = [each for each in value.operands[-2:] if each.start <= call.start < each.end]
        return _drawn(found[0], call) if found else None
    return value if value.start <= call.start < value.end else None


def _is_number(project: Project, path: str, drawn: Expression) -> bool:
    """``random.randint(…)``, ``int(…)``, ``….item()``: no tensor or array, which is asked for more than its value."""
    if not isinstance(drawn, Call):
        return False
    names = project.names(path, drawn.func)
    sized = len(drawn.args) > 2 or any(arg.keyword == "size" for arg in drawn.args)
    return last_word(drawn.func) == "item" or any(
        name == "builtins.int" or (_NUMBERS.fullmatch(name) is not None and not sized) for name in names
    )
