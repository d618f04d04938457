"""Reaching definitions: which values a variable or an attribute may have at a place, and which in-place updates it has
seen.

Attributes of objects of the project are field-sensitive and flow-insensitive. Lists and tuples are read through to
their items, those that are appended later included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.environment import (
    UNKNOWN_ARGUMENTS,
    BoundArguments,
    Closure,
    Environment,
    ReachingDefinition,
)
from torchrepro_lint.query import limits
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Comprehension,
    Expression,
    Function,
    Operation,
    Ref,
    Statement,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import (
    is_local,
    is_module,
    is_of_comprehension,
    is_top_level,
    local_symbol,
    path_of,
    project_classes,
    split_local,
    split_name,
)
from torchrepro_lint.syntax.use_def import preceding_statements
from torchrepro_lint.syntax.visitor import is_starred, takes_receiver

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources


def attribute_values(sources: ValueSources, owner: str, word: str, environment: Environment) -> Iterator[Closure]:
    """The values of an attribute of an object: assigned in methods, in the class body, or as a dataclass field.

    A property has the values that it returns.
    """
    resolver = sources.project.resolver
    for each in resolver.ancestry(owner):
        path, colon, _ = split_name(each)
        name = f"{each}.{word}"
        if not colon:
            continue
        for how, method, value in resolver.instance_attributes(each).get(word, ()):
            if how in ("=", "[]") and all(
                sources.is_feasible(path, function, value.start, environment) for function in resolver.functions(method)
            ):
                yield Closure(path, value, environment)
        if name in environment.arguments:
            yield from environment.arguments[name]
            return
        yield from (Closure(path, value, environment) for how, value in resolver.assigned(name) if how == "=")
        yield from (Closure(path, value, environment) for value in _property(sources, name))


def _property(sources: ValueSources, name: str) -> Iterator[Expression]:
    if sources.project.resolver.is_property(name):
        yield from sources.project.resolver.return_expressions(name)


def reaching_definitions(
    sources: ValueSources, closure: Closure, *, changes: bool = True
) -> Iterator[ReachingDefinition]:
    """The reaching definitions of a variable or attribute, in execution order as far as it is known."""
    ref = closure.value
    assert isinstance(ref, Ref)
    if len(ref.path) == 1:
        yield from _of_attribute(sources, closure, ref, changes=changes)
    elif not ref.path:
        for root in ref.roots:
            for name in sources.project.resolver.modules.resolve(closure.path, root):
                yield from _of_variable(sources, closure, name, changes=changes)


def _of_variable(sources: ValueSources, closure: Closure, name: str, *, changes: bool) -> Iterator[ReachingDefinition]:
    path, colon, rest = split_name(name)
    if not colon or not rest:
        return
    yield from _of_parameter(sources, closure, name)
    found = sources.assignments(path).get(f":{rest}", [])
    changed = sources.mutations(path).get((f":{rest}", ()), []) if changes else []
    home = _shared_body(sources.project.files[path], f":{rest}", closure.value.start) if path == closure.path else None
    if home is None:
        yield from (ReachingDefinition(path, False, Closure(path, each.value, closure.environment)) for each in found)
        yield from (ReachingDefinition(path, False, None, each.change) for each in changed)
        return
    steps: dict[Statement, list[ReachingDefinition]] = {}
    for each in found:
        steps.setdefault(each.statement, []).append(
            ReachingDefinition(path, False, Closure(path, each.value, closure.environment))
        )
    for one in changed:
        steps.setdefault(one.statement, []).append(ReachingDefinition(path, False, None, one.change))
    for ran in preceding_statements(home.body, closure.value.start) if steps else ():
        here = steps.get(ran.statement)
        # Feasibility is the most expensive question, so it is asked last.
        if here and (
            not isinstance(home, Function) or sources.is_feasible(path, home, ran.statement.start, closure.environment)
        ):
            yield from (step._replace(certain=ran.dominates) for step in here)


def _of_parameter(sources: ValueSources, closure: Closure, name: str) -> Iterator[ReachingDefinition]:
    """The arguments of a parameter: from the environment, else from all calls of the project."""
    path = path_of(name)
    found = sources.project.resolver.parameter(name)
    if found is None:
        return
    param = found.param
    if name in closure.environment.star_arguments or param.kind.startswith("*"):
        yield ReachingDefinition(path, True, closure.environment.star_arguments.get(name, UNKNOWN_ARGUMENTS))
        return
    if name in closure.environment.arguments:
        values = list(closure.environment.arguments[name])
    else:
        values = [Closure(file, value) for file, value in sources.project.resolver.passed(name)]
    yield from (ReachingDefinition(path, index == 0, value) for index, value in enumerate(values))


def _of_attribute(sources: ValueSources, closure: Closure, ref: Ref, *, changes: bool) -> Iterator[ReachingDefinition]:
    """The definitions of an attribute of an object of the project, or of a variable of a module."""
    for owner, environment in receivers(sources, closure, ref):
        for value in attribute_values(sources, owner, ref.path[0], environment):
            yield ReachingDefinition(value.path, False, value)
        for each in sources.project.resolver.ancestry(owner) if changes else ():
            path = path_of(each)
            for root in _receiver_names(sources, path, each):
                for one in sources.mutations(path).get((root, ref.path), ()):
                    yield ReachingDefinition(path, False, None, one.change)
    for name in _of_module(sources, closure, ref):
        yield from _of_variable(sources, closure, name, changes=changes)


def _of_module(sources: ValueSources, closure: Closure, ref: Ref) -> Iterator[str]:
    modules = sources.project.resolver.modules
    for root in ref.roots:
        for name in modules.resolve(closure.path, root):
            if is_module(name):
                yield from modules.attribute(path_of(name), ref.path[0]) or ()


def receivers(sources: ValueSources, closure: Closure, ref: Ref) -> Iterator[tuple[str, Environment]]:
    """The classes that the receiver of an attribute may have, each with the environment of the object."""
    resolver = sources.project.resolver
    found = sorted(set(project_classes(resolver.receiver(closure.path, ref))))
    known = closure.environment.receiver_class
    if known and any(name in resolver.ancestry(known) for name in found) and _is_self(sources, closure.path, ref):
        yield known, closure.environment
        return
    made = False
    for each in sources.of(closure._replace(value=ref._replace(path=ref.path[:-1]))):
        if isinstance(each.value, Call):
            for name in sources.project.names(each.path, each.value.func):
                if resolver.classes(name):
                    made = True
                    yield name, sources.construct(each, name).environment
    if not made:
        yield from ((name, Environment()) for name in found)


def _is_self(sources: ValueSources, path: str, ref: Ref) -> bool:
    """Whether a reference starts at the first parameter of a method."""
    parameters = (sources.project.resolver.parameter(path + root) for root in ref.roots)
    return any(found is not None and found.position == 0 and takes_receiver(found.function) for found in parameters)


def _receiver_names(sources: ValueSources, path: str, owner: str) -> Iterator[str]:
    """The first parameters of a class's methods."""
    for definition in sources.project.resolver.classes(owner):
        for _, method in definition.methods:
            for function in sources.project.resolver.functions(path + method):
                if function.params:
                    yield local_symbol(method, function.params[0].name)


def _shared_body(facts: SyntaxTree, name: str, offset: int) -> Function | SyntaxTree | None:
    """The function or file whose body both binds a variable and contains a place, so that their order is known; None if the
    place is in a nested function.
    """
    around = [each for each in facts.functions if each.start <= offset < each.end]
    inner = min(around, key=lambda each: each.end - each.start, default=None)
    if is_of_comprehension(name) or not is_local(name):
        return facts if inner is None and is_top_level(name) else None
    function, word = split_local(name)
    return inner if inner is not None and inner.name == function and is_top_level(word) else None


_LISTS = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted", "builtins.reversed", "torch.nn.ModuleList"})


def list_items(sources: ValueSources, closure: Closure, depth: int = 0) -> BoundArguments:
    """The items of a list or tuple, appended ones included, as excess arguments."""
    if depth > limits.MAX_LIST_DEPTH:
        return UNKNOWN_ARGUMENTS
    match closure.value:
        case Ref():
            return _of_reference(sources, closure, depth)
        case Collection(kind="list" | "tuple" | "set" | "added", items=items):
            return _of_display(sources, closure, items, depth)
        case Comprehension(kind="list" | "generator" | "set", elements=(element,)):
            return _one_item(closure._replace(value=element))
        case Operation(op="+" | "or", operands=operands) | Operation(op="if", operands=(_, *operands)):
            return _concatenated(list_items(sources, closure._replace(value=each), depth + 1) for each in operands)
        case Call(func=func, args=(arg,)) if _LISTS.intersection(sources.project.names(closure.path, func)):
            return list_items(sources, closure._replace(value=arg.value), depth + 1)
    found = [each for each in sources.of(closure) if each.value is not closure.value]
    return _concatenated(list_items(sources, each, depth + 1) for each in found) if found else UNKNOWN_ARGUMENTS


def is_list(sources: ValueSources, closure: Closure) -> bool:
    """Whether a value is a list, so that what is appended to it becomes one of its items."""
    match closure.value:
        case Collection(kind="list") | Comprehension(kind="list"):
            return True
        case Operation(op="+", operands=operands):
            return any(is_list(sources, closure._replace(value=each)) for each in operands)
        case Call(func=Ref(roots=("builtins.list",), path=())):
            return True
        case Call() | Ref():
            behind = (each.value for each in sources.of(closure))
            return any(isinstance(each, Collection) and each.kind == "list" for each in behind)
    return False


def appended_items(step: ReachingDefinition, closure: Closure) -> Iterator[Closure]:
    """The item that an update appends to a list, as a display of its own."""
    change = step.change
    if change is not None and change.kind in ("add", "join") and change.value is not None:
        value = change.value
        item = value if change.kind == "add" else Operation(value.start, value.end, "*", (value,))
        yield Closure(step.path, Collection(value.start, value.end, "added", (item,)), closure.environment)


def _of_reference(sources: ValueSources, closure: Closure, depth: int) -> BoundArguments:
    parts: list[BoundArguments] = []
    known = False
    for step in reaching_definitions(sources, closure):
        if step.value is not None:
            known = True
            way = step.value if isinstance(step.value, BoundArguments) else list_items(sources, step.value, depth + 1)
            parts = [way] if step.certain else [*parts, way]
        elif step.change is not None and step.change.kind in ("add", "join") and step.change.value is not None:
            item = Closure(step.path, step.change.value, closure.environment)
            parts.append(_one_item(item) if step.change.kind == "add" else list_items(sources, item, depth + 1))
    return _concatenated(parts) if known else UNKNOWN_ARGUMENTS


def _one_item(item: Closure) -> BoundArguments:
    return BoundArguments({}, (item,))


def _of_display(
    sources: ValueSources, closure: Closure, items: tuple[Expression | None, ...], depth: int
) -> BoundArguments:
    parts = []
    for item in items:
        if isinstance(item, Operation) and is_starred(item):
            parts.append(list_items(sources, closure._replace(value=item.operands[0]), depth + 1))
        elif item is not None:
            parts.append(BoundArguments({}, (closure._replace(value=item),)))
    return _concatenated(parts)


def _concatenated(parts: Iterable[BoundArguments]) -> BoundArguments:
    found = list(parts)
    return BoundArguments(
        {}, tuple(item for each in found for item in each.excess), all(each.complete for each in found)
    )
