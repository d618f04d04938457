"""Visitor of the syntax tree: statements, expressions and operands in evaluation order, and the names that they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import intern
from typing import Any

from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Clause,
    Collection,
    Comprehension,
    Constant,
    DefinitionStatement,
    Expression,
    ExpressionStatement,
    Function,
    If,
    Loop,
    Match,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    SyntaxTree,
    Try,
    With,
)
from torchrepro_lint.syntax.qualified_names import PROGRESS_BARS, is_super, local_symbol, simple_name, super_call


def blocks(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The bodies inside a statement, in the order in which they can run."""
    inside = _BLOCKS.get(type(statement))
    return inside(statement) if inside else ()


def bodies(facts: SyntaxTree) -> tuple[tuple[Statement, ...], ...]:
    """All bodies of a file: its top level, then those of its functions and classes."""
    return (facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes))


def last_identifier(named: Expression) -> str:
    """The last identifier of a name: ``step`` of ``optimizer.step`` and of ``f().step``; empty for what has no name."""
    if type(named) is Ref:  # no `match`: this is asked of every name of every file
        return named.path[-1] if named.path else intern(simple_name(named.roots[0]))
    return named.name if type(named) is Attribute else ""


def callee_identifier(func: Expression) -> str:
    """The identifier by which a callee is called: the last one; ``<super>.step`` for a method of a base class."""
    if type(func) is Attribute and type(func.value) is Call and type(func.value.func) is Ref:
        root = func.value.func.roots[0]
        if is_super(root):
            return super_call(func.name)
    return last_identifier(func)


def other_identifiers(func: Expression) -> Iterator[str]:
    """The further identifiers by which a callee is called: of a name that branches import from several places, ``from steps import dense
    as step`` and ``from steps import sparse as step``; and of what Ray runs elsewhere, ``play.remote(board)``.
    """
    if type(func) is Ref and not func.path and len(func.roots) > 1:
        first = simple_name(func.roots[0])
        yield from (word for word in map(simple_name, func.roots[1:]) if word != first)
    held = receiver_of(func) if last_identifier(func) == "remote" else None
    if held is not None:
        yield last_identifier((receiver_of(held.func) or held.func) if isinstance(held, Call) else held)


def receiver_of(func: Expression) -> Expression | None:
    """The receiver of a method, or what an attribute is read of: ``names`` of ``names.append``, ``f()`` of ``f().append``."""
    if isinstance(func, Attribute):
        return func.value
    return func._replace(path=func.path[:-1]) if isinstance(func, Ref) and func.path else None


def without_subscripts(expression: Expression) -> Expression:
    """The container of an element: ``self.blocks`` of ``self.blocks[0]``; anything else stands for itself."""
    while isinstance(expression, Subscript):
        expression = expression.value
    return expression


def numbered_bodies(facts: SyntaxTree, number: int | None) -> list[tuple[Statement, ...]]:
    """The body of a number as ``bodies_calling`` gives it, 0 for the top level; all bodies of the file, in order, for None."""
    if number is None:
        return [facts.body, *(each.body for each in facts.functions)]
    return [facts.functions[number - 1].body if number else facts.body]


# Calls whose elements are those of their first argument.
_ITERATING = frozenset({"list", "tuple", "reversed", "sorted", "iter"}) | PROGRESS_BARS


def element_behind_view(element: Subscript) -> Subscript | None:
    """The element of a container behind one that iterating over a view of it gives: of ``rows`` for the second item of those of
    ``rows.items()`` and ``enumerate(rows)``, for those of ``rows.values()`` and ``zip(names, rows)``. A key that is not known is the
    call itself; an empty subscript stands for any element.
    """
    match element:
        case Subscript(value=Call(func=func, args=()) as call, indices=()) if last_identifier(func) == "values":
            table = receiver_of(func)
            return None if table is None else element._replace(value=table, indices=(call,))
        case Subscript(value=Call(func=func, args=(rows, *_)), indices=()) if last_identifier(func) in _ITERATING:
            return None if rows.star else element._replace(value=rows.value)
        case Subscript(value=Subscript(value=Call() as call, indices=()), indices=(Constant(value=int(at)),)):
            return _item_behind_view(element, call, at)
    return None


def _item_behind_view(element: Subscript, call: Call, at: int) -> Subscript | None:
    """The element behind an item of what a call gives for each step."""
    rows = [arg.value for arg in call.args if not arg.star and arg.keyword is None]
    match last_identifier(call.func):
        case "items" if at == 1 and not call.args and (table := receiver_of(call.func)) is not None:
            return element._replace(value=table, indices=(call,))
        case "enumerate" if at == 1 and rows:
            return element._replace(value=rows[0], indices=())
        case "zip" if 0 <= at < len(rows) and len(rows) == len(call.args):
            return element._replace(value=rows[at], indices=())
        case word if word in _ITERATING and rows and isinstance(rows[0], Call):
            return _item_behind_view(element, rows[0], at)
    return None


# Calls that return, or stand for, their first argument.
_TRANSPARENT = frozenset(
    {"partial", "partialmethod", "copy", "deepcopy", "compile", "script", "iter", "next"}
    | {"DataParallel", "DistributedDataParallel", "convert_sync_batchnorm", *PROGRESS_BARS}
)
_CHOICES = frozenset({"if", "or", "and", ":=", "await", "*", "yield"})


def value_identifiers(value: Expression) -> Iterator[str]:
    """The last identifiers of what a value may be or contain: of names, of callees whose result it is, of its elements."""
    match value:
        case Ref() | Attribute():
            yield last_identifier(value)
            yield from other_identifiers(value)
        case Call(func=func, args=args):
            yield last_identifier(func)
            if args and last_identifier(func) in _TRANSPARENT:
                yield from value_identifiers(args[0].value)
            if len(args) > 1 and last_identifier(func) == "getattr" and isinstance(args[1].value, Constant):
                yield str(args[1].value.value)
        case Subscript(value=inner):
            yield from value_identifiers(inner)
        case Collection() | Comprehension():
            for each in operands_of(value):
                yield from value_identifiers(each)
        case Operation(op=op, operands=operands) if op in _CHOICES:
            for each in operands:
                yield from value_identifiers(each)


def held_references(value: Expression | None) -> tuple[Ref, ...]:
    """A reference, those that a conditional expression or a table chooses from, and the function of which a partial binds keywords."""
    match value:
        case Call(func=func, args=(first, *rest)) if last_identifier(func) == "partial":
            return (first.value,) if isinstance(first.value, Ref) and all(each.keyword for each in rest) else ()
        case Call(func=Ref(path=(*words, "get")) as func):
            return (func._replace(path=tuple(words)),)
        case Ref():
            return (value,)
        case Operation(op="if", operands=(_, *chosen)):
            return tuple(ref for each in chosen for ref in held_references(each))
        case Collection(kind=kind, items=items):
            return tuple(ref for each in (items[1::2] if kind == "dict" else items) for ref in held_references(each))
        case Subscript(value=table) | Call(func=Attribute(value=table, name="get")):
            return held_references(table)
    return ()


def returned_values(body: Iterable[Statement]) -> Iterator[Expression]:
    """The values that a body returns."""
    for statement in statements(body):
        if isinstance(statement, SimpleStatement) and statement.kind == "return":
            yield from statement.values


def statements(body: Iterable[Statement]) -> Sequence[Statement]:
    """All statements of a body with those of nested blocks, but not the bodies of definitions."""
    found: list[Statement] = []
    _add_statements(body, found)
    return found


def all_statements(tree: SyntaxTree) -> Iterator[Statement]:
    """All statements of a file, those of its functions and classes, too."""
    return (each for body in bodies(tree) for each in statements(body))


def _add_statements(body: Iterable[Statement], found: list[Statement]) -> None:
    for statement in body:
        found.append(statement)
        for block in blocks(statement):
            _add_statements(block, found)


def expressions(statement: Statement) -> Sequence[Expression]:
    """The expressions that a statement evaluates itself, without its blocks, in order."""
    own = _EXPRESSIONS.get(type(statement))
    return own(statement) if own else ()


def expressions_within(statement: Statement) -> Sequence[Expression]:
    """The expressions that a statement evaluates itself, and all below them, operands before what uses them."""
    found: list[Expression] = []
    for expression in expressions(statement):
        _add_within(expression, found)
    return found


def body_expressions(body: Iterable[Statement]) -> Iterator[Expression]:
    """The expressions within all statements of a body and of nested blocks, but not of the bodies of definitions."""
    return (each for statement in statements(body) for each in expressions_within(statement))


def read_expressions(statement: Statement) -> Iterator[Expression]:
    """The ``expressions`` of a statement without the targets that it only assigns to."""
    targets = statement.targets if isinstance(statement, Assign) and statement.op == "=" else ()
    return (each for each in expressions(statement) if not any(each == target for target in targets))


def all_expressions(tree: SyntaxTree) -> Iterator[Expression]:
    """The expressions within all statements of a file."""
    return (each for statement in all_statements(tree) for each in expressions_within(statement))


def iterations(statement: Statement) -> Iterator[tuple[Expression, Expression]]:
    """The targets and sources of a statement's loops and comprehensions."""
    if isinstance(statement, Loop) and statement.target is not None:
        yield statement.target, statement.source
    for each in expressions_within(statement):
        if isinstance(each, Comprehension):
            yield from ((clause.target, clause.source) for clause in each.clauses)


def operands_of(expression: Expression) -> Sequence[Expression]:
    """The direct operands of an expression, in evaluation order."""
    own = _PARTS.get(type(expression))
    return own(expression) if own else ()


def subexpressions(expression: Expression) -> Sequence[Expression]:
    """An expression and all below it, operands before what uses them. Lambdas are not entered."""
    found: list[Expression] = []
    _add_within(expression, found)
    return found


def _add_within(expression: Expression, found: list[Expression]) -> None:
    if own := _PARTS.get(type(expression)):
        for part in own(expression):
            if type(part) in _PARTS:
                _add_within(part, found)
            else:  # most are names and constants
                found.append(part)
    found.append(expression)


def declared_attributes(function: Function, word: str) -> Iterator[Expression]:
    """The annotations with which a method declares an attribute of its first parameter: ``self.rows: list[int] = []``."""
    own = local_symbol(function.name, function.params[0].name) if function.params else ""
    for statement in statements(function.body):
        if isinstance(statement, Assign) and statement.annotation is not None:
            for target in statement.targets:
                if isinstance(target, Ref) and target.path == (word,) and own in target.roots:
                    yield statement.annotation


def _assignment_operands(statement: Assign) -> tuple[Expression, ...]:
    return statement.targets if statement.value is None else (statement.value, *statement.targets)


def _clause_operands(clauses: Iterable[Clause]) -> Iterator[Expression]:
    for clause in clauses:
        yield clause.source
        yield from clause.tests


# Tables by node type. Most of a run is spent here: each function returns a sequence, since generators cost more.
_BLOCKS: dict[type[Statement], Callable[[Any], tuple[tuple[Statement, ...], ...]]] = {
    If: lambda each: (each.body, each.orelse),
    Loop: lambda each: (each.body, each.orelse),
    With: lambda each: (each.body,),
    Try: lambda each: (each.body, *[handler for _, handler in each.handlers], each.orelse, each.final),
    Match: lambda each: tuple([body for _, body in each.cases]),
}
_EXPRESSIONS: dict[type[Statement], Callable[[Any], Sequence[Expression]]] = {
    ExpressionStatement: lambda each: (each.value,),
    Assign: _assignment_operands,
    If: lambda each: (each.test,),
    Loop: lambda each: (each.source,) if each.target is None else (each.source, each.target),
    With: lambda each: [one for item in each.items for one in item if one is not None],
    Try: lambda each: [kind for kind, _ in each.handlers if kind is not None],
    Match: lambda each: [each.subject, *[guard for guard, _ in each.cases if guard is not None]],
    DefinitionStatement: lambda each: each.values,
    SimpleStatement: lambda each: each.values,
}
_PARTS: dict[type[Expression], Callable[[Any], Sequence[Expression]]] = {
    Call: lambda each: [each.func, *[arg.value for arg in each.args]],
    Attribute: lambda each: (each.value,),
    Operation: lambda each: each.operands,
    Subscript: lambda each: (each.value, *each.indices),
    Collection: lambda each: [item for item in each.items if item is not None],
    Comprehension: lambda each: [*_clause_operands(each.clauses), *each.elements],
}


def is_none(value: Expression | None) -> bool:
    """Whether an expression is the literal None."""
    return isinstance(value, Constant) and value.value is None


def is_same_reference(one: Expression | None, other: Expression | None) -> bool:
    """Whether two expressions are references to one variable, or to one attribute of it."""
    return isinstance(one, Ref) and isinstance(other, Ref) and one.access_path == other.access_path


def is_starred(item: Expression | None) -> bool:
    """Whether an item of a display or a target is ``*values``."""
    return isinstance(item, Operation) and item.op == "*" and len(item.operands) == 1


def cut_at_last(value: Expression) -> tuple[Call, bool] | None:
    """The search by which a slice cuts a text at its last mark, and whether it takes what is before: ``name[:name.rfind(".")]``, and
    not ``name[name.rfind(".") + 1:]``. None for other expressions.
    """
    match value:
        case Subscript(value=text, indices=(Operation(op=":", operands=(start, stop, *_)),)):
            for found, first in ((stop, True), (_before_next(start), False)):
                if isinstance(found, Call) and last_identifier(found.func) in ("rfind", "rindex"):
                    return (found, first) if is_same_reference(receiver_of(found.func), text) else None
    return None


def _before_next(start: Expression | None) -> Expression | None:
    """``at`` of ``at + 1``."""
    match start:
        case Operation(op="+", operands=(at, Constant(value=1))):
            return at
    return None


def text_parts(value: Expression) -> Sequence[Expression | str]:
    """The parts of a composed text, ``f"a{b}"``, ``a + b``, ``"a%s" % b``, ``"a{0}".format(b)``; none of another expression."""
    match value:
        case Operation(op="f" | "+", operands=operands):
            return operands
        case Operation(op="%", operands=(Constant(value=str(text)), given)):
            items = given.items if isinstance(given, Collection) and given.kind == "tuple" else (given,)
            return _filled(_CONVERSION.split(text), [item for item in items if item is not None])
        case Call(func=Attribute(value=Constant(value=str(text)), name="format"), args=args):
            plain, split = [arg.value for arg in args if not (arg.keyword or arg.star)], _FIELD.split(text)
            places = [int(each or at) for at, each in enumerate(split[1::2])]
            return _filled(split[::2], [plain[at] for at in places if at < len(plain)])
    return ()


# Where the value of the next argument goes, in ``%`` and in ``format``.
_CONVERSION = lazy_pattern(r"%[-+ 0#]?\d*[sdi]")
_FIELD = lazy_pattern(r"\{(\d*)(?::\w*)?\}")


def _filled(pieces: list[str], items: list[Expression]) -> list[Expression | str]:
    """The pieces of a text with an item after each but the last; none where the text has other gaps."""
    if len(pieces) != len(items) + 1 or any("%" in piece or "{" in piece for piece in pieces):
        return []
    return [part for pair in zip(pieces, [*items, ""], strict=True) for part in pair if part != ""]


_ITERATION_WRAPPERS = {f"builtins.{word}" for word in ("enumerate", "zip", "list", "tuple", "iter", "reversed")}
# Those of other libraries, by their last identifiers.
_LIBRARY_WRAPPERS = PROGRESS_BARS | {"islice"}


def iterated_values(source: Expression) -> Iterator[Expression]:
    """The values that iterating an expression iterates: itself, and the arguments of ``enumerate`` and the like."""
    yield source
    match source:
        case Call(func=Ref(roots=roots, path=()), args=args) if not _ITERATION_WRAPPERS.isdisjoint(roots):
            for arg in args:
                yield from iterated_values(arg.value)
        case _:
            yield from shown_values(source)


def shown_values(value: Expression) -> Iterator[Expression]:
    """The values that iterating a progress bar iterates, without the bar; none for another expression."""
    match value:
        case Call(func=func, args=(first, *_)) if last_identifier(func) in _LIBRARY_WRAPPERS and not first.star:
            yield from iterated_values(first.value)
