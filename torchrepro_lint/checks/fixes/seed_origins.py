"""Seed origins: the expression behind the argument of a program's seeding calls, and how another place can write it.

``torch.manual_seed(seed)`` in a helper that ``main`` calls as ``set_seed(args.seed + rank)`` has the origin
``args.seed + rank`` in ``main``. A method of an object that was constructed with the same ``args`` writes
``self.args.seed`` for its first part: two expressions denote one object where they have the same allocation site.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from torchrepro_lint.checks.fixes.insertions import binding_function, shadowed
from torchrepro_lint.dataflow.arguments import bind_arguments
from torchrepro_lint.dataflow.environment import Closure, Environment
from torchrepro_lint.domain.project import Project
from torchrepro_lint.domain.rng.effects import RngEffects
from torchrepro_lint.syntax.control_flow import ControlFlowPosition, is_main_test
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Constant,
    DefinitionStatement,
    Expression,
    Import,
    Operation,
    Ref,
    Statement,
    Subscript,
    With,
)
from torchrepro_lint.syntax.visitor import statements
from torchrepro_lint.trace.events import CallFrame, TraceEvent, guards

_ARITHMETIC = frozenset({"+", "-", "*", "%", "^", "//"})
# Steps from a seeding call to its origin: parameters and variables that only hand the seed on.
_MOST_STEPS = 8
# The families in the order in which their seeds are preferred.
FAMILIES = ("torch", "numpy", "python")

# What an expression denotes: allocation sites (``file`` and offset), and the names of classes and modules.
_Identity: TypeAlias = "frozenset[tuple[str, str | int]]"


class SeedOrigin(NamedTuple):
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


def seed_origins(project: Project, effects: RngEffects) -> list[SeedOrigin]:
    """The origins of a program's seeds, torch's first and each family's in their order."""
    found: list[SeedOrigin] = []
    for family in FAMILIES:
        for seed in sorted(effects.seeds.get(family, ()), key=lambda each: each.order):
            value = project.passed_seed(seed.trace_event)
            if value is not None:
                event = seed.trace_event
                given = SeedOrigin(event.path, value, event.call_path, value, _is_tested(event), seed.order)
                found.append(given._replace(source=_behind(project, given, _MOST_STEPS).value))
    return found


def constant_of(origin: SeedOrigin) -> int | None:
    """The literal integer that an origin is; None for other expressions."""
    value = origin.source
    return value.value if isinstance(value, Constant) and type(value.value) is int else None


def is_combined(origin: SeedOrigin) -> bool:
    """Whether a seed is computed from several values: ``seed + rank``."""
    return isinstance(origin.source, Operation) and origin.source.op in _ARITHMETIC


def _is_tested(trace_event: TraceEvent) -> bool:
    """Whether an event stands under a test other than that of ``__main__``."""
    return any(
        guard.kind in ("if", "else") and not guard.certain and not is_main_test(guard.value)
        for guard in guards(trace_event)
    )


def _behind(project: Project, origin: SeedOrigin, steps: int) -> SeedOrigin:
    """The expression behind parameters and variables that only hand a seed on."""
    if steps == 0 or not isinstance(origin.value, Ref):
        return origin
    below = _definition(project, origin, origin.value)
    return _behind(project, below, steps - 1) if below is not None else origin


def _definition(project: Project, origin: SeedOrigin, ref: Ref) -> SeedOrigin | None:
    """What a parameter is given by the call that entered its function, or the one value that a variable is given."""
    if len(ref.roots) != 1 or "<locals>" not in ref.roots[0]:
        return None
    if origin.call_path:
        frame = origin.call_path[-1]
        for closure in _argument(project, frame, f"{origin.path}{ref.roots[0]}"):
            value = _with_path(closure.value, ref)
            return (
                origin._replace(path=closure.path, value=value, call_path=origin.call_path[:-1])
                if value is not None
                else None
            )
    values = project.files[origin.path].assigned.get(ref.roots[0], ())
    if ref.path or len(values) != 1 or isinstance(values[0][1], Call):
        return None
    return origin._replace(value=values[0][1])


def _argument(project: Project, frame: CallFrame, variable: str) -> Iterator[Closure]:
    """The argument of the call of a frame for a parameter, where it is only one."""
    if not isinstance(frame.event.value, Call):
        return
    for definition in project.resolver.functions(frame.into)[:1]:
        skip = project.resolver.call_graph.is_bound(frame.path, frame.event.value.func, definition)
        call = Closure(frame.path, frame.event.value)
        bound = bind_arguments(
            project.value_sources, call, frame.into, definition, skip=skip, outer=Environment()
        ).arguments.get(variable, ())
        if len(bound) == 1:
            yield bound[0]


def _with_path(value: Expression, ref: Ref) -> Expression | None:
    """``args`` with the path of ``config.seed``: ``args.seed``."""
    if not ref.path:
        return value
    return value._replace(path=(*value.path, *ref.path)) if isinstance(value, Ref) else None


class SeedScope:
    """The names that a statement at a position of a file can write, with what they denote."""

    def __init__(self, project: Project, path: str, position: ControlFlowPosition) -> None:
        self._project = project
        self._path = path
        self._position = position
        self._tree = project.files[path]
        self._inside = position.function.name if position.function else ""
        self._denoted: list[tuple[str, _Identity]] | None = None

    def written(self, origin: SeedOrigin, steps: int = _MOST_STEPS) -> str | None:
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
                base = self._object(origin.path, holder)
                return f'{base}["{key}"]' if base else None
            case Ref() as ref:
                return self._reference(origin, ref, steps)
        return None

    def _reference(self, origin: SeedOrigin, ref: Ref, steps: int) -> str | None:
        if own := self._variable(origin.path, ref):
            return own
        for length in range(len(ref.path) - 1, -1, -1):
            if base := self._object(origin.path, ref._replace(path=ref.path[:length])):
                return ".".join((base, *ref.path[length:]))
        below = _definition(self._project, origin, ref)
        return self.written(below, steps - 1) if below is not None else None

    def _variable(self, path: str, ref: Ref) -> str | None:
        """The same variable, where it is bound here: of the function or of those around, or of the module."""
        if len(ref.roots) != 1:
            return None
        root, word = ref.roots[0], ref.roots[0].rpartition(".")[2].lstrip(":")
        text = ".".join((word, *ref.path))
        if "<locals>" not in root:
            return self._of_module(path, ref)
        scope = root.rpartition(".<locals>.")[0]
        if path != self._path or not (self._inside == scope or self._inside.startswith(f"{scope}.")):
            return None
        if binding_function(self._tree, word, self._inside) != scope:
            return None
        return text if self._inside != scope or self._is_bound(root) else None

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
        """Whether a name of the module is bound before the place; in a function it is."""
        if self._position.function is not None:
            return True
        before = self._position.spots[0].before if self._position.spots else ()
        return any(binds(each, word) for outer in before for each in statements((outer,)))

    def _is_bound(self, root: str) -> bool:
        """Whether a variable of the function is bound before the place on all paths: a parameter, or an assignment."""
        function = self._position.function
        if function and any(root == f"{function.name}.<locals>.{param.name}" for param in function.params):
            return True
        word = root.rpartition(".")[2].lstrip(":")
        return any(binds(each, word) for spot in self._position.spots for each in spot.before)

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
        for target in (each for spot in self._position.spots for each in _variables_bound(spot.before)):
            yield _word(target), target
        function = self._position.function
        if function is None:
            return
        for param in function.params:
            if not param.kind.startswith("*"):
                yield param.name, _variable(f"{self._inside}.<locals>.{param.name}")
        if function.owner and function.params and not function.name.endswith(".__init__"):
            word = function.params[0].name
            for attribute in self._project.resolver.instance_attributes(f"{self._path}{function.owner}"):
                yield f"{word}.{attribute}", _variable(f"{self._inside}.<locals>.{word}", attribute)
        for name in self._tree.assigned:
            if name.startswith(":") and "." not in name and not shadowed(self._tree, name[1:], self._inside):
                yield name[1:], _variable(name)

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


def _variables_bound(before: tuple[Statement, ...]) -> Iterator[Ref]:
    for statement in before:
        for target in statement.targets if isinstance(statement, Assign) else ():
            if isinstance(target, Ref) and not target.path and len(target.roots) == 1:
                yield target


def binds(statement: Statement, word: str) -> bool:
    """Whether a statement binds a variable, a class, a function or an import of this name."""
    match statement:
        case Import(names=names):
            return any(local == word for local, _ in names)
        case DefinitionStatement(name=name):
            return name.rpartition(".")[2].lstrip(":") == word
        case Assign(targets=targets):
            return any(isinstance(each, Ref) and not each.path and _word(each) == word for each in targets)
        case With(items=items):
            return any(isinstance(each, Ref) and not each.path and _word(each) == word for _, each in items)
    return False


def _word(variable: Ref) -> str:
    return variable.roots[0].rpartition(".")[2].lstrip(":")
