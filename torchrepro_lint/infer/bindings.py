"""What a variable is bound to at one place of a function: a value, one of several, or the same seen through a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from torchrepro_lint.syntax.nodes import Expression, Function, Param


@dataclass(eq=False, slots=True)
class Binding:
    """One way in which a variable got its value; told apart by identity.

    ``how`` is ``=`` (the value), ``[]`` (an element of it), ``[i]`` (its element ``at[0]`` of ``at[1]``, counted from the
    end where negative), ``with`` (entered from it), ``:`` (annotated with it), ``+=`` and the like, ``param``,
    ``join`` (any of ``before``), ``loop`` (the same, and complete only when the loop has been read), ``is`` (an instance of
    ``value``), ``in place`` (changed by the method call ``value``), ``handed`` (given to a call that may fill it), ``written`` (elements set to ``value``), ``flag`` (needing a gradient or not), ``ndim`` (with dimensions from ``at[0]`` to ``at[1]``), ``sized`` (with ``at[0]`` dimensions
    or more). ``value`` is evaluated in ``env``.
    """

    how: str
    value: Expression | None = None
    env: Env | None = None
    before: tuple[Binding, ...] = ()
    at: tuple[int, int] = (0, 0)
    annotation: Expression | None = None
    param: tuple[Function, Param, int] | None = None


# The name under which a flow keeps the contexts that it stands in; no variable is called so.
MODES = "<modes>"
# The name under which a flow keeps a binding that stands for itself.
FLOW = "<flow>"

# The bindings of the variables of a function, by name, at one place.
Env: TypeAlias = Mapping[str, Binding]


def joined(one: Env | None, other: Env | None) -> Env | None:
    """What holds where two ways meet; None is a way that does not lead here."""
    if one is None or other is None or one is other:
        return other if one is None else one
    found = dict(one)
    for name, binding in other.items():
        known = found.get(name)
        if known is None:
            found[name] = binding
        elif known is not binding:
            found[name] = Binding("join", before=(known, binding))
    return found
