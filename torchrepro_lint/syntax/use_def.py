"""The use-def index: the uses of each name, the kills that end a variable's old value, and the position of each expression.

That is the operand's parent, the statement, and the blocks around it, which are read from the nesting of blocks. Also here: the values
that a call passes, and its receiver.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cached_property
from typing import Any

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
from torchrepro_lint.syntax.qualified_names import MODULE_ROOT, is_local
from torchrepro_lint.syntax.visitor import (
    blocks,
    expressions,
    is_none,
    operands_of,
    receiver_of,
    statements,
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
    """The use-def index of a file: positions of its expressions, uses by name, and kills by variable or attribute.

    It is built in parts when they are asked for: one for the top level, and one for each function there or in a class, with what is
    nested in it. A local variable is used and killed in the part of its function.
    """

    def __init__(self, facts: SyntaxTree) -> None:
        self._top = _Part([(MODULE_ROOT, facts)])
        self._parts = [self._top]
        # For each other part, where its function starts and ends, and which part's function is around, as one is around the lambda of a default.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._around: list[int] = []
        self._by_name: dict[str, list[_Part]] = {}
        self._uses_matching: dict[tuple[str, Hashable], list[Ref]] = {}
        self._divide(facts)

    def _divide(self, facts: SyntaxTree) -> None:
        around = 0
        for function in facts.functions:
            outer = _outermost(function.name)
            if outer != function.name and outer in self._by_name:
                self._by_name[outer][-1].bodies.append((function.name, function))
                continue
            while around and self._ends[around - 1] <= function.start:
                around = self._around[around - 1]
            self._starts.append(function.start)
            self._ends.append(function.end)
            self._around.append(around)
            around = len(self._parts)
            self._parts.append(_Part([(function.name, function)]))
            self._by_name.setdefault(outer, []).append(self._parts[-1])

    def of(self, expression: Expression) -> ExpressionPosition | None:
        """The position of an expression; None for one that is no part of this file's statements."""
        number = bisect_right(self._starts, expression.start)
        while number:
            if expression.start < self._ends[number - 1]:
                found = self._parts[number].walk.positions.get(expression)
                if found is not None:
                    return found
            number = self._around[number - 1]
        return self._top.walk.positions.get(expression)

    def enclosing(self, expression: Expression) -> Iterator[tuple[Expression, Expression]]:
        """The expressions around one, innermost first, each behind its operand that contains the expression."""
        spot = self.of(expression)
        while spot is not None and spot.parent is not None:
            yield expression, spot.parent
            expression, spot = spot.parent, self.of(spot.parent)

    def items(self) -> Iterator[tuple[Expression, ExpressionPosition]]:
        """All expressions with their positions, in the order of their statements."""
        for part in self._parts:
            each = iter(part.walk.all)
            yield from zip(each, each, strict=True)

    def uses(self, root: str) -> list[Ref]:
        """The uses of a name: the references that may start from it, in the order of the text."""
        parts = self._parts_with(root)
        if len(parts) == 1:
            return parts[0].refs.get(root, [])
        return self._refs.get(root, [])

    @cached_property
    def _refs(self) -> dict[str, list[Ref]]:
        found: dict[str, list[Ref]] = {}
        for part in self._parts:
            for root, refs in part.refs.items():
                found.setdefault(root, []).extend(refs)
        for refs in found.values():
            refs.sort(key=_span_of)
        return found

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
        return [kill for part in self._parts_with(root) for kill in part.walk.kills.get((root, words), ())]

    def lambda_of(self, function: str) -> Expression | None:
        """The expression that makes a lambda, by its function's name."""
        parts = (*(self._parts_with(function) if is_local(function) else ()), self._top)
        return next((found for part in parts if (found := part.walk.lambdas.get(function)) is not None), None)

    def _parts_with(self, root: str) -> list[_Part]:
        """The parts in which a name is used: for a local variable that of its function."""
        return self._by_name.get(_outermost(root), self._parts) if is_local(root) else self._parts


class _Part:
    """A part of a file: some bodies, each with the name of its function."""

    def __init__(self, bodies: list[tuple[str, SyntaxTree | Function]]) -> None:
        self.bodies = bodies

    @cached_property
    def refs(self) -> dict[str, list[Ref]]:
        """The references by the names that they may start from, in the order of the text."""
        found: dict[str, list[Ref]] = {}
        for _, each in self.bodies:
            _add_references(each.body, found)
        for refs in found.values():
            refs.sort(key=_span_of)
        return found

    @cached_property
    def walk(self) -> _Walk:
        """What a walk over the bodies finds."""
        return _Walk((name, each.body) for name, each in self.bodies)


def _outermost(name: str) -> str:
    """The function outside all others that a function or local variable is in, by their names."""
    return name.partition(".<locals>")[0]


def _span_of(ref: Ref) -> tuple[int, int]:
    return ref.start, ref.end


def _add_references(body: Iterable[Statement], found: dict[str, list[Ref]]) -> None:
    for statement in statements(body):
        for expression in expressions(statement):
            _add_references_within(expression, found)
        if type(statement) is DefinitionStatement:
            _add_references(statement.body, found)


def _add_references_within(expression: Expression, found: dict[str, list[Ref]]) -> None:
    if type(expression) is Ref:
        for root in expression.roots:
            found.setdefault(root, []).append(expression)
        return
    if type(expression) is Comprehension:
        for clause in expression.clauses:
            _add_references_within(clause.target, found)
    for part in operands_of(expression):
        _add_references_within(part, found)


class _Walk:
    """A walk over bodies with the names of their functions: the position of each expression, the kills, and the lambdas."""

    def __init__(self, bodies: Iterable[tuple[str, tuple[Statement, ...]]]) -> None:
        self.positions: dict[Expression, ExpressionPosition] = {}
        # Expressions and their positions in turn: a tuple for each pair would double the memory.
        self.all: list[Any] = []
        self.kills: dict[tuple[str, tuple[str, ...]], list[Kill]] = {}
        self.lambdas: dict[str, Expression] = {}
        for name, body in bodies:
            self._block(body, name, (), None, 0)

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
                self.kills.setdefault((root, ref.path), []).append(Kill(at, statement, function, loop_blocks))
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
                self.kills.setdefault(key, []).append(Kill(statement.start, statement, function, around))

    def _expression(self, expression: Expression, position: ExpressionPosition) -> None:
        self.positions[expression] = position
        self.all += (expression, position)
        if type(expression) is Constant or type(expression) is Ref:
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
                        is_none(end) for end in ends
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


def passed_values(call: Call) -> Iterator[Expression]:
    """The values that a call passes, including the elements of lists, dictionaries and comprehensions."""
    yield from flattened_values([arg.value for arg in call.args if arg.keyword != "worker_init_fn"])


def flattened_values(given: Iterable[Expression]) -> Iterator[Expression]:
    """Values, with lists, dictionaries and comprehensions replaced by their elements."""
    queue = list(given)
    while queue:
        value = queue.pop(0)
        match value:
            case Collection(items=items):
                queue += (item for item in items if item is not None)
            case Comprehension(elements=elements):
                queue += elements
            case Operation(op="*" | "+", operands=operands) if any(isinstance(each, Collection) for each in operands):
                queue += operands
            case Call(func=Ref(roots=("builtins.dict" | "collections.OrderedDict",), path=()), args=args):
                queue += (arg.value for arg in args)
            case _:
                yield value


def receiver_or_container(expression: Expression) -> Expression | None:
    """The receiver, or the container of an element: ``net`` of ``net.forward``, ``self.layers`` of ``self.layers[0]``."""
    return expression.value if isinstance(expression, Subscript) else receiver_of(expression)
