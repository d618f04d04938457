"""Liveness of loaders: whether a run takes samples from a loader, or only makes it.

A loader, and what only its iteration draws with, is followed forward: a transform into its dataset, a dataset into its loader, and
these into variables, attributes, arguments, containers and the callers that the run has. It is dead if each use asks for its length
or an attribute, or is in a function that the run does not reach. A use that is not known takes samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint import limits
from torchrepro_lint.catalogue.libraries import loader_names, samplers_of
from torchrepro_lint.dataflow.environment import Closure
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.program_index import entered_functions
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Collection,
    Constant,
    DefinitionStatement,
    Expression,
    ExpressionStatement,
    If,
    Operation,
    Ref,
    SimpleStatement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import in_project, path_of
from torchrepro_lint.trace.call_targets import runs_in_worker
from torchrepro_lint.trace.contexts import involved_values

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.value_sources import ValueFlow
    from torchrepro_lint.syntax.use_def import ExpressionPosition
    from torchrepro_lint.trace.builder import Trace

# A value that holds the object that is followed: its file, the expression, and the indices and keys that lead to the object in it.
_Holder: TypeAlias = tuple[str, Expression, tuple[object, ...]]
# What draws where samples are taken, and what keeps it for that.
_LATER = lazy_pattern(r"torch\.utils\.data\.(\w+\.)*[A-Z]\w*|(\w+\.)*(datasets|transforms)\.(\w+\.)*[A-Z]\w*")
_SPLITS = frozenset({"torch.utils.data.random_split", "torch.utils.data.dataset.random_split"})
_ASKING = frozenset(f"builtins.{word}" for word in ("len", "print", "isinstance", "type", "id", "repr", "str", "bool"))
_TESTS = frozenset({"is", "is not", "not", "==", "!=", "f"})
# Attributes that take samples or indices from the same objects, and methods that take none.
_PARTS = frozenset({"dataset", "sampler", "batch_sampler", "transform", "transforms", "target_transform"})
_SETTERS = frozenset({"set_epoch", "__len__"})


def draws_later(names: Iterable[str]) -> bool:
    """Whether a call with these names makes a loader of a library, or what draws where a loader takes samples."""
    found = list(names)
    return bool(found) and all(name in loader_names() or _LATER.fullmatch(name) for name in found)


def is_dead(project: ValueFlow, run: Trace, path: str, made: Call) -> bool:
    """Whether a run takes no samples through an object that a call makes there."""
    liveness = _Liveness(project, run)
    left: list[_Holder] = [(path, made, ())]
    seen: set[_Holder] = set()
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        for further in liveness.uses(*each):
            if further is None or len(seen) > limits.MAX_LOADER_USES:
                return False
            left.append(further)
    return True


class _Liveness:
    """The uses of what holds a loader, in one run. None stands for a use that may take samples."""

    def __init__(self, project: ValueFlow, run: Trace) -> None:
        self._project, self._run = project, run

    def uses(self, path: str, held: Expression, keys: tuple[object, ...]) -> Iterator[_Holder | None]:
        """The uses of a holder."""
        position = self._project.uses.spots(path).of(held)
        if position is None:
            yield None
        elif position.written or path + position.function not in self._run.functions:
            return
        elif position.parent is None:
            yield from self._used_by_statement(path, held, keys, position)
        elif isinstance(position.parent, Call):
            yield from self._passed(path, held, position.parent, keys)
        else:
            yield from _used_by_expression(path, held, position.parent, keys)

    def _used_by_statement(
        self, path: str, held: Expression, keys: tuple[object, ...], position: ExpressionPosition
    ) -> Iterator[_Holder | None]:
        match position.statement:
            case ExpressionStatement() | If() | SimpleStatement(kind="assert" | "del"):
                return
            case Assign(op="=" | ":", targets=targets, value=value) if value == held:
                for target in targets:
                    yield from self._stored(path, target, keys, position)
            case SimpleStatement(kind="return"):
                function = path + position.function
                for edge in self._run.call_edges.get(function, ()):
                    caller, call = path_of(edge.caller), edge.event.value
                    calls = isinstance(call, Call) and function in self._project.names(caller, call.func)
                    yield (caller, call, keys) if call is not None and calls else None
            case _:
                yield None

    def _stored(
        self, path: str, target: Expression | None, keys: tuple[object, ...], position: ExpressionPosition
    ) -> Iterator[_Holder | None]:
        """The uses of what a target is assigned."""
        match target:
            case Ref(path=()) if any(isinstance(block.owner, DefinitionStatement) for block in position.blocks):
                yield None  # an attribute of a class
            case Ref(path=()):
                reads = self._project.uses.of_variable(path, target, position, position.statement.end)
                yield from self._read(reads, keys)
            case Ref(path=(word,)) if self._is_own(path, target, position.function):
                found = self._project.uses.attributes.having(word)
                reads_of = ((p, each, each.path[at + 1 :] if isinstance(each, Ref) else ()) for p, each, at in found)
                yield from self._read(reads_of, keys)
            case Collection(items=items) if not any(isinstance(each, Operation) for each in items):
                if not keys:
                    for item in items:
                        yield from self._stored(path, item, (), position)
                elif isinstance(keys[0], int) and keys[0] < len(items):
                    yield from self._stored(path, items[keys[0]], keys[1:], position)
                else:
                    yield None
            case _:
                yield None

    def _is_own(self, path: str, target: Ref, function: str) -> bool:
        """Whether an attribute is that of a method's object, and no code from outside reads it, nor any by a computed name."""
        resolver = self._project.resolver
        if "getattr" in resolver.modules.summary(path).calls or not resolver.starts_at_receiver(path, target):
            return False
        bases = [each for each in resolver.ancestry(resolver.owner(path + function)) if not in_project(each)]
        return {"builtins.object", "abc.ABC", "torch.nn.Module"}.issuperset(bases)

    def _read(
        self, reads: Iterable[tuple[str, Expression, tuple[str, ...]]], keys: tuple[object, ...]
    ) -> Iterator[_Holder | None]:
        for path, read, words in reads:
            position = self._project.uses.spots(path).of(read)
            if position is None or path + position.function in self._run.functions:
                if not words:
                    yield path, read, keys
                elif keys or position is None or not self._only_asks(path, read, words, position):
                    yield None

    def _only_asks(self, path: str, read: Expression, words: tuple[str, ...], position: ExpressionPosition) -> bool:
        """Whether a read of an attribute of a loader or dataset takes no samples."""
        if isinstance(position.parent, Call) and position.parent.func == read:
            return words[-1] in _SETTERS or (len(words) > 1 and words[0] == "dataset")
        if words[-1] not in _PARTS:
            return True
        call = position.parent
        return isinstance(call, Call) and _ASKING.issuperset(self._project.names(path, call.func) or ("",))

    def _passed(self, path: str, held: Expression, call: Call, keys: tuple[object, ...]) -> Iterator[_Holder | None]:
        """What a call does with an argument."""
        names, resolver = self._project.names(path, call.func), self._project.resolver
        if not names or call.func == held or any(arg.star and arg.value == held for arg in call.args):
            yield None
        elif _ASKING.issuperset(names):
            return
        elif all(map(self._holds, names)):
            yield path, call, ()
        else:
            entered = [[*entered_functions(resolver, name, "call")] if in_project(name) else [] for name in names]
            if not all(entered):
                yield None
            for function in (each for functions in entered for each in functions):
                for definition in resolver.functions(function):
                    for arg, param in resolver.call_graph.receiving(path, call, definition):
                        if arg.value == held and "*" in param.kind:
                            yield None
                        elif arg.value == held:
                            reads = self._project.uses.of_parameter(path_of(function), definition, param.name)
                            yield from self._read(reads, keys)

    def _holds(self, name: str) -> bool:
        """Whether a call with this name keeps its arguments for when samples are taken."""
        known = self._project.resolver.ancestry(name) if in_project(name) else (name,)
        return any(each in loader_names() or each in _SPLITS or _LATER.fullmatch(each) for each in known)


def _used_by_expression(
    path: str, held: Expression, around: Expression, keys: tuple[object, ...]
) -> Iterator[_Holder | None]:
    match around:
        case Collection(kind=kind, items=items):
            at = items.index(held)
            key = items[at - 1] if kind == "dict" and at % 2 else None
            if kind in ("tuple", "list"):
                yield path, around, (at, *keys)
            else:
                yield (path, around, (key.value, *keys)) if isinstance(key, Constant) else None
        case Operation(op="if", operands=(test, *_)) if test == held:
            return
        case Operation(op="if" | "or" | "and"):
            yield path, around, keys
        case Operation(op=op) if op in _TESTS:
            return
        case Subscript(indices=(Constant(value=key),)) if keys and around.value == held:
            if key == keys[0]:
                yield path, around, keys[1:]
        case _:
            yield None


@query()
def loader_modes(project: ValueFlow, path: str, value: Expression) -> frozenset[bool | str]:
    """Whether the loaders that an expression reads fetch in workers, and whether any has a sampler."""
    return frozenset(_find_loader_modes(project, Closure(path, value)))


def _find_loader_modes(project: ValueFlow, used: Closure) -> Iterator[bool | str]:
    for loader in _loaders(project, used):
        call = loader.value
        assert isinstance(call, Call)
        yield runs_in_worker(project.resolver, loader.path, call, project.names(loader.path, call.func))
        yield from ("orders" for _ in samplers_of(call))


def _loaders(project: ValueFlow, used: Closure) -> Iterator[Closure]:
    if _is_loader(project, used):
        yield used
        return
    for part in involved_values(used.value):
        for each in project.value_sources.of(used._replace(value=part)):
            if _is_loader(project, each):
                yield each


def _is_loader(project: ValueFlow, made: Closure) -> bool:
    call = made.value
    return isinstance(call, Call) and not loader_names().isdisjoint(project.names(made.path, call.func))
