"""Whether an environment of reinforcement learning draws: one of a library may, one of the project if its class does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.nodes import Call, Collection, Comprehension, Constant, Expression, Operation, Ref
from torchrepro_lint.syntax.qualified_names import in_project, path_of, split_method
from torchrepro_lint.syntax.use_def import flattened_values, receiver_or_container
from torchrepro_lint.syntax.visitor import body_expressions, last_identifier
from torchrepro_lint.trace.library_models import rows_of
from torchrepro_lint.trace.traces import Traces

_BASES = lazy_pattern(
    r"(gym|gymnasium)\.(core\.)?(Env|\w*Wrapper)|(gym|gymnasium)\.(vector|wrappers)\.\w+|stable_baselines3\.common\.vec_env\.\w+"
)
_WRAPPER = lazy_pattern(r"\w+\.(core\.)?\w*Wrapper|\w+\.wrappers\.\w+|stable_baselines3\..*Wrapper")
_REGISTER = lazy_pattern(r"(gym|gymnasium)\.(envs\.registration\.)?register")
# What an environment draws with: its own generator, one that it makes, its spaces.
_DRAWERS = frozenset({"np_random", "default_rng", "RandomState", "Random", "sample", "seeding", "_np_random"})


def makes_environment(name: str) -> bool:
    """Whether a call of a library makes an environment."""
    return any(row.makes == "environment" for row in rows_of([name]))


def environment_seed(name: str, call: Call) -> Expression | None:
    """The seed that a method of an environment of a library gets: ``env.seed(seed)``, ``env.reset(seed=seed)``."""
    made, method = split_method(name)
    if method not in ("seed", "reset") or not makes_environment(made):
        return None
    return next(
        (arg.value for arg in call.args if arg.keyword == "seed" or (method == "seed" and not arg.keyword)), None
    )


def is_base_environment(name: str) -> bool:
    """Whether a class of gym is a base of environments or wrappers."""
    return bool(_BASES.fullmatch(name))


def is_environment(project: Traces, owner: str) -> bool:
    """Whether a class of the project is an environment or a wrapper of one."""
    return bool(owner) and any(map(_BASES.fullmatch, _outside(project, owner)))


def may_draw(project: Traces, path: str, call: Call, names: Iterable[str]) -> bool:
    """Whether the environment whose method a call calls may draw random numbers."""
    receiver = receiver_or_container(call.func)
    made = [*project.resolver.values_through_calls(path, receiver)] if receiver is not None else []
    if any(isinstance(value, Call) for _, value in made):
        return value_draws(project, made)
    owners = [project.resolver.owner(name) for name in names if in_project(name)]
    return not owners or any(_class_draws(project, owner) for owner in owners)


def value_draws(project: Traces, made: Iterable[tuple[str, Expression]]) -> bool:
    """Whether an environment may draw that is one of some expressions, each with its file."""
    seen: set[tuple[str, Expression]] = set()
    return any(_value_draws(project, file, value, seen) for file, value in made)


def _draws(project: Traces, path: str, expression: Expression, seen: set[tuple[str, Expression]]) -> bool:
    found = [*project.resolver.values_through_calls(path, expression)]
    return not found or any(_value_draws(project, file, value, seen) for file, value in found)


def _value_draws(project: Traces, path: str, value: Expression, seen: set[tuple[str, Expression]]) -> bool:
    """Whether what an expression makes draws; an expression that leads back to itself adds nothing."""
    if (path, value) in seen:
        return False
    seen.add((path, value))
    if isinstance(value, Collection | Comprehension):
        return _functions_draw(project, path, value, seen)
    if isinstance(value, Constant):
        return _identified_draws(project, value.value)
    names = project.names(path, value.func) if isinstance(value, Call) else ()
    return not names or any(_made_draws(project, path, value, name, seen) for name in names if isinstance(value, Call))


def _made_draws(project: Traces, path: str, call: Call, name: str, seen: set[tuple[str, Expression]]) -> bool:
    """Whether what a call of this name makes draws."""
    first = call.args[0].value if call.args and not call.args[0].star else None
    if project.resolver.classes(name):
        wraps = any(map(_WRAPPER.fullmatch, _outside(project, name)))
        inner = wraps and (first is None or _draws(project, path, first, seen))
        return inner or _class_draws(project, name)
    row = next((row for row in rows_of([name]) if row.makes == "environment"), None)
    if row is None or first is None:
        return True
    if row.wraps:
        return _draws(project, path, first, seen)
    if isinstance(first, Constant):
        return _identified_draws(project, first.value)
    return _functions_draw(project, path, first, seen)


def _identified_draws(project: Traces, identifier: object) -> bool:
    classes = list(_registered(project, identifier))
    return not classes or any(_class_draws(project, each) for each in classes)


def _functions_draw(project: Traces, path: str, made: Expression, seen: set[tuple[str, Expression]]) -> bool:
    """Whether the environments draw that functions in a list make; not those that a function seeds."""
    lists = [(path, made)] if not isinstance(made, Ref) else [*project.resolver.values(path, made)]
    functions = [
        name
        for file, each in lists
        for element in _elements(each)
        for name in project.names(file, element)
        if project.resolver.functions(name)
    ]
    returned = [
        (path_of(name), value)
        for name in functions
        if not _seeds(project, name)
        for value in project.resolver.return_expressions(name)
    ]
    return not functions or any(_draws(project, file, value, seen) for file, value in returned)


def _seeds(project: Traces, function: str) -> bool:
    """Whether a function that makes an environment seeds it: ``env.seed(seed)``, ``env.reset(seed=seed)``."""
    return any(
        isinstance(part, Call)
        and isinstance(part.func, Ref)
        and (
            (part.func.path[-1:] == ("seed",) and not any(word.endswith("_space") for word in part.func.path))
            or (part.func.path[-1:] == ("reset",) and any(arg.keyword == "seed" for arg in part.args))
        )
        and part.args
        for each in project.resolver.functions(function)
        for part in body_expressions(each.body)
    )


def _elements(functions: Expression) -> Iterator[Expression]:
    """The functions that make the environments of a vector: of a list, a comprehension, or ``[make] * 4``."""
    repeated = isinstance(functions, Operation) and functions.op == "*"
    yield from flattened_values([functions.operands[0] if isinstance(functions, Operation) and repeated else functions])


def _registered(project: Traces, identifier: object) -> Iterator[str]:
    """The classes of the project that are registered under the identifier of an environment."""
    words = frozenset({"register"})
    for path in sorted(project.mentioning(words).paths):
        for site in project.calls_by(path, words):
            place = known_argument(site.call, 0, "id")
            if any(map(_REGISTER.fullmatch, site.names)) and isinstance(place, Constant) and place.value == identifier:
                yield from _entry_point(project, path, known_argument(site.call, 1, "entry_point"))


def _entry_point(project: Traces, path: str, entry: Expression | None) -> Iterator[str]:
    names: Iterable[str] = ()
    if isinstance(entry, Constant) and isinstance(entry.value, str):
        names = project.resolver.modules.resolve(path, entry.value.replace(":", "."))
    elif isinstance(entry, Ref):
        names = project.names(path, entry)
    yield from (name for name in names if project.resolver.classes(name))


def _outside(project: Traces, owner: str) -> list[str]:
    return [each for each in project.resolver.ancestry(owner) if not in_project(each)]


def _class_draws(project: Traces, owner: str) -> bool:
    """Whether a class of the project, or a base of it, mentions what an environment draws with."""
    own = [*filter(in_project, project.resolver.ancestry(owner))]
    return not own or any(
        last_identifier(part) in _DRAWERS or (isinstance(part, Ref) and not _DRAWERS.isdisjoint(part.path))
        for each in own
        for function in project.files[path_of(each)].functions
        if function.owner and f"{path_of(each)}{function.owner}" == each
        for part in body_expressions(function.body)
    )
