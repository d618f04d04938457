"""TRL501: PYTHONHASHSEED is set after the interpreter has read it."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.determinism_mode import starts_interpreter
from torchrepro_lint.domain.flag_effects import may_set_environment
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.syntax.nodes import Arg, Assign, Call, Collection, Constant, Expression, Statement, Subscript, span
from torchrepro_lint.syntax.visitor import all_statements
from torchrepro_lint.trace.traces import Context

_WORD = "PYTHONHASHSEED"
_CALLS = frozenset({"os.environ.setdefault", "os.putenv", "os.environ.update", "os.environ.__setitem__"})
_MESSAGE = (
    "Python reads PYTHONHASHSEED only when it starts, so this process keeps the hashes that it has; "
    "set it in the shell that starts the program"
)


def check(context: Context) -> Iterator[Finding]:
    """Each write of the variable, in a program that then starts no other interpreter."""
    if not may_set_environment(context.project, context.path):
        return
    for each in (*_assignments(context), *_calls(context)):
        if not starts_interpreter(context.project, context.path, each):
            yield Finding("TRL501", span(each), _MESSAGE)


def _assignments(context: Context) -> Iterator[Expression]:
    for statement in all_statements(context.tree):
        yield from _assigned(context, statement)


def _assigned(context: Context, statement: Statement) -> Iterator[Expression]:
    for target in statement.targets if isinstance(statement, Assign) else ():
        match target:
            case Subscript(value=value, indices=(Constant(value="PYTHONHASHSEED"),)) if "os.environ" in (
                context.project.names(context.path, value)
            ):
                yield target


def _calls(context: Context) -> Iterator[Call]:
    for site in context.project.calls(context.path):
        if not _CALLS.isdisjoint(site.names) and any(_names_it(arg) for arg in _given(site)):
            yield site.call


def _given(site: CallSite) -> tuple[Arg, ...]:
    return site.call.args if "os.environ.update" in site.names else site.call.args[:1]


def _names_it(arg: Arg) -> bool:
    match arg.value:
        case Constant(value=value):
            return _WORD in (value, arg.keyword)
        case Collection(kind="dict", items=items):
            return any(isinstance(key, Constant) and key.value == _WORD for key in items[::2])
    return arg.keyword == _WORD
