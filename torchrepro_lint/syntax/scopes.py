"""Scopes, bindings and control-flow positions in one file: which names a word may stand for, and what stands around a place.

Every binding of a scope counts, so a word keeps all its candidates: ``try: import cupy as np`` next to ``import numpy as np`` gives
both. A control-flow position is the function around a statement, and the blocks around it there.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator

from torchrepro_lint.syntax.nodes import (
    Assign,
    Collection,
    Comprehension,
    Constant,
    DefinitionStatement,
    Expression,
    Function,
    If,
    Loop,
    Operation,
    Record,
    Ref,
    Statement,
    Subscript,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import imported_root, interned_names, is_lambda, module_symbol, top_package
from torchrepro_lint.syntax.visitor import (
    blocks,
    expressions_within,
    is_same_reference,
    last_identifier,
    operands_of,
    subexpressions,
)

_BUILTINS = {word: (f"builtins.{word}",) for word in dir(builtins)}


class Scope:
    """A scope: ``kind`` is ``module``, ``class``, ``function`` or ``comprehension``; ``name`` prefixes the names that it binds.

    ``bound`` maps each word to the names that it may stand for, sorted, as an interned tuple. ``rebound`` are the imported words
    that this body rebinds later: what they stand for until the lowering comes there.
    """

    __slots__ = ("bound", "counters", "kind", "name", "parent", "rebound", "redirected")

    def __init__(self, kind: str, name: str, parent: Scope | None) -> None:
        self.kind = kind
        self.name = name
        self.parent = parent
        self.bound: dict[str, tuple[str, ...]] = {}
        self.rebound: dict[str, tuple[str, ...]] = {}
        self.redirected: dict[str, Scope] = {}
        self.counters: dict[str, int] = {}

    def own(self, word: str) -> str:
        """The full name of a variable, function or class that this scope binds."""
        return _interned(f"{self.name}{word}", self.bound.get(word))

    def bind(self, word: str, name: str | None = None) -> None:
        """Bind a word to a name; by default to a variable of this scope."""
        scope = self.redirected.get(word, self) if self.redirected else self
        known, added = scope.bound.get(word), name or f"{scope.name}{word}"
        if not known:
            scope.bound[word] = interned_names((added,))
        elif added not in known:
            scope.bound[word] = interned_names(tuple(sorted((*known, added))))

    def unbind(self, word: str, name: str) -> None:
        """Remove one of the names that a word may stand for."""
        if word in self.bound:
            self.bound[word] = tuple(each for each in self.bound[word] if each != name)

    def variable(self, word: str) -> str:
        """The full name of the variable that an assignment to a word in this scope writes."""
        scope = self.redirected.get(word, self) if self.redirected else self
        return _interned(f"{scope.name}{word}", scope.bound.get(word))

    def redirect(self, word: str, scope: Scope) -> None:
        """``global`` and ``nonlocal``: the word belongs to another scope; ``global`` at the top level has no effect."""
        if scope is not self:
            self.redirected[word] = scope

    def numbered(self, word: str) -> str:
        """A word made unique in this scope: ``<lambda>``, ``<lambda>2`` and so on."""
        count = self.counters[word] = self.counters.get(word, 0) + 1
        return word if count == 1 else f"{word}{count}"

    def resolve(self, word: str) -> tuple[str, ...]:
        """Name resolution: all names that a word may stand for where it is read in this scope, sorted."""
        scope: Scope | None = self
        while scope is not None:
            if scope.redirected and (other := scope.redirected.get(word)) is not None:
                return other.resolve(word)
            if (names := scope.bound.get(word)) and (scope.kind != "class" or scope is self):
                return scope.rebound[word] if word in scope.rebound and self.function() is scope else names
            scope = scope.parent
        return _BUILTINS.get(word) or interned_names((f"?{word}",))

    def function(self) -> Scope:
        """The nearest scope that is no comprehension: the one that a walrus binds in."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope

    def owner(self) -> str | None:
        """The nearest enclosing class, whose bases ``super()`` means."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "class":
            scope = scope.parent
        return scope.name[:-1] if scope else None

    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


def _interned(name: str, bound: tuple[str, ...] | None) -> str:
    """A name as the string object that the scope has bound already, if it has."""
    return bound[0] if bound and bound[0] == name else name


class Imported(Record, frozen=True):
    """An import statement: ``module`` with its dots as written, or None for a plain ``import``; names with the words
    they are bound to, empty where there is no ``as``. ``star`` says that it is ``from module import *``.
    """

    module: str | None
    aliases: tuple[tuple[str, str], ...]
    star: bool = False

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that it loads, as written."""
        return tuple(name for name, _ in self.aliases) if self.module is None else (self.module,)


def import_bindings(imported: Imported) -> Iterator[tuple[str, str]]:
    """The bindings of an import: (word, name). ``import a.b`` binds ``a``; a star binds nothing here."""
    for name, word in imported.aliases:
        if imported.module is not None:
            yield word or name, imported_root(imported.module, name)
        elif word:
            yield word, name
        else:
            yield (top_package(name),) * 2


class BlockPosition(Record, frozen=True):
    """The position of a statement in its block; ``parent`` is the statement whose block that is, None for the body of the function."""

    block: tuple[Statement, ...]
    at: int
    parent: Statement | None

    @property
    def statement(self) -> Statement:
        return self.block[self.at]

    @property
    def before(self) -> tuple[Statement, ...]:
        """The statements of the block that run before this one."""
        return self.block[: self.at]


class ControlFlowPosition(Record, frozen=True):
    """A control-flow position: the function around a statement (None at the top level) and its blocks, outermost first (``spots``)."""

    function: Function | None
    spots: tuple[BlockPosition, ...]

    @property
    def body(self) -> tuple[Statement, ...]:
        return self.spots[0].block

    def symbol(self, path: str) -> str:
        """The function in a file, or the module where the statement stands at the top level."""
        return path + self.function.name if self.function is not None else module_symbol(path)

    @property
    def before(self) -> Iterator[Statement]:
        """The statements that precede it in the blocks around it, in order, each without what is nested in it."""
        for spot in self.spots:
            yield from spot.before


def control_flow_position(facts: SyntaxTree, offset: int) -> ControlFlowPosition | None:
    """The control-flow position of the innermost statement at an offset; None where no statement stands."""
    function = function_at(facts, offset)
    spots = tuple(_spots(function.body if function else facts.body, offset, None))
    return ControlFlowPosition(function, spots) if spots else None


def stored_before(facts: SyntaxTree, read: Ref | Subscript) -> Expression | None:
    """What the last statement in the blocks around, of those before, stores in the attribute or under the literal key that is read:
    ``time.time()`` of ``args.seed = time.time()``, ``set(names)`` of ``splits["train"] = set(names)``. None where none does.
    """
    at, stored = control_flow_position(facts, read.start), None
    for each in at.before if at is not None else ():
        match each:
            case Assign(op="=", targets=targets, value=value) if any(_is_same_place(one, read) for one in targets):
                stored = value
            case Assign(op="=", targets=targets, value=value) if isinstance(read, Subscript):
                whole = any(is_same_reference(one, read.value) for one in targets)
                stored = _entry(value, read.indices) if whole else stored
    return stored


def _is_same_place(one: Expression, other: Expression) -> bool:
    match one, other:
        case Subscript(value=whole, indices=(Constant(value=key),)), Subscript(indices=(Constant(value=read),)):
            return key == read and is_same_reference(whole, other.value)
    return is_same_reference(one, other)


def _entry(display: Expression | None, indices: tuple[Expression, ...]) -> Expression | None:
    """The value under a literal key of a dictionary display."""
    match display, indices:
        case Collection(kind="dict", items=items), (Constant(value=key),):
            pairs = zip(items[::2], items[1::2], strict=True)
            found = [value for name, value in pairs if isinstance(name, Constant) and name.value == key]
            return found[-1] if found else None
    return None


def functions_around(facts: SyntaxTree, offset: int) -> list[Function]:
    """The functions and lambdas whose text contains an offset, innermost first."""
    around = [each for each in facts.functions if each.start <= offset < each.end]
    return sorted(around, key=lambda each: each.end - each.start)


def function_around(facts: SyntaxTree, place: Expression | Statement) -> Function | None:
    """The innermost function or lambda whose text contains an expression or a statement."""
    return next(iter(functions_around(facts, place.start)), None)


def function_at(facts: SyntaxTree, offset: int) -> Function | None:
    """The innermost function (no lambda) whose body contains an offset."""
    around = [
        each
        for each in facts.functions
        if each.body and each.body[0].start <= offset < each.end and not is_lambda(each.name)
    ]
    return max(around, key=lambda each: each.start, default=None)


def in_class_body(facts: SyntaxTree, offset: int) -> bool:
    """Whether an offset stands in the body of a class, outside of its methods, as the default of a field does."""
    around = [each for each in facts.classes if each.body and each.body[0].start <= offset < each.end]
    function = function_at(facts, offset) if around else None
    return any(function is None or function.start < each.start for each in around)


def branching_around(body: tuple[Statement, ...], offset: int) -> Iterator[If]:
    """The ``if`` statements in whose branches an offset stands, innermost first."""
    parents = [spot.parent for spot in _spots(body, offset, None)]
    return (each for each in reversed(parents) if isinstance(each, If))


def in_loop(level: ControlFlowPosition) -> bool:
    """Whether a position is inside a loop of its function."""
    return any(isinstance(spot.parent, Loop) for spot in level.spots)


def comprehension_names(level: ControlFlowPosition, offset: int) -> frozenset[str]:
    """The names bound by the comprehensions around an offset; they shadow the variables outside."""
    return frozenset(
        last_identifier(target)
        for each in expressions_within(level.spots[-1].statement)
        if isinstance(each, Comprehension) and each.start <= offset < each.end
        for clause in each.clauses
        for target in subexpressions(clause.target)
    )


def is_elif(text: str, statement: Statement) -> bool:
    """Whether a statement is an ``elif``, so that no statement can be inserted before it."""
    return isinstance(statement, If) and text.startswith("elif", statement.start)


def _spots(body: tuple[Statement, ...], offset: int, around: Statement | None) -> Iterable[BlockPosition]:
    for at, statement in enumerate(body):
        if statement.start <= offset < statement.end:
            yield BlockPosition(body, at, around)
            if not isinstance(statement, DefinitionStatement):
                for block in blocks(statement):
                    yield from _spots(block, offset, statement)
            return


def evaluation_start(place: Expression | Statement) -> int:
    """The offset at which the evaluation of an expression begins, or that of a statement. It is the start of the text, but for
    ``one if test else other``: there the test comes first, and ``one``, which has the same start, may not run at all.
    """
    while isinstance(place, Operation | Collection) and (operands := operands_of(place)):
        place = operands[0]
    return place.start
