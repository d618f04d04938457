"""What a dictionary holds where it is passed on with ``**``: its display, and what was done to it before that place.

The arguments of a call by name: positional or keyword, through ``*``, ``**`` and ``functools.partial``.

Constructions of the project's objects: what their constructors are given, and so their attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.environment import UNKNOWN, Arguments, Construction, Scope, Scoped, distinct, either, over
from torchrepro_lint.resolve.registries import fields
from torchrepro_lint.syntax.definitions import Change
from torchrepro_lint.syntax.nodes import Arg, Call, Collection, Constant, Expression, Function, Operation, Ref, path_of

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources


_COPIES = frozenset({"copy.copy", "copy.deepcopy", "builtins.dict", "collections.OrderedDict"})
_MOST = 8


def entries(origins: ValueSources, passed: Scoped, depth: int = 0) -> Arguments:
    """The entries of a dictionary by key; not ``complete`` where it may hold more, or where it takes too long to tell."""
    if depth > _MOST or not origins.dictionaries.enter():
        return UNKNOWN
    try:
        return _entries(origins, passed, depth)
    finally:
        origins.dictionaries.leave()


def _entries(origins: ValueSources, passed: Scoped, depth: int) -> Arguments:
    match passed.value:
        case Ref():
            return _of_reference(origins, passed, depth)
        case Collection(kind="dict", items=items):
            return _displayed(origins, passed, items, depth)
        case Call(func=Ref(path=(*_, "copy")) as func, args=()):
            return entries(origins, passed._replace(value=func._replace(path=func.path[:-1])), depth + 1)
        case Call(func=func, args=args) if _COPIES.intersection(origins.project.names(passed.path, func)):
            return named(origins, passed, args, depth)
        case Operation(op="if", operands=(_, one, other)) | Operation(op="or", operands=(one, other)):
            ways = [entries(origins, passed._replace(value=each), depth + 1) for each in (one, other)]
            return either(*ways)
        case Operation(op="|", operands=operands):
            return _merged(entries(origins, passed._replace(value=each), depth + 1) for each in operands)
    return _behind(origins, passed, depth)


def _behind(origins: ValueSources, passed: Scoped, depth: int) -> Arguments:
    """What a call or a subscript leads to; nothing is known of what leads nowhere."""
    found = [each for each in origins.of(passed) if each.value is not passed.value]
    ways = [entries(origins, each, depth + 1) for each in found] or [UNKNOWN]
    return _any(ways)


def _any(ways: Iterable[Arguments]) -> Arguments:
    found: Arguments | None = None
    for way in ways:
        found = way if found is None else either(found, way)
    return UNKNOWN if found is None else found


def _merged(parts: Iterable[Arguments]) -> Arguments:
    found = Arguments()
    for part in parts:
        found = over(found, part)
    return found


def _displayed(origins: ValueSources, passed: Scoped, items: tuple[Expression | None, ...], depth: int) -> Arguments:
    found = Arguments()
    for key, item in zip(items[::2], items[1::2], strict=True):
        assert item is not None
        if key is None:
            found = over(found, entries(origins, passed._replace(value=item), depth + 1))
        elif isinstance(key, Constant) and isinstance(key.value, str):
            found = over(found, Arguments({key.value: (passed._replace(value=item),)}))
        else:
            found = over(found, UNKNOWN)
    return found


def named(origins: ValueSources, passed: Scoped, args: tuple[Arg, ...], depth: int) -> Arguments:
    """What ``dict(...)`` and ``update(...)`` are given: other dictionaries, and keywords."""
    found = Arguments()
    for arg in args:
        value = passed._replace(value=arg.value)
        if arg.keyword is not None:
            found = over(found, Arguments({arg.keyword: (value,)}))
        else:
            found = over(found, UNKNOWN if arg.star == "*" else entries(origins, value, depth + 1))
    return found


def _of_reference(origins: ValueSources, passed: Scoped, depth: int) -> Arguments:
    """What a variable or attribute is given, with the changes that are made to it before."""
    assert isinstance(passed.value, Ref)
    state: Arguments | None = None
    for step in origins.history(passed):
        if step.value is not None:
            way = step.value if isinstance(step.value, Arguments) else entries(origins, step.value, depth + 1)
            state = way if step.certain or state is None else either(state, way)
        elif state is not None and step.change is not None:
            after = _changed(origins, passed._replace(path=step.path), state, step.change, depth)
            state = after if step.certain else either(state, after)
    return UNKNOWN if state is None else state


def _changed(origins: ValueSources, here: Scoped, state: Arguments, change: Change, depth: int) -> Arguments:
    """The entries after a change; what is set or dropped by a key that is not known may be any."""
    value = () if change.value is None else (here._replace(value=change.value),)
    match change.kind:
        case "merge":
            return over(state, named(origins, here, change.args, depth))
        case "set" | "default" if change.key is None:
            return over(state, UNKNOWN)
        case "set":
            return over(state, Arguments({change.key or "": value}))
        case "default":
            return over(Arguments({change.key or "": value}), state)
        case "drop" if change.key is not None:
            return state._replace(given={key: each for key, each in state.given.items() if key != change.key})
    return state


# Handing on torch's own generator is handing on none.
_GLOBAL = frozenset({"torch.default_generator", "torch.random.default_generator"})


def read_arguments(origins: ValueSources, call: Scoped, parameters: Sequence[str]) -> Arguments:
    """What a call passes for ``parameters``, which may be given by position, and for others by keyword."""
    found = Arguments()
    for each in _calls(origins, call):
        assert isinstance(each.value, Call)
        found = over(found, _own(origins, each))
    spare = found.spare
    named = {word: (value,) for word, value in zip(parameters, spare, strict=False)}
    return Arguments({**named, **found.given}, spare[len(parameters) :], found.complete)


def _calls(origins: ValueSources, call: Scoped) -> Iterator[Scoped]:
    """A partial's own arguments stand before those of the call; a keyword of the call replaces the partial's."""
    assert isinstance(call.value, Call)
    if isinstance(call.value.func, Ref):
        for each in origins.of(call._replace(value=call.value.func)):
            if is_partial(origins, each) and isinstance(each.value, Call):
                first, *rest = each.value.args
                yield from _calls(origins, each._replace(value=each.value._replace(func=first.value, args=tuple(rest))))
                break
    yield call


def is_partial(origins: ValueSources, each: Scoped) -> bool:
    """Whether an expression is a ``functools.partial`` of something."""
    value = each.value
    return (
        isinstance(value, Call)
        and bool(value.args)
        and "functools.partial" in origins.project.names(each.path, value.func)
    )


def _own(origins: ValueSources, call: Scoped) -> Arguments:
    found = Arguments()
    assert isinstance(call.value, Call)
    for arg in call.value.args:
        value = call._replace(value=arg.value)
        if arg.star == "**":
            found = over(found, entries(origins, value))
        elif arg.star:
            more = origins.collected(value)
            found = over(found, Arguments({}, more.spare, more.complete))
        elif arg.keyword is not None:
            found = over(found, Arguments({arg.keyword: (value,)}))
        else:
            found = over(found, Arguments({}, (value,)))
    return found


def bind(origins: ValueSources, call: Scoped, name: str, function: Function, *, skip: bool, outer: Scope) -> Scope:
    """The scope of a function's body in one call of it; ``skip`` leaves out ``self``."""
    path = path_of(name)
    params = function.params[skip:]
    words = [param.name for param in params if param.kind in ("", "/")]
    passed = read_arguments(origins, call, words)
    given, stars = dict(outer.given), dict(outer.stars)
    for param in params:
        variable = f"{path}{function.name}.<locals>.{param.name}"
        if param.kind == "*":
            stars[variable] = Arguments({}, passed.spare, passed.complete)
        elif param.kind == "**":
            known = {each.name for each in params if not each.kind.startswith("*")}
            rest = {word: values for word, values in passed.given.items() if word not in known}
            stars[variable] = Arguments(rest, (), passed.complete)
        elif param.name in passed.given:
            given[variable] = passed.given[param.name]
        elif not passed.complete:
            given[variable] = ()
        elif param.default is not None:
            given[variable] = (Scoped(path, param.default),)
    return Scope(given, stars, outer.owner)


def values(origins: ValueSources, passed: Arguments, word: str) -> tuple[Scoped, ...]:
    """The expressions that may be given for a parameter."""
    return distinct(each for given in passed.given.get(word, ()) for each in origins.of(given))


def passes(origins: ValueSources, passed: Arguments, word: str) -> bool:
    """Whether something other than None may be given for a parameter; torch's own generator is none."""
    return any(
        not (isinstance(each.value, Constant) and each.value.value is None)
        and not (isinstance(each.value, Ref) and _GLOBAL.intersection(origins.project.names(each.path, each.value)))
        for each in values(origins, passed, word)
    )


def constants(origins: ValueSources, passed: Arguments, word: str) -> list[object] | None:
    """The literal values that may be given for a parameter; None where one of them is no literal."""
    found = [each.value for each in values(origins, passed, word)]
    known: list[object] = [each.value for each in found if isinstance(each, Constant)]
    return known if len(known) == len(found) else None


_MOST_BASES = 8


def construct(origins: ValueSources, call: Scoped, owner: str) -> Construction:
    """What a call that constructs ``owner`` passes on through the constructors of the class and its bases."""
    scope = Scope({}, {}, owner)
    outside: list[tuple[str, Scoped]] = []
    queue = [(call, name) for name in origins.project.resolver.methods(owner, "__init__")]
    if not any(":" in name for _, name in queue):
        scope = _of_dataclass(origins, call, scope)
    for _ in range(_MOST_BASES):
        if not queue:
            break
        each, name = queue.pop(0)
        for function in origins.project.resolver.functions(name):
            scope = bind(origins, each, name, function, skip=not passes_self(each.value), outer=scope)
            path = path_of(name)
            queue += [(Scoped(path, inner, scope), target) for inner, target in _next(origins, name)]
        if ":" not in name:
            outside.append((name.removesuffix(".__init__").removesuffix("()"), each))
    return Construction(scope, tuple(outside))


def _next(origins: ValueSources, name: str) -> Iterator[tuple[Call, str]]:
    """The calls of other constructors in a constructor: ``super().__init__(...)``, ``Base.__init__(self, ...)``."""
    for site in origins.project.calls(path_of(name)):
        if site.function == name:
            yield from ((site.call, target) for target in site.names if target.endswith(".__init__") and target != name)


def passes_self(call: Expression) -> bool:
    """Whether a call is ``Base.__init__(self, ...)``."""
    match call:
        case Call(func=Ref(path=(*_, "__init__")), args=(first, *_)):
            return first.keyword is None and not first.star
    return False


def own_arguments(call: Call) -> Call:
    """The call without the ``self`` that it passes by hand."""
    return call._replace(args=call.args[1:]) if passes_self(call) else call


def _of_dataclass(origins: ValueSources, call: Scoped, scope: Scope) -> Scope:
    """The fields of a dataclass are given by name or in their order; they are known as the class's variables."""
    names = fields(origins.project.resolver, scope.owner)
    words = list(dict.fromkeys(name.rpartition(".")[2] for name in names))
    if not names:
        return scope
    passed = read_arguments(origins, call, words)
    given = {name: passed.given[word] for name in names if (word := name.rpartition(".")[2]) in passed.given}
    return scope._replace(given=given)
