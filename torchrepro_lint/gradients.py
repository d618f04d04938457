"""Where no gradient flows: modes around a call, detached inputs, functions that only run without a backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.evaluation import is_evaluation_step
from torchrepro_lint.forward_callers import ForwardCallers
from torchrepro_lint.gradient_modes import mode_at
from torchrepro_lint.pipelines import trains_nothing
from torchrepro_lint.syntax.nodes import Arg, Assign, Attribute, Call, Expression, Function, Ref, Statement
from torchrepro_lint.syntax.visitor import expressions, last_word, statements, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchrepro_lint.program_effects import ProgramEffects
    from torchrepro_lint.resolve.program_index import ProgramIndex, Site
    from torchrepro_lint.syntax.events import Event
    from torchrepro_lint.trace.builder import Run

_CUT = frozenset({"detach", "detach_", "data"})
# Methods that give the module itself.
_MOVES = frozenset({"to", "cuda", "cpu", "eval"})


def without_gradient(project: ProgramIndex, site: Site) -> bool:
    """Whether no gradient can flow: under ``no_grad``, in a function so decorated, or from a detached input."""
    return switched_off(project, site) or _is_cut(_input(site.call))


def switched_off(project: ProgramIndex, site: Site) -> bool:
    """Whether a call stands where no gradient is kept, by the innermost mode around it."""
    return mode_at(project, site.function, site.guards) == "off"


def used_without_gradient(project: ProgramEffects, path: str, made: Site) -> bool:
    """Whether what a call makes is kept in a local variable, and only called or passed on where no gradient is kept."""
    function = next(iter(project.resolver.functions(made.function)), None)
    statement = made.statement
    if function is None or not isinstance(statement, Assign):
        return False
    match statement.targets:
        case (Ref(roots=(root,), path=()),) if root.startswith(f"{function.name}.<locals>."):
            return _only_used_in_calls(project, path, function, root)
    return False


def _only_used_in_calls(project: ProgramEffects, path: str, function: Function, root: str) -> bool:
    read = {
        ref.start
        for statement in statements(function.body)
        for ref in _read(statement)
        if root in ref.roots and _MOVES.isdisjoint(ref.path)
    }
    calls = [site for site in project.calls(path) if function.start <= site.call.start < function.end]
    off = forward_only(project, path + function.name)
    free = {
        ref.start
        for site in calls
        if off or switched_off(project, site)
        for ref in _given(site.call)
        if root in ref.roots
    }
    return bool(read) and read <= free


def _read(statement: Statement) -> Iterator[Ref]:
    bound = statement.targets if isinstance(statement, Assign) and statement.op == "=" else ()
    for expression in expressions(statement):
        if not any(expression is target for target in bound):
            yield from (each for each in within(expression) if isinstance(each, Ref))


def _given(call: Call) -> Iterator[Ref]:
    """What a call calls and is given, as far as that is variables."""
    yield from (each for each in (call.func, *(arg.value for arg in call.args)) if isinstance(each, Ref))


def forward_only(project: ProgramEffects, function: str) -> bool:
    """Whether all calls of a function of the project stand where no gradient is kept, or in such a function; and whether
    it prepares data.

    False where nothing calls it, where it is passed on as a value (then who calls it is not known), and where a program
    runs it otherwise, as through a parameter.
    """
    if trains_nothing(project, function):
        return True
    return forward_callers(project).forward_only(function) and all(
        gradient_free(project, program.run, function) for program in project.reaching(function)
    )


def forward_callers(project: ProgramIndex) -> ForwardCallers:
    """Who calls which function of the project."""
    if "callers" not in project.kept:
        project.kept["callers"] = ForwardCallers(project)
    callers: ForwardCallers = project.kept["callers"]
    return callers


def gradient_free(project: ProgramIndex, run: Run, function: str) -> bool:
    """Whether a run enters a function only where no gradient is kept. False where it does not enter it."""
    known: dict[str, bool] = project.kept.setdefault("gradient free", {}).setdefault(id(run), {})
    if is_evaluation_step(project, function):
        return True
    if function not in known:
        known[function] = True  # a circle adds no other way in
        entries = [each for each in run.entries.get(function, ()) if not _wraps_in_place(each.event)]
        known[function] = bool(entries) and all(_enters_free(project, run, each.caller, each.event) for each in entries)
    return known[function]


def _wraps_in_place(event: Event) -> bool:
    """Whether an event runs nothing: ``net.encoder = DataParallel(net.encoder)`` is run as ``net.encoder`` is."""
    match event.statement, event.value:
        case Assign(targets=(Ref() as target,), op="="), Call(func=func, args=(Arg(value=Ref() as inner), *_)):
            same = (inner.roots, inner.path) == (target.roots, target.path)
            return same and last_word(func)[:1].isupper()
    return False


def _enters_free(project: ProgramIndex, run: Run, caller: str, event: Event) -> bool:
    mode = mode_at(project, caller, event.guards)
    if mode or trains_nothing(project, caller):
        return mode != "on"
    # A layer that a module makes for itself runs where the module does.
    owner = project.resolver.owner(caller) if caller.endswith(".__init__") else ""
    runners = project.resolver.methods(owner, "forward") if owner else (caller,)
    return any(gradient_free(project, run, each) for each in runners)


def _input(call: Call) -> Expression | None:
    """The tensor of a call: a method's receiver is unknown as a value, so its attributes are looked at instead."""
    if call.args and not call.args[0].star and call.args[0].keyword in (None, "input"):
        return call.args[0].value
    return None


def _is_cut(expression: Expression | None) -> bool:
    match expression:
        case Call(func=Ref(path=(*_, word)) | Attribute(name=word)) | Ref(path=(*_, word)):
            return word in _CUT
    return False
