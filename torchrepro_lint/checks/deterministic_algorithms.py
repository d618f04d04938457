"""TRL204: a switch of deterministic mode that fails, does nothing, or only warns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.domain.flag_effects import restores_by_name
from torchrepro_lint.domain.flags import DEBUG_MODE
from torchrepro_lint.domain.operations.reached_operations import why_not_strict_in
from torchrepro_lint.domain.operations.verdicts import (
    SET_DETERMINISTIC,
    ModeSwitch,
    mode_switches,
    only_warns,
    strict_mode_would_stop,
)
from torchrepro_lint.source.files import release
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Edit, Fix, NoFix, Span
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Ref, Statement, Try, span
from torchrepro_lint.syntax.qualified_names import simple_name
from torchrepro_lint.syntax.visitor import all_statements, blocks, statements, subexpressions
from torchrepro_lint.trace.traces import Context

CODE = "TRL204"
_MODERN_SINCE, _OLD_UNTIL = (1, 8), (1, 9)
# Functions that unittest and pytest run after tests.
_TEARDOWN = lazy_pattern(r"tearDown(Class|Module)?|teardown(_(method|class|function|module))?")


def check(context: Context) -> Iterator[Finding]:
    """Each switch of the module; the first fault of a call is reported."""
    for switch in mode_switches(context.project, context.path):
        if not switch.hidden:
            yield from _finding(context, switch)


def _finding(context: Context, switch: ModeSwitch) -> Iterator[Finding]:
    place, torch = span(switch.site.call), release(context.catalogue.version)
    word = switch.name.removeprefix("torch.")
    if switch.name == SET_DETERMINISTIC and torch >= _MODERN_SINCE:
        if not _is_fallback(context, switch):
            since = f"not in torch {context.catalogue.version}" if torch > _OLD_UNTIL else "deprecated since torch 1.8"
            message = f"torch.set_deterministic is {since}; call torch.use_deterministic_algorithms(True)"
            yield Finding(CODE, place, message, _fix_name(context, switch))
    elif switch.mode is None:
        message = f"{word}() without its argument raises a TypeError; pass {_on_value(switch)}"
        yield Finding(CODE, place, message, _unless_it_stops(context, switch, _fix_missing), severity="error")
    elif _is_off(context, switch):
        if not _is_on_in_other_branch(context, switch) and not _ends_own_use(context, switch):
            message = f"{word}({_text(context, switch)}) allows nondeterministic algorithms; pass {_on_value(switch)}"
            remedy = (
                NoFix("the function's name says that it turns the mode off")
                if restores_by_name(switch.site.function)
                else _unless_it_stops(context, switch, _fix_value)
            )
            yield Finding(CODE, place, message, remedy)
    elif (
        switch.name != DEBUG_MODE
        and only_warns(switch)
        and not _is_on_in_other_branch(context, switch)
        and not strict_mode_would_stop(context, switch.site.function)
    ):
        message = (
            "warn_only=True only warns about nondeterministic operations, and keeps the backward of fused attention "
            "nondeterministic; leave it out"
        )
        yield Finding(CODE, place, message, _unless_it_stops(context, switch, _fix_warn_only))


def _on_value(switch: ModeSwitch) -> str:
    return '"error"' if switch.name == DEBUG_MODE else "True"


def _text(context: Context, switch: ModeSwitch) -> str:
    assert switch.mode is not None
    return context.lines.text[switch.mode.start : switch.mode.end]


def _is_off(context: Context, switch: ModeSwitch) -> bool:
    """A literal, or a variable that is never anything else; the default of a parameter is not constant."""
    assert switch.mode is not None
    project, value = context.project, switch.mode.value
    if project.resolver.default(context.path, value) is not None:
        return False
    off = (0, "default") if switch.name == DEBUG_MODE else (False,)
    found = [each for _, each in project.values(context.path, value)]
    return all(isinstance(each, Constant) and each.value in off and each.value is not None for each in found)


def _is_on_in_other_branch(context: Context, switch: ModeSwitch) -> bool:
    """Whether the other branch of an ``if`` around the call turns strict mode on: then the user decides."""
    other = {"if": "else", "else": "if"}
    wanted = {(other[guard.kind], guard.value) for guard in switch.site.guards if guard.kind in other}
    return bool(wanted) and any(
        each.mode is not None
        and not _is_off(context, each)
        and not only_warns(each)
        and wanted.intersection((guard.kind, guard.value) for guard in each.site.guards)
        for each in mode_switches(context.project, context.path)
    )


def _ends_own_use(context: Context, switch: ModeSwitch) -> bool:
    """Whether the function has turned strict mode on before, and turns it off again where it is done, as a test does; or it is what
    tests run at their end, in a file that turns the mode on.
    """
    ends_tests = _TEARDOWN.fullmatch(simple_name(switch.site.function)) is not None
    return any(
        (ends_tests or _is_before(each, switch)) and each.mode is not None and not _is_off(context, each)
        for each in mode_switches(context.project, context.path)
    )


def _is_before(one: ModeSwitch, other: ModeSwitch) -> bool:
    return one.site.function == other.site.function and one.site.call.start < other.site.call.start


def _is_fallback(context: Context, switch: ModeSwitch) -> bool:
    """Whether the call is only for a torch that has it: under a test of that, or where errors are caught."""
    tests = [guard.value for guard in switch.site.guards if guard.kind in ("if", "else")]
    return any(_tests_version(each) for test in tests for each in subexpressions(test)) or any(
        isinstance(statement, Try) and statement.handlers and _contains(statement, switch.site.statement)
        for statement in all_statements(context.tree)
    )


def _tests_version(test: Expression) -> bool:
    """``hasattr`` and comparisons of versions."""
    match test:
        case Call(func=Ref(roots=("builtins.hasattr",))):
            return True
        case Ref(roots=roots, path=path):
            return "version" in (*roots, *path)[-1].lower()
    return False


def _contains(statement: Statement, other: Statement) -> bool:
    return any(each == other for block in blocks(statement) for each in statements(block))


def _unless_it_stops(
    context: Context, switch: ModeSwitch, fix: Callable[[Context, ModeSwitch], Fix | NoFix]
) -> Fix | NoFix:
    """A fix that turns strict mode on, unless a program may stop under it."""
    why_not = why_not_strict_in(context, switch.site.function)
    return NoFix(why_not) if why_not else fix(context, switch)


def _fix_missing(context: Context, switch: ModeSwitch) -> Fix:
    from torchrepro_lint.checks.fixes.arguments import append_argument, argument_span

    call, text, value = switch.site.call, context.lines.text, _on_value(switch)
    if not call.args:
        edit = append_argument(call, text, value)
    else:
        start = argument_span(text, call, call.args[0]).start
        edit = Edit(Span(start, start), f"{value}, ")
    return Fix(f"Pass {value}", (edit,), safe=True)


def _fix_value(_context: Context, switch: ModeSwitch) -> Fix:
    from torchrepro_lint.checks.fixes.arguments import replace_argument

    assert switch.mode is not None
    return Fix(f"Pass {_on_value(switch)}", (replace_argument(switch.mode, _on_value(switch)),), safe=False)


def _fix_warn_only(context: Context, switch: ModeSwitch) -> Fix | NoFix:
    from torchrepro_lint.checks.fixes.arguments import remove_argument

    assert switch.warn_only is not None
    edit = remove_argument(context.lines.text, switch.site.call, switch.warn_only)
    return (
        Fix("Remove warn_only", (edit,), safe=False) if edit else NoFix("a comment beside the argument would be lost")
    )


def _fix_name(context: Context, switch: ModeSwitch) -> Fix | NoFix:
    """Call the current function; a name that was imported by itself would need another import."""
    call, text, func = switch.site.call, context.lines.text, switch.site.call.func
    if not isinstance(func, Ref) or not func.path:
        return NoFix("the function is imported by its own name, so another import would be needed")
    if switch.mode is None and (why_not := why_not_strict_in(context, switch.site.function)):
        return NoFix(why_not)
    edits = [Edit(Span(func.base_end, func.end), ".use_deterministic_algorithms")]
    if switch.mode is None:
        edits += _fix_missing(context, switch).edits
    elif switch.mode.keyword:
        from torchrepro_lint.checks.fixes.arguments import argument_span

        edits.append(Edit(Span(argument_span(text, call, switch.mode).start, switch.mode.start), ""))
    return Fix("Call torch.use_deterministic_algorithms", tuple(edits), safe=False)
