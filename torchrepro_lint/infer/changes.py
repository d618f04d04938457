"""Statements that change the object that a variable holds: elements set or added, tensors overwritten in place."""

from __future__ import annotations

from torchrepro_lint.infer.bindings import Binding, Env
from torchrepro_lint.syntax.nodes import Arg, Attribute, Call, Collection, Expression, Ref, Subscript
from torchrepro_lint.syntax.visitor import within

# Methods that put their arguments, or the elements of them, into a container.
ADDING = frozenset({"append", "add", "appendleft"})
EXTENDING = frozenset({"extend", "update"})
_LIBRARIES = frozenset(
    {"builtins", "torch", "numpy", "math", "os", "itertools", "functools", "collections", "copy", "json"}
)
# How a variable is bound that holds what it did before.
_LATER = frozenset({"adding", "mixed", "written", "handed", "loop", "join"})
_UNSORTED = frozenset({"insert", "setdefault", "__setitem__"})


def changed(call: Expression, env: Env) -> Env:
    """The bindings after a call that stands alone: ``x.add_(y)``, ``names.append(name)``."""
    changes = {root: Binding(how, call, env, (env[root],)) for root, how in _changed(call).items() if root in env}
    return {**env, **changes} if changes else env


def handed_on(value: Expression, env: Env) -> Env:
    """The bindings after an expression whose calls are given containers that were made here: who has one may fill it."""
    changes = {root: Binding("handed", env=env, before=(env[root],)) for root in given_containers(value, env)}
    return {**env, **changes} if changes else env


def given_containers(value: Expression, env: Env) -> list[str]:
    """The variables with containers made in the function that calls of an expression are given."""
    found: dict[str, None] = {}
    for each in within(value):
        if isinstance(each, Call) and not _is_known(each.func):
            for arg in each.args:
                match arg:
                    case Arg(star="", value=Ref(roots=(root,), path=())) if root in env and _is_container(env[root]):
                        found[root] = None
    return list(found)


def _is_known(func: Expression) -> bool:
    """Whether what is called fills nothing: of Python or a library, or a container's own method."""
    if not isinstance(func, Ref):
        return False
    if func.path and func.path[-1] in ADDING | EXTENDING | _UNSORTED:
        return True
    return len(func.roots) == 1 and func.roots[0].partition(".")[0] in _LIBRARIES


def _is_container(binding: Binding) -> bool:
    """Whether a variable was bound to a container that is made there. What was bound before a loop may come round again."""
    seen: set[int] = set()
    while binding.how in _LATER and binding.before and id(binding) not in seen:
        seen.add(id(binding))
        binding = binding.before[0]
    match binding.value:
        case Collection(kind=kind):
            return binding.how == "=" and kind != "tuple"
        case Call(func=Ref(roots=("builtins.list" | "builtins.dict" | "builtins.set",), path=())):
            return binding.how == "="
    return False


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
        case Call(func=Attribute(value=Subscript() as inner, name=word)) if word in ADDING | EXTENDING | _UNSORTED:
            return dict.fromkeys(written_variables(inner), "mixed")
    return {}


def written_variables(target: Expression | None) -> list[str]:
    """The variable of which an assignment sets elements."""
    match target:
        case Subscript(value=Ref(roots=(root,), path=())):
            return [root]
        case Subscript(value=Subscript() as inner):
            return written_variables(inner)
    return []


def flagged_variables(target: Expression | None) -> list[str]:
    """The variable of which an assignment says whether it needs a gradient: ``x.requires_grad = flag``."""
    match target:
        case Ref(roots=(root,), path=("requires_grad",)):
            return [root]
    return []
