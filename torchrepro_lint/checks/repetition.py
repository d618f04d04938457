"""Whether a call or a function may run more than once: by loops and comprehensions, by the names of functions (``forward``,
``__getitem__``), and by calls that run the function that they are given for each item (``pool.map``).
"""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint import limits
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import Assign, Call, Comprehension, Expression, Lambda, Ref, Statement
from torchrepro_lint.syntax.qualified_names import simple_name
from torchrepro_lint.syntax.scopes import ControlFlowPosition, control_flow_position, in_loop
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import expressions_within, last_identifier

_REPEATED_FUNCTION = lazy_pattern(
    r"(?i)(?=\w*\Z)(?:forward|__getitem__|__getitems__|__iter__|__next__|__call__|"
    r"(\w*_)?(step|batch|collate\w*|augment\w*|sample|transform)|\w*epoch\w*|next_\w+|get_batch\w*)|<lambda>"
)
# Callees that call the function that they are given for each item, row or job.
_MAPS = lazy_pattern(
    r"(?i)\w*map\w*|imap\w*|starmap\w*|submit|apply\w*|filter|filterfalse|delayed|transform|agg|aggregate|pipe|"
    r"run_in_executor|to_thread|takewhile|dropwhile|reduce|accumulate|sorted|defaultdict"
)
# Parameters for such functions.
_CALLED_FOR_EACH = lazy_pattern(r"(?i)(\w*_)?(transforms?|collate_fn|key|default_factory|augment\w*|map_fn)")


def runs_often(project: ValueFlow, path: str, call: Call) -> bool:
    """Whether a call may run more than once."""
    level = control_flow_position(project.files[path], call.start)
    return level is None or _repeats(project, path, level, call, limits.MAX_CALLER_DEPTH)


def function_runs_often(project: ValueFlow, path: str, level: ControlFlowPosition) -> bool:
    """Whether the function around a control-flow position may run more than once; loops inside it do not count."""
    return _is_repeated(project, path, level, limits.MAX_CALLER_DEPTH)


def _repeats(project: ValueFlow, path: str, level: ControlFlowPosition, call: Call, depth: int) -> bool:
    if in_loop(level) or _in_inner_scope(level.spots[-1].statement, call):
        return True
    return _is_repeated(project, path, level, depth)


def _is_repeated(project: ValueFlow, path: str, level: ControlFlowPosition, depth: int) -> bool:
    if level.function is None or depth == 0:
        return False
    word = simple_name(level.function.name)
    if _REPEATED_FUNCTION.fullmatch(word):
        return True
    names = [level.function.name]
    if word == "__init__" and level.function.owner:
        names.append(level.function.owner)
    return any(_is_mapped(project, path, name) or _site_repeats(project, f"{path}{name}", depth) for name in names)


def _site_repeats(project: ValueFlow, name: str, depth: int) -> bool:
    for path, site in project.sites_of(name):
        level = control_flow_position(project.files[path], site.call.start)
        if level is not None and _repeats(project, path, level, site.call, depth - 1):
            return True
    return False


def _is_mapped(project: ValueFlow, path: str, function: str) -> bool:
    """Whether a function is given to a call that runs it for each item: ``pool.map(function, items)``."""
    return any(
        not further and _is_given_to_map(project, file, ref, limits.MAX_CALLER_DEPTH)
        for file, ref, further in project.uses.of_definition(path, function)
    )


def _is_given_to_map(project: ValueFlow, path: str, function: Expression, depth: int) -> bool:
    """Whether an expression is an argument of such a call, perhaps within ``functools.partial``, or through variables."""
    here = project.uses.spots(path).of(function)
    if here is None or depth == 0:
        return False
    if not isinstance(here.parent, Call):
        return any(_is_given_to_map(project, file, ref, depth - 1) for file, ref in _stored(project, path, function))
    if here.parent.func == function:
        return False
    word = last_identifier(here.parent.func)
    if word == "partial":
        return _is_given_to_map(project, path, here.parent, depth)
    named = next((arg.keyword for arg in here.parent.args if arg.value == function), None)
    return bool(_MAPS.fullmatch(word)) or (named is not None and bool(_CALLED_FOR_EACH.fullmatch(named)))


def _stored(project: ValueFlow, path: str, value: Expression) -> Iterator[tuple[str, Expression]]:
    """The reads of the variable that a value is assigned to."""
    here = project.uses.spots(path).of(value)
    match here:
        case ExpressionPosition(
            statement=Assign(op="=", value=assigned, targets=(Ref(path=()) as target,)) as statement
        ):
            if assigned == value:
                reads = project.uses.of_variable(path, target, here, statement.end)
                yield from ((file, ref) for file, ref, further in reads if not further)


def _in_inner_scope(statement: Statement, call: Call) -> bool:
    """Whether a call stands in the element of a comprehension or in a lambda."""
    return any(
        any(part.start <= call.start < part.end for part in _repeated_parts(each))
        for each in expressions_within(statement)
    )


def _repeated_parts(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Comprehension(elements=elements):
            return elements
        case Lambda():
            return (expression,)
    return ()
