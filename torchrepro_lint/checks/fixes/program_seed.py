"""The program's own seed at a place: an option, a field of a configuration, a parameter, a variable or a constant.

A seed counts only where it is bound before the place. What the fixes of one body or block share is computed in one
walk.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from torchrepro_lint.checks.fixes.insertions import means_builtin
from torchrepro_lint.checks.forward_uses import names_parsed
from torchrepro_lint.dataflow.constants import declared_default
from torchrepro_lint.domain.rng.seeders import nondeterministic_source
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.cli_options import Option
from torchrepro_lint.syntax.definitions import bound_references, targets
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Assign,
    Call,
    Collection,
    Constant,
    DefinitionStatement,
    Expression,
    If,
    Import,
    Operation,
    Record,
    Ref,
    Statement,
)
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    local_symbol,
    path_of,
    project_classes,
    simple_name,
    without_calls,
)
from torchrepro_lint.syntax.scopes import ControlFlowPosition
from torchrepro_lint.syntax.visitor import expressions_within, is_none, last_identifier, statements, subexpressions
from torchrepro_lint.trace.traces import Traces

SEED_NAME = lazy_pattern(r"(?i)(manual|random|global|rng|base|init|main|train|torch|np|numpy)?_?seed|random_state")

_Body: TypeAlias = tuple[Statement, ...]


class SeedUses:
    """The uses of seeds in a body: by variable, where a seed attribute is read and which statements assign to one; and
    what tests read.
    """

    def __init__(self, body: _Body) -> None:
        self.body = body
        self.read: dict[str, list[Ref]] = {}
        self.writes: dict[str, list[Statement]] = {}
        self._tested: set[AccessPath] = set()
        every = list(statements(body))
        targets = [each for statement in every for each in assigned_targets(statement) if is_seed_attribute(each)]
        for statement in every:
            for target in assigned_targets(statement):
                if isinstance(target, Ref) and is_seed_attribute(target):
                    self.writes.setdefault(target.roots[0], []).append(statement)
            self._visit(statement, targets)

    def tests(self, reference: Ref) -> bool:
        """Whether a test of the body reads a seed, so that it may be None."""
        return reference.access_path in self._tested

    def _visit(self, statement: Statement, targets: list[Expression]) -> None:
        found = list(expressions_within(statement))
        called = [each.func for each in found if isinstance(each, Call)]
        for each in found:
            if isinstance(each, Ref) and is_seed_attribute(each) and each not in targets and each not in called:
                self.read.setdefault(each.roots[0], []).append(each)
        tests = [each.operands[0] for each in found if isinstance(each, Operation) and each.op in ("if", "or")]
        for test in (*tests, *((statement.test,) if isinstance(statement, If) else ())):
            self._tested.update(each.access_path for each in subexpressions(test) if isinstance(each, Ref))


def seed_uses(project: Traces, path: str, body: _Body) -> SeedUses:
    """The uses of seeds in a body of a file of the project."""
    # The first statement identifies a body.
    return project.remembered("seed uses", (path, body[:1]), lambda: SeedUses(body))


def is_seed_attribute(expression: Expression) -> bool:
    """``cfg.train.seed``: an attribute of one variable, with the name of a seed."""
    if not isinstance(expression, Ref) or len(expression.roots) != 1 or not expression.path:
        return False
    return bool(SEED_NAME.fullmatch(expression.path[-1]))


def assigned_targets(statement: Statement) -> tuple[Expression, ...]:
    """The targets of an assignment; none for other statements."""
    return statement.targets if isinstance(statement, Assign) else ()


# The seed where the program has none.
FALLBACK = "0"
# The name that a fix gives it.
CONSTANT = "SEED"
_PARSED_OPTIONS = lazy_pattern(r".*\.parse_(known_args|(intermixed_)?args|args_into_dataclasses)\(\)(\[\])*")


def seed_fields(project: Traces, path: str, position: ControlFlowPosition, root: str, word: str) -> tuple[str, ...]:
    """How the seed in a namespace, a configuration or an object is written, if the project shows that there is one."""
    uses = seed_uses(project, path, position.body)
    if root in uses.writes:
        return tuple(_find_seed_fields(project, path, position, root, word))
    # The result does not depend on the position in the body.
    key = path, position.body[:1], root, word
    return project.remembered("seed fields", key, lambda: tuple(_find_seed_fields(project, path, position, root, word)))


def _find_seed_fields(project: Traces, path: str, position: ControlFlowPosition, root: str, word: str) -> Iterator[str]:
    variable = Ref(0, 0, (root,), (), 0)
    writes = [
        inner
        for each in field_writes(project, path, position, root)
        for inner in statements((each,))
        if isinstance(inner, Assign) and any(map(is_seed_attribute, inner.targets))
    ]
    always = [each for each in field_writes(project, path, position, root) if each in writes]
    if any(is_none(each.value) for each in writes) or any(_changes(project, path, each.value) for each in always):
        return  # ``args.seed = None``, ``args.seed = time.time()``
    written = {target.path for each in writes for target in each.targets if isinstance(target, Ref)}
    for option in _seed_options(project, path, variable):
        # ``if args.seed is None: args.seed = …`` ensures that there is one.
        yield from option_expressions(project, path, option, f"{word}.{option.word}", given=(option.word,) in written)
        return
    names = project.resolver.names_of(path, variable)
    parsed = [name for each in names_parsed(project, path, variable) for name in each]
    for owner in (*project_classes(names), *parsed):
        for attribute, value in class_fields(project, owner):
            if not SEED_NAME.fullmatch(attribute) or not may_be_number(value):
                continue
            if not _changes(project, path_of(owner), value):
                default = declared_default(project.resolver, path_of(owner), value)
                yield with_fallback(f"{word}.{attribute}", default)
                return
    above = (base for each in (*map(without_calls, names), *parsed) for base in project.resolver.ancestry(each))
    for name in (each for each in above if not in_project(each)):
        seeder = project.catalogue.seeder(name)
        if seeder is not None and seeder.holds and seeder.seed:
            yield f"{word}.{seeder.seed}"
            return
    for key, default in _dictionary_seeds(project, path, variable):
        yield with_fallback(f'{word}["{key}"]', default)
        return
    for reference in _seed_reads(project, path, position, root):
        text = ".".join((word, *reference.path))
        yield with_fallback(
            text, Constant(0, 0, None) if seed_uses(project, path, position.body).tests(reference) else None
        )
        return


def _changes(project: Traces, path: str, value: Expression | None) -> bool:
    return value is not None and nondeterministic_source(project.resolver, path, value) is not None


def _dictionary_seeds(project: Traces, path: str, variable: Ref) -> Iterator[tuple[str, Expression | None]]:
    """The seeds in the one dictionary display that a variable stands for: ``{"seed": 7}``."""
    match project.values(path, variable):
        case [(_, Collection(kind="dict", items=items))]:
            for key, value in zip(items[::2], items[1::2], strict=True):
                if isinstance(key, Constant) and SEED_NAME.fullmatch(str(key.value)) and may_be_number(value):
                    yield str(key.value), value


def _seed_options(project: Traces, path: str, variable: Ref) -> Iterator[Option]:
    """The seed options in a variable or parameter that holds the result of a parser in the same file."""
    names = project.resolver.names_of(path, variable) or project.resolver.names_from_callers(path, variable)
    if any(_PARSED_OPTIONS.fullmatch(name) for name in names) and not _is_rest(project, path, variable.roots[0]):
        parsed_in = {file for file, _ in project.resolver.values_through_calls(path, variable)} | {path}
        for word in project.resolver.options.words:
            if SEED_NAME.fullmatch(word):
                yield from (each for each in project.resolver.options.named(word) if each.path in parsed_in)


def _is_rest(project: Traces, path: str, root: str) -> bool:
    """Whether a variable is the second result of ``parse_known_args``, the list of what no option takes."""
    return any(
        last_identifier(value.func) == "parse_known_args" and project.resolver.unpacking(path, root, value) == (1,)
        for how, value in project.resolver.assigned(path + root)
        if how == "[]" and isinstance(value, Call)
    )


def class_fields(project: Traces, owner: str) -> Iterator[tuple[str, Expression]]:
    for each in project.resolver.ancestry(owner):
        for definition in project.resolver.classes(each):
            for statement in definition.body:
                if isinstance(statement, Assign) and statement.value is not None:
                    for target in statement.targets:
                        if isinstance(target, Ref) and not target.path:
                            yield simple_name(target.roots[0]), statement.value
        for word, values in project.resolver.instance_attributes(each).items() if in_project(each) else ():
            yield from ((word, value) for how, _, value in values if how == "=")


def _seed_reads(project: Traces, path: str, position: ControlFlowPosition, root: str) -> Iterator[Ref]:
    """Where the function reads a seed from a variable: ``cfg.train.seed``. A seed that it writes itself may not exist
    yet.
    """
    uses = seed_uses(project, path, position.body)
    if root in uses.writes:
        early = {inner for outer in position.before for inner in statements((outer,))}
        if not early.issuperset(uses.writes[root]):
            return
    yield from uses.read.get(root, ())


def field_writes(project: Traces, path: str, position: ControlFlowPosition, root: str) -> list[Statement]:
    """The statements before that assign to a seed in a variable, with their enclosing blocks."""
    writing = seed_uses(project, path, position.body).writes.get(root, ())
    return [outer for outer in position.before for inner in statements((outer,)) if inner in writing] if writing else []


def option_expressions(project: Traces, path: str, option: Option, text: str, *, given: bool = False) -> Iterator[str]:
    """An option as an integer expression in ``path``: one that may be None and is not ``given``, or that is text, is
    converted.
    """
    kind = known_argument(option.call, None, "type")
    names = project.names(option.path, kind) if kind is not None else ()
    default = option.default.value if isinstance(option.default, Constant) else 0
    if isinstance(default, (str, bool, bytes)) or (kind is not None and "builtins.str" in names):
        return
    is_integer = "builtins.int" in names or (kind is not None and not names) or "click.INT" in names
    is_click = isinstance(option.call.func, Ref) and option.call.func.path[-1:] == ("option",)
    is_absl = isinstance(option.call.func, Ref) and option.call.func.path[-1:] == ("DEFINE_integer",)
    converted = text if is_integer or is_absl or (is_click and type(default) is int) else f"int({text})"
    if converted != text and not means_builtin(project, path, "int"):
        return
    yield f"{FALLBACK} if {text} is None else {converted}" if default is None and not given else converted


def with_fallback(text: str, default: Expression | None) -> str:
    return f"{FALLBACK} if {text} is None else {text}" if is_none(default) else text


def may_be_number(value: Expression | None) -> bool:
    """Whether a value assigned to a seed may be a number: an integer, None, or an expression."""
    return not isinstance(value, Constant) or value.value is None or type(value.value) is int


# NumPy takes seeds below this.
SEED_LIMIT = 2**32


class BlockSeeds(Record, frozen=True):
    """The bindings and seeds of a block, by the indices of its statements: the statements that bind each variable, and
    those that assign a variable that is or may hold a seed, with its root and name.
    """

    bound: dict[str, list[int]]
    variables: tuple[tuple[int, str, str], ...]


def block_seeds(project: Traces, path: str, position: ControlFlowPosition, block: tuple[Statement, ...]) -> BlockSeeds:
    """The bindings and seeds of a block that leads to a position."""

    def compute() -> BlockSeeds:
        return BlockSeeds(_bindings(block), tuple(_seed_variables(project, path, position, block)))

    return project.remembered("block seeds", (path, block[:1]), compute)


def last_binding(project: Traces, path: str, position: ControlFlowPosition, root: str) -> int:
    """The start of the last statement before a position that binds a variable; -1 where none does."""
    last = -1
    for block_position in position.spots:
        places = block_seeds(project, path, position, block_position.block).bound.get(root, [])
        before = bisect_left(places, block_position.at)
        if before:
            last = max(last, block_position.block[places[before - 1]].start)
    return last


def is_integer(value: Expression) -> bool:
    """A literal, a value read from an option, or one of them as an alternative: nothing that changes between runs."""
    match value:
        case Constant(value=number):
            return type(number) is int and 0 <= number < SEED_LIMIT
        case Ref(path=(*_, word)):
            return bool(SEED_NAME.fullmatch(word))
        case Operation(op="if" | "or", operands=operands):
            return all(is_integer(each) for each in operands[-2:])
        case Call(func=Ref(roots=("builtins.int",)), args=(arg,)):
            return is_integer(arg.value)
    return False


def _bindings(block: tuple[Statement, ...]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for at, outer in enumerate(block):
        roots = (root for each in statements((outer,)) for target in variables_bound(each) for root in target.roots)
        for root in dict.fromkeys(roots):
            found.setdefault(root, []).append(at)
    return found


def variables_bound(statement: Statement) -> Iterator[Ref]:
    """The variables that a statement binds."""
    return (ref for target in targets(statement) for ref in bound_references(target) if not ref.path)


def binds(statement: Statement, word: str) -> bool:
    """Whether a statement binds a variable, a class, a function or an import of this name."""
    match statement:
        case Import(names=names):
            return any(local == word for local, _ in names)
        case DefinitionStatement(name=name):
            return simple_name(name) == word
    return any(last_identifier(each) == word for each in variables_bound(statement))


def _seed_variables(
    project: Traces, path: str, position: ControlFlowPosition, block: tuple[Statement, ...]
) -> Iterator[tuple[int, str, str]]:
    """A variable without assignments to a seed in it has the same fields everywhere in the function."""
    for at, statement in enumerate(block):
        if not isinstance(statement, Assign) or statement.op not in ("=", ":") or statement.value is None:
            continue
        for target in variables_bound(statement):
            if len(target.roots) != 1:
                continue
            root, word = target.roots[0], simple_name(target.roots[0])
            if SEED_NAME.fullmatch(word):
                gives = target in statement.targets and is_integer(statement.value)
            elif isinstance(statement.value, Constant) or (
                isinstance(statement.value, Collection) and statement.value.kind != "dict"
            ):
                gives = False  # ``args = None`` and ``args, word = None, "none"``, which have no fields
            else:
                gives = root in seed_uses(project, path, position.body).writes or bool(
                    seed_fields(project, path, position, root, word)
                )
            if gives:
                yield at, root, word


# The object under construction.
_UNFINISHED_OBJECTS = (local_symbol(".__init__", "self"), local_symbol(".__new__", "cls"))


class SeedValue(NamedTuple):
    """How a seed is written, and the statement after which it is bound (None: from the start of the function on)."""

    text: str
    after: Statement | None


def own_seed(project: Traces, path: str, position: ControlFlowPosition) -> SeedValue | None:
    """An option, a field, a parameter or a variable: the one that is bound first."""
    found = [*_parameter_seeds(project, path, position), *_variable_seeds(project, path, position)]
    return min(found, key=lambda each: each.after.end if each.after else 0, default=None)


def _parameter_seeds(project: Traces, path: str, position: ControlFlowPosition) -> Iterator[SeedValue]:
    """``seed`` of ``def main(seed)``, and ``args.seed`` of ``def main(args)``."""
    if (function := position.function) is None:
        return
    for param in function.params:
        root = local_symbol(function.name, param.name)
        making = function.owner and param == function.params[0] and root.endswith(_UNFINISHED_OBJECTS)
        if param.kind.startswith("*") or making or last_binding(project, path, position, root) >= 0:
            continue
        if SEED_NAME.fullmatch(param.name):
            click = project.resolver.options.of(path, Ref(0, 0, (root,), (), 0))
            if click:
                yield from (SeedValue(text, None) for text in option_expressions(project, path, click[0], param.name))
            elif may_be_number(param.default):
                tested = seed_uses(project, path, position.body).tests(Ref(0, 0, (root,), (), 0))
                none = Constant(0, 0, None) if tested else param.default
                yield SeedValue(with_fallback(param.name, none), None)
        else:
            yield from (SeedValue(text, None) for text in seed_fields(project, path, position, root, param.name))


def _variable_seeds(project: Traces, path: str, position: ControlFlowPosition) -> Iterator[SeedValue]:
    """``args.seed`` after ``args = parser.parse_args()``, ``seed`` after ``seed = 7``."""
    for block_position in position.spots:
        for at, root, word in block_seeds(project, path, position, block_position.block).variables:
            if at >= block_position.at:
                break
            statement = block_position.block[at]
            if last_binding(project, path, position, root) > statement.start:
                continue
            if SEED_NAME.fullmatch(word):
                yield SeedValue(word, statement)
            else:
                last = max([statement, *field_writes(project, path, position, root)], key=lambda each: each.start)
                yield from (SeedValue(text, last) for text in seed_fields(project, path, position, root, word))
