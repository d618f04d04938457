"""Control-flow positions, dominators, and the use-def index: the uses of each name, and the kills that end a variable's old value.

The position of a statement is read from the nesting of blocks. That of an expression is the operand's parent, the statement, and the
blocks around it; the index is built in one walk.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple

from torchrepro_lint.syntax.definitions import bound_references, targets
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
    Function,
    If,
    Lambda,
    Loop,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    SyntaxTree,
    With,
)
from torchrepro_lint.syntax.qualified_names import MODULE_ROOT, is_lambda
from torchrepro_lint.syntax.visitor import (
    blocks,
    expressions,
    expressions_within,
    last_identifier,
    operands_of,
    subexpressions,
)


class Block(FrozenRecord, frozen=True):
    """One of the bodies of a statement, or of the function itself, where ``owner`` is None.

    ``exit_kind`` is how its last statement jumps out of it: ``return``, ``raise``, ``continue``, ``break`` or empty.
    """

    owner: Statement | None
    number: int
    end: int
    exit_kind: str

    @property
    def key(self) -> tuple[int, int]:
        """The identity of the block within its function: where its statement starts, and its number there."""
        return (-1 if self.owner is None else self.owner.start, self.number)


class ExpressionPosition(FrozenRecord, frozen=True):
    """The control-flow position of an expression. ``parent`` is the expression around it, None where it is the statement's own.

    ``function`` is the name of the function around (``:`` at the top level and in class bodies), ``blocks`` the blocks
    around the statement, outermost first. ``written`` says that it is (part of) an assignment target.
    """

    parent: Expression | None
    statement: Statement
    function: str
    blocks: tuple[Block, ...]
    written: bool


class Kill(FrozenRecord, frozen=True):
    """A kill: a statement that gives a variable another value, or sorts or empties its list, with effect from offset ``at`` on."""

    at: int
    statement: Statement
    function: str
    blocks: tuple[Block, ...]


class UseDefIndex:
    """The use-def index of a file: positions of its expressions, uses by name, and kills by variable or attribute."""

    def __init__(self, facts: SyntaxTree) -> None:
        self._positions: dict[Expression, ExpressionPosition] = {}
        # Expressions and their positions in turn: a tuple for each pair would double the memory.
        self._all: list[Any] = []
        self._refs: dict[str, list[Ref]] = {}
        self._kills: dict[tuple[str, tuple[str, ...]], list[Kill]] = {}
        self._uses_matching: dict[tuple[str, Hashable], list[Ref]] = {}
        self.lambdas: dict[str, Expression] = {}
        self._block(facts.body, MODULE_ROOT, (), None, 0)
        for each in facts.functions:
            self._block(each.body, each.name, (), None, 0)
        for refs in self._refs.values():
            refs.sort(key=lambda ref: (ref.start, ref.end))

    def of(self, expression: Expression) -> ExpressionPosition | None:
        """The position of an expression; None for one that is no part of this file's statements."""
        return self._positions.get(expression)

    def items(self) -> Iterator[tuple[Expression, ExpressionPosition]]:
        """All expressions with their positions, in the order of their statements."""
        each = iter(self._all)
        yield from zip(each, each, strict=True)

    def uses(self, root: str) -> list[Ref]:
        """The uses of a name: the references that may start from it, in the order of the text."""
        return self._refs.get(root, [])

    def uses_matching(self, root: str, name: Hashable, fit: Callable[[Ref], bool]) -> list[Ref]:
        """The uses that satisfy a predicate; memoised under ``name``, which identifies the predicate."""
        key = root, name
        if key not in self._uses_matching:
            self._uses_matching[key] = [ref for ref in self.uses(root) if fit(ref)]
        return self._uses_matching[key]

    def roots(self) -> Iterator[str]:
        """All names that are used, sorted."""
        yield from sorted(self._refs)

    def kills(self, root: str, words: tuple[str, ...]) -> list[Kill]:
        """The kills of a variable, or of an attribute of one."""
        return self._kills.get((root, words), [])

    def _block(
        self,
        body: tuple[Statement, ...],
        function: str,
        around: tuple[Block, ...],
        owner: Statement | None,
        number: int,
    ) -> None:
        if not body:
            return
        last = body[-1]
        leaves = last.kind if isinstance(last, SimpleStatement) and last.kind in _JUMPS else ""
        inner = (*around, Block(owner, number, last.end, leaves))
        for statement in body:
            self._statement(statement, function, inner)

    def _statement(self, statement: Statement, function: str, around: tuple[Block, ...]) -> None:
        written = (*targets(statement),)
        read, assigned = (ExpressionPosition(None, statement, function, around, each) for each in (False, True))
        for expression in expressions(statement):
            self._expression(expression, assigned if expression in written else read)
        for ref, at in _kills_of(statement):
            loop_blocks = around
            if isinstance(statement, Loop):
                loop_blocks = (*around, Block(statement, 0, statement.end, ""))
            for root in ref.roots:
                self._kills.setdefault((root, ref.path), []).append(Kill(at, statement, function, loop_blocks))
        for number, block in enumerate(blocks(statement)):
            self._block(block, function, around, statement, number)
        if isinstance(statement, If):
            self._kill_in_branches(statement, function, around)
        if isinstance(statement, DefinitionStatement):
            self._block(statement.body, function, around, statement, 0)

    def _kill_in_branches(self, statement: If, function: str, around: tuple[Block, ...]) -> None:
        """A variable that both branches of an ``if`` kill is killed after it; a branch that jumps away need not kill it."""
        found = [
            {(root, ref.path) for each in body for ref, _ in _kills_of(each) for root in ref.roots}
            for body in blocks(statement)
        ]
        leaves = [
            any(isinstance(each, SimpleStatement) and each.kind in ("return", "raise") for each in body)
            for body in blocks(statement)
        ]
        one, other = found
        for key in sorted(one | other if leaves[0] != leaves[1] else one & other):
            if (key in one or leaves[0]) and (key in other or leaves[1]):
                self._kills.setdefault(key, []).append(Kill(statement.start, statement, function, around))

    def _expression(self, expression: Expression, position: ExpressionPosition) -> None:
        self._positions[expression] = position
        self._all += (expression, position)
        if type(expression) is Constant:
            return
        if type(expression) is Ref:
            for root in expression.roots:
                self._refs.setdefault(root, []).append(expression)
            return
        if type(expression) is Lambda:
            self.lambdas[expression.function] = expression
            return
        read = ExpressionPosition(expression, position.statement, position.function, position.blocks, False)
        below = (
            ExpressionPosition(expression, position.statement, position.function, position.blocks, True)
            if position.written
            else read
        )
        if type(expression) is Comprehension:
            for clause in expression.clauses:
                self._expression(
                    clause.target,
                    ExpressionPosition(expression, position.statement, position.function, position.blocks, True),
                )
        if type(expression) is Operation and expression.op == ":=":
            self._expression(
                expression.operands[0],
                ExpressionPosition(expression, position.statement, position.function, position.blocks, True),
            )
            self._expression(expression.operands[1], read)
            return
        inside = below if type(expression) in (Collection, Operation) else read
        for part in operands_of(expression):
            self._expression(part, inside)


_JUMPS = frozenset({"return", "raise", "continue", "break"})
_KILLING_METHODS = frozenset({"sort", "clear"})


def _kills_of(statement: Statement) -> Iterator[tuple[Ref, int]]:
    """The variables that a statement kills, with the offset: ``x = …``, ``for x in``, ``x[:] = …``, ``x.sort()``, ``del x``."""
    match statement:
        case Assign(op="=" | ":", targets=found, value=value) if value is not None:
            for target in found:
                match target:
                    case Subscript(value=Ref() as whole, indices=(Operation(op=":", operands=ends),)) if all(
                        isinstance(end, Constant) and end.value is None for end in ends
                    ):
                        yield whole, statement.start
                    case _:
                        yield from ((ref, statement.start) for ref in bound_references(target))
        case Loop(target=target, source=source) if target is not None:
            yield from ((ref, source.end) for ref in bound_references(target))
        case With(items=items):
            yield from (
                (ref, value.end) for value, target in items if target is not None for ref in bound_references(target)
            )
        case ExpressionStatement(value=Call(func=Ref(path=(*words, word)) as func)) if word in _KILLING_METHODS:
            yield func._replace(path=tuple(words)), statement.start
        case ExpressionStatement(
            value=Call(func=Ref(path=(*words, "sort_values" | "sort_index")) as func, args=args)
        ) if any(arg.keyword == "inplace" for arg in args):
            yield func._replace(path=tuple(words)), statement.start
        case SimpleStatement(kind="del", values=values):
            yield from ((ref, statement.start) for value in values for ref in bound_references(value))


def contains(body: tuple[Statement, ...], offset: int) -> bool:
    """Whether an offset is in a block."""
    return bool(body) and body[0].start <= offset < body[-1].end


class BlockPosition(NamedTuple):
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


class ControlFlowPosition(NamedTuple):
    """A control-flow position: the function around a statement (None at the top level) and its blocks, outermost first (``spots``)."""

    function: Function | None
    spots: tuple[BlockPosition, ...]

    @property
    def body(self) -> tuple[Statement, ...]:
        return self.spots[0].block

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


def functions_around(facts: SyntaxTree, offset: int) -> list[Function]:
    """The functions and lambdas whose text contains an offset, innermost first."""
    around = [each for each in facts.functions if each.start <= offset < each.end]
    return sorted(around, key=lambda each: each.end - each.start)


def function_at(facts: SyntaxTree, offset: int) -> Function | None:
    """The innermost function (no lambda) whose body contains an offset."""
    around = [
        each
        for each in facts.functions
        if each.body and each.body[0].start <= offset < each.end and not is_lambda(each.name)
    ]
    return max(around, key=lambda each: each.start, default=None)


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
