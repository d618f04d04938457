"""What ``*values`` and ``**options`` hold, where a function hands on what it is given itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Arg, Call, Constant, Expression, Function, Ref, path_of
from torchrepro_lint.syntax.visitor import expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex, Site

# So many calls are looked at.
_MOST = 100
_PLACED = ("", "/")


def not_passed(project: ProgramIndex, site: Site) -> frozenset[str]:
    """The keywords that a call can not be given by ``**options``: the other parameters of the function that has it for
    its own. Nothing where the function does more with it than to hand it on.
    """
    double = next((arg.value for arg in site.call.args if arg.star == "**"), None)
    functions = project.resolver.functions(site.function)
    if not isinstance(double, Ref) or double.path or len(functions) != 1:
        return frozenset()
    rest = next((param for param in functions[0].params if param.kind == "**"), None)
    own = "" if rest is None else f"{functions[0].name}.<locals>.{rest.name}"
    if double.roots != (own,) or any(_other_uses(functions[0], own)):
        return frozenset()
    return frozenset(each.name for each in functions[0].params if each is not rest)


def handed_on(project: ProgramIndex, site: Site) -> list[Call]:
    """The call as all calls of its function in the project make it: with the values that those pass on by stars.

    So, too, where a constructor keeps them as attributes of ``self``. Values that are not written out are not known.
    Nothing where a star may hold something else.
    """
    path = path_of(site.function)
    stars = {arg.star: arg.value for arg in site.call.args if arg.star}
    owners = [_owner(project, path, star, value) for star, value in stars.items()]
    if not owners or owners[0] is None or any(each is not owners[0] for each in owners):
        return []
    called = path + owners[0].name.removesuffix(".__init__")  # a constructor is called by its class
    calls = [each.call for _, each in project.sites_of(called)]
    if not calls or len(calls) > _MOST or any(arg.star == "*" for call in calls for arg in call.args):
        return []
    return list(dict.fromkeys(_with(site.call, owners[0], call) for call in calls))


def _owner(project: ProgramIndex, path: str, star: str, value: Expression) -> Function | None:
    """The function whose own ``*values`` or ``**options`` a value is, if it does nothing else with them."""
    if not isinstance(value, Ref):
        return None
    match [each for _, each in project.resolver.values(path, value)]:
        case [Ref(roots=(root,), path=())]:
            pass
        case _:
            return None
    functions = project.resolver.functions(path + root.rpartition(".<locals>.")[0])
    if len(functions) != 1 or not any(
        root.endswith(f".{each.name}") and each.kind == star for each in functions[0].params
    ):
        return None
    kept = len(value.path) == 1 and functions[0].name.endswith(".__init__")
    others = list(_other_uses(functions[0], root)) if star == "**" else []
    return functions[0] if len(others) <= kept and (kept or not value.path) else None


def _with(call: Call, function: Function, outer: Call) -> Call:
    """A call with what its function is given by another one instead of the stars."""
    named = {param.name for param in function.params if not param.kind.startswith("*")}
    plain = [arg for arg in outer.args if arg.keyword is None and not arg.star]
    taken = sum(1 for param in function.params if param.kind in _PLACED) - bool(function.owner)
    more = {
        "*": [_known(arg, call) for arg in plain[max(taken, 0) :]],
        "**": [_known(arg, call) for arg in outer.args if arg.star or (arg.keyword or "") not in {*named, ""}],
    }
    args = tuple(new for arg in call.args for new in (more[arg.star] if arg.star else [arg]))
    return call._replace(args=args)


def _known(arg: Arg, call: Call) -> Arg:
    value = arg.value if isinstance(arg.value, Constant) else Ref(call.start, call.end, (), (), call.end)
    return Arg(call.start, call.end, arg.keyword, arg.star, value._replace(start=call.start, end=call.end))


def _other_uses(function: Function, variable: str) -> Iterator[Ref]:
    """The references to a variable, but for those that a call is given by ``**``."""
    inside = [each for one in statements(function.body) for value in expressions(one) for each in within(value)]
    handed_on = {id(arg.value) for each in inside if isinstance(each, Call) for arg in each.args if arg.star == "**"}
    yield from (
        each for each in inside if isinstance(each, Ref) and variable in each.roots and id(each) not in handed_on
    )
