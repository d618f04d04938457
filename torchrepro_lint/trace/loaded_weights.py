"""Loaded weights: the models whose weights a call replaces, itself or in the function of the project that it calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from torchrepro_lint.catalogue.libraries import METHODS_WITHOUT_FORWARD
from torchrepro_lint.dataflow.constants import COMPARISONS, compared
from torchrepro_lint.resolve.definitions import EventCache
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax import visitor
from torchrepro_lint.syntax.binding import bound_argument, known_argument, values_of_parameters, with_values
from torchrepro_lint.syntax.control_flow import (
    Event,
    Guard,
    StaticContext,
    constant_truth,
    holds_always,
    uncertain_guards,
)
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Arg,
    Assign,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    ExpressionStatement,
    Function,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    Try,
)
from torchrepro_lint.syntax.qualified_names import in_project, local_symbol, path_of, root_of, simple_name
from torchrepro_lint.syntax.use_def import receiver_or_container
from torchrepro_lint.syntax.visitor import is_none, is_same_reference, last_identifier

# Methods of Lightning's trainer that load the weights of a model from a checkpoint.
_EVALUATING = ("test", "validate", "predict")
# Names of functions that may load the weights of a model, and of classes.
_LOADING = lazy_pattern(r"(?i:.*(load|restore|resume|copy|fill|populate|convert).*)|[A-Z]\w*")
# Names of functions of libraries that load the weights of a model that they get: ``accelerate.load_checkpoint_in_model``.
_LOADING_MODELS = lazy_pattern(r".*\.(load|restore)_(model|checkpoint|weights|state|pretrained)\w*")
# Calls of libraries that draw no weights, and copy none.
_WITHOUT_WEIGHTS = lazy_pattern(
    r"builtins\.\w+.*|(os|sys|time|math|json|yaml|pathlib|datetime|collections|logging|functools|re|tensorboardX|torch\.cuda)\..*|"
    r"torch\.optim\.(lr_scheduler\.)?\w+|torch\.nn\.\w*Loss|torch\.(device|tensor|zeros|ones|full|arange|eye|from_numpy)(\(\).*)?|"
    r"numpy\.(?!random\.).*|torch\.utils\.tensorboard\..*|torchvision\.transforms\..*|torch\.amp\..*|"
    r"torch\.load|safetensors\.torch\.load(_file)?|pickle\.loads?"
)
# Methods that leave the numbers of a network as they are.
MOVING = frozenset({"eval", "train", "to", "cuda", "cpu", "zero_grad", "requires_grad_"})
# Attributes by which the numbers of a layer or parameter are used, and what says nothing of a parameter's numbers, or replaces them.
_NUMBERS = lazy_pattern(r"|weight|bias|data|detach|clone|forward|(named_)?parameters|state_dict|apply")
_MEASURES = frozenset({"shape", "size", "numel", "dim", "ndim", "device", "dtype", "requires_grad", "copy_"})
_Loads = dict[AccessPath, set[tuple[Guard, ...]]]
# The place of a model whose weights are loaded, and the tests under which they are.
Load: TypeAlias = tuple[AccessPath, tuple[Guard, ...]]


def loaded_by(names: Names, cache: EventCache, path: str, call: Call) -> Iterator[Load]:
    """The places of models whose weights a call replaces, itself or in the function of the project that it calls, each with the tests
    of the call's arguments under which.
    """
    if (held := _loaded_here(call)) is not None:
        yield held, ()
    elif isinstance(call.func, Ref):
        called, named = names.names(path, call.func), _LOADING.fullmatch(last_identifier(call.func)) is not None
        called = called if named or all(_may_load(names, each) for each in called) else ()
        loading = called and not any(map(in_project, called)) and _LOADING_MODELS.fullmatch(called[0]) is not None
        yield from ((held, ()) for held in _places(arg.value for arg in call.args if loading))
        makers = (each for name in called if names.classes(name) for each in names.methods(name, "__init__")[:1])
        given = [
            _passed(each, path, call, names, cache, first=not named)
            for each in (*called, *makers)
            if names.functions(each)
        ]
        yield from sorted(set(given[0]).intersection(*given[1:]), key=repr) if given else ()


def _may_load(names: Names, function: str) -> bool:
    """Whether a function of the project may load weights, by the words of its file."""
    return bool(names.functions(function)) and "load_state_dict" in names.modules.summary(path_of(function)).calls


def _loaded_here(call: Call) -> AccessPath | None:
    """``model.load_state_dict(weights)``, all of them; ``trainer.test(model, ckpt_path=path)`` of Lightning."""
    match call:
        case Call(func=func) if last_identifier(func) in _EVALUATING:
            model, weights = known_argument(call, 0, "model"), known_argument(call, None, "ckpt_path")
            return next(_places([model]), None) if model and weights and not is_none(weights) else None
        case Call(func=Ref(roots=roots, path=(*words, "load_state_dict"))):
            owner_path = tuple(words[:-1] if words[-1:] == ["module"] else words)
            return (roots, owner_path) if len(owner_path) <= 1 and _loads_all(call) else None
        case Call(func=Attribute(value=Subscript() as element, name="load_state_dict")):
            return place_of(element) if _loads_all(call) else None
    return None


def _loads_all(call: Call) -> bool:
    """Whether a call of ``load_state_dict`` is strict."""
    strict = bound_argument(call, 1, "strict")
    whole = strict is None or (isinstance(strict, Constant) and strict.value is True)
    return whole and known_argument(call, 0, "state_dict") is not None


def place_of(value: Expression | None) -> AccessPath | None:
    """Where a model is kept: a variable, an attribute, or an element of a variable by a literal or a variable, ``nets[name]``."""
    match value:
        case Ref(path=path):
            return value.access_path if len(path) <= 1 else None
        case Subscript(value=Ref(roots=roots, path=()), indices=(Constant() | Ref(path=()) as key,)):
            return roots, (element_word(key),)
    return None


def element_word(key: Constant | Ref) -> str:
    """What stands for an element in an access path."""
    return f"[{key.roots if isinstance(key, Ref) else repr(key.value)}]"


def _passed(name: str, path: str, call: Call, names: Names, cache: EventCache, *, first: bool) -> list[Load]:
    """The arguments of a call for parameters whose weights the called function loads, always or where tests of its arguments hold;
    ``first``: before it may run them.
    """
    ran, loads = set[tuple[str, ...]](), _Loads()
    own, home = root_of(name), path_of(name)
    passed = [
        (param, arg) for each in names.functions(name) for arg, param in names.call_graph.receiving(path, call, each)
    ]
    given = {local_symbol(own, param.name): arg.value.value for param, arg in passed if isinstance(arg.value, Constant)}
    merged, receiver = set(own_weights(cache.of(name))), receiver_or_container(call.func)
    for event in cache.of(name):
        if event.kind == "call" and isinstance(event.value, Call):
            called = names.names(home, event.value.func)
            whole = _read_whole(name, names) if "numpy.fromfile" in called else None
            here = filter(None, (whole, _loaded_here(event.value)))
            for held in (*here, *assigned_all(names, home, event, given)):
                if held[0] not in ran and merged.isdisjoint((held, each) for each in given_variables(event.value)):
                    loads.setdefault(held, set()).add(uncertain_guards(event.guards))
            ran.update(_run_by(event.value, called) if first else ())
    itself = local_symbol(own, "self"), names.owner(name)
    always = {roots for (roots, words), guards in loads.items() if not words and holds_always(guards, ())}
    words = {each for (roots, each), guards in loads.items() if roots == itself[:1] and holds_always(guards, ())}
    if receiver is not None and words and itself[1]:
        constants = constructor_constants(names, [*names.values(path, receiver)])
        if draws_only_for(itself[1], frozenset(word for each in words for word in each), constants, names, cache):
            always.add(itself[:1])
    found: list[Load] = []
    for function in names.functions(name):
        tested = values_of_parameters(own, function, call, passed)
        models = [(param, arg.value) for param, arg in passed]
        if receiver is not None and function.params and names.is_bound(path, call.func, function):
            models.append((function.params[0], receiver))
        for param, model in models:
            root = (local_symbol(own, param.name),)
            ways = {()} if root in always else loads.get((root, ()), set())
            under = {each for guards in ways if (each := _tests_passed(guards, tested)) is not None}
            found += ((held, each) for held in _places([model]) for each in under)
    return found


def _tests_passed(guards: tuple[Guard, ...], values: Mapping[str, Expression]) -> tuple[Guard, ...] | None:
    """The tests of parameters as tests of what is passed for them, if all are such and none is a constant that rules it out."""
    found: list[Guard] = []
    for guard in guards:
        test = with_values(guard.value, values)
        if test is None:
            return None
        truth = _truth(test)
        if truth is not None and truth is not (guard.kind == "if"):
            return None
        found += [Guard(guard.kind, test)] if truth is None else []
    return tuple(found)


def _truth(test: Expression) -> bool | None:
    """The truth value of a test of constants; None for other tests."""
    match test:
        case Operation(op=op, operands=(Constant(value=left), Constant(value=right))) if op in COMPARISONS:
            return compared(op, left, right)
    return constant_truth(test, StaticContext())


def _run_by(call: Call, called: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """The variables whose models a call may run: it calls one or its method, or gives it to a function that is no package's."""
    match call.func:
        case Ref(roots=roots, path=path) if path[-1:] == () or path[-1] not in METHODS_WITHOUT_FORWARD:
            yield roots
    if not called or any(map(in_project, called)):
        yield from given_variables(call)


def _places(values: Iterable[Expression | None]) -> Iterator[AccessPath]:
    return filter(None, map(place_of, values))


def _read_whole(name: str, names: Names) -> AccessPath | None:
    """The network whose weights a function or method reads from a binary file, which has those of all layers in Darknet's format."""
    first = next((each.params[0].name for each in names.functions(name) if each.params), "")
    return ((local_symbol(root_of(name), first),), ()) if first and simple_name(name).endswith("weights") else None


def draws_only_for(
    owner: str, words: frozenset[str], given: Mapping[str, object], names: Names, cache: EventCache
) -> bool:
    """Whether making an object draws no weights but those of its attributes ``words``; ``given``: constants of parameters."""
    if [*filter(in_project, names.ancestry(owner))] != [owner] or names.subclasses(owner):
        return False
    return all(
        names.functions(each) and _runs_draw_only_for(each, words, given, names, cache, entered=False)
        for each in names.methods(owner, "__init__")[:1]
    )


def _runs_draw_only_for(
    method: str, words: frozenset[str], given: Mapping[str, object], names: Names, cache: EventCache, *, entered: bool
) -> bool:
    """The same for a method; ``entered``: it is one that the constructor calls."""
    return all(
        _assigns_attribute(event.statement, words)
        or _is_of_base(event.statement)
        or any(_is_ruled_out(guard, given) for guard in event.guards)
        or (
            isinstance(event.value, Call)
            and _makes_no_weights(path_of(method), event.value, words, names, cache, entered=entered)
        )
        for event in cache.of(method)
        if event.kind == "call"
    )


def _is_ruled_out(guard: Guard, given: Mapping[str, object]) -> bool:
    """Whether a constant that a parameter has rules a branch out: ``if not inference``."""
    test, wanted = guard.value, guard.kind == "if"
    if isinstance(test, Operation) and test.op == "not":
        test, wanted = test.operands[0], not wanted
    known = isinstance(test, Ref) and not test.path and test.roots[0] in given and guard.kind != "with"
    return known and isinstance(test, Ref) and bool(given[test.roots[0]]) is not wanted


def _makes_no_weights(
    path: str, call: Call, words: frozenset[str], names: Names, cache: EventCache, *, entered: bool
) -> bool:
    """Whether a call draws no weights and copies none, as methods of the attributes ``words`` that run no model."""
    match call.func:
        case Ref(roots=(root, *_), path=(word, *_, last)) if root.endswith(".self") and (
            word in words or last in MOVING
        ):
            return last in METHODS_WITHOUT_FORWARD
        case Attribute(value=Constant()):
            return True

    def makes_none(name: str) -> bool:
        if names.classes(name):
            return draws_only_for(name, frozenset(), {}, names, cache)
        if not in_project(name):
            return _WITHOUT_WEIGHTS.fullmatch(name) is not None
        functions = () if entered else names.functions(name)
        followed = bool(functions) and not any(map(_may_leave, functions))
        return followed and _runs_draw_only_for(name, words, {}, names, cache, entered=True)

    found = names.names(path, call.func)
    given = [each for arg in call.args for each in visitor.subexpressions(arg.value) if isinstance(each, Ref)]
    keeps = any(each.roots[0].endswith(".self") and words.issuperset(each.path[:1]) for each in given)
    return bool(found) and all(map(makes_none, found)) and not (keeps and any(map(in_project, found)))


def _may_leave(function: Function) -> bool:
    """Whether a function may end early, or go on after an error."""
    kinds = [getattr(each, "kind", type(each)) for each in visitor.statements(function.body)]
    return "return" in kinds[:-1] or Try in kinds


def constructor_constants(names: Names, made: Sequence[tuple[str, Expression]]) -> Mapping[str, object]:
    """The constants that parameters of a constructor have in all the calls that make an object."""
    given = [
        {
            (local_symbol(root_of(maker), param.name), value.value)
            for function in names.functions(maker)
            for passed in [{param: arg.value for arg, param in names.call_graph.receiving(path, call, function)}]
            for param in function.params
            if isinstance(value := passed.get(param, param.default), Constant)
        }
        for path, call in made
        if isinstance(call, Call)
        for name in names.names(path, call.func)
        for maker in names.methods(name, "__init__")[:1]
    ]
    return dict(given[0].intersection(*given[1:])) if len(given) == len(made) > 0 else {}


def _assigns_attribute(statement: Statement, words: frozenset[str]) -> bool:
    """``self.word = ...``."""
    places = statement.targets if isinstance(statement, Assign) else ()
    own = [each for each in places if isinstance(each, Ref) and len(each.path) == 1 and each.roots[0].endswith(".self")]
    return bool(own) and len(own) == len(places) and all(words.issuperset(each.path) for each in own)


def _is_of_base(statement: Statement) -> bool:
    """``super().__init__()``."""
    value = statement.value if isinstance(statement, ExpressionStatement) else None
    return isinstance(value, Call) and not value.args and last_identifier(value.func) == "__init__"


def own_weights(found: tuple[Event, ...]) -> Iterator[tuple[AccessPath, tuple[str, ...]]]:
    """``weights = model.state_dict()``, which other weights are merged into where they fit: the model, and the variable."""
    for event in found:
        match event.value, event.statement:
            case Call(func=Ref(roots=roots, path=(*path, "state_dict"))) as value, Assign(targets=targets) as statement:
                if statement.value == value:
                    yield from (((roots, tuple(path)), each.roots) for each in targets if isinstance(each, Ref))


def given_variables(call: Call) -> Iterator[tuple[str, ...]]:
    yield from (arg.value.roots for arg in call.args if isinstance(arg.value, Ref) and not arg.value.path)


def assigned_all(names: Names, path: str, event: Event, given: Mapping[str, object]) -> Iterator[AccessPath]:
    """The model whose parameters a loop replaces: ``for n, p in self.named_parameters(): p.data = weights[n]``.

    If it replaces some under a test, it has to assert that each has weights. ``given``: constants that parameters have.
    """
    match event.statement:
        case Loop(target=target, source=source, body=body) if event.value == source:
            each = target.items[-1] if isinstance(target, Collection) and target.items else target
            inner = [*visitor.statements(body)]
            replaced = [(one, place) for one in inner if (place := replaced_parameter(one)) is not None]
            replaced = [(one, place) for one, place in replaced if is_same_reference(place, each)]
            found = [one for one, place in replaced if not uses_numbers(one, place)]
            if any(one in body for one in found) or (found and any(_asserts(one, given) for one in inner)):
                yield from _all_parameters(names, path, source)


def _asserts(statement: Statement, given: Mapping[str, object]) -> bool:
    """Whether a statement asserts that there are weights: ``assert found``, ``assert name in weights or not strict``."""
    match statement:
        case SimpleStatement(
            kind="assert",
            values=(Operation(op="or", operands=(test, Operation(op="not", operands=(Ref() as off,)))), *_),
        ):
            return given.get(off.roots[0]) is True and isinstance(test, Operation) and test.op == "in"
        case SimpleStatement(kind="assert", values=(test, *_)):
            return isinstance(test, Ref) or (isinstance(test, Operation) and test.op == "in")
    return False


def _all_parameters(names: Names, path: str, source: Expression | None) -> Iterator[AccessPath]:
    """The model whose parameters a call gives: ``net.named_parameters()``, or a function that returns these."""
    match source:
        case Call(func=Ref(roots=roots, path=(*words, word))) if word.endswith("parameters"):
            yield roots, tuple(words)
        case Call(func=func, args=(Arg(value=Ref(roots=roots, path=words)),)):
            returned = (each for name in names.names(path, func) for each in names.return_expressions(name))
            parts = (part for each in returned for part in visitor.subexpressions(each) if isinstance(part, Ref))
            if any(part.path in (("parameters",), ("named_parameters",)) for part in parts):
                yield roots, words


def replaced_parameter(statement: Statement) -> Ref | None:
    """The parameter whose numbers a statement replaces: ``weight`` of ``weight.data = other``, ``net.bias`` of ``net.bias.copy_(other)``."""
    match statement:
        case Assign(op="=", targets=(Ref(path=(*_, "data" | "weight" | "bias") as path) as place,)):
            pass
        case ExpressionStatement(value=value):
            func = filling.func if isinstance(filling := made_by_chain(value), Call) else None
            if not isinstance(func, Ref) or func.path[-1:] != ("copy_",):
                return None
            place, path = func, func.path[:-1]
        case _:
            return None
    return place._replace(path=path[:-1] if path[-1:] == ("data",) else path)


def made_by_chain(value: Expression | None) -> Expression | None:
    """The call that makes the object of a chain of methods: ``nn.Linear(2, 2)`` of ``nn.Linear(2, 2).to(device)``."""
    while isinstance(value, Call) and isinstance(value.func, Attribute):
        value = value.func.value
    return value


def uses_numbers(statement: Statement, place: Ref) -> bool:
    """Whether a statement may use the numbers of a layer or parameter, other than to replace them."""
    depth = len(place.path)
    targets = statement.targets if isinstance(statement, Assign) else ()
    for each in visitor.expressions_within(statement):
        if isinstance(each, Ref) and (each.roots, each.path[:depth]) == place.access_path:
            used = _NUMBERS.fullmatch("".join(each.path[depth : depth + 1])) and _MEASURES.isdisjoint(each.path[depth:])
            if used and not any(each == target for target in targets):
                return True
    return False
