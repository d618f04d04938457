"""Parameters without gradient: modules that run only in no-grad mode, or are frozen: feature extractors, teachers.

Where a module runs, and what freezes it, is found by tracking it forward from its construction (``module_tracking``).
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import and_

from torchrepro_lint.domain.gradients.modes import (
    GRADIENT_MODES,
    grad_mode_at,
    gradient_settings,
    in_no_grad_mode,
    is_evaluation_step,
    trains_nothing,
)
from torchrepro_lint.domain.gradients.module_tracking import KEEPING, ModuleTracker
from torchrepro_lint.query.cycles import Lattice
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.program_index import CallSite, ProgramIndex
from torchrepro_lint.syntax.control_flow import Event
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Call,
    Expression,
    Ref,
)
from torchrepro_lint.syntax.qualified_names import class_of, path_of, simple_name
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.visitor import is_same_reference, last_identifier, statements
from torchrepro_lint.trace.builder import Trace


def frozen_calls(
    project: ProgramIndex, run: Trace, function: str, made: Expression | None, *, reached: bool = False
) -> tuple[CallSite, ...] | None:
    """The calls of the frozen module that a call in a function constructs; none where it gets no gradient at any place where it runs.
    None if it is not frozen. Only what is ``reached`` counts, or also what methods run that a program never calls.
    """
    tracker = ModuleTracker(project, run, path_of(function), () if made is None else (made,))
    tracker.follow(function)
    if _stays_frozen(project, run, tracker):
        return _calls_in(run, tracker)
    return () if _runs_only_without_gradient(project, run, tracker, reached=reached) else None


def _stays_frozen(project: ProgramIndex, run: Trace, tracker: ModuleTracker) -> bool:
    """Whether a module is frozen, and nothing in the trace gives its parameters a gradient again."""
    if not tracker.is_frozen or tracker.is_trained:
        return False
    return (tracker.words() | tracker.owners()).isdisjoint(_trained_again(project, run))


@query()
def _trained_again(project: ProgramIndex, run: Trace) -> frozenset[str]:
    """The attributes, and the classes of the objects, whose parameters a trace gives a gradient:
    ``for p in self.encoder.parameters(): p.requires_grad = True``.
    """
    reads = project.database.reads
    for path in run.paths if reads.incremental else ():
        reads.record_read(path)
    found: set[str] = set()
    for function in run.functions:
        path, own = path_of(function), project.resolver.functions(function)
        for body in [each.body for each in own] or [project.files[path].body]:
            for statement in statements(body):
                for func in (each.func for each in gradient_settings(statement) if not each.freezes):
                    found.update(func.path[:-1])
                    if len(func.path) == 1:
                        found.update(class_of(each) for each in project.resolver.receiver(path, func))
    return frozenset(found)


def _calls_in(run: Trace, tracker: ModuleTracker) -> tuple[CallSite, ...]:
    """The calls by which a trace runs a tracked module."""
    return tuple(each for each in tracker.run_sites() if each.function in run.functions)


def _runs_only_without_gradient(project: ProgramIndex, run: Trace, tracker: ModuleTracker, *, reached: bool) -> bool:
    """Whether each place that runs a tracked module gets no gradient, and there is one."""
    sites = [*tracker.run_sites()]
    runs = [each for each in sites if each.function in run.functions]
    if tracker.escapes or not all(_runs_without_gradient(project, run, site) for site in runs):
        return False
    others = list(tracker.run_sites_elsewhere())
    known = runs or others or (reached and _runs_by_other_methods(project, run, {each.function for each in sites}))
    return bool(known) and all(_runs_without_gradient(project, run, site) for site in others)


def _runs_by_other_methods(project: ProgramIndex, run: Trace, functions: Iterable[str]) -> bool:
    """Whether a trace enters none of some methods, but others of their classes, and only in no-grad mode: of an autoencoder that only
    encodes, those that decode.
    """
    owner = project.resolver.owner
    classes = {owner(each) for each in functions}
    entered = [
        each
        for each, edges in run.call_edges.items()
        if owner(each) in classes
        and simple_name(each) != "__init__"
        and any(owner(edge.caller) not in classes for edge in edges)
    ]
    known = "" not in classes and classes == {owner(each) for each in entered}
    if not entered or not known or not all(entered_without_gradient(project, run, each) for each in entered):
        return False
    definitions = (definition for each in classes for definition in project.resolver.classes(each))
    left_out = {word for definition in definitions for word, _ in definition.methods} - set(map(simple_name, entered))
    # A call by such a name may be of an object that is not known to be of the class.
    calls = (call for path in sorted(run.paths) for call in project.calls_on(path, frozenset(left_out)))
    return not any(each.function in run.functions for each in calls)


def _runs_without_gradient(project: ProgramIndex, run: Trace, site: CallSite) -> bool:
    return in_no_grad_mode(project, site) or entered_without_gradient(project, run, site.function)


def entered_without_gradient(project: ProgramIndex, run: Trace, function: str) -> bool:
    """Whether a trace enters a function only in no-grad mode. False where it does not enter it, or starts in it."""
    if function in run.starts:  # even if another module imports it again
        return False
    return is_evaluation_step(project, function) or _is_entered_without_gradient(project, run, function)


# Recursion adds no other entry, so at first it holds of all functions that they are entered without gradient.
_NO_GRADIENT = Lattice(bottom=True, join=and_, widen=and_)


@query(cycle=_NO_GRADIENT)
def _is_entered_without_gradient(project: ProgramIndex, run: Trace, function: str) -> bool:
    reads = project.database.reads
    for path in run.paths if reads.incremental else ():
        reads.record_read(path)  # the key is an identity: a change of the trace must drop it
    entries = [each for each in run.call_edges.get(function, ()) if not _wraps_in_place(each.event)]
    return bool(entries) and all(_enters_without_gradient(project, run, each.caller, each.event) for each in entries)


def _wraps_in_place(event: Event) -> bool:
    """Whether an event runs nothing: ``net.encoder = DataParallel(net.encoder)`` runs when ``net.encoder`` does."""
    match event.statement, event.value:
        case Assign(targets=(Ref() as target,), op="="), Call(func=func, args=(Arg(value=Ref() as inner), *_)):
            return is_same_reference(inner, target) and last_identifier(func)[:1].isupper()
    return False


def _enters_without_gradient(project: ProgramIndex, run: Trace, caller: str, event: Event) -> bool:
    mode = grad_mode_at(project, caller, event.guards)
    if mode or trains_nothing(project, caller):
        return mode != "on"
    # A layer that a module constructs for itself runs where the module does.
    owner = project.resolver.owner(caller) if caller.endswith(".__init__") else ""
    runners = _runners(project, run, owner) if owner else [caller]
    if runners and all(entered_without_gradient(project, run, each) for each in runners):
        return True
    return _is_kept_for_no_gradient(project, run, caller, event)


def _runners(project: ProgramIndex, run: Trace, owner: str) -> list[str]:
    """What runs a module: its ``forward``, or where a trace does not enter that, the methods that it enters from elsewhere."""
    resolver, edges = project.resolver, run.call_edges
    forward = [each for each in resolver.methods(owner, "forward") if each in run.functions]
    words = [name for each in resolver.classes(owner) for word, name in each.methods if word != "__init__"]
    own = [path_of(owner) + name for name in words]
    return forward or [it for it in own if any(resolver.owner(one.caller) != owner for one in edges.get(it, ()))]


def _is_kept_for_no_gradient(project: ProgramIndex, run: Trace, caller: str, event: Event) -> bool:
    """Whether an event keeps modules that run without gradient only, by calls in the file that keeps them."""
    if not any(has_word(project.files[path_of(caller)].summary.calls, word) for word in GRADIENT_MODES):
        return False
    kept = _modules_kept(event)
    tracker = ModuleTracker(project, run, path_of(caller), kept)
    if kept:
        tracker.follow(caller)
    return bool(kept) and _runs_only_without_gradient(project, run, tracker, reached=False)


def _modules_kept(event: Event) -> tuple[Expression, ...]:
    """What an event constructs or puts into a container, without running it: ``nn.Sequential(*layers)``."""
    match event.value:
        case Call(func=func, args=args) if last_identifier(func) in KEEPING:
            return tuple(arg.value for arg in args)
        case Call(func=func) as call if last_identifier(func)[:1].isupper():
            return (call,)
    return ()
