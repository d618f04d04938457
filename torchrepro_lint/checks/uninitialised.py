"""TRL111: uninitialised memory that is read as data, or that nothing fills as a parameter or buffer."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.checks.initialisation import initialises_from_outside
from torchrepro_lint.checks.rule import Finding
from torchrepro_lint.checks.uninitialised_data import fills_memory, may_load_weights, reads_of_empty
from torchrepro_lint.checks.uninitialised_tensors import EMPTY_WORDS, returns_empty
from torchrepro_lint.dataflow.constants import display_name
from torchrepro_lint.source.text import Span
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Class,
    Constant,
    Expression,
    Function,
    Ref,
    Statement,
    Subscript,
    span,
)
from torchrepro_lint.syntax.qualified_names import in_project, is_self, is_super, path_of
from torchrepro_lint.syntax.summary import is_test
from torchrepro_lint.syntax.visitor import expressions_within, statements, without_subscripts
from torchrepro_lint.trace.traces import Context

_PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
# Methods of a module by which any of its parameters may be filled.
_MODULE_METHODS = frozenset(
    {"parameters", "named_parameters", "apply", "load_state_dict", "modules", "named_modules", "buffers"}
)


def check(context: Context) -> Iterator[Finding]:
    """The calls whose result is read before it is filled, and the parameters and buffers that are left empty."""
    return (finding for finding, _ in _unfilled(context))


def unfilled_memory_of_torch(context: Context) -> tuple[Finding, ...]:
    """Those of memory that torch gets, and not NumPy. The programs that come to a file ask one after the other."""
    project = context.project
    return project.remembered(
        "unfilled memory", context.path, lambda: tuple(each for each, of_torch in _unfilled(context) if of_torch)
    )


def _unfilled(context: Context) -> Iterator[tuple[Finding, bool]]:
    """The findings, each with whether torch gets the memory."""
    if EMPTY_WORDS.isdisjoint(context.tree.summary.calls) or is_test(context.path, context.tree.summary):
        return
    if context.path in context.project.torch_modules:
        reported: set[Span] = set()
        for site, message in reads_of_empty(context):
            of_torch = _is_of_torch(site.names)
            if not (of_torch and fills_memory(context, site.function)):
                reported.add(span(site.call))
                yield Finding("TRL111", span(site.call), message), of_torch
        for finding in _left_empty(context):
            if not any(finding.span.start <= each.start < finding.span.end for each in reported):
                yield finding, True


def _is_of_torch(names: tuple[str, ...]) -> bool:
    return not any(name.startswith("numpy.") for name in names)


def _left_empty(context: Context) -> Iterator[Finding]:
    """For each class, what a method leaves empty, unless a method of the class or its bases may fill it."""
    sites = context.project.calls_by(context.path, EMPTY_WORDS)
    made = [site for site in sites if returns_empty(context.project, context.path, site)]
    making, empty = {site.function for site in made}, {site.call for site in made}
    functions = {each.name: each for each in context.tree.functions if f"{context.path}{each.name}" in making}
    for owner in context.tree.classes:
        methods = [functions[name] for _, name in owner.methods if name in functions]
        for word, value, what in _empty_tensors(context, methods, empty):
            if not (
                _may_fill(context, owner, word, value)
                or fills_memory(context, f"{context.path}{owner.name}.__init__")
                or may_load_weights(context, f"{context.path}{owner.name}")
            ):
                message = f"nothing initialises {what}, so it holds arbitrary memory; call nn.init or use torch.zeros"
                yield Finding("TRL111", span(value), message)


def _empty_tensors(
    context: Context, methods: list[Function], empty: set[Call]
) -> Iterator[tuple[str, Expression, str]]:
    """The attributes that become parameters or buffers of uninitialised memory (``empty``: the calls)."""
    for method in methods:
        for statement in statements(method.body):
            for value in expressions_within(statement):
                match value:
                    case Call(func=func, args=(first, *_)) if _names(context, func) & _PARAMETERS:
                        if isinstance(statement, Assign) and first.value in empty:
                            for target in statement.targets:
                                if isinstance(target, Ref) and len(target.path) == 1:
                                    yield target.path[0], value, f"nn.Parameter({_called(context, first.value)}(...))"
                    case Call(
                        func=Ref(path=("register_buffer" | "register_parameter" as kind,)), args=(name, tensor, *_)
                    ):
                        inner = tensor.value
                        if kind == "register_parameter" and isinstance(inner, Call) and inner.args:
                            inner = inner.args[0].value
                        if isinstance(name.value, Constant) and inner in empty:
                            yield str(name.value.value), value, f"{kind}({_called(context, inner)}(...))"


def _called(context: Context, made: Expression) -> str:
    """The function that returned memory, as it is usually written: ``torch.empty``."""
    names = _names(context, made.func) if isinstance(made, Call) else ()
    return min(map(display_name, names), default="torch.empty")


def _names(context: Context, func: Expression) -> set[str]:
    return set(context.project.names(context.path, func))


def _may_fill(context: Context, owner: Class, word: str, made: Expression) -> bool:
    """Whether code of the class, its bases or its subclasses may write to ``self.word``."""
    resolver = context.project.resolver
    own = context.path + owner.name
    heirs = sorted(resolver.subclasses(own))
    for name in dict.fromkeys((own, *resolver.ancestry(own), *heirs)):
        if not in_project(name):
            if not name.startswith(("torch.nn.Module", "torch.nn.modules.module")):
                return True
            continue
        path = path_of(name)
        for definition in resolver.classes(name):
            for short, method in definition.methods:
                for function in resolver.functions(path + method):
                    fills = any(_fills(statement, word, made) for statement in statements(function.body))
                    if fills and (short == "__init__" or context.project.is_called(short)):
                        return True
    return initialises_from_outside(context.project, word)


def _fills(statement: Statement, word: str, made: Expression) -> bool:
    if isinstance(statement, Assign) and any(_writes(target, word) for target in statement.targets):
        return statement.value != made
    return any(
        each != made and isinstance(each, Call) and _may_write(each, word) for each in expressions_within(statement)
    )


def _writes(target: Expression, word: str) -> bool:
    match target:
        case Ref(roots=roots, path=(first, *_)) if first == word:
            return _is_self(roots)
        case Subscript(value=value) | Attribute(value=value):
            return _writes(value, word)
    return False


def _may_write(call: Call, word: str) -> bool:
    """A method of the tensor, a function that gets it or the module, or a traversal of all parameters."""
    match call.func:
        case Ref(roots=roots, path=(*before, last)):
            if _is_self(roots) and (last in _MODULE_METHODS or ("init" in last and last != "__init__")):
                return last in _MODULE_METHODS
            if _is_self(roots) and before[:1] == [word] and (last.endswith("_") or "data" in before):
                return True
    return any(
        _may_write_argument(call.func, arg.value, word) or (arg.keyword == "out" and _writes(arg.value, word))
        for arg in call.args
    )


def _may_write_argument(func: Expression, value: Expression, word: str) -> bool:
    """Whether the parameter, a part of it, or the module is passed to what may write to it: not torch's functions without an
    underscore.
    """
    value = without_subscripts(value)
    if not isinstance(value, Ref) or not _is_self(value.roots) or value.path[:1] not in ((), (word,)):
        return False
    match func:
        case Ref(roots=("torch",), path=(*_, last)):
            return last.endswith("_")
        case Ref(roots=roots) if not value.path and any(map(is_super, roots)):
            return False
        case Attribute(name=last):
            return bool(value.path) and last.endswith("_")
    return True


def _is_self(roots: tuple[str, ...]) -> bool:
    return any(map(is_self, roots))
