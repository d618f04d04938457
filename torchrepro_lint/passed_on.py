"""What ``**options`` can not hold, where a function hands on what it is given itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.facts import Call, Function, Ref
from torchrepro_lint.walk import expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.project import Project, Site


def not_passed(project: Project, site: Site) -> frozenset[str]:
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


def _other_uses(function: Function, variable: str) -> Iterator[Ref]:
    """The references to a variable, but for those that a call is given by ``**``."""
    inside = [each for one in statements(function.body) for value in expressions(one) for each in within(value)]
    handed_on = {id(arg.value) for each in inside if isinstance(each, Call) for arg in each.args if arg.star == "**"}
    yield from (
        each for each in inside if isinstance(each, Ref) and variable in each.roots and id(each) not in handed_on
    )
