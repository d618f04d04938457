"""What the attributes of an object of the project are given.

What a variable or an attribute is given before a place in the code, and the statements that may change it in place.

What lists and tuples hold: the items of their displays, and those that statements add.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.environment import UNKNOWN, Arguments, Scope, Scoped, Step
from torchrepro_lint.syntax.control_flow import ran_before
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Comprehension,
    Expression,
    Facts,
    Function,
    Operation,
    Ref,
    parted,
    path_of,
)

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources


def attribute_values(origins: ValueSources, owner: str, word: str, scope: Scope) -> Iterator[Scoped]:
    """What an attribute of an object is given: in the methods of its classes, in their bodies, as a dataclass's field.

    A property is what it returns.
    """
    resolver = origins.project.resolver
    for each in resolver.ancestry(owner):
        path, colon, _ = parted(each)
        name = f"{each}.{word}"
        if not colon:
            continue
        for how, method, value in resolver.instance_attributes(each).get(word, ()):
            if how in ("=", "[]") and all(
                origins.runs(path, function, value.start, scope) for function in resolver.functions(method)
            ):
                yield Scoped(path, value, scope)
        if name in scope.given:
            yield from scope.given[name]
            return
        yield from (Scoped(path, value, scope) for how, value in resolver.assigned(name) if how == "=")
        yield from (Scoped(path, value, scope) for value in _property(origins, name))


def _property(origins: ValueSources, name: str) -> Iterator[Expression]:
    if origins.project.resolver.is_property(name):
        yield from origins.project.resolver.return_expressions(name)


def history(origins: ValueSources, scoped: Scoped, *, changes: bool = True) -> Iterator[Step]:
    """The steps in the order in which they happen, as far as that can be told."""
    ref = scoped.value
    assert isinstance(ref, Ref)
    if len(ref.path) == 1:
        yield from _of_attribute(origins, scoped, ref, changes=changes)
    elif not ref.path:
        for root in ref.roots:
            for name in origins.project.resolver.modules.resolve(scoped.path, root):
                yield from _of_variable(origins, scoped, name, changes=changes)


def _of_variable(origins: ValueSources, scoped: Scoped, name: str, *, changes: bool) -> Iterator[Step]:
    path, colon, rest = parted(name)
    if not colon or not rest:
        return
    yield from _initial(origins, scoped, name)
    found = origins.assignments(path).get(f":{rest}", [])
    changed = origins.mutations(path).get((f":{rest}", ()), []) if changes else []
    home = _home(origins.project.files[path], f":{rest}", scoped.value.start) if path == scoped.path else None
    if home is None:
        yield from (Step(path, False, Scoped(path, each.value, scoped.scope)) for each in found)
        yield from (Step(path, False, None, each.change) for each in changed)
        return
    steps: dict[int, list[Step]] = {}
    for each in found:
        steps.setdefault(id(each.statement), []).append(Step(path, False, Scoped(path, each.value, scoped.scope)))
    for one in changed:
        steps.setdefault(id(one.statement), []).append(Step(path, False, None, one.change))
    for ran in ran_before(home.body, scoped.value.start) if steps else ():
        here = steps.get(id(ran.statement))
        # Whether a statement runs in the scope is asked of few: it is the dearest of all.
        if here and (not isinstance(home, Function) or origins.runs(path, home, ran.statement.start, scoped.scope)):
            yield from (step._replace(certain=ran.certain) for step in here)


def _initial(origins: ValueSources, scoped: Scoped, name: str) -> Iterator[Step]:
    """What a parameter is given: by the call that the scope is of, else by all calls of the project."""
    path = path_of(name)
    found = origins.project.resolver.parameter(name)
    if found is None:
        return
    param = found.param
    if name in scoped.scope.stars or param.kind.startswith("*"):
        yield Step(path, True, scoped.scope.stars.get(name, UNKNOWN))
        return
    if name in scoped.scope.given:
        values = list(scoped.scope.given[name])
    else:
        values = [Scoped(file, value) for file, value in origins.project.resolver.passed(name)]
    yield from (Step(path, index == 0, value) for index, value in enumerate(values))


def _of_attribute(origins: ValueSources, scoped: Scoped, ref: Ref, *, changes: bool) -> Iterator[Step]:
    """The attribute of an object of the project, or the variable of a module."""
    for owner, scope in holders(origins, scoped, ref):
        for value in attribute_values(origins, owner, ref.path[0], scope):
            yield Step(value.path, False, value)
        for each in origins.project.resolver.ancestry(owner) if changes else ():
            path = path_of(each)
            for root in _selves(origins, path, each):
                for one in origins.mutations(path).get((root, ref.path), ()):
                    yield Step(path, False, None, one.change)
    for name in _of_module(origins, scoped, ref):
        yield from _of_variable(origins, scoped, name, changes=changes)


def _of_module(origins: ValueSources, scoped: Scoped, ref: Ref) -> Iterator[str]:
    modules = origins.project.resolver.modules
    for root in ref.roots:
        for name in modules.resolve(scoped.path, root):
            if name.endswith(":"):
                yield from modules.attribute(name[:-1], ref.path[0]) or ()


def holders(origins: ValueSources, scoped: Scoped, ref: Ref) -> Iterator[tuple[str, Scope]]:
    """The classes of the project that the object before an attribute may be of, each with what is known of the object."""
    resolver = origins.project.resolver
    found = sorted({name[:-2] for name in resolver.receiver(scoped.path, ref) if ":" in name and name.endswith("()")})
    known = scoped.scope.owner
    if known and any(name in resolver.ancestry(known) for name in found) and _is_self(origins, scoped.path, ref):
        yield known, scoped.scope
        return
    made = False
    for each in origins.of(scoped._replace(value=ref._replace(path=ref.path[:-1]))):
        if isinstance(each.value, Call):
            for name in origins.project.names(each.path, each.value.func):
                if resolver.classes(name):
                    made = True
                    yield name, origins.construct(each, name).scope
    if not made:
        yield from ((name, Scope()) for name in found)


def _is_self(origins: ValueSources, path: str, ref: Ref) -> bool:
    """Whether a reference starts at the first parameter of a method."""
    parameters = (origins.project.resolver.parameter(path + root) for root in ref.roots)
    return any(found is not None and found.position == 0 and bool(found.function.owner) for found in parameters)


def _selves(origins: ValueSources, path: str, owner: str) -> Iterator[str]:
    """The first parameters of a class's methods."""
    for definition in origins.project.resolver.classes(owner):
        for _, method in definition.methods:
            for function in origins.project.resolver.functions(path + method):
                if function.params:
                    yield f"{method}.<locals>.{function.params[0].name}"


def _home(facts: Facts, name: str, offset: int) -> Function | Facts | None:
    """What the body is of in which both a variable is bound and a place lies, so that their order can be told; None for closures."""
    around = [each for each in facts.functions if each.start <= offset < each.end]
    inner = min(around, key=lambda each: each.end - each.start, default=None)
    if "<comp>" in name or "<locals>" not in name:
        return facts if inner is None and "." not in name else None
    if inner is not None and name.startswith(f"{inner.name}.<locals>.") and "." not in name[len(inner.name) + 10 :]:
        return inner
    return None


_LISTS = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted", "builtins.reversed", "torch.nn.ModuleList"})
# Lists may hold lists so deep.
_DEEPEST = 10


def collected(origins: ValueSources, scoped: Scoped, depth: int = 0) -> Arguments:
    """The items of a list or tuple, those that are added later among them, as spare arguments."""
    if depth > _DEEPEST:
        return UNKNOWN
    match scoped.value:
        case Ref():
            return _items_of(origins, scoped, depth)
        case Collection(kind="list" | "tuple" | "set" | "added", items=items):
            return _joined(origins, scoped, items, depth)
        case Comprehension(kind="list" | "generator" | "set", elements=(element,)):
            return _item(scoped._replace(value=element))
        case Operation(op="+" | "or", operands=operands) | Operation(op="if", operands=(_, *operands)):
            return _all(collected(origins, scoped._replace(value=each), depth + 1) for each in operands)
        case Call(func=func, args=(arg,)) if _LISTS.intersection(origins.project.names(scoped.path, func)):
            return collected(origins, scoped._replace(value=arg.value), depth + 1)
    found = [each for each in origins.of(scoped) if each.value is not scoped.value]
    return _all(collected(origins, each, depth + 1) for each in found) if found else UNKNOWN


def is_list(origins: ValueSources, scoped: Scoped) -> bool:
    """Whether a value is a list, so that what is appended to it becomes one of its items."""
    match scoped.value:
        case Collection(kind="list") | Comprehension(kind="list"):
            return True
        case Operation(op="+", operands=operands):
            return any(is_list(origins, scoped._replace(value=each)) for each in operands)
        case Call(func=Ref(roots=("builtins.list",), path=())):
            return True
        case Call() | Ref():
            behind = (each.value for each in origins.of(scoped))
            return any(isinstance(each, Collection) and each.kind == "list" for each in behind)
    return False


def added(step: Step, scoped: Scoped) -> Iterator[Scoped]:
    """What a step adds to a list, as a display of its own."""
    change = step.change
    if change is not None and change.kind in ("add", "join") and change.value is not None:
        value = change.value
        item = value if change.kind == "add" else Operation(value.start, value.end, "*", (value,))
        yield Scoped(step.path, Collection(value.start, value.end, "added", (item,)), scoped.scope)


def _items_of(origins: ValueSources, scoped: Scoped, depth: int) -> Arguments:
    parts: list[Arguments] = []
    known = False
    for step in history(origins, scoped):
        if step.value is not None:
            known = True
            way = step.value if isinstance(step.value, Arguments) else collected(origins, step.value, depth + 1)
            parts = [way] if step.certain else [*parts, way]
        elif step.change is not None and step.change.kind in ("add", "join") and step.change.value is not None:
            item = Scoped(step.path, step.change.value, scoped.scope)
            parts.append(_item(item) if step.change.kind == "add" else collected(origins, item, depth + 1))
    return _all(parts) if known else UNKNOWN


def _item(item: Scoped) -> Arguments:
    return Arguments({}, (item,))


def _joined(origins: ValueSources, scoped: Scoped, items: tuple[Expression | None, ...], depth: int) -> Arguments:
    parts = []
    for item in items:
        if isinstance(item, Operation) and item.op == "*" and len(item.operands) == 1:
            parts.append(collected(origins, scoped._replace(value=item.operands[0]), depth + 1))
        elif item is not None:
            parts.append(Arguments({}, (scoped._replace(value=item),)))
    return _all(parts)


def _all(parts: Iterable[Arguments]) -> Arguments:
    kept = list(parts)
    return Arguments({}, tuple(item for each in kept for item in each.spare), all(each.complete for each in kept))
