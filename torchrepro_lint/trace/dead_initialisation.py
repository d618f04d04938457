"""Dead initialisation: the random numbers that a model draws as it is made have no effect.

It is dead where all weights of a model, or of a layer, are replaced before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint.dataflow.training_steps import measured_models, trains
from torchrepro_lint.resolve.definitions import EventCache
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax import visitor
from torchrepro_lint.syntax.control_flow import Event, Guard, holds_always, uncertain_guards
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Assign,
    Call,
    Collection,
    Constant,
    Expression,
    ExpressionStatement,
    Ref,
    Statement,
)
from torchrepro_lint.syntax.qualified_names import (
    path_of,
)
from torchrepro_lint.syntax.visitor import known_argument, last_identifier
from torchrepro_lint.trace.loaded_weights import (
    assigned_all,
    given_variables,
    loaded_by,
    made_by_chain,
    own_weights,
    replaced_parameter,
    uses_numbers,
)

# Names of functions and methods that make or initialise the parts of a model.
_INITIALISING = lazy_pattern(r"(?i)_*(init|create|build|make|set_?up|weights?_init)\w*|reset\w*|apply")
# Layers of torch that draw their weight, and the first ones their bias.
_LAYER = lazy_pattern(r"torch\.nn\.(?:\w+\.)*(?:(Linear|Bilinear|Conv(?:Transpose)?[123]d)|Embedding(?:Bag)?)")


def dead_initialisations(names: Names, cache: EventCache, name: str, found: tuple[Event, ...]) -> Iterator[Statement]:
    """The dead initialisations of a function or module (``name``, its events ``found``)."""
    yield from _filled_layers(names, name, found)
    yield from measured_models(names, name, found)
    loads: dict[AccessPath, list[tuple[int, tuple[Guard, ...]]]] = {}
    used: set[AccessPath] = set()
    path = path_of(name)
    own = set(own_weights(found))
    for at, event in enumerate(found):
        match event.value:
            case Call(func=Ref(roots=roots, path=words)) if event.kind == "call":
                used.add((roots, words))  # a model that is run before its weights are loaded
        if event.kind == "call" and isinstance(event.value, Call):
            for held in (*loaded_by(names, cache, path, event.value), *assigned_all(names, path, event, {})):
                if held not in used and own.isdisjoint((held, each) for each in given_variables(event.value)):
                    loads.setdefault(held, []).append((at, uncertain_guards(event.guards)))
    calls = ((at, each.value) for at, each in enumerate(found if loads else ()) if isinstance(each.value, Call))
    training = [at for at, call in calls if trains(names, path, call)]
    for at, event in enumerate(found if loads else ()):
        for held in (*_made_by(event, loads), *_initialised_by(event, loads)):
            # Weights that are loaded after training, the best of them, do not replace those that it began with.
            trained = min((each for each in training if each > at), default=len(found))
            later = {guards for end, guards in loads[held] if at < end < trained}
            if later and holds_always(later, uncertain_guards(event.guards)):
                yield event.statement


def _filled_layers(names: Names, name: str, found: tuple[Event, ...]) -> Iterator[Statement]:
    """The statements that make a layer of torch whose drawn parameters are then all replaced: ``fused.weight.copy_(weight)``."""
    fills: dict[AccessPath, list[tuple[int, tuple[Guard, ...]]]] = {}
    for event in found:
        if (part := replaced_parameter(event.statement)) is not None:
            filled = event.statement.start, uncertain_guards(event.guards)
            fills.setdefault(part.access_path, []).append(filled)
    for event in found if fills else ():
        match event.statement, event.value:
            case Assign(targets=(Ref() as layer,), value=whole) as made, Call() as call if made_by_chain(whole) == call:
                drawn = _drawn_parts(names.names(path_of(name), call.func), call)
                parts = (fills.get((layer.roots, (*layer.path, word)), ()) for word in drawn)
                later = [[fill for fill in part if fill[0] > made.end] for part in parts]
                guards = uncertain_guards(event.guards)
                if drawn and all(holds_always({each for _, each in fill}, guards) for fill in later):
                    last = max(at for fill in later for at, _ in fill)
                    if not _is_read(names, name, layer, range(made.end, last + 1)):
                        yield made


def _drawn_parts(made: Iterable[str], call: Call) -> tuple[str, ...]:
    """The parameters of a layer of torch that its constructor draws; none for other objects."""
    found = [match for match in map(_LAYER.fullmatch, made) if match is not None]
    bias = known_argument(call, None, "bias")
    without = not found or not found[0][1] or (isinstance(bias, Constant) and not bias.value)
    return ("weight", "bias")[: 1 if without else 2] if found else ()


def _is_read(names: Names, name: str, layer: Ref, within: range) -> bool:
    """Whether the statements between two places of a function may use the numbers of a layer."""
    bodies = [each.body for each in names.functions(name)] or [names.top_level(name)]
    between = (each for body in bodies for each in visitor.statements(body) if each.start in within)
    return any(uses_numbers(each, layer) for each in between)


def _made_by(event: Event, places: Iterable[AccessPath]) -> Iterator[AccessPath]:
    """The models that an assignment makes, or a part of which it makes."""
    statement = event.statement
    if not isinstance(statement, Assign) or event.kind != "call":
        return
    for target in map(_bound_alone, statement.targets):
        if isinstance(target, Ref):
            whole = target.roots, target.path[:-1]
            if target.access_path in places:
                yield target.roots, target.path
            elif target.path and whole in places and _makes_object(statement.value):
                yield whole


def _initialised_by(event: Event, places: Iterable[AccessPath]) -> Iterator[AccessPath]:
    """The models that a statement only initialises: ``net.create_architecture()``, ``net.apply(init)``, ``init_weights(net)``."""
    match event.statement, event.value:
        case ExpressionStatement(value=whole), Call(func=Ref(path=path) as func, args=args) as call if whole == call:
            if event.kind == "call" and _INITIALISING.fullmatch(last_identifier(func)):
                given = (func._replace(path=path[:-1]), *(arg.value for arg in args if isinstance(arg.value, Ref)))
                yield from (at for each in given for at in (each.access_path, (each.roots, ())) if at in places)


def _makes_object(value: Expression | None) -> bool:
    """Whether a value is made by a class, as a module or a parameter is."""
    return isinstance(value, Call) and last_identifier(value.func)[:1].isupper()


def _bound_alone(target: Expression) -> Expression | None:
    """A target; of several only one beside names that nobody reads: ``model, _ = build(options)``."""
    if not isinstance(target, Collection):
        return target
    named = [each for each in target.items if each is None or last_identifier(each) != "_"]
    return named[0] if len(named) == 1 else None
