"""Path feasibility: which branches of a function are pruned in an environment, and what path conditions imply.

A path condition may imply that a value is not None, that it is falsy, or that a container has one element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.dataflow.constants import COMPARISONS, compared, is_instance_of, literal_type
from torchrepro_lint.dataflow.environment import Closure, Environment, attributes_set
from torchrepro_lint.dataflow.reaching_definitions import display_of, held_operations, length_of
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.control_flow import leaves
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    ExpressionStatement,
    Function,
    If,
    Lambda,
    Operation,
    Ref,
    SimpleStatement,
    Statement,
    With,
)
from torchrepro_lint.syntax.qualified_names import in_project
from torchrepro_lint.syntax.use_def import ExpressionPosition, UseDefIndex, contains
from torchrepro_lint.syntax.visitor import (
    blocks,
    expressions_within,
    is_none,
    is_same_reference,
    is_starred,
    statements,
)

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources
    from torchrepro_lint.syntax.control_flow import Guard


_CHOOSING = frozenset({"if", "and", "or"})


def ruling_tests(
    body: tuple[Statement, ...], offset: int, decide: Callable[[Expression], bool | None]
) -> Iterator[Expression | None]:
    """The tests that keep a place of a body from running: those around it, and those before it that jump away; None stands for jumps
    that no one test decides. ``decide`` is the truth of a test where it is known.
    """
    for statement in body:
        if statement.start > offset:
            return
        if statement.end <= offset:
            if _jumps_away(statement, decide):
                yield statement.test if isinstance(statement, If) and decide(statement.test) is not None else None
                return
            continue
        inner = next((each for each in blocks(statement) if contains(each, offset)), None)
        if inner is None:
            yield from _ruling_operands(statement, offset, decide)
        elif isinstance(statement, If) and decide(statement.test) is (inner != statement.body):
            yield statement.test
        else:
            yield from ruling_tests(inner, offset, decide)


def _ruling_operands(
    statement: Statement, offset: int, decide: Callable[[Expression], bool | None]
) -> Iterator[Expression]:
    """The operands that keep one from being evaluated, of ``one if test else other`` and before it in ``and`` and ``or``."""
    for choice in _conditional_operations(statement):
        at = next((at for at, each in enumerate(choice.operands) if each.start <= offset < each.end), 0)
        if choice.op == "if" and at and decide(choice.operands[0]) is (at == 2):
            yield choice.operands[0]
        elif choice.op != "if":
            yield from (each for each in choice.operands[:at] if decide(each) is (choice.op == "or"))


def _short_circuit(op: str, answers: list[bool | None]) -> bool | None:
    """The truth value of ``and`` or ``or`` from those of its operands; None if unknown."""
    decisive = op == "or"
    return decisive if decisive in answers else None if None in answers else not decisive


def test_of_flags(flags: Mapping[str, bool], test: Expression) -> bool | None:
    """The truth value of a test that asks attributes of which the values are known: ``not opt.is_train``; None if unknown."""
    match test:
        case Ref(path=(*_, word)):
            return flags.get(word)
        case Operation(op="not", operands=(inner,)):
            answer = test_of_flags(flags, inner)
            return None if answer is None else not answer
        case Operation(op=("and" | "or") as op, operands=operands):
            return _short_circuit(op, [test_of_flags(flags, each) for each in operands])
    return None


def _jumps_away(statement: Statement, decide: Callable[[Expression], bool | None]) -> bool:
    """Whether every path through a statement that a test does not rule out jumps out of the block."""
    if isinstance(statement, If) and _may_leave(statement):
        truth = decide(statement.test)
        taken = blocks(statement) if truth is None else (statement.body if truth else statement.orelse,)
        return all(any(_jumps_away(each, decide) for each in body) for body in taken)
    if isinstance(statement, With):
        return any(_jumps_away(each, decide) for each in statement.body)
    return isinstance(statement, SimpleStatement | ExpressionStatement) and leaves((statement,))


def evaluate_test(
    sources: ValueSources, path: str, test: Expression, environment: Environment, depth: int = 0
) -> bool | None:
    """The truth value of a test in an environment; None if unknown. ``depth`` counts the variables that hold tests."""
    match test:
        case Operation(op="not", operands=(inner,)):
            answer = evaluate_test(sources, path, inner, environment, depth)
            return None if answer is None else not answer
        case Operation(op=("and" | "or") as op, operands=operands):
            return _short_circuit(op, [evaluate_test(sources, path, each, environment, depth) for each in operands])
        case Operation(op="is" | "is not" | "==" | "!=" as op, operands=(Ref() as tested, right)) if is_none(
            right
        ) and (_is_given(sources, path, tested, environment)):
            nulls = [_is_null(sources, each, depth) for each in sources.of(Closure(path, tested, environment))]
            answers = [None if null is None else null is (op in ("is", "==")) for null in nulls]
        case Operation(op=op, operands=(left, right)) if op in COMPARISONS:
            answers = [
                compared(op, one, other)
                for one in _values(sources, path, left, environment, depth)
                for other in _values(sources, path, right, environment, depth)
            ]
        case Call(func=Ref(roots=("builtins.isinstance",), path=()), args=(Arg(value=tested), Arg(value=types))):
            answers = list(_type_tests(sources, Closure(path, tested, environment), types))
        case Ref() if _is_given(sources, path, test, environment):
            answers = [_truth(sources, each, depth) for each in sources.of(Closure(path, test, environment))]
        case _:
            answers = [bool(value) for value in _values(sources, path, test, environment, depth)]
    return answers[0] if answers and len(set(answers)) == 1 else None


def _truth(sources: ValueSources, source: Closure, depth: int) -> bool | None:
    """The truth value of a value source; None if unknown: a list that is displayed empty may have been filled since."""
    known = _known_value(sources, source, depth)
    return True if known is ... and _has_items(source.value) else None if known is ... else bool(known)


# Calls whose result has an item if their argument has one.
_COPIES = {f"builtins.{word}" for word in ("list", "tuple", "set", "frozenset", "sorted", "reversed", "enumerate")}


def _has_items(value: Expression) -> bool:
    """Whether a display, a comprehension, a range or a copy of one of them is known to have items."""
    match value:
        case Collection(items=items):
            return any(each is not None and not is_starred(each) for each in items)
        case Comprehension(clauses=clauses):
            return all(_has_items(each.source) and not each.tests for each in clauses)
        case Call(func=Ref(roots=(root,), path=()), args=(Arg(value=first, star=""),)):
            counted = root == "builtins.range" and isinstance(first, Constant) and first.value
            return bool(counted) or (root in _COPIES and _has_items(first))
    return False


# Functions of libraries that never return None, and classes, which a call makes an object of.
_NEVER_NONE = lazy_pattern(
    r"(torch|numpy|json)\.load|torch\.hub\.load_\w+|yaml\.safe_load|.*\.default_rng|.*\)\.manual_seed|(\w+\.)+[A-Z]\w*"
)


def _is_null(sources: ValueSources, source: Closure, depth: int) -> bool | None:
    """Whether a value source is None; unknown for most results of calls."""
    if literal_type(source.value) or isinstance(source.value, Lambda):
        return is_none(source.value)
    if isinstance(source.value, Call):
        names = sources.project.names(source.path, source.value.func)
        return False if (names and all(map(_NEVER_NONE.fullmatch, names))) or _object_type(sources, source) else None
    known = _known_value(sources, source, depth)
    return None if known is ... else known is None


def _type_tests(sources: ValueSources, tested: Closure, types: Expression) -> Iterator[bool | None]:
    """The truth values of a test of the type of a parameter, for all that it may be; nothing where it may be something unknown."""
    match tested.value:
        case Ref(roots=roots, path=()) if all(tested.environment.arguments.get(tested.path + root) for root in roots):
            for each in sources.of(tested):
                yield is_instance_of(literal_type(each.value) or _object_type(sources, each), types)


def _object_type(sources: ValueSources, made: Closure) -> str:
    """``object`` for a network, or an object of the project's, that inherits from no type of Python's own; empty for other values."""
    resolver, called = sources.project.resolver, made.value.func if isinstance(made.value, Call) else None
    names = sources.project.names(made.path, called) if called is not None else ()
    classes = (resolver.ancestry(name) if in_project(name) and resolver.classes(name) else (name,) for name in names)
    plain = all(in_project(each) or _PLAIN_CLASS.fullmatch(each) for bases in classes for each in bases)
    return "object" if names and plain else ""


# Classes that no type of Python's own is a base of.
_PLAIN_CLASS = lazy_pattern(r"torch\.nn\.(\w+\.)*[A-Z]\w*|abc\.ABC|builtins\.object")


def runs_always(sources: ValueSources, path: str, function: Function, offset: int) -> bool:
    """Whether a place of a function runs in every environment: it is in no branch, and nothing before it may jump away."""
    key = path, function, offset
    if key not in sources.certain:
        sources.certain[key] = _runs_always(function.body, offset)
    return sources.certain[key]


def _runs_always(body: tuple[Statement, ...], offset: int) -> bool:
    for statement in body:
        if statement.start <= offset < statement.end:
            for block in blocks(statement):
                if contains(block, offset):
                    return not isinstance(statement, If) and _runs_always(block, offset)
            chosen = (each for choice in _conditional_operations(statement) for each in choice.operands[1:])
            return not any(each.start <= offset < each.end for each in chosen)
        if _may_leave(statement):
            return False
    return True


def _may_leave(statement: Statement) -> bool:
    """Whether a block or a statement may jump out of it."""
    return any(leaves((each,)) for each in statements((statement,)))


def _conditional_operations(statement: Statement) -> Iterator[Operation]:
    """The operations of a statement that may not evaluate all their operands."""
    for each in expressions_within(statement):
        if isinstance(each, Operation) and each.op in _CHOOSING:
            yield each


def _values(
    sources: ValueSources, path: str, operand: Expression, environment: Environment, depth: int
) -> list[object]:
    """The constants that an operand may be; none if it may be something else."""
    match operand:
        case Constant(value=value):
            return [value]
        case Collection(kind="tuple" | "list" | "set", items=items):
            values = [each.value if isinstance(each, Constant) else ... for each in items]
            return [values] if ... not in values else []
        case Call(func=Ref(roots=("builtins.len",), path=()), args=(Arg(value=Ref(roots=roots, path=()) as sized),)):
            known = all(environment.arguments.get(path + root) for root in roots)
            length = length_of(sources, Closure(path, sized, environment), 0) if known else None
            return [] if length is None else [length]
        case Call():
            return _results(sources, Closure(path, operand, environment), depth)
        case Ref():
            if (display := display_of(sources, path, operand)) is not None:
                return _values(sources, path, display, environment, depth)
            read = Closure(path, operand, environment)
            given = _is_given(sources, path, operand, environment)
            behind = sources.of(read) if given else held_operations(sources, read, operand)
            found = [_known_value(sources, each, depth) for each in behind]
            return found if ... not in found else []
    return []


# Methods of a text whose result follows from the text and the arguments.
_TEXT_METHODS = frozenset({"upper", "lower", "casefold", "strip", "startswith", "endswith"})


def _results(sources: ValueSources, called: Closure, depth: int) -> list[object]:
    """What a method of a text returns for the constants that the text may be: ``split.upper()``; none if that is not known."""
    match called.value:
        case Call(func=Ref(roots=roots, path=(*before, word)) as func, args=args) if word in _TEXT_METHODS:
            given = [each.value.value if isinstance(each.value, Constant) else ... for each in args]
            text = func._replace(path=tuple(before))
            texts = _values(sources, called.path, text, called.environment, depth) if roots else []
            if all(isinstance(each, str) for each in (*given, *texts)):
                return [getattr(each, word)(*given) for each in texts]
    return []


def _is_given(sources: ValueSources, path: str, operand: Ref, environment: Environment) -> bool:
    """Whether the environment gives a variable, or the object that has an attribute which nothing else sets or counts up."""
    match operand.path:
        case ():
            hows = (how for root in operand.roots for how, _ in sources.project.files[path].assigned.get(root, ()))
            given = all(environment.arguments.get(path + root) for root in operand.roots)
            return given and not any(how[:-1] and how[-1] == "=" for how in hows)
        case (word,) if owner := environment.receiver_class:
            names, bases = sources.project.resolver, sources.project.resolver.ancestry(owner)
            is_counted = any(row[0] not in ("=", "[]") for each in bases for row in names.stored_attributes(each, word))
            is_mode = word == "training" and names.is_module_class(owner)  # torch sets it, too
            return not is_counted and not is_mode and not is_set_from_outside(sources, path, word, environment)
        case (_, word) if not is_set_from_outside(sources, path, word, environment):
            return _is_given(sources, path, operand._replace(path=operand.path[:1]), environment)
    return False


def is_set_from_outside(
    sources: ValueSources, path: str, word: str, environment: Environment, others: Iterable[str] = ()
) -> bool:
    """Whether a file sets the attribute, ``rows.train = True``: that of the class, one that makes its objects, one of ``others``."""
    makers = {each.path for given in environment.arguments.values() for each in given}
    return any(word in attributes_set(sources.project.resolver, file) for file in sorted({path, *makers, *others}))


def _known_value(sources: ValueSources, source: Closure, depth: int) -> object:
    """The constant that a value source is, or the truth value of the test that it is; ``...`` if unknown."""
    match source.value:
        case Constant(value=value):
            return value
        case Operation(op=op) if (op in ("not", "and", "or") or op in COMPARISONS) and depth < limits.MAX_HELD_TESTS:
            answer = evaluate_test(sources, source.path, source.value, source.environment, depth + 1)
            return ... if answer is None else answer
        case Call() if depth < limits.MAX_HELD_TESTS:
            results = _results(sources, source, depth + 1)
            return results[0] if len(results) == 1 else ...
    return ...


_IMPLIES_ONE = {("==", 1), ("<", 2), ("<=", 1)}
_EXCLUDES_ONE = {("!=", 1), (">", 1), (">=", 2)}


def implies_one_element(
    spots: UseDefIndex, length: ExpressionPosition, here: ExpressionPosition, raises: Callable[[Call], bool]
) -> bool:
    """Whether a test of a length implies that what has it has one element ``here``; ``raises`` says of a call that it only raises."""
    compared = _length_comparison(length.parent)
    implying, excluding = _IMPLIES_ONE, _EXCLUDES_ONE
    negation = spots.of(length.parent) if length.parent is not None else None
    if negation is not None and isinstance(negation.parent, Operation) and negation.parent.op == "not":
        implying, excluding = excluding, implying
    match length.statement:
        case If() as tested if compared in excluding:
            return leaves(tested.body, raises) or _is_in_block(here, tested, 1)
        case If() as tested if compared in implying:
            return leaves(tested.orelse, raises) or _is_in_block(here, tested, 0)
        case SimpleStatement(kind="assert") | Assign():
            return compared in implying
    return compared in implying | excluding


def _length_comparison(expression: Expression | None) -> tuple[str, int] | None:
    match expression:
        case Operation(op=op, operands=(_, Constant(value=int(bound)))):
            return op, bound
    return None


def _is_in_block(here: ExpressionPosition, tested: If, number: int) -> bool:
    return any(block.owner == tested and block.number == number for block in here.blocks)


def implies_not_none(guard: Guard, value: Expression | None) -> bool:
    """Whether a path condition implies that a value is not None: ``if seed is not None``, ``if seed``."""
    match guard.kind, guard.value:
        case "if", Operation(op="and", operands=operands):
            return any(implies_not_none(guard._replace(value=each), value) for each in operands)
        case ("if", Operation(op="is not" | "!=", operands=(tested, other))) | (
            "else",
            Operation(op="is" | "==", operands=(tested, other)),
        ):
            return is_none(other) and is_same_reference(tested, value)
        case "else", Operation(op="not", operands=(tested,)):
            return is_same_reference(tested, value)
        case "if", tested:
            return is_same_reference(tested, value)
    return False


def implies_none(test: Expression, value: Expression) -> bool:
    """Whether a test implies that a value is None, or is falsy: ``sampler is None``, ``not sampler``, ``sampler is None and training``."""
    match test:
        case Operation(op="if", operands=(*parts, Constant(value=False))) | Operation(op="and", operands=parts):
            return any(implies_none(each, value) for each in parts)
        case Operation(op="not", operands=(tested,)):
            return is_same_reference(tested, value)
        case Operation(op="is" | "==", operands=(tested, other)):
            return is_none(other) and is_same_reference(tested, value)
    return False


def implies_falsy(guard: Guard, value: Expression | None) -> bool:
    """Whether a path condition implies that a value is falsy: ``if not shuffle``, and the ``else`` of ``if shuffle``."""
    match guard.kind, guard.value:
        case "if", Operation(op="not", operands=(tested,)):
            return is_same_reference(tested, value)
        case "if", Operation(op="and", operands=operands):
            return any(implies_falsy(guard._replace(value=each), value) for each in operands)
        case "else", tested:
            return is_same_reference(tested, value)
    return False
