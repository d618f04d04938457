"""Statements that change the object that a variable holds: elements set or added, tensors overwritten in place."""

from __future__ import annotations

from torchrepro_lint.facts import Call, Expression, Ref, Subscript
from torchrepro_lint.infer.bindings import Binding, Env

# Methods that put their arguments, or the elements of them, into a container.
ADDING = frozenset({"append", "add", "appendleft"})
EXTENDING = frozenset({"extend", "update"})
_UNSORTED = frozenset({"insert", "setdefault", "__setitem__"})


def changed(call: Expression, env: Env) -> Env:
    """The bindings after a call that stands alone: ``x.add_(y)``, ``names.append(name)``."""
    changes = {root: Binding(how, call, env, (env[root],)) for root, how in _changed(call).items() if root in env}
    return {**env, **changes} if changes else env


def changed_variables(call: Expression) -> list[str]:
    """The variables whose object a call that stands alone changes."""
    return list(_changed(call))


def _changed(call: Expression) -> dict[str, str]:
    match call:
        case Call(func=Ref(roots=(root,), path=(word,))):
            if word.endswith("_") and not word.startswith("_"):
                return {root: "in place"}
            if word in ADDING or word in EXTENDING:
                return {root: "adding"}
            return {root: "mixed"} if word in _UNSORTED else {}
    return {}


def written_variables(target: Expression | None) -> list[str]:
    """The variable of which an assignment sets elements, or whether it needs a gradient."""
    match target:
        case Subscript(value=Ref(roots=(root,), path=())) | Ref(roots=(root,), path=("requires_grad",)):
            return [root]
        case Subscript(value=Subscript() as inner):
            return written_variables(inner)
    return []
