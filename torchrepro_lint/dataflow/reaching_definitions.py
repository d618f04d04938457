"""Reaching definitions: the values that a variable or an attribute may have at a place, and the in-place updates that it has seen.

Attributes of objects of the project are field-sensitive and flow-insensitive.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint import limits
from torchrepro_lint.dataflow.environment import UNKNOWN_ARGUMENTS, Closure, Environment, ReachingDefinition
from torchrepro_lint.syntax.control_flow import leaves
from torchrepro_lint.syntax.definitions import part_taken, targets, unpack
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Assign,
    Call,
    Clause,
    Collection,
    Comprehension,
    Expression,
    Function,
    If,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    SyntaxTree,
    Try,
    With,
)
from torchrepro_lint.syntax.qualified_names import (
    is_local,
    is_module,
    is_of_comprehension,
    is_top_level,
    local_symbol,
    path_of,
    project_classes,
    split_local,
    split_name,
)
from torchrepro_lint.syntax.scopes import evaluation_start, functions_around
from torchrepro_lint.syntax.use_def import contains
from torchrepro_lint.syntax.visitor import blocks, is_starred, statements

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources


def attribute_values(sources: ValueSources, owner: str, word: str, environment: Environment) -> Iterator[Closure]:
    """The values of an attribute of an object: assigned in methods, in the class body, or as a dataclass field.

    A property has the values that it returns.
    """
    resolver = sources.project.resolver
    for each in resolver.ancestry(owner):
        path, colon, _ = split_name(each)
        name = f"{each}.{word}"
        if not colon:
            continue
        for how, method, value in resolver.stored_attributes(each, word):
            if how in ("=", "[]") and all(
                sources.is_feasible(path, function, evaluation_start(value), environment)
                for function in resolver.functions(method)
            ):
                keys = (resolver.attribute_unpacking(method, word, value) if how == "[]" else None) or ()
                steps = [key for key in keys if isinstance(key, int)]
                yield Closure(path, reduce(part_taken, steps, value) if len(steps) == len(keys) else value, environment)
        if name in environment.arguments:
            yield from environment.arguments[name]
            return
        yield from (Closure(path, value, environment) for how, value in resolver.assigned(name) if how == "=")
        yield from (Closure(path, value, environment) for value in _property(sources, name))


def _property(sources: ValueSources, name: str) -> Iterator[Expression]:
    if sources.project.resolver.is_property(name):
        yield from sources.project.resolver.return_expressions(name)


def reaching_definitions(
    sources: ValueSources, closure: Closure, *, changes: bool = True
) -> Iterator[ReachingDefinition]:
    """The reaching definitions of a variable or attribute, in execution order as far as it is known."""
    ref = closure.value
    assert isinstance(ref, Ref)
    if len(ref.path) == 1:
        yield from _of_attribute(sources, closure, ref, changes=changes)
    elif not ref.path:
        for root in ref.roots:
            for name in sources.project.resolver.modules.resolve(closure.path, root):
                yield from _of_variable(sources, closure, name, changes=changes)


def _of_variable(sources: ValueSources, closure: Closure, name: str, *, changes: bool) -> Iterator[ReachingDefinition]:
    path, colon, rest = split_name(name)
    if not colon or not rest:
        return
    if is_of_comprehension(name) and name in closure.environment.arguments:
        yield from (ReachingDefinition(path, value) for value in closure.environment.arguments[name])
        return
    home = _shared_body(sources.project.files[path], f":{rest}", closure.value.start) if path == closure.path else None
    steps: dict[Statement, list[ReachingDefinition]] = {}
    for each in sources.assignments(path).get(f":{rest}", ()):
        value = Closure(path, each.value, closure.environment)
        steps.setdefault(each.statement, []).append(ReachingDefinition(path, value))
    kills = frozenset(steps)
    for site in sources.mutations(path).get((f":{rest}", ()), ()) if changes else ():
        steps.setdefault(site.statement, []).append(ReachingDefinition(path, change=site.change))

    def decide(test: Expression) -> bool | None:
        known = sources.truth(Closure(path, test, closure.environment)) if isinstance(home, Function) else None
        return sources.correlated_tests(path).get(test) if known is None else known

    reached: ReachingStatements = dict.fromkeys((None, *steps), False)
    if home is not None and steps:
        reached = DefinitionFlow({each: each in kills for each in steps}, decide).at(home.body, closure.value.start)
    for statement, certain in reached.items():
        if statement is None:
            yield from _of_parameter(sources, closure, name)
        else:
            yield from (step._replace(certain=certain) for step in steps[statement])


def held_operations(sources: ValueSources, closure: Closure, variable: Ref) -> list[Closure]:
    """The operations that a method's variable holds, if it is bound to nothing else: ``flip = self.train and random() < 0.5``. It is
    flow-insensitive, since it decides tests, which reaching definitions ask for.
    """
    if variable.path or not closure.environment.receiver_class:
        return []
    path, (root, *_) = closure.path, variable.roots
    found = sources.assignments(path).get(root, ())
    held = [
        Closure(path, each.value, closure.environment)
        for each in found
        if isinstance(each.statement, Assign) and each.statement.op == "=" and isinstance(each.value, Operation)
    ]
    is_parameter = sources.project.resolver.parameter(path + root) is not None
    return [] if is_parameter or len(held) < len(found) else held


def display_of(sources: ValueSources, path: str, variable: Ref) -> Collection | None:
    """The display that a variable of a file is bound to, if it is bound to nothing else and not changed there: ``NAMES = ["a", "b"]``."""
    roots = () if variable.path else variable.roots
    bound = [each for root in roots for each in sources.assignments(path).get(root, ())]
    if len(variable.roots) > 1 or len(bound) != 1 or (variable.roots[0], ()) in sources.mutations(path):
        return None
    statement, value = bound[0].statement, bound[0].value
    is_bound = isinstance(statement, Assign) and statement.op == "=" and value == statement.value
    return value if is_bound and isinstance(value, Collection) else None


def length_of(sources: ValueSources, sized: Closure, depth: int) -> int | None:
    """The number of items of a list or tuple that is displayed, or made of the items of another; None if unknown."""
    match sized.value:
        case Collection(kind="tuple" | "list", items=items) if None not in items and not any(map(is_starred, items)):
            return len(items)
        case Comprehension(kind="list", clauses=(Clause(source=source, tests=()),)) if depth < limits.MAX_LIST_DEPTH:
            return length_of(sources, sized._replace(value=source), depth + 1)
        case Ref(path=()) as ref if depth < limits.MAX_LIST_DEPTH:
            found, is_changed = set[int | None](), False
            for step in sources.reaching_definitions(sized):
                is_changed = is_changed or step.change is not None
                if step.change is None:
                    found.add(length_of(sources, step.value, depth + 1) if isinstance(step.value, Closure) else None)
                if len(found) > 1 or None in found:
                    return None  # whatever the other values are
            if is_changed:
                filled = _counting(sources, sized, ref) if found == {0} else ()
                found = {length_of(sources, sized._replace(value=each), depth + 1) for each in filled}
            return found.pop() if len(found) == 1 else None
    return None


def _counting(sources: ValueSources, sized: Closure, ref: Ref) -> Iterator[Expression]:
    """What the one loop that fills an empty list iterates, an item for each step."""
    sites = [site for root in ref.roots for site in sources.mutations(sized.path).get((root, ()), ())]
    for function in functions_around(sources.project.files[sized.path], ref.start) if len(sites) == 1 else ():
        around = [
            each
            for each in statements(function.body)
            if isinstance(each, Loop) and contains((each,), sites[0].statement.start)
        ]
        if len(around) == 1 and around[0].target is not None and sites[0].change.kind == "add":
            loop = around[0]
            jumps = any(isinstance(each, SimpleStatement) for each in statements(loop.body))
            if any(each == sites[0].statement for each in loop.body) and not jumps:
                yield loop.source


# The statements that reach a place, each with whether it has run on every path there; None is what was before the body.
ReachingStatements: TypeAlias = "dict[Statement | None, bool]"


class DefinitionFlow:
    """Reaching definitions of one place in one body: a forward walk that joins branches, and leaves out those that jump away or
    that ``decide``, the truth of a test where it is known, rules out.

    ``statements`` are those that define the place (True: they kill what was before), and those that update it in place (False).
    """

    def __init__(
        self, statements: Mapping[Statement, bool], decide: Callable[[Expression], bool | None] = lambda _: None
    ) -> None:
        self._statements, self._decide = statements, decide
        self._starts = sorted(each.start for each in statements)

    def at(self, body: tuple[Statement, ...], offset: int) -> ReachingStatements:
        """The statements that reach an offset in a body."""
        return self._through(body, {None: True}, offset)

    def after(self, body: tuple[Statement, ...]) -> ReachingStatements:
        """The statements that reach the end of a body."""
        return self._through(body, {None: True})

    def _through(
        self, body: tuple[Statement, ...], reached: ReachingStatements, offset: int = sys.maxsize
    ) -> ReachingStatements:
        for statement in body:
            if statement.start > offset:
                break
            if statement.end > offset:
                return self._inside(statement, reached, offset)
            reached = self._behind(statement, reached)
        return reached

    def _inside(self, statement: Statement, reached: ReachingStatements, offset: int) -> ReachingStatements:
        """What reaches an offset inside a statement: in a loop also from an earlier iteration, in a handler from all before it."""
        inner = blocks(statement)
        at = next((at for at, each in enumerate(inner) if contains(each, offset)), None)
        if not inner or not self._touches(statement):
            return reached
        if at is None:  # in its header: what binds there may do so before, other than the target of a loop
            binds = not isinstance(statement, Loop) or statement.target is None
            return self._join(reached, [reached, self._header(statement, reached)]) if binds else reached
        if isinstance(statement, Loop | Try):
            reached = self._anywhere(inner[:1] if isinstance(statement, Loop) else inner[:at], reached)
        return self._through(inner[at], self._header(statement, reached), offset)

    def _behind(self, statement: Statement, reached: ReachingStatements) -> ReachingStatements:
        before = self._header(statement, reached)
        if not blocks(statement) or not self._touches(statement):
            return before
        match statement:
            case With(body=body):
                return self._through(body, before)
            case If():
                taken = self._taken(statement)
                if len(taken) == 1:
                    return self._through(taken[0], before)
                staying = [each for each in taken if not leaves(each)]
                return self._join(before, [self._through(each, before) for each in staying or taken])
            case Loop(body=body, orelse=orelse):
                return self._through(orelse, self._anywhere((body,), before))
            case Try(body=body, handlers=handlers, orelse=orelse, final=final):
                broken = self._anywhere((body,), before)
                ways = [self._through(orelse, self._through(body, before))]
                ways += [self._through(each, broken) for _, each in handlers if not leaves(each)]
                return self._through(final, self._join(before, ways))
        return self._join(before, [before, *(self._through(each, before) for each in blocks(statement))])

    def _header(self, statement: Statement, reached: ReachingStatements) -> ReachingStatements:
        if statement not in self._statements:
            return reached
        return {statement: True} if self._statements[statement] else {**reached, statement: True}

    def _anywhere(self, bodies: tuple[tuple[Statement, ...], ...], reached: ReachingStatements) -> ReachingStatements:
        """What reaches a place behind any part of some bodies."""
        return {**reached, **{each: False for each in self._all_in(bodies) if each not in reached}}

    def _all_in(self, bodies: tuple[tuple[Statement, ...], ...]) -> Iterator[Statement]:
        for statement in (each for body in bodies for each in body):
            if self._touches(statement):
                if statement in self._statements:
                    yield statement
                yield from self._all_in(self._taken(statement))

    def _taken(self, statement: Statement) -> tuple[tuple[Statement, ...], ...]:
        """The blocks of a statement that may run."""
        truth = self._decide(statement.test) if isinstance(statement, If) else None
        return blocks(statement) if truth is None else blocks(statement)[not truth :][:1]

    def _touches(self, statement: Statement) -> bool:
        """Whether a statement, or one in its blocks, defines or updates the place."""
        at = bisect_left(self._starts, statement.start)
        return at < len(self._starts) and self._starts[at] < statement.end

    def _join(self, before: ReachingStatements, ways: list[ReachingStatements]) -> ReachingStatements:
        """What reaches the place where some ways meet that went on from ``before``."""
        found = dict.fromkeys(each for way in (before, *ways) for each in way)
        return {each: before.get(each, False) for each in found if any(each in way for way in ways)}


def stores(body: tuple[Statement, ...], place: AccessPath) -> Iterator[tuple[Statement, Expression | None]]:
    """The statements of a body that store to a place, each with the value; None where that is not written out."""
    for statement in statements(body):
        value = statement.value if isinstance(statement, Assign) else None
        for target in targets(statement) if value is not None or not isinstance(statement, Assign) else ():
            for each, part, steps in unpack(target, value or target):
                if isinstance(each, Ref) and each.access_path == place:
                    known = isinstance(statement, Assign) and statement.op in ("=", ":") and not steps
                    yield statement, part if known else None


def _of_parameter(sources: ValueSources, closure: Closure, name: str) -> Iterator[ReachingDefinition]:
    """The arguments of a parameter: from the environment, else from all calls of the project."""
    path = path_of(name)
    found = sources.project.resolver.parameter(name)
    if found is None:
        return
    if name in closure.environment.star_arguments or found.param.kind.startswith("*"):
        yield ReachingDefinition(path, closure.environment.star_arguments.get(name, UNKNOWN_ARGUMENTS))
        return
    values: Iterable[Closure] | None = closure.environment.arguments.get(name)
    if values is None:
        values = (Closure(file, value) for file, value in sources.project.resolver.passed(name))
    yield from (ReachingDefinition(path, value) for value in values)


def _of_attribute(sources: ValueSources, closure: Closure, ref: Ref, *, changes: bool) -> Iterator[ReachingDefinition]:
    """The definitions of an attribute of an object of the project, or of a variable of a module."""
    is_open = False
    for owner, environment in receivers(sources, closure, ref):
        is_open = sources.project.resolver.is_dictionary(owner)
        for value in attribute_values(sources, owner, ref.path[0], environment):
            yield ReachingDefinition(value.path, value)
        for each in sources.project.resolver.ancestry(owner) if changes else ():
            path = path_of(each)
            for root in _receiver_names(sources, path, each):
                for one in sources.mutations(path).get((root, ref.path), ()):
                    yield ReachingDefinition(path, change=one.change)
    for name in _of_module(sources, closure, ref):
        yield from _of_variable(sources, closure, name, changes=changes)
    yield from _stored_in_body(sources, closure, ref) if is_open else ()


def _stored_in_body(sources: ValueSources, closure: Closure, ref: Ref) -> Iterator[ReachingDefinition]:
    """What the body that binds a dictionary with attributes has stored in one: ``options = EasyDict(); options.name = "net"``."""
    home = _shared_body(sources.project.files[closure.path], ref.roots[0], ref.start)
    known = dict(stores(home.body, ref.access_path)) if home is not None else {}
    reached = DefinitionFlow(dict.fromkeys(known, True)).at(home.body, ref.start) if home is not None and known else {}
    for value in (known[statement] for statement in reached if statement is not None):
        yield from () if value is None else (ReachingDefinition(closure.path, closure._replace(value=value)),)


def _of_module(sources: ValueSources, closure: Closure, ref: Ref) -> Iterator[str]:
    modules = sources.project.resolver.modules
    for name in (name for root in ref.roots for name in modules.resolve(closure.path, root) if is_module(name)):
        yield from modules.attribute(path_of(name), ref.path[0]) or ()


def receivers(sources: ValueSources, closure: Closure, ref: Ref) -> Iterator[tuple[str, Environment]]:
    """The classes that the receiver of an attribute may have, each with the environment of the object."""
    resolver = sources.project.resolver
    found = sorted(set(project_classes(resolver.receiver(closure.path, ref))))
    known = closure.environment.receiver_class
    if (
        known
        and any(name in resolver.ancestry(known) for name in found)
        and resolver.starts_at_receiver(closure.path, ref)
    ):
        yield known, closure.environment
        return
    made = False
    for each in sources.of(closure._replace(value=ref._replace(path=ref.path[:-1]))):
        if isinstance(each.value, Call):
            for name in sources.project.names(each.path, each.value.func):
                if resolver.classes(name):
                    made = True
                    yield name, sources.construct(each, name).environment
    if not made:
        yield from ((name, Environment.of()) for name in found)


def _receiver_names(sources: ValueSources, path: str, owner: str) -> Iterator[str]:
    """The first parameters of a class's methods."""
    for method in (method for each in sources.project.resolver.classes(owner) for _, method in each.methods):
        functions = sources.project.resolver.functions(path + method)
        yield from (local_symbol(method, each.params[0].name) for each in functions if each.params)


def _shared_body(facts: SyntaxTree, name: str, offset: int) -> Function | SyntaxTree | None:
    """The function or file whose body both binds a variable and contains a place, so that their order is known; None if the
    place is in a nested function.
    """
    inner = next(iter(functions_around(facts, offset)), None)
    if is_of_comprehension(name) or not is_local(name):
        return facts if inner is None and is_top_level(name) else None
    function, word = split_local(name)
    return inner if inner is not None and inner.name == function and is_top_level(word) else None
