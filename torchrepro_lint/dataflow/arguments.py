"""Argument binding: call and signature give the environment in which the callee's body is read.

Arguments are bound through ``*``, ``**`` and ``functools.partial``, through dictionaries that are filled before
they are passed, and through the constructors of a class and its bases. The items of a list are what it passes by a star.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.dataflow.environment import (
    UNKNOWN_ARGUMENTS,
    BoundArguments,
    Closure,
    ConstructedObject,
    Environment,
    ReachingDefinition,
    join_arguments,
    override,
)
from torchrepro_lint.dataflow.reaching_definitions import reaching_definitions
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.resolve.registries import argument_makers, dataclass_fields, made_arguments
from torchrepro_lint.syntax.binding import passes_self
from torchrepro_lint.syntax.definitions import ContainerUpdate
from torchrepro_lint.syntax.nodes import (
    Arg,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Function,
    Operation,
    Ref,
)
from torchrepro_lint.syntax.qualified_names import constructed_class, in_project, local_symbol, path_of, simple_name
from torchrepro_lint.syntax.visitor import is_starred

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources


_COPIES = frozenset({"copy.copy", "copy.deepcopy", "builtins.dict", "collections.OrderedDict"})


def dictionary_entries(sources: ValueSources, passed: Closure, depth: int = 0) -> BoundArguments:
    """The entries of a dictionary by key; not ``complete`` if it may hold more, or if the search reaches its limit."""
    if depth > limits.MAX_DICTIONARY_DEPTH or not sources.dictionaries.spend():
        return UNKNOWN_ARGUMENTS
    try:
        return _entries(sources, passed, depth)
    finally:
        sources.dictionaries.leave()


def _entries(sources: ValueSources, passed: Closure, depth: int) -> BoundArguments:
    match passed.value:
        case Ref():
            return _of_reference(sources, passed, depth)
        case Collection(kind="dict", items=items):
            return _of_display(sources, passed, items, depth)
        case Call(func=Ref(path=(*_, "copy")) as func, args=()):
            return dictionary_entries(sources, passed._replace(value=func._replace(path=func.path[:-1])), depth + 1)
        case Call(func=func, args=args):
            names = sources.project.names(passed.path, func)
            if _COPIES.intersection(names):
                return mapping_arguments(sources, passed, args, depth)
            if any(map(sources.project.resolver.is_dictionary, names)):  # whose attributes may be entries, too
                return mapping_arguments(sources, passed, args, depth)._replace(complete=False)
        case Operation(op="if", operands=(_, one, other)) | Operation(op="or", operands=(one, other)):
            ways = [dictionary_entries(sources, passed._replace(value=each), depth + 1) for each in (one, other)]
            return join_arguments(*ways)
        case Operation(op="|", operands=operands):
            return _override_all(
                dictionary_entries(sources, passed._replace(value=each), depth + 1) for each in operands
            )
    return _of_sources(sources, passed, depth)


def _of_sources(sources: ValueSources, passed: Closure, depth: int) -> BoundArguments:
    """The entries of what a call or a subscript stands for; unknown if it has no value source."""
    # An element of a result is followed one step: the variable that is returned may have been updated.
    behind = sources.step_back if isinstance(getattr(passed.value, "value", None), Call) else sources.of
    found = [each for each in behind(passed) if each.place != passed.place]
    ways = [dictionary_entries(sources, each, depth + 1) for each in found] or [UNKNOWN_ARGUMENTS]
    return _join_all(ways)


def _join_all(ways: Iterable[BoundArguments]) -> BoundArguments:
    found: BoundArguments | None = None
    for way in ways:
        found = way if found is None else join_arguments(found, way)
    return UNKNOWN_ARGUMENTS if found is None else found


def _override_all(parts: Iterable[BoundArguments]) -> BoundArguments:
    found = BoundArguments()
    for part in parts:
        found = override(found, part)
    return found


def _of_display(
    sources: ValueSources, passed: Closure, items: tuple[Expression | None, ...], depth: int
) -> BoundArguments:
    found = BoundArguments()
    for key, item in zip(items[::2], items[1::2], strict=True):
        assert item is not None
        if key is None:
            found = override(found, dictionary_entries(sources, passed._replace(value=item), depth + 1))
        elif isinstance(key, Constant) and isinstance(key.value, str):
            found = override(found, BoundArguments({key.value: (passed._replace(value=item),)}))
        else:
            found = override(found, UNKNOWN_ARGUMENTS)
    return found


def mapping_arguments(sources: ValueSources, passed: Closure, args: tuple[Arg, ...], depth: int) -> BoundArguments:
    """The entries that ``dict(...)`` and ``update(...)`` take from other dictionaries and from keywords."""
    found = BoundArguments()
    for arg in args:
        value = passed._replace(value=arg.value)
        if arg.keyword is not None:
            found = override(found, BoundArguments({arg.keyword: (value,)}))
        else:
            found = override(
                found, UNKNOWN_ARGUMENTS if arg.star == "*" else dictionary_entries(sources, value, depth + 1)
            )
    return found


def _of_reference(sources: ValueSources, passed: Closure, depth: int) -> BoundArguments:
    """The entries of a variable or attribute, with the in-place updates that reach it."""
    assert isinstance(passed.value, Ref)
    state: BoundArguments | None = None
    for step in sources.reaching_definitions(passed):
        if step.value is not None:
            way = (
                step.value
                if isinstance(step.value, BoundArguments)
                else dictionary_entries(sources, step.value, depth + 1)
            )
            state = way if state is None else join_arguments(state, way)
        elif state is not None and step.change is not None:
            after = _after_update(sources, passed._replace(path=step.path), state, step.change, depth)
            state = after if step.certain else join_arguments(state, after)
    return UNKNOWN_ARGUMENTS if state is None else state


def _after_update(
    sources: ValueSources, here: Closure, state: BoundArguments, change: ContainerUpdate, depth: int
) -> BoundArguments:
    """The entries after an in-place update; an update under an unknown key may affect any entry."""
    value = () if change.value is None else (here._replace(value=change.value),)
    match change.kind:
        case "merge":
            return override(state, mapping_arguments(sources, here, change.args, depth))
        case "set" | "default" if change.key is None:
            return override(state, UNKNOWN_ARGUMENTS)
        case "set":
            return override(state, BoundArguments({change.key or "": value}))
        case "default":
            return override(BoundArguments({change.key or "": value}), state)
        case "drop" if change.key is not None:
            return state._replace(named={key: each for key, each in state.named.items() if key != change.key})
    return state


def read_arguments(
    sources: ValueSources, call: Closure, parameters: Sequence[str], *, partial: bool = True
) -> BoundArguments:
    """The arguments of a call: ``parameters`` by position or keyword, others by keyword. Without ``partial`` it calls no partial."""
    found = BoundArguments()
    for each in _partial_calls(sources, call) if partial else (call,):
        assert isinstance(each.value, Call)
        found = override(found, _read_call(sources, each))
    excess = found.excess
    named = {word: (value,) for word, value in zip(parameters, excess, strict=False)}
    return BoundArguments({**named, **found.named}, excess[len(parameters) :], found.complete)


def _partial_calls(sources: ValueSources, call: Closure) -> Iterator[Closure]:
    """The partial's arguments, then those of the call: a keyword of the call overrides the partial's."""
    assert isinstance(call.value, Call)
    if isinstance(call.value.func, Ref):
        for each in sources.of(call._replace(value=call.value.func)):
            if is_partial(sources, each) and isinstance(each.value, Call):
                first, *rest = each.value.args
                yield from _partial_calls(
                    sources, each._replace(value=each.value._replace(func=first.value, args=tuple(rest)))
                )
                break
    yield call


def is_partial(sources: ValueSources, each: Closure) -> bool:
    """Whether an expression is a ``functools.partial`` of something."""
    value = each.value
    return (
        isinstance(value, Call)
        and bool(value.args)
        and "functools.partial" in sources.project.names(each.path, value.func)
    )


def _read_call(sources: ValueSources, call: Closure) -> BoundArguments:
    found = BoundArguments()
    assert isinstance(call.value, Call)
    for arg in call.value.args:
        value = call.within(arg.value)
        if arg.star == "**":
            found = override(found, dictionary_entries(sources, value))
        elif arg.star:
            more = sources.list_items(value)
            found = override(found, BoundArguments({}, more.excess, more.complete))
        elif arg.keyword is not None:
            found = override(found, BoundArguments({arg.keyword: (value,)}))
        else:
            found = override(found, BoundArguments({}, (value,)))
    return found


def bind_arguments(
    sources: ValueSources, call: Closure, name: str, function: Function, *, skip: bool, outer: Environment
) -> Environment:
    """Argument binding: the environment of a function's body in one call; ``skip`` leaves out ``self``."""
    path = path_of(name)
    params = function.params[skip:]
    words = [param.name for param in params if param.kind in ("", "/")]
    called_as_object = simple_name(name) in ("__call__", "forward")
    partial = called_as_object or sources.project.resolver.call_graph.may_be_passed(name, function)
    passed = read_arguments(sources, call, words, partial=partial)
    makers = _makers(sources, name, function, outer)
    if makers and any(
        each.default is None and each.name not in passed.named for each in params if each.kind[:1] != "*"
    ):
        # What is passed is for the makers.
        passed = read_arguments(sources, call, [], partial=partial)
    given, star_arguments = dict(outer.arguments), dict(outer.star_arguments)
    for param in params:
        variable = local_symbol(path + function.name, param.name)
        if param.kind == "*":
            star_arguments[variable] = BoundArguments({}, passed.excess, passed.complete)
        elif param.kind == "**":
            known = {each.name for each in params if not each.kind.startswith("*")}
            rest = {word: values for word, values in passed.named.items() if word not in known}
            star_arguments[variable] = BoundArguments(rest, (), passed.complete)
        elif param.name in passed.named:
            given[variable] = passed.named[param.name]
        elif not passed.complete:
            given[variable] = ()
        elif made := [Closure(*each) for each in made_arguments(sources.project.resolver, makers, param.name)]:
            given[variable] = tuple(made)
        elif param.default is not None:
            given[variable] = (Closure(path, param.default),)
    return Environment.of(given, star_arguments, outer.receiver_class)


def _makers(sources: ValueSources, name: str, function: Function, outer: Environment) -> tuple[str, ...]:
    """The functions that make the arguments of a decorated function."""
    owner = outer.receiver_class or (f"{path_of(name)}{function.owner}" if function.owner else "")
    return argument_makers(sources.project.resolver, name, owner) if function.decorators else ()


def construct(sources: ValueSources, call: Closure, owner: str) -> ConstructedObject:
    """The object of class ``owner`` that a call constructs, bound through the constructors of the class and its bases."""
    environment = Environment.of({}, {}, owner)
    library_calls: list[tuple[str, Closure]] = []
    queue = [(call, name) for name in sources.project.resolver.methods(owner, "__init__")]
    if not any(in_project(name) for _, name in queue):
        environment = _of_dataclass(sources, call, environment)
    for _ in range(limits.MAX_CONSTRUCTORS):
        if not queue:
            break
        each, name = queue.pop(0)
        for function in sources.project.resolver.functions(name):
            environment = bind_arguments(
                sources, each, name, function, skip=not passes_self(each.value), outer=environment
            )
            path = path_of(name)
            bases = base_constructor_calls(sources.project, name)
            queue += [(Closure(path, inner, environment), target) for inner, target in bases]
        if not in_project(name):
            library_calls.append((constructed_class(name), each))
    return ConstructedObject(environment, tuple(library_calls))


@query()
def base_constructor_calls(project: ProgramIndex, name: str) -> tuple[tuple[Call, str], ...]:
    """The calls of base constructors: ``super().__init__(...)``, ``Base.__init__(self, ...)``."""
    return tuple(
        (site.call, target)
        for site in project.calls(path_of(name))
        if site.function == name
        for target in site.names
        if target.endswith(".__init__") and target != name
    )


def _of_dataclass(sources: ValueSources, call: Closure, environment: Environment) -> Environment:
    """The environment of a dataclass: fields are bound by name or in order, under the names of the class's variables."""
    fields = dataclass_fields(sources.project.resolver, environment.receiver_class)
    if not fields.words:
        return environment
    passed = read_arguments(sources, call, fields.words)
    given = {name: passed.named[word] for name in fields.variables if (word := simple_name(name)) in passed.named}
    return environment.with_arguments(given)


# --- items of a list -------------------------------------------------------------------------------------------------

_LISTS = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted", "builtins.reversed", "torch.nn.ModuleList"})


def list_items(sources: ValueSources, closure: Closure, depth: int = 0) -> BoundArguments:
    """The items of a list or tuple, appended ones included, as excess arguments."""
    if depth > limits.MAX_LIST_DEPTH:
        return UNKNOWN_ARGUMENTS
    match closure.value:
        case Ref():
            return _items_of_reference(sources, closure, depth)
        case Collection(kind="list" | "tuple" | "set" | "added", items=items):
            return _items_of_display(sources, closure, items, depth)
        case Comprehension(kind="list" | "generator" | "set", elements=(element,)):
            return _one_item(closure._replace(value=element))
        case Operation(op="+" | "or", operands=operands) | Operation(op="if", operands=(_, *operands)):
            return _concatenated(list_items(sources, closure._replace(value=each), depth + 1) for each in operands)
        case Call(func=func, args=(arg,)) if _LISTS.intersection(sources.project.names(closure.path, func)):
            return list_items(sources, closure._replace(value=arg.value), depth + 1)
    found = [each for each in sources.of(closure) if each.place != closure.place]
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


def _items_of_reference(sources: ValueSources, closure: Closure, depth: int) -> BoundArguments:
    parts: list[BoundArguments] = []
    known = False
    for step in reaching_definitions(sources, closure):
        if step.value is not None:
            known = True
            way = step.value if isinstance(step.value, BoundArguments) else list_items(sources, step.value, depth + 1)
            parts.append(way)
        elif step.change is not None and step.change.kind in ("add", "join") and step.change.value is not None:
            item = Closure(step.path, step.change.value, closure.environment)
            parts.append(_one_item(item) if step.change.kind == "add" else list_items(sources, item, depth + 1))
    return _concatenated(parts) if known else UNKNOWN_ARGUMENTS


def _one_item(item: Closure) -> BoundArguments:
    return BoundArguments({}, (item,))


def _items_of_display(
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
