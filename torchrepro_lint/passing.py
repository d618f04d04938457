"""The arguments of a call by name: positional or keyword, through ``*``, ``**`` and ``functools.partial``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.dictionaries import entries
from torchrepro_lint.scoped import Arguments, Scope, Scoped, distinct, over
from torchrepro_lint.syntax.nodes import Call, Constant, Function, Ref, path_of

if TYPE_CHECKING:
    from torchrepro_lint.value_context import ValueSources

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
