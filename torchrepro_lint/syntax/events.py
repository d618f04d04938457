"""Events in evaluation order: the calls, iterations, imports, subscripts and stores of one body, each with its path condition.

Branches that a constant test rules out have no events.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint.syntax.control_flow import StaticContext, constant_truth
from torchrepro_lint.syntax.definitions import header_targets, stored_places
from torchrepro_lint.syntax.nodes import (
    Assign,
    Call,
    Collection,
    Comprehension,
    Constant,
    DefinitionStatement,
    Expression,
    ExpressionStatement,
    FrozenRecord,
    If,
    Import,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    With,
)
from torchrepro_lint.syntax.visitor import blocks, expressions, last_identifier, operands_of


class Guard(FrozenRecord, frozen=True):
    """What surrounds an event: ``with`` (the entered value), ``if`` or ``else`` (the test of that branch).

    ``certain`` says that whatever comes after the ``if`` has been in this branch: the other one raises or leaves.
    """

    kind: str
    value: Expression
    certain: bool = False


class Event(FrozenRecord, frozen=True):
    """One thing that happens to ``value``: ``call``, ``iterate``, ``index``, ``enter`` (by ``with``), ``read`` (of a property),
    ``set`` (an attribute or an item is assigned ``given``; those of ``self`` are left out); or an ``import`` of ``modules``.

    ``statement`` is the innermost statement that it happens in. ``given`` is None where it is an unknown part of a value.
    """

    kind: str
    value: Expression | None
    statement: Statement
    guards: tuple[Guard, ...]
    modules: tuple[str, ...] = ()
    given: Expression | None = None


def event_key(event: Event) -> tuple[str, int]:
    """What tells an event from the others of a project, as long as its facts stay. The event itself does not: it may be worked
    out more than once.
    """
    return event.kind, id(event.statement if event.value is None else event.value)


def events(body: tuple[Statement, ...], setting: StaticContext) -> tuple[Event, ...]:
    """The events of a body. Branches that a constant test rules out are not there."""
    watching = _EventExtractor(setting)
    watching.body(body, ())
    return tuple(watching.found)


class _EventExtractor:
    """Goes over bodies and notes what happens; a list of its own, since every expression of a project comes by here."""

    def __init__(self, setting: StaticContext) -> None:
        self._setting = setting
        self._properties = setting.properties
        self.found: list[Event] = []

    def _note(
        self,
        kind: str,
        value: Expression | None,
        statement: Statement,
        guards: tuple[Guard, ...],
        modules: tuple[str, ...] = (),
        given: Expression | None = None,
    ) -> None:
        self.found.append(Event(kind, value, statement, guards, modules, given))

    def body(self, body: tuple[Statement, ...], guards: tuple[Guard, ...]) -> None:
        """What happens in a body that stands in these guards."""
        for statement in body:
            kind = type(statement)
            if kind is Import:
                self._note("import", None, statement, guards, tuple(_loaded(statement)))  # type: ignore[arg-type]
                continue
            if isinstance(statement, Assign):
                self._assign(statement, guards)
                continue
            inner = self._own(statement, guards)
            if isinstance(statement, SimpleStatement) and statement.kind in ("return", "raise", "break", "continue"):
                return  # what follows in this block never runs
            if isinstance(statement, Loop) and statement.target is not None:
                for each in _iterated(statement.source):
                    self._note("iterate", each, statement, guards)
            if kind is not ExpressionStatement and kind is not SimpleStatement:
                self._blocks(statement, inner)

    def _own(self, statement: Statement, guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
        """What a statement does itself; returns the guards that what is inside it stands in."""
        targets = [id(each) for each in header_targets(statement)]
        inner = guards
        for expression in expressions(statement):
            if id(expression) in targets:
                self._target(expression, statement, inner)
                continue
            self._expression(expression, statement, inner)
            if type(statement) is With:
                self._note("enter", expression, statement, inner)
                inner = (*inner, Guard("with", expression))
        return inner

    def _assign(self, statement: Assign, guards: tuple[Guard, ...]) -> None:
        value = statement.value
        if value is not None:
            self._expression(value, statement, guards)
        # Nothing happens to a mere variable: most targets are one.
        targets = [target for target in statement.targets if type(target) is not Ref or target.path]
        for target in targets:
            look = self._target if statement.op in ("=", ":") else self._expression
            look(target, statement, guards)
        for target in targets if value is not None else ():
            for place, given in stored_places(target, value):
                self._note("set", place, statement, guards, given=given)

    def _target(self, target: Expression, statement: Statement, guards: tuple[Guard, ...]) -> None:
        """What evaluating a target runs: of ``table[key]`` the table and the key, but no look-up."""
        if isinstance(target, Subscript):
            for each in (target.value, *target.indices):
                self._expression(each, statement, guards)
        elif isinstance(target, Collection):
            for item in target.items:
                if item is not None:
                    self._target(item, statement, guards)
        else:
            self._expression(target, statement, guards)

    def _blocks(self, statement: Statement, guards: tuple[Guard, ...]) -> None:
        match statement:
            case If(test=test, body=then, orelse=orelse):
                truth = constant_truth(test, self._setting)
                if truth is not False:
                    self.body(then, (*guards, Guard("if", test, _leaves(orelse))))
                if truth is not True and orelse:
                    self.body(orelse, (*guards, Guard("else", test, _leaves(then))))
            case DefinitionStatement(body=definitions):
                self.body(definitions, guards)
            case _:
                for block in blocks(statement):
                    self.body(block, guards)

    def _expression(self, expression: Expression, statement: Statement, guards: tuple[Guard, ...]) -> None:
        kind = type(expression)
        if kind is Constant:
            return
        if kind is Ref:
            path: tuple[str, ...] = expression.path  # type: ignore[union-attr]  # narrowed by exact type
            if path and not self._properties.isdisjoint(path):
                self._note("read", expression, statement, guards)
            return
        if isinstance(expression, Comprehension):
            self._comprehension(expression, statement, guards)
            return
        if isinstance(expression, Operation) and expression.op == "if":
            test, one, other = expression.operands
            self._expression(test, statement, guards)
            self._expression(one, statement, (*guards, Guard("if", test)))
            self._expression(other, statement, (*guards, Guard("else", test)))
            return
        for part in operands_of(expression):
            if type(part) is not Constant:
                self._expression(part, statement, guards)
        if kind is Call:
            self._note("call", expression, statement, guards)
        elif isinstance(expression, Subscript):
            self._note("index", expression.value, statement, guards)

    def _comprehension(self, made: Comprehension, statement: Statement, guards: tuple[Guard, ...]) -> None:
        for clause in made.clauses:
            self._expression(clause.source, statement, guards)
            for each in _iterated(clause.source):
                self._note("iterate", each, statement, guards)
            for test in clause.tests:
                self._expression(test, statement, guards)
        for element in made.elements:
            self._expression(element, statement, guards)


def _leaves(body: tuple[Statement, ...]) -> bool:
    """Whether a branch ends the function or the program: its last statement returns, raises or exits."""
    match body[-1:]:
        case (SimpleStatement(kind="return" | "raise" | "continue" | "break"),):
            return True
        case (ExpressionStatement(value=Call(func=Ref(roots=roots, path=path))),):
            return ".".join((roots[0], *path)) in ("sys.exit", "os._exit", "builtins.exit", "builtins.quit")
    return False


def _loaded(statement: Import) -> Iterator[str]:
    """The modules that an import may run: those named, and names that may be submodules."""
    yield from statement.modules
    yield from (name for _, name in statement.names)


_ALONG = frozenset(f"builtins.{word}" for word in ("enumerate", "zip", "list", "tuple", "iter", "reversed"))
# Those of other libraries, by their last words: progress bars and parts of a sequence.
_BARS = frozenset({"tqdm", "track", "alive_it", "progress_bar", "islice"})


def _iterated(source: Expression) -> Iterator[Expression]:
    """What iterating an expression iterates: it, and what ``enumerate`` and its like go along."""
    yield source
    match source:
        case Call(func=Ref(roots=roots, path=()), args=args) if not _ALONG.isdisjoint(roots):
            for arg in args:
                yield from _iterated(arg.value)
        case Call(func=func, args=(first, *_)) if last_identifier(func) in _BARS and not first.star:
            yield from _iterated(first.value)
