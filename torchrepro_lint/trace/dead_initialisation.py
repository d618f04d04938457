"""Dead initialisation: the random numbers that a model draws as it is made have no effect.

It is dead where all weights of a model, or of a layer, are replaced before it is used, and where a model is only counted or shown.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from torchrepro_lint.dataflow.training_steps import trains
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.definitions import EventCache
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.control_flow import Event, Guard, holds_always, leaves, uncertain_guards, with_both_branches
from torchrepro_lint.syntax.definitions import bound_references, targets
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Arg,
    Assign,
    Call,
    Clause,
    Collection,
    Comprehension,
    Constant,
    Expression,
    ExpressionStatement,
    Lambda,
    Loop,
    Ref,
    Statement,
    Subscript,
    Try,
)
from torchrepro_lint.syntax.qualified_names import is_local, locals_prefix, path_of
from torchrepro_lint.syntax.use_def import contains
from torchrepro_lint.syntax.visitor import (
    body_expressions,
    expressions_within,
    last_identifier,
    statements,
    subexpressions,
)
from torchrepro_lint.trace.loaded_weights import (
    MOVING,
    assigned_all,
    constructor_constants,
    draws_only_for,
    element_word,
    given_variables,
    loaded_by,
    made_by_chain,
    own_weights,
    place_of,
    replaced_parameter,
    uses_numbers,
)

# The functions whose loads under conditions are kept.
CACHED_LOADS = 1 << 12
# Names of functions and methods that make or initialise the parts of a model.
_INITIALISING = lazy_pattern(r"(?i)_*(init|create|build|make|set_?up|weights?_init|replace)\w*|reset\w*|apply")
# Layers of torch that draw their weight, and the first ones their bias.
_LAYER = lazy_pattern(r"torch\.nn\.(?:\w+\.)*(?:(Linear|Bilinear|Conv(?:Transpose)?[123]d)|Embedding(?:Bag)?)")
# Contexts that leave the parameters of layers empty: accelerate 1.10 moves them to the device ``meta`` before they are initialised,
# transformers 5 replaces the functions of ``torch.nn.init``.
_EMPTY = frozenset({"init_empty_weights", "no_init_weights"})
_EMPTY_CONTEXTS = lazy_pattern(r"accelerate\.(\w+\.)*init_empty_weights|transformers\.(\w+\.)*no_init_weights")
# What says nothing of the numbers of a parameter; methods of a model that leave them as they are; and calls that only show a model.
_MEASURES = frozenset({"shape", "size", "numel", "nelement", "dim", "ndim", "device", "dtype", "requires_grad"})
_ALL_PARAMETERS = frozenset({"parameters", "named_parameters"})
_CONVERTING = MOVING | {"load_state_dict", "half", "float", "bfloat16", "double"}
_SHOWING = frozenset({"print", "pprint", "info", "debug", "str", "repr"})


def dead_initialisations(
    names: Names, cache: EventCache, name: str, found: tuple[Event, ...]
) -> Iterator[Statement | Call]:
    """The dead initialisations of a function or module (``name``, its events ``found``): statements, and calls within others."""
    yield from _made_to_be_loaded(names, cache, path_of(name), found)
    yield from _filled_layers(names, name, found)
    yield from _measured_models(names, name, found)
    yield from _made_empty(names, path_of(name), found)
    for event, later in _loads_after(names, cache, name, found):
        if all(holds_always(each, uncertain_guards(event.guards)) for each in later):
            yield event.statement


@query(lru=CACHED_LOADS, bounded_when_watched=False)
def loads_on_condition(names: Names, name: str) -> Mapping[Statement, tuple[tuple[Guard, ...], ...]]:
    """The statements of a function that make a model whose weights are loaded later, each with the tests under which: ``if pretrained:``."""
    found: dict[Statement, tuple[tuple[Guard, ...], ...]] = {}
    for event, later in _loads_after(names, names.events, name, names.events.of(name)):
        own = uncertain_guards(event.guards)
        common = sorted(set.intersection(*map(with_both_branches, later)), key=repr)
        added = (each[len(own) :] for each in common if each[: len(own)] == own)
        found[event.statement] = (*found.get(event.statement, ()), *added)
    return found


def _loads_after(
    names: Names, cache: EventCache, name: str, found: tuple[Event, ...]
) -> Iterator[tuple[Event, list[set[tuple[Guard, ...]]]]]:
    """The events that make or initialise models whose weights are loaded later, before they are used, with the guards of the loads of
    each.
    """
    loads: dict[AccessPath, list[tuple[int, tuple[Guard, ...]]]] = {}
    used: set[AccessPath] = set()
    path = path_of(name)
    own = set(own_weights(found))
    for at, event in enumerate(found):
        match event.value:
            case Call(func=Ref(roots=roots, path=words)) if event.kind == "call":
                used.add((roots, words))  # a model that is run before its weights are loaded
            case Call(func=Subscript() as element) if (kept := place_of(element)) is not None:
                used.add(kept)
        if (saved := _saved(event)) is not None:
            used.add(saved)  # it may be its own weights that are loaded
        if event.kind == "call" and isinstance(event.value, Call):
            replaced = ((held, ()) for held in assigned_all(names, path, event, {}))
            for held, guards in (*loaded_by(names, cache, path, event.value), *replaced):
                if held not in used and own.isdisjoint((held, each) for each in given_variables(event.value)):
                    under = (*uncertain_guards(event.guards), *guards)
                    under = tuple(each for each in under if not _tests_given_text(names, path, each))
                    loads.setdefault(held, []).append((at, under))
    for held, some in [*loads.items()]:
        loads[held] = [*_certain(names, name, found, some)]
    calls = ((at, each.value) for at, each in enumerate(found if loads else ()) if isinstance(each.value, Call))
    training = [at for at, call in calls if trains(names, path, call)]
    for at, event in enumerate(found if loads else ()):
        # Weights that are loaded after training, the best of them, do not replace those that it began with.
        trained = min((each for each in training if each > at), default=len(found))
        initialised = ([each] for each in _initialised_by(event, loads))
        for made in (*_made_by(event, loads), *initialised, *_made_within(names, cache, name, event, loads)):
            later = [set(_between(names, name, held, loads[held], found, range(at + 1, trained))) for held in made]
            if all(later):
                yield event, later


def _made_to_be_loaded(names: Names, cache: EventCache, path: str, found: Iterable[Event]) -> Iterator[Call]:
    """The calls that make a model for a function that loads its weights before it runs it: ``Net()`` of ``evaluate(Net(), path)``."""
    for event in found:
        call = event.value
        if event.kind != "call" or not isinstance(call, Call):
            continue
        for arg in call.args:
            if isinstance(made := made_by_chain(arg.value), Call):
                model = Ref(arg.value.start, arg.value.end, ("<made>",), (), arg.value.end)
                given = tuple(each._replace(value=model) if each == arg else each for each in call.args)
                if (model.access_path, ()) in loaded_by(names, cache, path, call._replace(args=given)):
                    yield made


def _tests_given_text(names: Names, path: str, guard: Guard) -> bool:
    """Whether a guard only asks for an option that always has a text: ``if args.checkpoint``, which is required."""
    match guard:
        case Guard(kind="if", value=Ref(path=(word,)) as read):
            parsed = names.names(path, read._replace(path=()))
            options = [each for each in names.options.named(word) if names.imports(path, each.path)]
            is_namespace = bool(parsed) and all(each.endswith(".parse_args()") for each in parsed)
            return is_namespace and bool(options) and all(each.is_text for each in options)
    return False


def _between(
    names: Names,
    name: str,
    held: AccessPath,
    loads: Iterable[tuple[int, tuple[Guard, ...]]],
    found: tuple[Event, ...],
    within: range,
) -> Iterator[tuple[Guard, ...]]:
    """The guards of the loads of a model that is made before a range of events."""
    made = found[within.start - 1].statement.start
    for at, guards in loads:
        if at in within and not _is_another_element(names, name, held, range(made, found[at].statement.start)):
            yield guards


def _is_another_element(names: Names, name: str, held: AccessPath, between: range) -> bool:
    """Whether the key of an element is bound between two places, as by a loop: ``for name in some: nets[name]``."""
    if not held[1] or not held[1][-1].startswith("["):
        return False
    written = (
        each for body in names.bodies(name) for one in statements(body) if one.start in between for each in targets(one)
    )
    bound = (part for each in written for part in bound_references(each) if not part.path)
    return any(held[1][-1] == element_word(part) for part in bound)


def _certain(
    names: Names, name: str, found: tuple[Event, ...], loads: Sequence[tuple[int, tuple[Guard, ...]]]
) -> Iterator[tuple[int, tuple[Guard, ...]]]:
    """The loads of a model but those in a ``try`` with a handler that goes on and loads nothing: ``except OSError: print("none")``."""
    tries = [each for body in names.bodies(name) for each in statements(body) if isinstance(each, Try)]
    places = [found[at].statement.start for at, _ in loads]
    for place, load in zip(places, loads, strict=True):
        going_on = (
            handler
            for each in tries
            if contains(each.body, place)
            for _, handler in each.handlers
            if not leaves(handler)
        )
        if all(any(contains(handler, other) for other in places) for handler in going_on):
            yield load


def _saved(event: Event) -> AccessPath | None:
    """The model whose weights a call saves: ``torch.save(model.state_dict(), path)``."""
    match event.value:
        case Call(func=func, args=(Arg(value=Call(func=Ref(roots=roots, path=(*words, "state_dict")))), *_)):
            return (roots, tuple(words)) if last_identifier(func) == "save" else None
    return None


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
    between = (each for body in names.bodies(name) for each in statements(body) if each.start in within)
    return any(uses_numbers(each, layer) for each in between)


def _made_by(event: Event, places: Container[AccessPath]) -> Iterator[list[AccessPath]]:
    """The models that an assignment makes, all those of a tuple together, or a part of which it makes."""
    statement = event.statement
    if not isinstance(statement, Assign) or event.kind != "call":
        return
    for target in statement.targets:
        named = _bound(target)
        kept = [each.access_path if isinstance(each, Ref) else place_of(each) for each in named]
        whole = [each for each in kept if each is not None]
        if whole and len(whole) == len(named) and all(each in places for each in whole):
            yield whole
        elif isinstance(target, Ref) and target.path:
            holder = target.roots, target.path[:-1]
            if holder in places and _makes_object(statement.value):
                yield [holder]


def _made_within(
    names: Names, cache: EventCache, name: str, event: Event, places: Mapping[AccessPath, Sequence[tuple[int, object]]]
) -> Iterator[list[AccessPath]]:
    """The networks that an object gets as an event makes it, if it draws for nothing else, and nothing but what moves or loads them
    stands between: ``agent = Agent()``, ``agent.net.load_state_dict(weights)``.
    """
    match event.statement, event.value:
        case Assign(op="=", targets=(Ref(roots=roots, path=()),), value=whole) as made, Call() as call if whole == call:
            path = path_of(name)
            kept = [each for each in places if each[0] == roots and len(each[1]) == 1 and places[each]]
            classes = [each for each in names.names(path, call.func) if names.classes(each)] if kept else []
            words, given = frozenset(word for _, (word,) in kept), constructor_constants(names, [(path, call)])
            if len(classes) == 1 and draws_only_for(classes[0], words, given, names, cache):
                inside = (part for each in names.modules.files[path].functions for part in body_expressions(each.body))
                if not is_local(roots[0]) and any(isinstance(each, Ref) and each.roots == roots for each in inside):
                    return
                later = [each for body in names.bodies(name) for each in statements(body) if each.start >= made.end]
                loads = [
                    at
                    for at, each in enumerate(later)
                    if _only_moves(each, roots)
                    and any(last_identifier(one) == "load_state_dict" for one in expressions_within(each))
                ]
                if loads and all(_only_moves(each, roots) for each in later[: max(loads)]):
                    yield kept


def _only_moves(statement: Statement, roots: tuple[str, ...]) -> bool:
    """Whether a statement uses an object at most to move or to load its networks: ``agent.net.to(device)``."""
    within = [*expressions_within(statement)]
    moved = {each.func for each in within if isinstance(each, Call) and last_identifier(each.func) in _CONVERTING}
    return all(each in moved and len(each.path) > 1 for each in within if isinstance(each, Ref) and each.roots == roots)


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


def _bound(target: Expression) -> list[Expression | None]:
    """A target, or the items of a tuple, beside names that nobody reads: ``model, _ = build(options)``."""
    items = target.items if isinstance(target, Collection) else (target,)
    return [each for each in items if each is None or last_identifier(each) != "_"]


def _made_empty(names: Names, path: str, found: Iterable[Event]) -> Iterator[Statement]:
    """The statements that make a model whose parameters get no numbers: on the device ``meta``, or in a context that leaves them empty."""
    for event in found:
        device = known_argument(event.value, None, "device") if isinstance(event.value, Call) else None
        contexts = (guard.value for guard in event.guards if guard.kind == "with")
        if _is_meta(device) or any(_leaves_empty(names, path, each) for each in contexts):
            yield event.statement


def _leaves_empty(names: Names, path: str, context: Expression) -> bool:
    """Whether a context manager lets no layer draw: ``torch.device("meta")``, ``init_module(empty_init=True)`` of Lightning's Fabric."""
    match context:
        case Call(func=func, args=args) as call:
            word = last_identifier(func)
            empty = known_argument(call, None, "empty_init")
            return (
                (word == "device" and bool(args) and _is_meta(args[0].value))
                or (word == "init_module" and isinstance(empty, Constant) and empty.value is True)
                or (word in _EMPTY and any(map(_EMPTY_CONTEXTS.fullmatch, names.names(path, func))))
            )
    return False


def _is_meta(device: Expression | None) -> bool:
    return isinstance(device, Constant) and device.value == "meta"


def _measured_models(names: Names, name: str, found: Iterable[Event]) -> Iterator[Statement]:
    """The statements of a function (``name``, its events ``found``) that make a model only to count its parameters, or to show it."""
    for event in found:
        match event.statement, event.value:
            case Assign(op="=", targets=(Ref(path=()) as model,), value=whole) as made, Call() as call if whole == call:
                bodies = [each.body for each in names.functions(name)] if is_local(model.roots[0]) else []
                path, inner = path_of(name), locals_prefix(name)
                nested = any(f"{path}{each.name}".startswith(inner) for each in names.modules.files[path].functions)
                if bodies and not nested and all(_is_only_measured(body, model, made) for body in bodies):
                    yield made


def _is_only_measured(body: tuple[Statement, ...], model: Ref, made: Statement) -> bool:
    counts = False
    for statement in statements(body):
        within = expressions_within(statement) if statement != made else ()
        used = {each for each in within if isinstance(each, Ref) and each.roots == model.roots}
        harmless = _harmless(statement, model) if used else set()
        if not used <= harmless or any(isinstance(each, Lambda) for each in within):
            return False
        counts = counts or any(_ALL_PARAMETERS.intersection(each.path) for each in used)
    return counts


def _harmless(statement: Statement, model: Ref) -> set[Ref]:
    """The references to a model that only measure, set or show it."""
    found: set[Ref] = set()
    match statement:
        case Loop(target=target, source=source, body=body) if target is not None:
            found.update(_counted(target, source, body_expressions(body)))
        case ExpressionStatement(value=Call(func=Ref(path=(word,)) as method)) if word in MOVING:
            found.add(method)
    for each in expressions_within(statement):
        match each:
            case Comprehension(elements=elements, clauses=(Clause(target=target, source=source, tests=tests),)):
                read = (part for inner in (*elements, *tests) for part in subexpressions(inner))
                found.update(_counted(target, source, read))
            case Call(func=func, args=args) if last_identifier(func) in _SHOWING:
                found.update(arg.value for arg in args if isinstance(arg.value, Ref) and not arg.value.path)
    return {each for each in found if each.roots == model.roots}


def _counted(target: Expression, source: Expression, read: Iterable[Expression]) -> Iterator[Ref]:
    """The callee of ``net.parameters()`` where no expression that reads one of them reads its numbers."""
    parameter = target.items[-1] if isinstance(target, Collection) and target.items else target
    match source, parameter:
        case Call(func=Ref(path=(*_, word)) as func), Ref(roots=roots) if word in _ALL_PARAMETERS:
            uses = [each for each in read if isinstance(each, Ref) and each.roots == roots]
            if all(not _MEASURES.isdisjoint(each.path) for each in uses):
                yield func
