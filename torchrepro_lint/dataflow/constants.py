"""Constant propagation: the one constant that an expression can be, and the tests that earlier ones decide. Expressions are also
written as short text here, for messages. The value that an expression has by default is a record with the declaration of the default.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torchrepro_lint.catalogue.catalogue import canonical
from torchrepro_lint.catalogue.conditions import UNKNOWN_VALUE, LiteralValue, literal_value
from torchrepro_lint.resolve.computed_names import UNKNOWN_ATTRIBUTE
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.cli_options import read_of_getattr
from torchrepro_lint.syntax.definitions import bound_references, targets
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Arg,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    If,
    Operation,
    Record,
    Ref,
    SimpleStatement,
    Statement,
    Subscript,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import is_own, is_self, is_unresolved, simple_name, without_parentheses
from torchrepro_lint.syntax.visitor import (
    blocks,
    body_expressions,
    last_identifier,
    receiver_of,
    statements,
)

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names


def propagated_constant(names: Names, path: str, expression: Expression | None) -> LiteralValue:
    """The one constant that an expression of a file can be; ``OPEN`` if there are several, or any."""
    if expression is None:
        return UNKNOWN_VALUE
    found = [literal_value(value) for _, value in names.values(path, expression)]
    first = found[0] if found else UNKNOWN_VALUE
    return first if all(type(each) is type(first) and each == first for each in found) else UNKNOWN_VALUE


def describe(expression: Expression | None) -> str:
    """An expression as short text: ``args.fast``, ``not debug``, ``get_flag(...)``; ``...`` for longer ones."""
    match expression:
        case Constant(value=value):
            return f'"{value}"' if isinstance(value, str) else repr(value)
        case Ref(roots=roots, path=path):
            return ".".join((_word(roots[0]), *path)) if roots else "..."
        case Attribute(value=value, name=name):
            return f"{describe(value)}.{name}"
        case Call():
            return _described_call(expression)
        case Subscript(value=value, indices=(index,)):
            return f"{describe(value)}[{describe(index)}]"
        case Operation(op=":=", operands=(target, _)):
            return describe(target)
        case Operation(op="not", operands=(operand,)):
            return f"not {describe(operand)}"
        case Operation(op=op, operands=(left, right)) if op in _BINARY:
            return f"{describe(left)} {op} {describe(right)}"
        case Operation(op="if", operands=(test, one, other)):
            return f"{describe(one)} if {describe(test)} else {describe(other)}"
        case Collection(kind="list", items=()):
            return "[]"
    return "..."


def _described_call(call: Call) -> str:
    """A call as short text; ``getattr(args, "seed", -1)`` as ``args.seed``."""
    read = read_of_getattr(call)
    match call:
        case Call() if read is not None:
            return describe(read)
        case Call(func=func, args=(Arg(value=Constant() as key),)) if last_identifier(func) == "get":
            return f"{describe(func)}({describe(key)})"
    return f"{describe(call.func)}({'...' if call.args else ''})"


_SHORT = (("torch.nn.functional.", "F."), ("torch.nn.", "nn."), ("torch.utils.data.", ""), ("numpy.", "np."))


def display_name(name: str) -> str:
    """A public name as people write it: ``nn.Linear``, ``F.dropout``, ``np.random.rand``."""
    plain = canonical(without_parentheses(name))
    if plain.endswith(f".{UNKNOWN_ATTRIBUTE}"):
        return f"what is looked up in {plain.removesuffix(f'.{UNKNOWN_ATTRIBUTE}')}"
    for prefix, short in _SHORT:
        if plain.startswith(prefix):
            return short + plain[len(prefix) :]
    return plain


_BINARY = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not", "and", "or", "+", "-", "*", "%"})


def _word(root: str) -> str:
    """A root as it is written: ``args`` for ``:main.<locals>.args``, ``torch.cuda`` unchanged."""
    return simple_name(root) if is_own(root) or is_unresolved(root) else root.removeprefix("builtins.")


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "is": operator.is_,
    "is not": operator.is_not,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda one, other: one in other,
    "not in": lambda one, other: one not in other,
}


# The types of literals and displays, with the classes of Python's own that they are instances of.
_BUILTIN_TYPES = frozenset({"str", "int", "float", "bool", "bytes", "complex", "list", "tuple", "set", "dict", "slice"})
_BUILTIN_TYPES |= {"frozenset", "type"}
# Packages with classes of which no literal is an instance.
_OTHER_TYPES = ("torch.", "numpy.", "pathlib.", "pandas.")


def is_instance_of(own: str, types: Expression) -> bool | None:
    """Whether what has a type of its own is an instance of some types, by their names; None if that is not known."""
    match types:
        case Collection(kind="tuple", items=items):
            answers = [is_instance_of(own, each) for each in items if each is not None]
            return True if True in answers else None if None in answers else False
        case Operation(op="|", operands=operands):
            answers = [is_instance_of(own, each) for each in operands]
            return True if True in answers else None if None in answers else False
    name = ".".join((*types.roots, *types.path)) if isinstance(types, Ref) and len(types.roots) == 1 else ""
    if not own or not name:
        return None
    if name.startswith("builtins.") and (word := name.removeprefix("builtins.")) in _BUILTIN_TYPES:
        return own == word or (own, word) == ("bool", "int")
    return False if own != "object" and name.startswith(_OTHER_TYPES) else None


def literal_type(value: Expression) -> str:
    """The name of the type of a literal or of a display; empty for other expressions."""
    match value:
        case Constant(value=known):
            return type(known).__name__
        case Collection(kind=kind):
            return kind
        case Comprehension(kind="list" | "set" | "dict" as kind):
            return kind
    return ""


class _Entropy:
    """A value that is new in each run: neither None, nor equal to or less than any constant."""

    def __repr__(self) -> str:
        return "a new value in each run"


ENTROPY = _Entropy()


class Declaration(Record, frozen=True):
    """The declaration of a default: its file and span, how the program reads the value, ``args.seed``, and the default.

    For a default that ``source``, a configuration file, has, the span is that of what reads it.
    """

    path: str
    start: int
    end: int
    text: str
    default: object
    source: str = ""


class DefaultValue(Record, frozen=True):
    """A value without options: a constant or ``ENTROPY``; and the default that it came from (None for a plain literal)."""

    value: object
    declared: Declaration | None = None


def compared(op: str, left: object, right: object) -> bool | None:
    """The value of a comparison of two constants; None if it raises."""
    try:
        return bool(COMPARISONS[op](left, right))
    except TypeError:
        return None


_FIELDS = frozenset({"dataclasses.field", "attr.ib", "attrs.field", "pydantic.Field"})
_TYPER = frozenset({"typer.Option", "typer.Argument"})
_NAMESPACES = frozenset({"argparse.Namespace", "types.SimpleNamespace"})


def declared_default(names: Names, path: str, value: Expression) -> Expression | None:
    """The default that an expression declares: what ``field(default=None)`` is given, and what ``field(default_factory=f)`` calls;
    None if it is not known. Other expressions are their own default.
    """
    called = names.names(path, value.func) if isinstance(value, Call) else ()
    if not isinstance(value, Call) or (_FIELDS.isdisjoint(called) and _TYPER.isdisjoint(called)):
        return value
    if not _TYPER.isdisjoint(called):
        first = known_argument(value, 0, "default")
        return first if isinstance(first, Constant) and isinstance(first.value, int | str | float | None) else None
    factory = known_argument(value, None, "default_factory")
    if factory is not None:
        return Call(factory.start, factory.end, factory, (), factory.end)
    return known_argument(value, None, "default")


def parsed_classes(names: Names, path: str, parsed: Expression) -> Iterator[tuple[str, Expression]]:
    """The class whose fields a parser fills, with its file: ``Args`` of ``tyro.cli(Args)``, and of the first object that
    ``HfArgumentParser(Args).parse_args_into_dataclasses()`` returns.
    """
    match parsed:
        case Call(args=(Arg(value=first), *_)):
            yield path, first
        case Subscript(value=Call(func=func), indices=(Constant(value=int(at)),)) if (
            last_identifier(func) == "parse_args_into_dataclasses" and (parser := receiver_of(func)) is not None
        ):
            for file, made in names.values(path, parser):
                given = known_argument(made, 0, "dataclass_types") if isinstance(made, Call) else None
                classes = given.items if isinstance(given, Collection) else (given,)
                if at < len(classes) and (found := classes[at]) is not None:
                    yield file, found


def namespace_argument(names: Names, path: str, made: Expression, word: str) -> Expression | None:
    """What a namespace has under a word since it was made: None of ``Namespace(seed=None)``."""
    if not isinstance(made, Call) or _NAMESPACES.isdisjoint(names.names(path, made.func)):
        return None
    return known_argument(made, None, word)


def configured_default(names: Names, paths: Iterable[str], path: str, read: Expression) -> DefaultValue | None:
    """What the configuration files of a program have where an expression reads one: a whole number, a truth value or nothing.

    None if it is something else, or may be overridden: by an option of that name, or by a store in one of the program's ``paths``.
    """
    found: list[DefaultValue | None] = []
    for source, text in names.configurations.scalars(path, read):
        if text not in _WRITTEN and not text.lstrip("-").isdecimal():
            return None
        value = written_value(text)
        declared = Declaration(path, read.start, read.end, describe(read), value, source)
        found.append(DefaultValue(value, declared))
    places = names.configurations.places(path, read) if found else ()
    words = {each.keys[-1] for each in places if each.keys}
    for each in paths if found else ():
        names.modules.reads.record_read(each)
        stored = names.configurations.stores(each)
        if not words.isdisjoint(names.modules.files[each].summary.options) or any(place in stored for place in places):
            return None
    return agreed(found)


def written_value(text: str) -> str | int | None:
    """The value of a scalar as a configuration file writes it; a text for what is no whole number, truth value or nothing."""
    if text in _WRITTEN:
        return _WRITTEN[text]
    return int(text) if text.lstrip("-").isdecimal() else text


# Values as YAML and JSON write them.
_WRITTEN = {
    "null": None,
    "Null": None,
    "NULL": None,
    "~": None,
    "true": True,
    "True": True,
    "false": False,
    "False": False,
}


def correlated_tests(facts: SyntaxTree) -> dict[Expression, bool]:
    """The tests of a file that earlier ones decide, with their truth: after ``if args.ddp: wrap() else: raise``, ``args.ddp`` holds.

    Only attributes of options count so: what their branches raise for does not change while the function runs, unless it binds the
    attribute, or hands the options or the attribute to a call.
    """
    found: dict[Expression, bool] = {}
    for body in (facts.body, *(each.body for each in facts.functions)):
        _correlate(body, {}, found)
    return found


def _correlate(body: Iterable[Statement], known: dict[AccessPath, bool], found: dict[Expression, bool]) -> None:
    """Walk through a block. ``known`` has the attributes whose truth is known before it, and has those known behind it afterwards."""
    for statement in body:
        if known:
            _forget_changed(statement, known)
        if isinstance(statement, If):
            place, holds = _option_tested(statement.test)
            if place in known:
                found[statement.test] = known[place] == holds
            for block in (statement.body, statement.orelse):
                _correlate(block, dict(known), found)
            raising = _raises(statement.body), _raises(statement.orelse)
            if place and raising[0] != raising[1]:
                known[place] = holds == raising[1]
                _forget_changed(statement, known)
        else:
            for block in blocks(statement):
                _correlate(block, dict(known), found)


def _option_tested(test: Expression) -> tuple[AccessPath | None, bool]:
    """The attribute of an object other than ``self`` that a test reads, and whether it is true where the test holds."""
    match test:
        case Operation(op="not", operands=(inner,)):
            place, holds = _option_tested(inner)
            return place, not holds
        case Ref(roots=(root,), path=(_, *_)) if not is_self(root):
            return test.access_path, True
    return None, True


def _raises(body: tuple[Statement, ...]) -> bool:
    """Whether every path through a block raises an error."""
    match body[-1:]:
        case (SimpleStatement(kind="raise"),):
            return True
        case (If(body=then, orelse=orelse),):
            return _raises(then) and _raises(orelse)
    return False


def _forget_changed(statement: Statement, known: dict[AccessPath, bool]) -> None:
    """Forget what a statement, or one in its blocks, may change: what it binds, and what it hands to a call or calls a method of."""
    changed = [each for one in statements((statement,)) for it in targets(one) for each in bound_references(it)]
    for each in body_expressions((statement,)):
        match each:
            case Operation(op=":=", operands=(Ref() as target, _)):
                changed.append(target)
            case Call(func=func, args=args):
                changed += [arg.value for arg in args if isinstance(arg.value, Ref)]
                changed += [func._replace(path=func.path[:-1])] if isinstance(func, Ref) and func.path else []
    for roots, path in [*known]:
        if any(one.roots == roots and path[: len(one.path)] == one.path for one in changed):
            del known[roots, path]


class Ruling(Record, frozen=True):
    """A test of a file that rules a place out, and its value."""

    path: str
    test: Expression
    value: DefaultValue


def comparison(op: str, left: DefaultValue | None, right: DefaultValue | None) -> DefaultValue | None:
    truth = compared(op, left.value, right.value) if left is not None and right is not None else None
    return (
        None if left is None or right is None or truth is None else DefaultValue(truth, left.declared or right.declared)
    )


def agreed(found: list[DefaultValue | None]) -> DefaultValue | None:
    """The value that all agree on."""
    first = found[0] if found else None
    if first is None or any(
        each is None or type(each.value) is not type(first.value) or each.value != first.value for each in found
    ):
        return None
    return next((each for each in found if each is not None and each.declared is not None), first)
