"""Forward tracking of a module object from its construction, through variables, attributes, arguments and returns: where it runs, and
which statements freeze its parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint import limits
from torchrepro_lint.catalogue.libraries import FLUENT_METHODS, METHODS_WITHOUT_FORWARD
from torchrepro_lint.domain.gradients.modes import gradient_settings
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.program_index import CallSite, ProgramIndex
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Expression,
    ExpressionStatement,
    Loop,
    Operation,
    Record,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    With,
)
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    in_project,
    instance_value,
    is_local,
    is_self,
    last_word,
    local_symbol,
    path_of,
    split_name,
)
from torchrepro_lint.syntax.visitor import (
    expressions,
    iterations,
    statements,
    subexpressions,
    without_subscripts,
)
from torchrepro_lint.trace.builder import Trace
from torchrepro_lint.trace.library_models import trains_or_measures

# The parts of a network that are trained alone: they are linear, and what comes before them gets no gradient then.
_HEADS = lazy_pattern(r"(fc|heads?|classifier|linear|last_linear|logits|cls)(\..*)?")
_SIZES = lazy_pattern(r"(?=\w*\Z)\w*(dim|size|shape|weight|bias|features|channels|config|num_)\w*")
KEEPING = frozenset({"append", "extend", "insert", "add_module", "register_module"})
# Methods of modules and containers that run no module.
_NOT_RUNNING = METHODS_WITHOUT_FORWARD | KEEPING | {"keys", "values", "items", "get", "pop", "index", "copy"}
# Operators that give one of their operands, or a longer list.
_CHOICES = frozenset({"if", "and", "or", ":=", "*", "+"})
# Functions that hand on the modules of a container, or only count them.
_ITERATING = frozenset(
    f"builtins.{word}" for word in ("enumerate", "zip", "reversed", "list", "tuple", "iter", "len", "range", "sorted")
)


class ModuleTracker:
    """Forward tracking of a module object through variables (``a.py:f.<locals>.net``) and attributes
    (``a.py:Net.encoder``).

    ``escapes``: it reaches code that is not followed. ``is_frozen``: all its parameters are, at some time; ``is_trained``: something gives
    them a gradient. An object that a call made with the module is not the module, but may contain it.
    """

    def __init__(self, project: ProgramIndex, run: Trace, path: str, made: Iterable[Expression]) -> None:
        self.is_frozen = False
        self.escapes = False
        self.is_trained = False
        self._certain = True
        self._project = project
        self._run = run
        self._creations = {(path, each) for each in made}
        self._holders: set[str] = set()
        self._containers: set[str] = set()
        self._functions: list[str] = []

    def follow(self, function: str, *, certain: bool = True) -> None:
        """Track the module through a function, and through those that it is passed to."""
        if function in self._functions:
            return
        self._functions.append(function)
        if len(self._functions) > limits.MAX_FROZEN_FUNCTIONS:
            self.escapes = True
            return
        path, _, own = split_name(function)
        resolver = self._project.resolver
        for body in [each.body for each in resolver.functions(function)] if own else [self._project.files[path].body]:
            for top in body:
                for statement in statements((top,)):
                    self._certain = certain and (statement == top or isinstance(top, With))
                    self._visit(function, statement)
                    self._set_gradients(function, statement)
                    self._follow_freezing(function, statement)

    def words(self) -> frozenset[str]:
        """The words by which the module is kept."""
        return frozenset(map(last_word, self._holders))

    def owners(self) -> frozenset[str]:
        """The classes whose objects keep the module."""
        return frozenset(each.rpartition(".")[0] for each in self._holders if not is_local(each))

    def run_sites(self) -> Iterator[CallSite]:
        """The calls that run the module."""
        owners = {self._project.resolver.owner(each) for each in self._functions} - {""}
        for owner in sorted(owners):
            self._add_loop_variables(owner)
            self._follow_arguments(owner)
        nested = tuple(local_symbol(each, "") for each in self._functions)
        for path in sorted({path_of(each) for each in self._functions}):
            for site in self._project.calls(path):
                tracked = site.function in self._functions
                inside = tracked or site.function.startswith(nested)
                if not inside and self._project.resolver.owner(site.function) not in owners:
                    continue
                given = not tracked and any(self._is_module(site.function, arg.value) for arg in site.call.args)
                if given and not (self._project.resolver.owner(site.function) in owners and self._called(site)):
                    self.escapes = self.escapes or not _ITERATING.issuperset(site.names) or not site.names
                func = without_subscripts(site.call.func)
                is_run = isinstance(func, Ref) and _NOT_RUNNING.isdisjoint(func.path[-1:])
                if is_run and self._is_module(site.function, func):
                    yield site

    def run_sites_elsewhere(self) -> Iterator[CallSite]:
        """The calls in other classes and functions of the trace that may run an attribute: ``model.encoder(x)``."""
        resolver = self._project.resolver
        owners = {resolver.owner(each) for each in self._functions} - {""}
        words = frozenset(last_word(each) for each in self._holders if not is_local(each))
        for path in sorted(self._run.paths & resolver.call_graph.paths(words)):
            for called in self._project.calls_on(path, words):
                if called.function in self._run.functions and resolver.owner(called.function) not in owners:
                    of = [class_of(each) for each in resolver.receiver(path, called.call.func)]
                    if not of or not owners.isdisjoint(of):
                        yield self._project.site(path, called)

    def _follow_arguments(self, owner: str) -> None:
        """Follow the module into functions of the project that other methods of a class pass it to: ``self.features(image, self.vgg)``."""
        for site in self._project.calls(path_of(owner)):
            own = site.function not in self._functions and self._project.resolver.owner(site.function) == owner
            if own and any(self._is_module(site.function, arg.value) for arg in site.call.args):
                self._bind_parameters(site.function, site.call, self._called(site))

    def _called(self, site: CallSite) -> list[str]:
        """The functions of the project that a call runs."""
        return [name for name in site.names if self._project.resolver.functions(name)]

    def _add_loop_variables(self, owner: str) -> None:
        """The variables of loops over modules that a class stores: ``for block in self.blocks``."""
        for each in _iterations_of(self._project, owner):
            if any(self._is_module(each.function, part) for part in each.attributes):
                self._add_variables(each.function, each.target)

    def _add_variables(self, function: str, target: Expression) -> None:
        for each in subexpressions(target):
            if isinstance(each, Ref) and not each.path:
                self._holders.add(self._location(function, each))

    def _visit(self, function: str, statement: Statement) -> None:
        read = statement.value if isinstance(statement, Assign) else None
        values = tuple(expressions(statement)) if read is None else (read,)
        if not any(self._gives_module(function, each) for value in values for each in subexpressions(value)):
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
                self._add_variables(function, target)
            case ExpressionStatement(value=Call(func=func) as call) if not self._is_module(function, func):
                self._track_argument(function, call)
            case SimpleStatement(kind="return"):
                self._track_return(function)

    def _track_return(self, function: str) -> None:
        """The function returns the module: its calls now give the module."""
        entries = self._run.call_edges.get(function, ())
        self.escapes = self.escapes or not entries or any(each.caller in self._functions for each in entries)
        for each in entries:
            if each.event.value is not None:
                self._creations.add((path_of(each.caller), each.event.value))
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
        path = path_of(function)
        for target in targets:
            for definition in self._project.resolver.functions(target):
                for arg, param in self._project.resolver.call_graph.receiving(path, call, definition):
                    if any(self._gives_module(function, each) for each in subexpressions(arg.value)):
                        self._holders.add(local_symbol(target, param.name))
            self.follow(target, certain=self._certain)

    def _is_result(self, function: str, value: Expression) -> bool:
        """``out = model(x)`` holds no module; ``layers = model.children()`` does."""
        if isinstance(value, Operation):
            return value.op not in _CHOICES or any(self._is_run(function, each) for each in value.operands)
        while (path_of(function), value) not in self._creations:
            match value:
                case Attribute(value=inner) | Subscript(value=inner):  # ``model(x).last_hidden_state``
                    value = inner
                case Call(func=Attribute(value=inner, name=word)) if word in FLUENT_METHODS:  # ``Net(encoder).cuda()``
                    value = inner
                case _:
                    break
        if not isinstance(value, Call) or (path_of(function), value) in self._creations:
            return False
        called = without_subscripts(value.func)
        if self._is_module(function, called):
            return isinstance(called, Ref) and not set(called.path[-1:]) & {"children", "modules", "to", "cuda"}
        names = self._project.names(path_of(function), value.func)
        self.escapes = self.escapes or self._is_trainer(names)
        if any(self._project.resolver.functions(name) for name in names):
            self._track_argument(function, value)
            return True
        if constructors := self._constructors(names):
            self._bind_parameters(function, value, constructors)
        return bool(constructors)

    def _is_run(self, function: str, value: Expression) -> bool:
        return isinstance(value, Call) and self._is_module(function, without_subscripts(value.func))

    def _constructors(self, names: tuple[str, ...]) -> list[str]:
        """The constructors of the project's classes: the object that they make contains the module."""
        resolver = self._project.resolver
        inits = [each for name in names if resolver.classes(name) for each in resolver.methods(name, "__init__")]
        return inits if all(map(resolver.functions, inits)) else []

    def _is_trainer(self, names: tuple[str, ...]) -> bool:
        """Whether a call makes a trainer of a library, or a subclass of one, which runs the module itself."""
        ancestry = self._project.resolver.ancestry
        outside = {each for name in names for each in ancestry(name) if not in_project(each)}
        return trains_or_measures(f"{instance_value(each)}.{word}" for each in outside for word in ("fit", "train"))

    def _set_gradients(self, function: str, statement: Statement) -> None:
        """Note what a statement freezes; what it may give a gradient again is not frozen."""
        for each in gradient_settings(statement):
            own = int(_is_self(each.func)) and len(each.func.path) > 1
            parts = tuple(word for word in each.func.path[own:-1] if word != "module")
            whole = each.func._replace(path=(*each.func.path[:own], each.func.path[-1]))
            if not self._is_covered(function, whole):
                continue
            if not each.freezes:
                self.is_trained = self.is_trained or not parts or not all(map(_HEADS.fullmatch, parts))
            elif not parts:
                self.is_frozen = self.is_frozen or self._certain

    def _follow_freezing(self, function: str, statement: Statement) -> None:
        """A method of the class that keeps the module: ``self.freeze_encoder()``."""
        match statement:
            case ExpressionStatement(value=Call(func=Ref(path=(word,)) as func)) if _is_self(func) and "freeze" in word:
                for name in self._project.names(path_of(function), func):
                    if self._holders and self._project.resolver.functions(name):
                        self.follow(name, certain=self._certain)

    def _add_holder(self, function: str, target: Expression) -> None:
        if not isinstance(target, Ref) or len(target.path) > int(_is_self(target)):
            # ``net.head = ...`` sets a part of the module.
            self.escapes = self.escapes or not self._is_module(function, target)
            return
        self._holders.add(self._location(function, target))

    def _gives_module(self, function: str, part: Expression) -> bool:
        return (path_of(function), part) in self._creations or self._is_module(function, part)

    def _is_module(self, function: str, expression: Expression) -> bool:
        return (
            isinstance(expression, Ref)
            and bool(expression.roots)
            and self._location(function, expression) in self._holders
            and not any(_SIZES.fullmatch(word) for word in expression.path[_is_self(expression) :])
        )

    def _is_covered(self, function: str, func: Ref) -> bool:
        """Whether a method is called on the module, or on an object that contains it."""
        own = int(_is_self(func))
        if own and len(func.path) == 1:  # ``self.requires_grad_(False)``
            return any(each.startswith(f"{self._project.resolver.owner(function)}.") for each in self._holders)
        whole = len(func.path) == 1 and bool(func.roots) and self._location(function, func) in self._containers
        return whole or self._is_module(function, func)

    def _location(self, function: str, reference: Ref) -> str:
        """The variable or attribute of the function's class that a reference is read from."""
        if _is_self(reference) and reference.path:
            return f"{self._project.resolver.owner(function)}.{reference.path[0]}"
        return f"{path_of(function)}{reference.roots[0]}"


def _is_self(reference: Ref) -> bool:
    return any(map(is_self, reference.roots))


class _Iteration(Record, frozen=True):
    """A loop in a method: its target, and the attributes of ``self`` that its source mentions."""

    function: str
    target: Expression
    attributes: tuple[Ref, ...]


@query()
def _iterations_of(project: ProgramIndex, owner: str) -> tuple[_Iteration, ...]:
    """The loops over attributes in the methods of a class."""
    path = path_of(owner)
    return tuple(
        _Iteration(path + method.name, target, parts)
        for method in project.files[path].functions
        if method.owner and f"{path}{method.owner}" == owner
        for statement in statements(method.body)
        for target, source in iterations(statement)
        if (parts := tuple(each for each in subexpressions(source) if isinstance(each, Ref) and _is_self(each)))
    )
