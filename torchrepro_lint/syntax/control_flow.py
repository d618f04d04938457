"""Control-flow positions, dominators and path conditions: where a statement stands, what has run before it, which tests are constant.

Control flow is structured, so all of this is read from the nesting of blocks. Constant tests are literals, ``__name__ == "__main__"``,
``TYPE_CHECKING``, and comparisons of torch's version.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from packaging.version import Version

from torchrepro_lint.syntax.nodes import (
    Call,
    Comprehension,
    Constant,
    DefinitionStatement,
    Expression,
    FrozenRecord,
    Function,
    If,
    Loop,
    Operation,
    Ref,
    Statement,
    SyntaxTree,
    Try,
    With,
)
from torchrepro_lint.syntax.visitor import blocks, expressions, last_identifier, statements, subexpressions


class PrecedingStatement(FrozenRecord, frozen=True):
    """A statement that may have run before a place; ``dominates`` says that it has run whenever the place is reached: it is a dominator."""

    statement: Statement
    dominates: bool


def preceding_statements(body: tuple[Statement, ...], offset: int) -> Sequence[PrecedingStatement]:
    """The dominators of the statement at ``offset`` in a body, and those that may have run before it, in the order of the text.

    Of the branches around the place only its own counts; of a loop around it everything may have run, in an earlier iteration. A
    statement around the place comes before its blocks: its header has run.
    """
    found: list[PrecedingStatement] = []
    _add_before(body, offset, found)
    return found


def _add_before(body: tuple[Statement, ...], offset: int, found: list[PrecedingStatement]) -> None:
    for statement in body:
        if statement.start > offset:
            return
        inner = blocks(statement)
        if offset >= statement.end:
            found.append(PrecedingStatement(statement, True))
            _add_inside(inner, isinstance(statement, With), found)
            continue
        if inner:
            found.append(PrecedingStatement(statement, True))
        if isinstance(statement, Loop):
            found += (PrecedingStatement(each, False) for each in statements(statement.body) if each.start > offset)
        for block in inner:
            if block and block[0].start <= offset < block[-1].end:
                _add_before(block, offset, found)
            elif isinstance(statement, Try):
                found += (PrecedingStatement(each, False) for each in statements(block) if each.end <= offset)


def _add_inside(inner: tuple[tuple[Statement, ...], ...], dominates: bool, found: list[PrecedingStatement]) -> None:
    """The statements inside a finished statement; only those in ``with`` blocks are certain to have run."""
    for block in inner:
        for each in block:
            found.append(PrecedingStatement(each, dominates))
            _add_inside(blocks(each), dominates and isinstance(each, With), found)


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


def function_at(facts: SyntaxTree, offset: int) -> Function | None:
    """The innermost function (no lambda) whose body contains an offset."""
    around = [
        each
        for each in facts.functions
        if each.body and each.body[0].start <= offset < each.end and "<lambda>" not in each.name.rpartition(".")[2]
    ]
    return max(around, key=lambda each: each.start, default=None)


def in_loop(level: ControlFlowPosition) -> bool:
    """Whether a position is inside a loop of its function."""
    return any(isinstance(spot.parent, Loop) for spot in level.spots)


def comprehension_names(level: ControlFlowPosition, offset: int) -> frozenset[str]:
    """The names bound by the comprehensions around an offset; they shadow the variables outside."""
    return frozenset(
        last_identifier(target)
        for expression in expressions(level.spots[-1].statement)
        for each in subexpressions(expression)
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


class StaticContext(NamedTuple):
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
            return False if (*roots, *path)[-1].rpartition(".")[2] == "TYPE_CHECKING" else None
        case Operation(op="and" | "or" as op, operands=operands):
            truths = [constant_truth(operand, context) for operand in operands]
            decisive = op == "or"
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
        case Operation(op=op, operands=(left, right)) if op in _COMPARISONS and context.torch:
            return _version_test(op, left, right, context.torch)
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
            try:
                return Version(text)
            except ValueError:  # of too many digits, too
                return None
        case Call(args=(arg,)):
            return _literal_version(arg.value)
    return None
