"""Bindings: the definitions of variables in a type environment, as assignment targets, mutations and tests make them, with nullability:
which variables tests have shown not to be None (whether a value may be None at all is ``AbstractValue.optional``).

A program point is a file with the bindings there, and how many more calls may be followed from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from torchrepro_lint.dataflow.types.lattice import NONE, UNKNOWN, AbstractValue
from torchrepro_lint.syntax.definitions import Step, bound_references, targets, unpack
from torchrepro_lint.syntax.nodes import (
    Arg,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    ExpressionStatement,
    Function,
    Loop,
    Operation,
    Param,
    Record,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import top_package
from torchrepro_lint.syntax.visitor import statements, subexpressions


class Binding(Struct, eq=False):
    """A definition of a variable, as in SSA form; compared by identity.

    ``kind`` is ``=`` (the value), ``[]`` (an element of it), ``[i]`` (its element ``at[0]`` of ``at[1]``, from the end if
    negative), ``*`` (the rest of an unpacking), ``with`` (entered from it), ``:`` (annotated only), ``+=`` and the like,
    ``param``, ``join`` (any of ``predecessors``, of which ``at`` marks those that are not None), ``loop`` (the same, complete once the loop is read), ``is`` (narrowed to
    an instance of ``value``), ``tensor`` (narrowed to a tensor), ``in place`` (mutated by the call ``value``), ``adding``
    and ``mixed`` (a container that a method fills), ``handed`` (passed to a call that may fill it), ``written`` (elements
    set to ``value``), ``flag`` (``requires_grad`` set), ``ndim`` (rank from ``at[0]`` to ``at[1]``), ``sized`` (rank at
    least ``at[0]``), ``dtype`` (compared with the dtypes ``value``). ``value`` is evaluated in ``env``.
    """

    kind: str
    value: Expression | None = None
    env: TypeEnvironment | None = None
    predecessors: tuple[Binding, ...] = ()
    at: tuple[int, int] = (0, 0)
    annotation: Expression | None = None
    param: tuple[Function, Param, int] | None = None


# The entry of a type environment for the ``with`` statements around; no variable has this name.
MODES = "<modes>"
# The entry for the binding that identifies the flow.
FLOW = "<flow>"

# The entry for the bindings that are not None there, its ``predecessors``.
NOT_NONE = "<not none>"


class TypeEnvironment(dict[str, Binding]):
    """A type environment: the bindings of a function's variables at one place, by name. It is not changed once it is built, and
    compared by identity, so that it is a key at little cost.
    """

    __slots__ = ()
    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__  # type: ignore[assignment]  # a dictionary has none

    def rebound(self, changes: Mapping[str, Binding]) -> TypeEnvironment:
        """The environment with some bindings changed or added; the same one where there are none."""
        return TypeEnvironment({**self, **changes}) if changes else self


def join_environments(one: TypeEnvironment | None, other: TypeEnvironment | None) -> TypeEnvironment | None:
    """The environment where two paths meet; None is an unreachable path."""
    if one is None or other is None or one is other:
        return other if one is None else one
    found = dict(one)
    for name, binding in other.items():
        known = found.get(name)
        if known is None:
            found[name] = binding
        elif known is not binding:
            found[name] = Binding(
                "join", predecessors=(known, binding), at=(is_given(one, known), is_given(other, binding))
            )
    given = tuple(each for each in given_bindings(one) if is_given(other, each))
    found.pop(NOT_NONE, None)
    if given:
        found[NOT_NONE] = Binding(NOT_NONE, predecessors=given)
    return TypeEnvironment(found)


def given_bindings(env: TypeEnvironment) -> tuple[Binding, ...]:
    """The bindings that are known not to be None."""
    return env[NOT_NONE].predecessors if NOT_NONE in env else ()


def is_given(env: TypeEnvironment, binding: Binding) -> bool:
    """Whether a binding is known not to be None."""
    return binding in given_bindings(env)


class ProgramPoint(Record, frozen=True):
    """A program point: a file, the bindings there, and how many more calls may be followed."""

    path: str
    env: TypeEnvironment
    calls_left: int


def literal_value(value: object) -> AbstractValue:
    """The abstract value of a constant."""
    if value is None:
        return NONE
    kind = type(value).__name__
    if isinstance(value, str | int | float | bool):
        return (
            AbstractValue(kind, value=value)
            if kind != "str"
            else AbstractValue("str", value=value, contents=AbstractValue("str"))
        )
    return AbstractValue(kind) if kind == "bytes" else UNKNOWN


# Methods that add their argument, or its elements, to a container.
ADDING = frozenset({"append", "add", "appendleft"})
EXTENDING = frozenset({"extend", "update"})
_LIBRARIES = frozenset(
    {"builtins", "torch", "numpy", "math", "os", "itertools", "functools", "collections", "copy", "json"}
)
# Kinds of bindings that keep the previous object.
_DERIVED = frozenset({"adding", "mixed", "written", "handed", "loop", "join"})
OTHER_MUTATORS = frozenset({"insert", "setdefault", "__setitem__"})


def after_mutation(call: Expression, env: TypeEnvironment) -> TypeEnvironment:
    """The environment after a call statement that mutates: ``x.add_(y)``, ``names.append(name)``."""
    changes = {root: Binding(how, call, env, (env[root],)) for root, how in _mutations(call).items() if root in env}
    return env.rebound(changes)


def after_escape(value: Expression, env: TypeEnvironment) -> TypeEnvironment:
    """The environment after an expression whose calls receive local containers: the callee may fill them."""
    changes = {root: Binding("handed", env=env, predecessors=(env[root],)) for root in escaping_containers(value, env)}
    return env.rebound(changes)


def escaping_containers(value: Expression, env: TypeEnvironment) -> list[str]:
    """The variables with local containers that escape into calls of an expression."""
    found: dict[str, None] = {}
    for each in subexpressions(value):
        if isinstance(each, Call) and not _cannot_mutate(each.func):
            for arg in each.args:
                match arg:
                    case Arg(star="", value=Ref(roots=(root,), path=())) if root in env and _is_container(env[root]):
                        found[root] = None
    return list(found)


def _cannot_mutate(func: Expression) -> bool:
    """Whether a callee mutates no argument: a library function, or a container's own method."""
    if not isinstance(func, Ref):
        return False
    if func.path and func.path[-1] in ADDING | EXTENDING | OTHER_MUTATORS:
        return True
    return len(func.roots) == 1 and top_package(func.roots[0]) in _LIBRARIES


_MAKERS = frozenset({"builtins.list", "builtins.dict", "builtins.set", "collections.OrderedDict"})


def _is_container(binding: Binding) -> bool:
    """Whether a variable was bound to a new container. Bindings of a loop may be cyclic."""
    seen: set[Binding] = set()
    while binding.kind in _DERIVED and binding.predecessors and binding not in seen:
        seen.add(binding)
        binding = binding.predecessors[0]
    match binding.value:
        case Collection(kind=kind):
            return binding.kind == "=" and kind != "tuple"
        case Call(func=Ref() as func):
            return binding.kind == "=" and ".".join((*func.roots, *func.path)) in _MAKERS
    return False


def mutated_variables(call: Expression) -> list[str]:
    """The variables whose object a call statement mutates."""
    return list(_mutations(call))


def _mutations(call: Expression) -> dict[str, str]:
    match call:
        case Call(func=Ref(roots=(root,), path=(word,))):
            if word.endswith("_") and not word.startswith("_"):
                return {root: "in place"}
            if word in ADDING or word in EXTENDING:
                return {root: "adding"}
            return {root: "mixed"} if word in OTHER_MUTATORS else {}
        case Call(func=Attribute(value=Subscript() as inner, name=word)) if word in ADDING | EXTENDING | OTHER_MUTATORS:
            return dict.fromkeys(element_targets(inner), "mixed")
    return {}


def element_targets(target: Expression | None) -> list[str]:
    """The variable whose elements an assignment sets."""
    match target:
        case Subscript(value=Ref(roots=(root,), path=())):
            return [root]
        case Subscript(value=Subscript() as inner):
            return element_targets(inner)
    return []


def gradient_flag_targets(target: Expression | None) -> list[str]:
    """The variable whose gradient flag an assignment sets: ``x.requires_grad = flag``."""
    match target:
        case Ref(roots=(root,), path=("requires_grad",)):
            return [root]
    return []


def bind_target(target: Expression, value: Expression, env: TypeEnvironment, how: str) -> dict[str, Binding]:
    """The bindings that an assignment target makes, each with its part of the value."""
    found: dict[str, Binding] = {}
    known: dict[tuple[Expression, tuple[Step, ...]], Binding] = {}
    starred = isinstance(target, Collection) and any(isinstance(each, Operation) for each in target.items)
    count = len(target.items) if isinstance(target, Collection) and not starred else 0
    for place, part, steps in unpack(target, value, whole=how != "="):
        if isinstance(place, Ref) and not place.path:
            binding = known.setdefault((part, ()), Binding(how, part, env))
            for end, step in enumerate(steps, 1):
                kind, at = ("[i]", (step, count)) if isinstance(step, int) else ("*", (0, 0))
                binding = known.setdefault((part, steps[:end]), Binding(kind, predecessors=(binding,), at=at))
            found.update(dict.fromkeys(place.roots, binding))
    return found


def variables_of_loop(loop: Loop) -> list[str]:
    """The variables that a loop's body rebinds, or whose objects it mutates."""
    found: dict[str, None] = {}
    for statement in statements(loop.body):
        if isinstance(statement, ExpressionStatement):
            found.update(dict.fromkeys(mutated_variables(statement.value)))
        for target in targets(statement):
            bound = (root for ref in bound_references(target) if not ref.path for root in ref.roots)
            found.update(dict.fromkeys([*bound, *element_targets(target), *gradient_flag_targets(target)]))
    return list(found)


# --- nullability -----------------------------------------------------------------------------------------------------


def assume(test: Expression, env: TypeEnvironment, *, truth: bool) -> TypeEnvironment:
    """The type environment where a test holds, or fails, with the variables that are then not None."""
    tested = [env[root] for root in _excluded(test, truth=truth) if root in env]
    known = given_bindings(env)
    new = tuple(each for each in tested if each not in known)
    return env.rebound({NOT_NONE: Binding(NOT_NONE, predecessors=(*known, *new))} if new else {})


def _excluded(test: Expression, *, truth: bool) -> list[str]:
    """The variables that are not None where a test holds, or fails."""
    match test:
        case Ref(roots=(root,), path=()) if truth:
            return [root]
        case Operation(op="not", operands=(inner,)):
            return _excluded(inner, truth=not truth)
        case Operation(op="and" | "or" as op, operands=operands) if (op == "and") is truth:
            return [root for each in operands for root in _excluded(each, truth=truth)]
        case Operation(
            op="is" | "is not" | "==" | "!=" as op, operands=(Ref(roots=(root,), path=()), Constant(value=None))
        ) if (op in ("is not", "!=")) is truth:
            return [root]
    return []
