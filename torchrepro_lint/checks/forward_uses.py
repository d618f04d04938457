"""Forward use analysis: whether a number becomes a seed, a bucket or a split; and which options and fields are read.

Reads that only print or log do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchrepro_lint import limits
from torchrepro_lint.dataflow.constants import describe, parsed_classes
from torchrepro_lint.domain.rng.library_generators import SEEDABLE_GENERATORS
from torchrepro_lint.domain.rng.seeders import nondeterministic_source, passed_seed
from torchrepro_lint.query.database import query
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import STARTING, launched_call
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Constant,
    Expression,
    Operation,
    Record,
    Ref,
    SimpleStatement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    in_project,
    instance_value,
    is_instance,
    is_module,
    last_word,
    local_symbol,
    path_of,
    readable_name,
    simple_name,
    unbound_method,
)
from torchrepro_lint.syntax.use_def import ExpressionPosition
from torchrepro_lint.syntax.visitor import (
    bodies,
    last_identifier,
    operands_of,
    read_expressions,
    statements,
)
from torchrepro_lint.trace.traces import Traces

# Variables and classes that hold the options of a program.
CONFIGURATION_NAME = lazy_pattern(
    r"(?i)(?=\w*\Z)\w*(config|cfg|conf|hparams|params|defaults|args|opts|options|settings)\w*"
)
_DIVISIONS = frozenset({"%", "&", "//", ">>"})
_NUMERIC_CONVERSIONS = frozenset(
    {"builtins.abs", "builtins.int", "builtins.float", "numpy.abs", "numpy.uint32", "numpy.int64", "math.fabs"}
)
_SEED = lazy_pattern(r"(?i)(?=\w*\Z)(\w+_)?(seed|random_state|rng)(_\w+)?")
_SEEDED = "seeds"
_USED_AS_SEED = "is used as a seed"


class NumberUse(Record, frozen=True):
    """What becomes of a number, in words such as ``is the seed of `Random```, and the expression that uses it."""

    said: str
    path: str
    node: Expression


def seed_or_split_use(project: Traces, path: str, number: Expression) -> NumberUse | None:
    """The use of a number as a seed, or to decide a bucket or a split.

    None, too, where a seeder takes it as its seed, which TRL105 reports.
    """
    found: NumberUse | None = None
    for use in _number_uses(project, path, number):
        if use.said == _SEEDED:
            return None
        found = found or use
    return found


def becomes_seed(project: Traces, path: str, number: Expression) -> bool:
    """Whether a number is used as a seed, or assigned to what is called one."""
    position = project.uses.spots(path).of(number)
    targets = position.statement.targets if position is not None and isinstance(position.statement, Assign) else ()
    return any(_SEED.fullmatch(_target_word(each)) for each in targets) or any(
        use.said.startswith((_SEEDED, _USED_AS_SEED)) for use in _number_uses(project, path, number)
    )


def _target_word(target: Expression) -> str:
    """What an assignment sets, as it is called: ``seed`` of ``args.seed`` and ``config["seed"]``; empty if it has no name."""
    match target:
        case Ref(roots=(root, *_), path=path):
            return path[-1] if path else simple_name(root)
        case Subscript(indices=(Constant(value=str(key)),)):
            return key
    return ""


def _number_uses(project: Traces, path: str, number: Expression) -> Iterator[NumberUse]:
    """The uses of a number that say something of it, forward through variables, arithmetic and calls."""
    queue: list[tuple[str, Expression]] = [(path, number)]
    seen: set[tuple[str, Expression]] = set()
    while queue and len(seen) < limits.MAX_NUMBER_USES:
        file, node = each = queue.pop(0)
        if each in seen:
            continue
        seen.add(each)
        position = project.uses.spots(file).of(node)
        if position is None:
            continue
        said, further = _follow_use(project, file, node, position)
        if said:
            yield NumberUse(said, file, node)
        queue += further


def _follow_use(
    project: Traces, path: str, node: Expression, position: ExpressionPosition
) -> tuple[str, list[tuple[str, Expression]]]:
    match position.parent:
        case Operation(op=op, operands=operands) if op in _DIVISIONS and operands[0] == node:
            return f"decides a bucket or a split{_target(position)}", [(path, position.parent)]
        case Operation(op="+" | "-" | "*" | "^" | "|" | "/" | "or" | ":=" | "&" | "%"):
            return "", [(path, position.parent)]
        case Operation(op="if", operands=(_, *values)) if node in values:
            return "", [(path, position.parent)]
        case Call(func=func) if func == node:  # ``drawn.item()``
            return "", [(path, position.parent)]
        case Call():
            return _argument_use(project, path, node, position.parent)
        case None:
            return _statement_use(project, path, position)
    return "", []


def _target(position: ExpressionPosition) -> str:
    """``, `fold``` of ``fold = hash(name) % 5``; of what is returned, the function."""
    match position.statement:
        case Assign(targets=(Ref() as target,)):
            return f", `{describe(target)}`"
        case SimpleStatement(kind="return") if not is_module(position.function):
            return f", returned from `{readable_name(position.function)}`"
    return ""


def _argument_use(project: Traces, path: str, node: Expression, call: Call) -> tuple[str, list[tuple[str, Expression]]]:
    names = project.names(path, call.func)
    if not _NUMERIC_CONVERSIONS.isdisjoint(names):
        return "", [(path, call)]
    keyword = next((arg.keyword for arg in call.args if arg.value == node and arg.keyword), "")
    seeds = any(name in SEEDABLE_GENERATORS or _seeds_with(project, name, call, node) for name in names)
    seeds = seeds or last_identifier(call.func) in ("seed", "manual_seed")
    if _SEED.fullmatch(keyword) or seeds:
        if seeds and nondeterministic_source(project.resolver, path, node):
            return _SEEDED, []
        return f"{_USED_AS_SEED}, by `{describe(call.func)}`", []
    return "", []


def _seeds_with(project: Traces, name: str, call: Call, argument: Expression) -> bool:
    """Whether a call seeds with an argument: the model that a trainer gets, which seeds as it is made, is no seed."""
    seeder = None if in_project(name) else project.catalogue.seeder(unbound_method(name))
    return seeder is not None and passed_seed(seeder, call) == argument


def _statement_use(
    project: Traces, path: str, position: ExpressionPosition
) -> tuple[str, list[tuple[str, Expression]]]:
    match position.statement:
        case Assign(targets=targets):
            found: list[tuple[str, Expression]] = []
            for target in targets:
                if isinstance(target, Ref):
                    word = target.path[-1] if target.path else simple_name(target.roots[0])
                    uses = project.uses.of_variable(path, target, position, position.statement.end)
                    found += [(file, ref) for file, ref, words in uses if not words or words == ("item",)]
                    if _SEED.fullmatch(word) and not found:
                        return f"{_USED_AS_SEED}, `{describe(target)}`", []
                elif isinstance(target, Subscript):
                    continue
            return "", found
        case SimpleStatement(kind="return"):
            return "", list(project.uses.of_result(path + position.function)) if not is_module(
                position.function
            ) else []
    return "", []


_LOGGING_CALLS = frozenset(
    {"print", "debug", "info", "warning", "warn", "error", "critical", "exception", "log", "pprint"}
)
_NAMESPACES = (".parse_args()", ".parse_known_args()", ".parse_known_args()[]", ".parse_intermixed_args()")
# Parsers that fill the fields of a class that they get, and their functions that return objects of it.
_CLASS_PARSERS = frozenset({"transformers.HfArgumentParser", "tyro.cli"})
# Those, and functions that read no option of what they get.
_KEEPING_NOTHING = _CLASS_PARSERS | {
    f"builtins.{word}" for word in ("isinstance", "type", "id", "str", "repr", "hasattr")
}
_PARSES_CLASS = lazy_pattern(r"transformers\.HfArgumentParser\(\)\.parse_\w+|tyro\.cli")


class OptionReads:
    """The reads of options, attributes and keys in some files."""

    def __init__(self, project: Traces, files: Sequence[str]) -> None:
        self._project = project
        self._files = files
        self.database = project.database

    @query()
    def _in(self, path: str) -> tuple[Expression, ...]:
        """The expressions that a file reads."""
        return tuple(_expressions_read(self._project, path))

    @property
    def _expressions(self) -> Iterator[tuple[str, Expression]]:
        """The expressions read, file by file: one of the first answers most questions."""
        return ((path, each) for path in self._files for each in self._in(path))

    def reads_word(self, word: str, declaration: Expression | None) -> bool:
        """Whether an attribute or a key of that name is read anywhere but in its declaration."""
        return any(_reads(each, word) for _, each in self._expressions if not _is_inside(each, declaration))

    def reads_parameter(self, function: str, word: str) -> bool:
        """Whether a function reads its parameter ``word``; one with ``**options``, or that calls ``locals()``, may read any."""
        path = path_of(function)
        for definition in self._project.resolver.functions(function):
            names = [param.name for param in definition.params]
            if word not in names:
                return True
            variable = local_symbol(definition.name, word)
            read = self._in(path) if path in self._files else ()
            if any(variable in each.roots for each in read if isinstance(each, Ref)):
                return True
            inside = (each for each in read if definition.start <= each.start < definition.end)
            if any(isinstance(each, Call) and _is_of_locals(each) for each in inside):
                return True
        return False

    def escapes(self, holder: str) -> bool:
        """Whether the object that holds an option escapes to code that is not followed, or no such object is seen.

        The object is ``Config()``, a dictionary, or, where ``holder`` is empty, argparse's namespace.
        """
        for path, each in self._expressions:
            names = self._project.names(path, each.func) if isinstance(each, Call) else ()
            if not isinstance(each, Call) or any(map(in_project, names)) or not _KEEPING_NOTHING.isdisjoint(names):
                continue
            if any(self._holds(path, arg.value, holder) for arg in each.args) and not self._launches(path, each):
                return True
        return not holder and not self._parses()

    def _launches(self, path: str, call: Call) -> bool:
        """Whether a call starts a function of the project, which gets what the call passes."""
        started = launched_call(call) if last_identifier(call.func) in STARTING else None
        return started is not None and any(map(in_project, self._project.names(path, started.func)))

    def _parses(self) -> bool:
        """Whether the files are seen to parse a command line."""
        sites = (site for path in self._files for site in self._project.calls(path))
        return any(instance_value(name).endswith(_NAMESPACES) for site in sites for name in site.names)

    def _holds(self, path: str, value: Expression, holder: str, depth: int = limits.MAX_HANDED_ON) -> bool:
        if isinstance(value, Ref) and value.path[-1:] == ("__dict__",):
            value = value._replace(path=value.path[:-1])
        if isinstance(value, Collection):
            return any(item is not None and self._holds(path, item, holder) for item in value.items)
        if not holder and any(name.endswith(_NAMESPACES) for name in self._project.names(path, value)):
            return True
        if isinstance(value, Call) and last_identifier(value.func) == "vars" and value.args:
            return self._holds(path, value.args[0].value, holder)
        resolver, roots = self._project.resolver, value.roots if isinstance(value, Ref) and not value.path else ()
        if depth and any(
            self._holds(file, given, holder, depth - 1)
            for root in roots
            if resolver.parameter(path + root) is not None
            for file, given in resolver.passed(path + root)
        ):
            return True
        if not holder:
            return False
        if is_instance(holder):
            owners = {holder, class_of(holder)}
            parsed = names_parsed(self._project, path, value)
            return not owners.isdisjoint(self._project.names(path, value)) or any(
                not names or not owners.isdisjoint(names) for names in parsed
            )
        if isinstance(value, Ref) and not value.path:
            modules = self._project.resolver.modules
            return any(holder in modules.resolve(path, root) for root in value.roots)
        return False


def _is_of_locals(call: Call) -> bool:
    """``locals()``, and ``vars()`` without an argument."""
    roots = call.func.roots if isinstance(call.func, Ref) and not call.func.path else ()
    return "builtins.locals" in roots or ("builtins.vars" in roots and not call.args)


def names_parsed(project: Traces, path: str, value: Expression) -> Iterator[tuple[str, ...]]:
    """For each call of a parser of classes that gives a value, the names of the class whose object it is; none if it is not known."""
    for file, each in project.values(path, value):
        roots = each.roots if isinstance(each, Ref) and not each.path else ()
        assigned = project.value_sources.assignments(file)
        for one in [one.value for root in roots for one in assigned.get(root, ())] or [each]:
            call = one.value if isinstance(one, Subscript) else one
            if isinstance(call, Call) and any(map(_PARSES_CLASS.fullmatch, project.names(file, call.func))):
                classes = parsed_classes(project.resolver, file, one)
                yield tuple(name for where, given in classes for name in project.names(where, given))


def option_reads(project: Traces, files: Sequence[str]) -> OptionReads:
    """The reads of files of a project."""
    return OptionReads(project, files)


def _expressions_read(project: Traces, path: str) -> list[Expression]:
    """The expressions that a file reads and their parts, unordered; without what is only logged and without callees."""
    found: list[Expression] = []
    left = [each for body in bodies(project.files[path]) for one in statements(body) for each in read_expressions(one)]
    while left:
        expression = left.pop()
        if not isinstance(expression, Call):
            left += operands_of(expression)
        elif _is_logging(expression.func):
            continue
        else:
            left += (arg.value for arg in expression.args)
            if isinstance(expression.func, Ref):
                found.append(expression.func._replace(path=expression.func.path[:-1]))
            else:
                left.append(expression.func.value if isinstance(expression.func, Attribute) else expression.func)
        found.append(expression)
    return found


def _is_logging(func: Expression) -> bool:
    match func:
        case Ref(roots=roots, path=path):
            return (path or (last_word(roots[0]),))[-1] in _LOGGING_CALLS
        case Attribute(name=word):
            return word in _LOGGING_CALLS
    return False


def _reads(expression: Expression, word: str) -> bool:
    match expression:
        case Ref(path=path):
            return word in path
        case Attribute(name=name):
            return name == word
        case Constant(value=value):
            return value == word
    return False


def _is_inside(expression: Expression, declaration: Expression | None) -> bool:
    return declaration is not None and declaration.start <= expression.start and expression.end <= declaration.end
