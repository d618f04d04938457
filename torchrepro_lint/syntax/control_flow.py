"""Control flow of one body: its events in evaluation order, with their path conditions, and tests that are constant.

An event is a call, an iteration, an import, a subscript or a store, with its path condition. Control flow is structured, so all of
this is read from the nesting of blocks. Branches that a constant test rules out have no events; constant tests are literals,
``__name__ == "__main__"``, ``TYPE_CHECKING``, and comparisons of torch's version.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from torchrepro_lint.syntax.definitions import stored_places, targets
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
    Record,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    Try,
    With,
)
from torchrepro_lint.syntax.qualified_names import last_word
from torchrepro_lint.syntax.visitor import blocks, expressions, iterated_values, operands_of, shown_values

if TYPE_CHECKING:
    from packaging.version import Version


class StaticContext(Record, frozen=True):
    """What is known statically of a run: whether the module is the main module, the target torch release (empty: unknown), and
    the names of properties, whose reading runs code.
    """

    main: bool = False
    torch: str = ""
    properties: frozenset[str] = frozenset()


def constant_truth(test: Expression, context: StaticContext) -> bool | None:
    """The constant value of a test; None where it is not known statically."""
    match test:
        case Constant(value=value):
            return bool(value)
        case Operation(op="not", operands=(operand,)):
            truth = constant_truth(operand, context)
            return None if truth is None else not truth
        case Ref(roots=roots, path=path):
            return False if last_word((*roots, *path)[-1]) == "TYPE_CHECKING" else None
        case Operation(op="and" | "or" as op, operands=operands):
            truths = [constant_truth(operand, context) for operand in operands]
            decisive = op == "or"
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
        case Operation(op=op, operands=(left, right)) if op in _COMPARISONS and context.torch:
            return _version_test(op, left, right, context.torch)
        case Operation(op="==", operands=(Ref(roots=("builtins.__name__",), path=()), Constant(value=str(name)))):
            is_misspelt = name.startswith("__") and name not in ("__main__", "__mp_main__")  # no module has such a name
            return False if is_misspelt else context.main if name == "__main__" else None
    return context.main if is_main_test(test) else None


def is_main_test(test: Expression) -> bool:
    """Whether a test is ``__name__ == "__main__"``, either way round."""
    match test:
        case Operation(op="==", operands=(Ref(roots=("builtins.__name__",), path=()), Constant(value="__main__"))):
            return True
        case Operation(op="==", operands=(Constant(value="__main__"), Ref(roots=("builtins.__name__",), path=()))):
            return True
    return False


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _version_test(op: str, left: Expression, right: Expression, target: str) -> bool | None:
    """A comparison of ``torch.__version__`` with a literal, plain or inside ``version.parse`` and the like.

    The target is a minor release; a bound inside it (``>= "2.1.2"`` for 2.1) is undecided.
    """
    if _is_torch_version(left) and (bound := _literal_version(right)):
        compare = _COMPARISONS[op]
    elif _is_torch_version(right) and (bound := _literal_version(left)):
        compare = lambda one, other: _COMPARISONS[op](other, one)  # noqa: E731  # the sides are swapped
    else:
        return None
    from packaging.version import Version

    minor = Version(target).release[:2]
    wanted = (*bound.release, 0)[:2]
    if minor == wanted and any(bound.release[2:]):
        return None
    return compare(minor, wanted)


def _is_torch_version(expression: Expression) -> bool:
    match expression:
        case Ref(roots=("torch",), path=("__version__",)) | Ref(roots=("torch.__version__",), path=()):
            return True
        case Call(args=(arg,)):
            return _is_torch_version(arg.value)
    return False


def _literal_version(expression: Expression) -> Version | None:
    match expression:
        case Constant(value=str(text)):
            from packaging.version import Version

            try:
                return Version(text)
            except ValueError:  # of too many digits, too
                return None
        case Call(args=(arg,)):
            return _literal_version(arg.value)
    return None


class Guard(FrozenRecord, frozen=True):
    """A guard on the path condition of an event: ``with`` (the entered value), ``if`` or ``else`` (the test of that branch).

    ``certain`` says that all code after the ``if`` has run through this branch, since the other one raises or leaves.
    """

    kind: str
    value: Expression
    certain: bool = False


def uncertain_guards(guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
    """The guards that leave open whether an event happens."""
    return tuple(guard for guard in guards if not guard.certain and guard.kind != "with")


def holds_always(events: set[tuple[Guard, ...]], guards: tuple[Guard, ...]) -> bool:
    """Whether one of several events, each under its guards, happens whenever what is under ``guards`` does."""
    return any(guards[: len(event)] == event for event in with_both_branches(events))


def with_both_branches(events: set[tuple[Guard, ...]]) -> set[tuple[Guard, ...]]:
    """The guards of events, also without a test under both branches of which there is one."""
    merged, size = set(events), -1
    while len(merged) != size:
        size = len(merged)
        tested = [event for event in merged if event and event[-1].kind == "if"]
        merged |= {each[:-1] for each in tested if (*each[:-1], Guard("else", each[-1].value)) in merged}
    return merged


class Event(FrozenRecord, frozen=True):
    """An event that happens to ``value``: ``call``, ``iterate``, ``index`` (by the subscript ``given``), ``enter`` (by ``with``),
    ``read`` (of a property), ``set`` (an attribute or an item is assigned ``given``; those of ``self`` are left out); or an
    ``import`` of ``modules``.

    ``statement`` is the innermost statement around it. ``given`` is None where it is an unknown part of a value.
    """

    kind: str
    value: Expression | None
    statement: Statement
    guards: tuple[Guard, ...]
    modules: tuple[str, ...] = ()
    given: Expression | None = None

    @property
    def defines(self) -> str:
        """What a ``def`` or ``class`` statement binds, of which the event evaluates a decorator or a default; else empty."""
        return self.statement.name if isinstance(self.statement, DefinitionStatement) else ""


# What identifies an event: its file, what happens, and the node that it happens to.
EventIdentity: TypeAlias = tuple[str, str, Expression | Statement]


def event_key(path: str, event: Event) -> EventIdentity:
    """The key of an event of a file. The event object itself may be computed more than once."""
    return path, event.kind, event.statement if event.value is None else event.value


def events(body: tuple[Statement, ...], context: StaticContext) -> tuple[Event, ...]:
    """The events of a body in evaluation order, without branches that a constant test rules out."""
    extractor = _EventExtractor(context)
    extractor.body(body, ())
    return tuple(extractor.found)


class _EventExtractor:
    """Walks bodies and collects their events in a list: generators would cost too much for every expression of a project."""

    def __init__(self, context: StaticContext) -> None:
        self._context = context
        self._properties = context.properties
        self.found: list[Event] = []
        # What is iterated when a variable is, as by a progress bar, with the guards of the binding: ``with tqdm(loader) as bar``.
        self._shown: dict[tuple[str, ...], list[tuple[tuple[Guard, ...], Expression]]] = {}

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
        """Collect the events of a body under these guards."""
        for statement in body:
            kind = type(statement)
            if kind is Import:
                self._note("import", None, statement, guards, tuple(_loaded_modules(statement)))  # type: ignore[arg-type]
                continue
            if isinstance(statement, Assign):
                self._assign(statement, guards)
                continue
            inner = self._header(statement, guards)
            if isinstance(statement, SimpleStatement | ExpressionStatement) and leaves((statement,)):
                return  # what follows in this block never runs
            if isinstance(statement, Loop) and statement.target is not None:
                for each in self._iterates(statement.source):
                    self._note("iterate", each, statement, guards)
            if kind is not ExpressionStatement and kind is not SimpleStatement:
                self._blocks(statement, inner)

    def _header(self, statement: Statement, guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
        """Collect the events of a statement without its blocks; returns the guards of its blocks."""
        written = (*targets(statement),)
        inner = guards
        for expression in expressions(statement):
            if expression in written:
                self._target(expression, statement, inner)
                continue
            self._expression(expression, statement, inner)
            if type(statement) is With:
                self._note("enter", expression, statement, inner)
                inner = (*inner, Guard("with", expression))
        for shown, target in statement.items if isinstance(statement, With) else ():
            self._bind(target, shown, guards)
        return inner

    def _bind(self, target: Expression | None, value: Expression, guards: tuple[Guard, ...]) -> None:
        """Note what a variable shows from here on; what it was bound to in the same block, or in one inside of it, is gone."""
        if isinstance(target, Ref) and not target.path:
            shown = [(guards, each) for each in shown_values(value)]
            if shown or target.roots in self._shown:
                before = self._shown.get(target.roots, ())
                self._shown[target.roots] = [*(each for each in before if each[0][: len(guards)] != guards), *shown]

    def _iterates(self, source: Expression) -> Iterator[Expression]:
        """The values that iterating an expression iterates, also behind a variable that holds a progress bar."""
        for each in iterated_values(source):
            yield each
            if self._shown and isinstance(each, Ref) and not each.path:
                yield from (shown for _, shown in self._shown.get(each.roots, ()))

    def _assign(self, statement: Assign, guards: tuple[Guard, ...]) -> None:
        value = statement.value
        if value is not None:
            self._expression(value, statement, guards)
            if self._shown or type(value) is Call:
                for target in statement.targets:
                    self._bind(target, value, guards)
        # Most targets are plain variables, which have no events.
        places = [target for target in statement.targets if type(target) is not Ref or target.path]
        for target in places:
            visit = self._target if statement.op in ("=", ":") else self._expression
            visit(target, statement, guards)
        if value is not None:
            for target in places:
                for place, given in stored_places(target, value):
                    self._note("set", place, statement, guards, given=given)

    def _target(self, target: Expression, statement: Statement, guards: tuple[Guard, ...]) -> None:
        """The events of evaluating a target: of ``table[key]`` those of the table and the key, but no look-up."""
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
                truth = constant_truth(test, self._context)
                if truth is not False:
                    self.body(then, (*guards, Guard("if", test, _is_certain(then, orelse))))
                if truth is not True and orelse:
                    self.body(orelse, (*guards, Guard("else", test, _is_certain(orelse, then))))
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
            if type(part) is Ref:  # most are names and constants
                if part.path and not self._properties.isdisjoint(part.path):
                    self._note("read", part, statement, guards)
            elif type(part) is not Constant:
                self._expression(part, statement, guards)
        if isinstance(expression, Call):
            self._call(expression, statement, guards)
        elif isinstance(expression, Subscript):
            self._note("index", expression.value, statement, guards, given=expression)

    def _call(self, call: Call, statement: Statement, guards: tuple[Guard, ...]) -> None:
        """A call, and the iteration of what ``next(iterator)`` advances."""
        self._note("call", call, statement, guards)
        if isinstance(call.func, Ref) and call.func.roots == ("builtins.next",) and call.args:
            for each in self._iterates(call.args[0].value):
                self._note("iterate", each, statement, guards)

    def _comprehension(self, made: Comprehension, statement: Statement, guards: tuple[Guard, ...]) -> None:
        for clause in made.clauses:
            self._expression(clause.source, statement, guards)
            for each in self._iterates(clause.source):
                self._note("iterate", each, statement, guards)
            for test in clause.tests:
                self._expression(test, statement, guards)
        for element in made.elements:
            self._expression(element, statement, guards)


def _is_certain(branch: tuple[Statement, ...], other: tuple[Statement, ...]) -> bool:
    """Whether all code after an ``if`` has run through a branch. Where both return, a caller may have come through either."""
    returns = isinstance(other[-1], SimpleStatement) and other[-1].kind != "raise" if other else False
    return leaves(other) and not (returns and leaves(branch))


def leaves(body: tuple[Statement, ...], raises: Callable[[Call], bool] = lambda _: False) -> bool:
    """Whether every path through a block ends with a jump out of it, ends the program, or calls what only ``raises``."""
    match body[-1:]:
        case (SimpleStatement(kind="return" | "raise" | "continue" | "break"),):
            return True
        case (ExpressionStatement(value=Call(func=func) as call),):
            exits = isinstance(func, Ref) and ".".join((func.roots[0], *func.path)) in _EXITS
            return exits or raises(call)
        case (If(body=then, orelse=orelse),):
            return leaves(then, raises) and leaves(orelse, raises)
        case (With(body=inner),):
            return leaves(inner, raises)
        case (Try(body=tried, handlers=handlers, orelse=orelse, final=final),):
            ways = (orelse or tried, *[handler for _, handler in handlers])
            return leaves(final, raises) or all(leaves(each, raises) for each in ways)
    return False


_EXITS = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit"})


def _loaded_modules(statement: Import) -> Iterator[str]:
    """The modules that an import may load: those named, and bound names that may be submodules."""
    yield from statement.modules
    yield from (name for _, name in statement.names)
