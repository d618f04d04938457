"""Seed origins: the expression behind the argument of a program's seeding calls, and how another place can write it.

``torch.manual_seed(seed)`` in a helper that ``main`` calls as ``set_seed(args.seed + rank)`` has the origin
``args.seed + rank`` in ``main``. A method of an object that was constructed with the same ``args`` writes
``self.args.seed`` for its first part: two expressions denote one object where they have the same allocation site.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from torchrepro_lint import limits
from torchrepro_lint.checks.fixes.insertions import binding_function, shadowed
from torchrepro_lint.checks.fixes.program_seed import binds, variables_bound
from torchrepro_lint.dataflow.environment import Closure
from torchrepro_lint.dataflow.reaching_definitions import DefinitionFlow, stores
from torchrepro_lint.domain.rng.effects import RngEffects
from torchrepro_lint.domain.rng.seeding import seed_of_event
from torchrepro_lint.syntax.control_flow import is_main_test
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Call,
    Constant,
    Expression,
    If,
    Operation,
    Record,
    Ref,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    enclosing_function,
    is_local,
    is_own,
    is_top_level,
    local_symbol,
    qualname_of,
)
from torchrepro_lint.syntax.scopes import ControlFlowPosition, function_at
from torchrepro_lint.syntax.visitor import body_expressions, last_identifier, statements
from torchrepro_lint.trace.contexts import passes_own_arguments
from torchrepro_lint.trace.events import CallFrame, TraceEvent, is_conditional
from torchrepro_lint.trace.traces import Traces

_ARITHMETIC = frozenset({"+", "-", "*", "%", "^", "//"})

# What an expression denotes: allocation sites (``file`` and offset), and the names of classes and modules.
_Identity: TypeAlias = "frozenset[tuple[str, str | int]]"


class SeedOrigin(Record, frozen=True):
    """The argument of a seeding call: its file, and the call path to the function that contains it.

    ``source`` is the expression behind parameters and variables that only hand the seed on. It is ``conditional`` where a
    test decides whether the program seeds with it: elsewhere it may be None. ``order`` is that of the call in the trace.
    """

    path: str
    value: Expression
    call_path: tuple[CallFrame, ...]
    source: Expression
    conditional: bool
    order: int


def seed_origins(
    project: Traces, effects: RngEffects, families: Sequence[str] = ("torch", "numpy", "python")
) -> list[SeedOrigin]:
    """The origins of a program's seeds, family by family and each family's in their order."""
    key = effects, tuple(families)
    # Every fix asks.
    return project.remembered("seed origins", key, lambda: list(_find_origins(project, effects, families)))


_DATASETS = frozenset({"torch.utils.data.Dataset", "torch.utils.data.IterableDataset"})


def seeds_dataset(project: Traces, seed: TraceEvent) -> bool:
    """Whether a dataset seeds for a purpose of its own, such as its split: that seed is not the program's."""
    owner = project.resolver.owner(seed.function)
    return bool(owner) and not _DATASETS.isdisjoint(project.resolver.ancestry(owner))


def _find_origins(project: Traces, effects: RngEffects, families: Sequence[str]) -> Iterator[SeedOrigin]:
    for family in families:
        seeds = (each for each in effects.seeds.get(family, ()) if not seeds_dataset(project, each.trace_event))
        for seed in sorted(seeds, key=lambda each: each.order):
            value = seed_of_event(project, seed.trace_event)
            if value is not None:
                event = seed.trace_event
                given = SeedOrigin(event.path, value, event.call_path, value, is_conditional(event), seed.order)
                yield given._replace(source=_behind(project, given, limits.MAX_SEED_STEPS).value)


def constant_of(origin: SeedOrigin) -> int | None:
    """The literal integer that an origin is; None for other expressions."""
    value = origin.source
    return value.value if isinstance(value, Constant) and type(value.value) is int else None


def is_combined(origin: SeedOrigin) -> bool:
    """Whether a seed is computed from several values: ``seed + rank``."""
    return isinstance(origin.source, Operation) and origin.source.op in _ARITHMETIC


def _behind(project: Traces, origin: SeedOrigin, steps: int) -> SeedOrigin:
    """The expression behind parameters and variables that only hand a seed on."""
    if steps == 0 or not isinstance(origin.value, Ref):
        return origin
    below = _definition(project, origin, origin.value)
    return _behind(project, below, steps - 1) if below is not None else origin


def _definition(project: Traces, origin: SeedOrigin, ref: Ref) -> SeedOrigin | None:
    """What a parameter is given by the call that entered its function, or the one value that a variable is given."""
    if len(ref.roots) != 1 or not is_local(ref.roots[0]):
        return None
    passed = _argument(project, origin.call_path[-1], f"{origin.path}{ref.roots[0]}") if origin.call_path else None
    if passed is not None:
        value = _with_path(passed.value, ref)
        if value is None:
            return None
        return origin._replace(path=passed.path, value=value, call_path=origin.call_path[:-1])
    values = project.files[origin.path].assigned.get(ref.roots[0], ())
    if ref.path or len(values) != 1 or isinstance(values[0][1], Call):
        return None
    return origin._replace(value=values[0][1])


def _argument(project: Traces, frame: CallFrame, variable: str) -> Closure | None:
    """The argument for a parameter where the call of a frame passes one; none where it hands the function to another."""
    call = frame.event.value
    if not isinstance(call, Call):
        return None
    for definition in project.resolver.functions(frame.into)[:1]:
        constructs = frame.into.endswith(".__init__") and any(
            map(project.resolver.classes, project.names(frame.path, call.func))
        )
        if constructs or passes_own_arguments(project, frame.into, definition, frame.path, call):
            environment = project.environment_of(frame.path, call, frame.into, definition)
            bound = environment.arguments.get(variable, ())
            return bound[0] if len(bound) == 1 else None
    return None


def _with_path(value: Expression, ref: Ref) -> Expression | None:
    """``args`` with the path of ``config.seed``: ``args.seed``."""
    if not ref.path:
        return value
    return value._replace(path=(*value.path, *ref.path)) if isinstance(value, Ref) else None


class SeedScope:
    """The names that a statement at a position of a file can write, with what they denote."""

    def __init__(self, project: Traces, path: str, position: ControlFlowPosition) -> None:
        self._project = project
        self._path = path
        self._position = position
        self._tree = project.files[path]
        self._inside = position.function.name if position.function else ""
        self._denoted: list[tuple[str, _Identity]] | None = None

    def written(self, origin: SeedOrigin, steps: int = limits.MAX_SEED_STEPS) -> str | None:
        """How a seed is written here; None where a part of it is out of scope."""
        if steps == 0:
            return None
        match origin.value:
            case Constant(value=value):
                return str(value) if type(value) is int else None
            case Operation(op=op, operands=(one, other)) if op in _ARITHMETIC:
                parts = [self.written(origin._replace(value=each), steps - 1) for each in (one, other)]
                texts = [f"({each})" if each and " " in each else each for each in parts]
                return f"{texts[0]} {op} {texts[1]}" if all(texts) else None
            case Call(func=Ref(roots=("builtins.int",), path=()), args=(arg,)) if not arg.star:
                inner = self.written(origin._replace(value=arg.value), steps - 1)
                return f"int({inner})" if inner else None
            case Subscript(value=Ref() as holder, indices=(Constant(value=str(key)),)):
                base = None if self._is_changed(origin.path, holder) else self._object(origin.path, holder)
                return f'{base}["{key}"]' if base else None
            case Ref() as ref:
                return self._reference(origin, ref, steps)
        return None

    def _reference(self, origin: SeedOrigin, ref: Ref, steps: int) -> str | None:
        if self._is_changed(origin.path, ref):
            return None
        if own := self._variable(origin.path, ref):
            return own
        for length in range(len(ref.path) - 1, -1, -1):
            if base := self._object(origin.path, ref._replace(path=ref.path[:length])):
                return ".".join((base, *ref.path[length:]))
        below = _definition(self._project, origin, ref)
        return self.written(below, steps - 1) if below is not None else None

    def _is_changed(self, path: str, ref: Ref) -> bool:
        """Whether a variable of this file, or an attribute that is read from it, may have another value here than at a reference."""
        if path != self._path or len(ref.roots) != 1:
            return False
        scope, around = enclosing_function(ref.roots[0]), function_at(self._tree, ref.start)
        here, there = (
            (self._inside, self._position.spots[-1].statement.start),
            (around.name if around else "", ref.start),
        )
        places = [(ref.roots, ref.path[:length]) for length in range(len(ref.path) + 1)]
        return any(self._reaching(scope, *here, each) - self._reaching(scope, *there, each) for each in places)

    def _reaching(self, scope: str, inside: str, offset: int, place: AccessPath) -> frozenset[Statement]:
        """The statements of a function that give a place the value that it has in it, or in a function inside it."""
        bodies = [each.body for each in self._tree.functions if each.name == scope] if scope else [self._tree.body]
        for body in bodies:
            flow = DefinitionFlow(dict.fromkeys((each for each, _ in stores(body, place)), True))
            reached = flow.at(body, offset) if inside == scope else flow.after(body)
            return frozenset(each for each in reached if each is not None)
        return frozenset()

    def _variable(self, path: str, ref: Ref) -> str | None:
        """The same variable, where it is bound here: of the function or of those around, or of the module."""
        if len(ref.roots) != 1:
            return None
        root, word = ref.roots[0], last_identifier(ref._replace(path=()))
        if not is_local(root):
            return self._of_module(path, ref)
        scope = enclosing_function(root)
        if path != self._path or not (self._inside == scope or self._inside.startswith(f"{scope}.")):
            return None
        if binding_function(self._tree, word, self._inside) != scope:
            return None
        return ".".join((word, *ref.path)) if self._inside != scope or self._is_bound(root, word) else None

    def _of_module(self, path: str, ref: Ref) -> str | None:
        """A constant, a class or a module of the top level, under the name that it has here."""
        wanted = self._targets(path, ref.roots[0])
        words = (
            word
            for word, names in self._tree.exports
            if wanted and len(names) == 1 and self._targets(self._path, names[0]) == wanted
        )
        visible = (each for each in words if not shadowed(self._tree, each, self._inside) and self._is_above(each))
        return next((".".join((word, *ref.path)) for word in visible), None)

    def _targets(self, path: str, name: str) -> tuple[str, ...]:
        return self._project.resolver.modules.resolve(path, name)

    def _is_above(self, word: str) -> bool:
        """Whether a name of the module is bound before the place. In a function it is, unless the module binds it only as a program:
        then the function has it if it reads it anyway.
        """
        function = self._position.function
        if function is not None:
            imported = [each for each in self._tree.body if not (isinstance(each, If) and is_main_test(each.test))]
            reads = (each for each in body_expressions(function.body) if isinstance(each, Ref))
            return any(binds(each, word) for each in statements(imported)) or any(
                f":{word}" in each.roots for each in reads
            )
        before = self._position.spots[0].before if self._position.spots else ()
        return any(binds(each, word) for outer in before for each in statements((outer,)))

    def _is_bound(self, root: str, word: str) -> bool:
        """Whether a variable of the function is bound before the place on all paths: a parameter, or an assignment."""
        function = self._position.function
        if function and any(root == local_symbol(function.name, param.name) for param in function.params):
            return True
        return any(binds(each, word) for each in self._position.before)

    def _object(self, path: str, ref: Ref) -> str | None:
        """How an object that a reference elsewhere denotes is written here."""
        if own := self._variable(path, ref):
            return own
        wanted = self._identity(path, ref)
        if not wanted:
            return None
        if self._denoted is None:
            self._denoted = [(text, self._identity(self._path, each)) for text, each in self._candidates()]
        return next((text for text, given in self._denoted if given == wanted), None)

    def _candidates(self) -> Iterator[tuple[str, Ref]]:
        """Parameters, the attributes of ``self``, variables bound before, and in a function those of the module."""
        for target in (each for before in self._position.before for each in variables_bound(before)):
            if len(target.roots) == 1:
                yield last_identifier(target), target
        function = self._position.function
        if function is None:
            return
        for param in function.params:
            if not param.kind.startswith("*"):
                yield param.name, _variable(local_symbol(self._inside, param.name))
        if function.owner and function.params and not function.name.endswith(".__init__"):
            word = function.params[0].name
            for attribute in self._project.resolver.instance_attributes(f"{self._path}{function.owner}"):
                yield f"{word}.{attribute}", _variable(local_symbol(self._inside, word), attribute)
        for name in self._tree.assigned:
            word = qualname_of(name)
            if (
                is_own(name)
                and is_top_level(name)
                and not shadowed(self._tree, word, self._inside)
                and self._is_above(word)
            ):
                yield word, _variable(name)

    def _identity(self, path: str, ref: Ref) -> _Identity:
        """The allocation sites that a reference may stand for; empty where one of them is not known."""
        found: set[tuple[str, str | int]] = set()
        for file, value in self._project.values(path, ref):
            if not isinstance(value, Call):
                return frozenset({(file, value.roots[0])}) if isinstance(value, Ref) and not value.path else frozenset()
            found.add((file, value.start))
        return frozenset(found)


def _variable(root: str, *words: str) -> Ref:
    return Ref(0, 0, (root,), words, 0)
