"""Walks over the records of ``facts``: statements, expressions and calls, in evaluation order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchrepro_lint.facts import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Define,
    Do,
    Expression,
    Facts,
    Function,
    If,
    Leave,
    Loop,
    Match,
    Operation,
    Ref,
    Statement,
    Subscript,
    Try,
    With,
)


def blocks(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The bodies inside a statement, in the order in which they can run."""
    match statement:
        case If(body=body, orelse=orelse) | Loop(body=body, orelse=orelse):
            return (body, orelse)
        case With(body=body):
            return (body,)
        case Try(body=body, handlers=handlers, orelse=orelse, final=final):
            return (body, *(handler for _, handler in handlers), orelse, final)
        case Match(cases=cases):
            return tuple(body for _, body in cases)
    return ()


def bodies(facts: Facts) -> tuple[tuple[Statement, ...], ...]:
    """All bodies of a file: its top level, its functions', its classes'."""
    return (facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes))


def last_word(named: Expression) -> str:
    """The last word of what is named: ``step`` of ``optimizer.step`` and of ``f().step``; empty for what has no name."""
    if type(named) is Ref:  # no `match`: this is asked of every name of every file
        return named.path[-1] if named.path else named.roots[0].rpartition(".")[2].lstrip(":?")
    return named.name if type(named) is Attribute else ""


def called_word(func: Expression) -> str:
    """The word by which something is called: the last one, for a method of a base class as ``<super>.step``."""
    if type(func) is Attribute and type(func.value) is Call and type(func.value.func) is Ref:
        root = func.value.func.roots[0]
        if root.endswith(".<super>"):
            return f"<super>.{func.name}"
    return last_word(func)


# What gives back, or stands for, what it is handed first.
_TRANSPARENT = frozenset(
    {"partial", "partialmethod", "copy", "deepcopy", "compile", "script", "iter", "next", "tqdm"}
    | {"DataParallel", "DistributedDataParallel", "convert_sync_batchnorm"}
)
_CHOICES = frozenset({"if", "or", "and", ":=", "await", "*", "yield"})


def held_words(value: Expression) -> Iterator[str]:
    """The last words of what a value may stand for, or hold: of names, of what is called to make it, of what is in it."""
    match value:
        case Ref() | Attribute():
            yield last_word(value)
        case Call(func=func, args=args):
            yield last_word(func)
            if args and last_word(func) in _TRANSPARENT:
                yield from held_words(args[0].value)
            if len(args) > 1 and last_word(func) == "getattr" and isinstance(args[1].value, Constant):
                yield str(args[1].value.value)
        case Subscript(value=inner):
            yield from held_words(inner)
        case Collection() | Comprehension():
            for each in parts(value):
                yield from held_words(each)
        case Operation(op=op, operands=operands) if op in _CHOICES:
            for each in operands:
                yield from held_words(each)


def returned(body: Iterable[Statement]) -> Iterator[Expression]:
    """What a function with this body returns."""
    for statement in statements(body):
        if isinstance(statement, Leave) and statement.kind == "return":
            yield from statement.values


def statements(body: Iterable[Statement]) -> Iterator[Statement]:
    """All statements of a body, nested blocks included; definitions' own bodies are other functions' business."""
    for statement in body:
        yield statement
        for block in blocks(statement):
            yield from statements(block)


def expressions(statement: Statement) -> Iterator[Expression]:  # noqa: C901  a line or two per kind
    """What a statement evaluates itself, not its blocks, in order."""
    match statement:
        case Do(value=value):
            yield value
        case Assign(targets=targets, value=value):
            if value is not None:
                yield value
            yield from targets
        case If(test=test):
            yield test
        case Loop(target=target, source=source):
            yield source
            if target is not None:
                yield target
        case With(items=items):
            for value, target in items:
                yield value
                if target is not None:
                    yield target
        case Try(handlers=handlers):
            yield from (kind for kind, _ in handlers if kind is not None)
        case Match(subject=subject, cases=cases):
            yield subject
            yield from (guard for guard, _ in cases if guard is not None)
        case Define(values=values) | Leave(values=values):
            yield from values


def parts(expression: Expression) -> Iterator[Expression]:
    """The direct operands of an expression, in evaluation order."""
    kind = type(expression)
    if kind is Ref or kind is Constant:
        return
    match expression:
        case Call(func=func, args=args):
            yield func
            for arg in args:
                yield arg.value
        case Attribute(value=value):
            yield value
        case Operation(operands=operands):
            yield from operands
        case Subscript(value=value, indices=index):
            yield value
            yield from index
        case Collection(items=items):
            yield from (item for item in items if item is not None)
        case Comprehension(elements=elements, clauses=clauses):
            for clause in clauses:
                yield clause.source
                yield from clause.tests
            yield from elements


def within(expression: Expression) -> Iterator[Expression]:
    """An expression and all below it, operands before what uses them. Lambdas are not entered."""
    for part in parts(expression):
        yield from within(part)
    yield expression


def instance_assignments(function: Function) -> Iterator[tuple[str, str, Expression]]:
    """What a method assigns to attributes of its first parameter: (attribute, how, value)."""
    if not function.params:
        return
    own = f"{function.name}.<locals>.{function.params[0].name}"
    for statement in statements(function.body):
        if isinstance(statement, Assign) and statement.value is not None:
            for target in statement.targets:
                yield from _attribute_pairs(own, target, statement.op, statement.value)


def _attribute_pairs(own: str, target: Expression, op: str, value: Expression) -> Iterator[tuple[str, str, Expression]]:
    match target:
        case Ref(roots=roots, path=(word,)) if own in roots:
            yield word, "=" if op == ":" else op, value
        case Collection(kind="tuple" | "list", items=items):
            whole = isinstance(value, Collection) and len(value.items) == len(items)
            for index, item in enumerate(items):
                if item is None:
                    continue
                picked = value.items[index] if whole and isinstance(value, Collection) else None
                yield from _attribute_pairs(own, item, "=" if picked else "[]", picked or value)
