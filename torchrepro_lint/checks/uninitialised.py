"""TRL111: a parameter or buffer of ``torch.empty`` that nothing fills."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Assign, Attribute, Call, Class, Constant, Expression, Ref, Subscript, span
from torchrepro_lint.rule import Finding
from torchrepro_lint.walk import expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.facts import Function, Statement
    from torchrepro_lint.rule import Context

_EMPTY = frozenset({"torch.empty", "torch.Tensor", "torch.FloatTensor", "torch.empty_like", "torch.empty_strided"})
_PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
# Calls that may fill any parameter of the module.
_WHOLE = frozenset({"parameters", "named_parameters", "apply", "load_state_dict", "modules", "named_modules", "buffers"})


def check(context: Context) -> Iterator[Finding]:
    """Per class: what a method leaves empty, unless some method of the class or its bases may fill it."""
    functions = {function.name: function for function in context.facts.functions}
    for owner in context.facts.classes:
        methods = [functions[name] for _, name in owner.methods if name in functions]
        for word, value, what in _left_empty(context, methods):
            if not _may_fill(context, owner, word, value):
                message = f"{what} is not initialised by anything reached; call nn.init or use torch.zeros"
                yield Finding("TRL111", span(value), message)


def _left_empty(context: Context, methods: list[Function]) -> Iterator[tuple[str, Expression, str]]:
    for method in methods:
        for statement in statements(method.body):
            for value in _values(statement):
                match value:
                    case Call(func=func, args=(first, *_)) if _names(context, func) & _PARAMETERS:
                        if isinstance(statement, Assign) and _is_empty(context, first.value):
                            for target in statement.targets:
                                if isinstance(target, Ref) and len(target.path) == 1:
                                    yield target.path[0], value, "nn.Parameter(torch.empty(...))"
                    case Call(func=Ref(path=("register_buffer" | "register_parameter" as kind,)), args=(name, tensor, *_)):
                        inner = tensor.value
                        if kind == "register_parameter" and isinstance(inner, Call) and inner.args:
                            inner = inner.args[0].value
                        if isinstance(name.value, Constant) and _is_empty(context, inner):
                            yield str(name.value.value), value, f"{kind}(torch.empty(...))"


def _values(statement: Statement) -> Iterator[Expression]:
    for expression in expressions(statement):
        yield from within(expression)


def _names(context: Context, func: Expression) -> set[str]:
    return set(context.project.names(context.path, func))


def _is_empty(context: Context, value: Expression) -> bool:
    return isinstance(value, Call) and bool(_names(context, value.func) & _EMPTY) and bool(value.args)


def _may_fill(context: Context, owner: Class, word: str, made: Expression) -> bool:
    """Whether any code of the class, or of classes that it has to do with, may write to ``self.word``."""
    resolver = context.project.resolver
    family = (context.path + owner.name, *resolver.ancestry(context.path + owner.name))
    for name in family:
        if ":" not in name:
            if not name.startswith(("torch.nn.Module", "torch.nn.modules.module")):
                return True
            continue
        path = name.partition(":")[0]
        for definition in resolver.classes(name):
            for _, method in definition.methods:
                for function in resolver.functions(path + method):
                    if any(_fills(statement, word, made) for statement in statements(function.body)):
                        return True
    return any(_mentions_from_outside(body, word) for body in _outside(context, owner))


def _fills(statement: Statement, word: str, made: Expression) -> bool:
    if isinstance(statement, Assign) and any(_writes(target, word) for target in statement.targets):
        return statement.value is not made
    for each in _values(statement):
        if each is not made and isinstance(each, Call) and _touches(each, word):
            return True
    return False


def _writes(target: Expression, word: str) -> bool:
    match target:
        case Ref(path=(first, *_)) if first == word:
            return True
        case Subscript(value=value) | Attribute(value=value):
            return _writes(value, word)
    return False


def _touches(call: Call, word: str) -> bool:
    """A method of the tensor, a function that gets it, or one that goes over all parameters."""
    match call.func:
        case Ref(path=(*before, last)):
            if last in _WHOLE or "init" in last or (word in before and last.endswith("_")) or before[-1:] == ["data"]:
                return True
    return any(isinstance(arg.value, Ref) and word in arg.value.path and _is_filler(call.func) for arg in call.args)


def _is_filler(func: Expression) -> bool:
    match func:
        case Ref(roots=roots, path=path):
            last = (path or (roots[0].rpartition(".")[2].lstrip(":?"),))[-1]
            return last.endswith("_") or "init" in last.lower() or "fill" in last.lower()
        case Attribute(name=last):
            return last.endswith("_")
    return True


def _outside(context: Context, owner: Class) -> Iterator[tuple[Statement, ...]]:
    for function in context.facts.functions:
        if function.owner != owner.name:
            yield function.body
    yield context.facts.body


def _mentions_from_outside(body: tuple[Statement, ...], word: str) -> bool:
    """``nn.init.normal_(module.weight)`` in a function of the same file."""
    return any(
        isinstance(each, Call) and _touches(each, word) and any(word in _path(arg.value) for arg in each.args)
        for statement in statements(body)
        for each in _values(statement)
    )


def _path(expression: Expression) -> tuple[str, ...]:
    return expression.path if isinstance(expression, Ref) else ()
