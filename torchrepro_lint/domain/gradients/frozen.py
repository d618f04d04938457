"""Parameters without gradient: modules that run only in no-grad mode, or are frozen: feature extractors, teachers.

A module object is tracked forward from its construction through variables, attributes, arguments and returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.domain.gradients.liveness import entered_without_gradient, in_no_grad_mode
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Constant,
    Expression,
    ExpressionStatement,
    Loop,
    Ref,
    SimpleStatement,
    Statement,
)
from torchrepro_lint.syntax.visitor import bound_arguments, expressions, path_of, split_name, statements, subexpressions
from torchrepro_lint.trace.call_targets import METHODS_WITHOUT_FORWARD
from torchrepro_lint.trace.library_models import trains_or_measures

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Project
    from torchrepro_lint.resolve.program_index import CallSite
    from torchrepro_lint.trace.builder import Trace
    from torchrepro_lint.trace.events import TraceEvent

_SIZES = re.compile(r"(?=\w*\Z)\w*(dim|size|shape|weight|bias|features|channels|config|num_)\w*")
_MOST_FUNCTIONS = 20


def is_frozen(project: Project, run: Trace, trace_event: TraceEvent) -> bool:
    """Whether the module that a call constructs is frozen, or gets no gradient at any place where it runs."""
    tracker = _ModuleTracker(project, run, trace_event.event.value)
    tracker.follow(trace_event.function)
    runs = [site for site in tracker.run_sites() if site.function in run.functions]
    if tracker.is_frozen or tracker.escapes or not all(_runs_without_gradient(project, run, site) for site in runs):
        return tracker.is_frozen
    others = list(tracker.run_sites_elsewhere())
    return bool(runs or others) and all(_runs_without_gradient(project, run, site) for site in others)


def _runs_without_gradient(project: Project, run: Trace, site: CallSite) -> bool:
    return in_no_grad_mode(project, site) or entered_without_gradient(project, run, site.function)


class _ModuleTracker:
    """Forward tracking of a module object through variables (``a.py:f.<locals>.net``) and attributes
    (``a.py:Net.encoder``).

    ``escapes``: it reaches code that is not followed. ``is_frozen``: all its parameters are. An object that a call made
    with the module is not the module, but may contain it.
    """

    def __init__(self, project: Project, run: Trace, made: Expression | None) -> None:
        self.is_frozen = False
        self.escapes = False
        self._project = project
        self._run = run
        self._creations = {id(made)}
        self._holders: set[str] = set()
        self._containers: set[str] = set()
        self._functions: list[str] = []

    def follow(self, function: str) -> None:
        """Track the module through a function, and through those that it is passed to."""
        if function in self._functions:
            return
        self._functions.append(function)
        if len(self._functions) > _MOST_FUNCTIONS:
            self.escapes = True
            return
        path, _, own = split_name(function)
        resolver = self._project.resolver
        for body in [each.body for each in resolver.functions(function)] if own else [self._project.files[path].body]:
            for top in body:
                for statement in statements((top,)):
                    self._visit(function, statement)
                self.is_frozen = self.is_frozen or self._freezes(function, top)

    def run_sites(self) -> Iterator[CallSite]:
        """The calls that run the module."""
        owners = {self._project.resolver.owner(each) for each in self._functions} - {""}
        for path in sorted({path_of(each) for each in self._functions}):
            for site in self._project.calls(path):
                inside = site.function in self._functions
                if not inside and self._project.resolver.owner(site.function) not in owners:
                    continue
                if not inside and any(self._is_module(site.function, arg.value) for arg in site.call.args):
                    self.escapes = True
                func = site.call.func
                if (
                    isinstance(func, Ref)
                    and self._is_module(site.function, func)
                    and not set(func.path[-1:]) & METHODS_WITHOUT_FORWARD
                ):
                    yield site

    def run_sites_elsewhere(self) -> Iterator[CallSite]:
        """The calls in other classes and functions of the trace that may run an attribute: ``model.encoder(x)``."""
        resolver = self._project.resolver
        owners = {resolver.owner(each) for each in self._functions} - {""}
        words = frozenset(each.rpartition(".")[2] for each in self._holders if "<locals>" not in each)
        for path in sorted(self._run.paths & resolver.call_graph.paths(words)):
            for called in self._project.calls_on(path, words):
                if called.function in self._run.functions and resolver.owner(called.function) not in owners:
                    of = [each.removesuffix("()") for each in resolver.receiver(path, called.call.func)]
                    if not of or not owners.isdisjoint(of):
                        yield self._project.site(path, called)

    def _visit(self, function: str, statement: Statement) -> None:
        read = statement.value if isinstance(statement, Assign) else None
        values = tuple(expressions(statement)) if read is None else (read,)
        if not any(
            id(each) in self._creations or self._is_module(function, each)
            for value in values
            for each in subexpressions(value)
        ):
            return
        match statement:
            case Assign(targets=targets, value=value) if value is not None:
                is_result = self._is_result(function, value)
                for target in targets:
                    if not is_result:
                        self._add_holder(function, target)
                    elif isinstance(target, Ref) and not target.path:
                        self._containers.add(self._location(function, target))
            case Loop(target=target) if target is not None:
                self._add_holder(function, target)
            case ExpressionStatement(value=Call(func=func) as call) if not self._is_module(function, func):
                self._track_argument(function, call)
            case SimpleStatement(kind="return"):
                self._track_return(function)

    def _track_return(self, function: str) -> None:
        """The function returns the module: its calls now give the module."""
        entries = self._run.call_edges.get(function, ())
        self.escapes = self.escapes or not entries or any(each.caller in self._functions for each in entries)
        for each in entries:
            self._creations.add(id(each.event.value))
            self.follow(each.caller)

    def _track_argument(self, function: str, call: Call) -> None:
        """The module is an argument: of a list's ``append``, or of a function of the project."""
        match call.func:
            case Ref(path=("append" | "extend" | "add_module",)) as func:
                self._add_holder(function, func._replace(path=()))
                return
        path = path_of(function)
        targets = [name for name in self._project.names(path, call.func) if self._project.resolver.functions(name)]
        self.escapes = self.escapes or not targets
        self._bind_parameters(function, call, targets)

    def _bind_parameters(self, function: str, call: Call, targets: list[str]) -> None:
        """The module is an argument of functions of the project."""
        for target in targets:
            for definition in self._project.resolver.functions(target):
                for word, value in bound_arguments(definition, call):
                    if any(self._is_module(function, each) for each in subexpressions(value)):
                        self._holders.add(f"{target}.<locals>.{word}")
            self.follow(target)

    def _is_result(self, function: str, value: Expression) -> bool:
        """``out = model(x)`` holds no module; ``layers = model.children()`` does."""
        if not isinstance(value, Call) or id(value) in self._creations:
            return False
        if self._is_module(function, value.func):
            return isinstance(value.func, Ref) and not set(value.func.path[-1:]) & {"children", "modules", "to", "cuda"}
        names = self._project.names(path_of(function), value.func)
        self.escapes = self.escapes or self._is_trainer(names)
        if any(self._project.resolver.functions(name) for name in names):
            self._track_argument(function, value)
            return True
        if constructors := self._constructors(names):
            self._bind_parameters(function, value, constructors)
        return bool(constructors)

    def _constructors(self, names: tuple[str, ...]) -> list[str]:
        """The constructors of the project's classes: the object that they make contains the module."""
        resolver = self._project.resolver
        inits = [each for name in names if resolver.classes(name) for each in resolver.methods(name, "__init__")]
        return inits if all(map(resolver.functions, inits)) else []

    def _is_trainer(self, names: tuple[str, ...]) -> bool:
        """Whether a call makes a trainer of a library, or a subclass of one, which runs the module itself."""
        ancestry = self._project.resolver.ancestry
        outside = {each for name in names for each in ancestry(name) if ":" not in each}
        return trains_or_measures(f"{each}().{word}" for each in outside for word in ("fit", "train"))

    def _freezes(self, function: str, statement: Statement) -> bool:
        """``for p in net.parameters(): p.requires_grad = False``, and ``net.requires_grad_(False)``."""
        match statement:
            case Loop(source=Call(func=Ref(path=(*_, "parameters" | "named_parameters")) as func), body=body):
                return self._is_covered(function, func) and any(
                    isinstance(target, Ref) and target.path[-1:] == ("requires_grad",) and _is_false(each.value)
                    for each in body
                    if isinstance(each, Assign)
                    for target in each.targets
                )
            case ExpressionStatement(value=Call(func=Ref(path=(*_, "requires_grad_")) as func, args=(arg,))):
                return self._is_covered(function, func) and _is_false(arg.value)
        return False

    def _add_holder(self, function: str, target: Expression) -> None:
        if not isinstance(target, Ref) or len(target.path) > int(_is_self(target)):
            # ``net.head = ...`` sets a part of the module.
            self.escapes = self.escapes or not self._is_module(function, target)
            return
        self._holders.add(self._location(function, target))

    def _is_module(self, function: str, expression: Expression) -> bool:
        return (
            isinstance(expression, Ref)
            and bool(expression.roots)
            and self._location(function, expression) in self._holders
            and not any(_SIZES.fullmatch(word) for word in expression.path[_is_self(expression) :])
        )

    def _is_covered(self, function: str, func: Ref) -> bool:
        """Whether a method is called on the module, or on an object that contains it."""
        whole = len(func.path) == 1 and bool(func.roots) and self._location(function, func) in self._containers
        return whole or self._is_module(function, func)

    def _location(self, function: str, reference: Ref) -> str:
        """The variable or attribute of the function's class that a reference is read from."""
        if _is_self(reference) and reference.path:
            return f"{self._project.resolver.owner(function)}.{reference.path[0]}"
        return f"{path_of(function)}{reference.roots[0]}"


def _is_self(reference: Ref) -> bool:
    return any(root.endswith(".<locals>.self") for root in reference.roots)


def _is_false(value: Expression | None) -> bool:
    return isinstance(value, Constant) and value.value is False
