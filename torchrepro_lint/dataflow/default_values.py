"""Constant propagation under defaults: the value of an expression in a run that is started without any option.

The defaults of options, of parameters that no call passes, of dataclass fields and of configurations are followed
through assignments, tests and calls. Each value remembers the declaration of the default that it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.dataflow.constants import (
    COMPARISONS,
    ENTROPY,
    Declaration,
    DefaultValue,
    Ruling,
    agreed,
    comparison,
    configured_default,
    declared_default,
    describe,
    namespace_argument,
    parsed_classes,
)
from torchrepro_lint.dataflow.environment import Closure, Environment
from torchrepro_lint.dataflow.feasibility import ruling_tests
from torchrepro_lint.dataflow.reaching_definitions import DefinitionFlow, stores
from torchrepro_lint.syntax.binding import takes_receiver
from torchrepro_lint.syntax.cli_options import entry_of_vars, read_of_getattr
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Assign,
    Call,
    Collection,
    Constant,
    Expression,
    Function,
    Operation,
    Record,
    Ref,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    is_top_level,
    path_of,
    simple_name,
    split_local,
    split_name,
)
from torchrepro_lint.syntax.scopes import branching_around, function_around
from torchrepro_lint.syntax.use_def import contains
from torchrepro_lint.syntax.visitor import statements

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.environment import ValueSources
    from torchrepro_lint.dataflow.value_sources import ValueFlow

_ARITHMETIC = frozenset({"+", "-", "*", "%", "//", "^", "&", "|", "**", "<<", ">>"})
_CONVERSIONS = frozenset({"builtins.int", "builtins.abs", "builtins.float", "builtins.str", "builtins.round"})
# One object, since an environment is equal only to itself.
_NO_ARGUMENTS = Environment.of()


class DefaultValues:
    """The values of expressions in the run of a program that is started without options.

    ``commands`` are the functions that the command line calls: their parameters are options. ``paths`` are the files of
    the program. ``changes`` tells whether a call returns a new value in each run.
    """

    def __init__(
        self, project: ValueFlow, commands: Iterable[str], paths: Iterable[str], changes: Callable[[str, Call], bool]
    ) -> None:
        self._project = project
        self._commands = frozenset(commands)
        self._paths = sorted(paths)
        self._changes = changes
        self._depth = 0
        self._known: dict[Closure, DefaultValue | None] = {}

    @property
    def _sources(self) -> ValueSources:
        return self._project.value_sources

    def forget(self) -> None:
        """Ask anew whether calls return a new value in each run."""
        self._known.clear()

    def of(self, closure: Closure) -> DefaultValue | None:
        """The value of an expression without options; None if it is unknown."""
        if isinstance(closure.value, Constant) or self._depth >= limits.MAX_DEFAULT_DEPTH:
            return DefaultValue(closure.value.value) if isinstance(closure.value, Constant) else None
        if closure not in self._known:
            self._known[closure] = None  # while it is asked for, as of itself
            self._depth += 1
            try:
                self._known[closure] = self._of(closure)
            finally:
                self._depth -= 1
        return self._known[closure]

    def ruled_out(self, path: str, body: tuple[Statement, ...], offset: int, environment: Environment) -> list[Ruling]:
        """The tests that keep a place of a body from running: those around it, and those before it that leave the body."""
        tests = ruling_tests(body, offset, self._truths(path, environment))
        return [
            Ruling(path, test, known)
            for test in tests
            if test is not None and (known := self.of(Closure(path, test, environment))) is not None
        ]

    def _truths(self, path: str, environment: Environment) -> Callable[[Expression], bool | None]:
        """The truth of the tests in a file, None where it is not known."""

        def decide(test: Expression) -> bool | None:
            known = self.of(Closure(path, test, environment))
            return None if known is None else bool(known.value)

        return decide

    # --- expressions -------------------------------------------------------------------------------------------------

    def _of(self, closure: Closure) -> DefaultValue | None:
        match closure.value:
            case Constant(value=value):
                return DefaultValue(value)
            case Operation(op="not", operands=(operand,)):
                inner = self._inner(closure, operand)
                return inner and inner._replace(value=not inner.value)
            case Operation(op="and" | "or" as op, operands=operands):
                return self._of_boolean(closure, op, operands)
            case Operation(op="if", operands=(test, one, other)):
                known = self._inner(closure, test)
                chosen = self._inner(closure, one if known.value else other) if known is not None else None
                return chosen and known and chosen._replace(declared=chosen.declared or known.declared)
            case Operation(op=":=", operands=(_, value)):
                return self._inner(closure, value)
            case Operation(op=op, operands=(left, right)) if op in COMPARISONS:
                return comparison(op, self._inner(closure, left), self._inner(closure, right))
            case Operation(op=op, operands=operands) if op in _ARITHMETIC:
                parts = [self._inner(closure, each) for each in operands]
                return next((each for each in parts if each is not None and each.value is ENTROPY), None)
            case Call() as call:
                read = read_of_getattr(call)
                return self._of_call(closure, call) if read is None else self._inner(closure, read)
            case Subscript(value=held, indices=(Constant(value=str(key)),)):
                return self._of_entry(closure, held, key)
            case Ref(path=()):
                return self._of_variable(closure, closure.value)
            case Ref():
                return self._of_attribute(closure, closure.value)
        return None

    def _inner(self, closure: Closure, value: Expression) -> DefaultValue | None:
        return self.of(closure._replace(value=value))

    def _of_boolean(self, closure: Closure, op: str, operands: tuple[Expression, ...]) -> DefaultValue | None:
        """Short circuit: the value of the operand that decides; where one before it is unknown, only its truth."""
        declared: Declaration | None = None
        last: DefaultValue | None = None
        unknown = False
        for operand in operands:
            if (last := self._inner(closure, operand)) is None:
                unknown = True
                continue
            declared = declared or last.declared
            if bool(last.value) is (op == "or"):
                known = last._replace(declared=last.declared or declared)
                return DefaultValue(op == "or", last.declared) if unknown else known
        return None if unknown or last is None else last._replace(declared=last.declared or declared)

    def _of_call(self, closure: Closure, call: Call) -> DefaultValue | None:
        if self._changes(closure.path, call):
            return DefaultValue(ENTROPY)
        names = self._project.names(closure.path, call.func)
        if len(call.args) == 1 and not _CONVERSIONS.isdisjoint(names):
            inner = self._inner(closure, call.args[0].value)
            return inner if inner is not None and inner.value is not None else None
        match call:
            case Call(func=Ref(path=(*words, "get")) as func, args=(key, *rest)) if isinstance(key.value, Constant):
                held = func._replace(path=tuple(words))
                return self._of_entry(closure, held, str(key.value.value), rest[0].value if rest else None)
        if any(map(in_project, names)):
            return self._of_result(closure, call)
        # A number that is made of one that changes: ``int.from_bytes(os.urandom(4), "big")``, ``hash(str(time.time()))``.
        parts = (self._inner(closure, arg.value) for arg in call.args if isinstance(arg.value, Call))
        return next((each for each in parts if each is not None and each.value is ENTROPY), None)

    def _of_result(self, closure: Closure, call: Call) -> DefaultValue | None:
        """What a function of the project returns: the return that its tests leave."""
        found: list[DefaultValue | None] = []
        for name in self._project.names(closure.path, call.func):
            for function in self._project.resolver.functions(name):
                path = path_of(name)
                outer = _NO_ARGUMENTS if takes_receiver(function) else closure.environment
                scope = self._project.environment_of(closure.path, call, name, function)
                scope = scope.with_arguments({**outer.arguments, **scope.located(closure)})
                rulings = {
                    each: self.ruled_out(path, function.body, each.start, scope)
                    for each in self._project.resolver.return_expressions(name)
                }
                declared = next((one.value.declared for each in rulings.values() for one in each), None)
                values = [self.of(Closure(path, each, scope)) for each, against in rulings.items() if not against]
                found += [each and each._replace(declared=each.declared or declared) for each in values] or [None]
        return agreed(found)

    def _of_entry(
        self, closure: Closure, held: Expression, key: str, default: Expression | None = None
    ) -> DefaultValue | None:
        """The value of a literal dictionary under a key; changed dictionaries are unknown."""
        text = f'{describe(held)}["{key}"]'
        found: list[DefaultValue | None] = []
        for file, display in self._project.resolver.values(closure.path, held):
            updated = self._is_updated(closure.path, held)
            if not updated and (option := entry_of_vars(display, key)) is not None:
                return self._of_option(file, option, text)
            if not isinstance(display, Collection) or display.kind != "dict" or updated:
                return None if updated and isinstance(held, Ref) else self._of_configuration(closure)
            pairs = zip(display.items[::2], display.items[1::2], strict=True)
            given = [item for word, item in pairs if isinstance(word, Constant) and word.value == key]
            if given and given[-1] is not None:
                found.append(self._declared(Closure(file, given[-1]), text))
            else:
                return None if None in display.items[::2] or default is None else self._inner(closure, default)
        return agreed(found)

    def _is_updated(self, path: str, held: Expression) -> bool:
        return not isinstance(held, Ref) or any(
            (root, held.path) in self._sources.mutations(path) for root in held.roots
        )

    def _declared(self, closure: Closure, text: str) -> DefaultValue | None:
        """The value of a default that stands in a declaration."""
        given = declared_default(self._project.resolver, closure.path, closure.value)
        known = None if given is None else self.of(closure._replace(value=given))
        if known is None or given is None or known.declared is not None:
            return known
        return known._replace(declared=Declaration(closure.path, given.start, given.end, text, known.value))

    # --- variables ---------------------------------------------------------------------------------------------------

    def _of_variable(self, closure: Closure, ref: Ref) -> DefaultValue | None:
        if len(ref.roots) != 1:
            return None
        names = [split_name(each) for each in self._project.resolver.modules.resolve(closure.path, ref.roots[0])]
        if not all(colon and rest for _, colon, rest in names):
            return None
        return agreed([self._of_name(closure, path, f":{rest}", ref) for path, _, rest in names])

    def _of_name(self, closure: Closure, path: str, root: str, ref: Ref) -> DefaultValue | None:
        start = self._of_parameter(closure, path, root, ref)
        home, body = self._home(path, root)
        assigned = [each.statement for each in self._sources.assignments(path).get(root, ())]
        if body is None or len(assigned) > limits.MAX_DEFAULT_DEPTH:
            return None
        inside = path == closure.path and (home is None or home.start <= ref.start < home.end)
        offset = ref.start if inside and function_around(self._project.files[path], ref) == home else None
        elsewhere = any(function_around(self._project.files[path], each) != home for each in assigned)
        if elsewhere or (offset is None and home is not None):
            return None
        flow = _PlaceFlow(path, closure.environment if inside else _NO_ARGUMENTS, ((root,), ()), simple_name(root))
        return self._at(flow, body, offset, start)

    def _at(
        self, flow: _PlaceFlow, body: tuple[Statement, ...], offset: int | None, start: DefaultValue | None
    ) -> DefaultValue | None:
        """The value of a place at an offset, or behind the body for None; ``start`` is that in front of it."""
        stored = dict(stores(body, flow.place))
        definitions = DefinitionFlow(dict.fromkeys(stored, True), self._truths(flow.path, flow.environment))
        reached = definitions.after(body) if offset is None else definitions.at(body, offset)
        found: list[DefaultValue | None] = []
        for each in reached:
            around = branching_around(body, each.start) if each else ()
            tests = [one.test for one in around if offset is None or not one.start <= offset < one.end]
            found.append(self._stored_value(flow, stored[each], tests) if each else start)
        return agreed(found)

    def _stored_value(self, flow: _PlaceFlow, value: Expression | None, tests: list[Expression]) -> DefaultValue | None:
        """What a place gets of a value. Its default is that of the value, else of the tests that led to it."""
        found = None if value is None else self.of(Closure(flow.path, value, flow.environment))
        if found is None or found.declared is not None:
            return found
        known = (self.of(Closure(flow.path, each, flow.environment)) for each in tests)
        declared = next((each.declared for each in known if each is not None and each.declared is not None), None)
        if declared is None and flow.text and isinstance(value, Constant):
            declared = Declaration(flow.path, value.start, value.end, flow.text, found.value)
        return found._replace(declared=declared)

    def _of_parameter(self, closure: Closure, path: str, root: str, ref: Ref) -> DefaultValue | None:
        """The argument of a parameter in this environment; its default where the command line calls the function."""
        found = self._project.resolver.parameter(f"{path}{root}")
        if found is None:
            return None
        default = found.param.default
        given = closure.environment.arguments.get(f"{path}{root}")
        if given is None:
            command = f"{path}{found.function.name}" in self._commands
            options = self._project.resolver.options.of(path, ref) if command else ()
            if options:
                return self._of_option(path, ref)
            return self._declared(Closure(path, default), describe(ref)) if command and default is not None else None
        values = [self._declared(each, describe(ref)) if each.value == default else self.of(each) for each in given]
        return agreed(values)

    def _home(self, path: str, root: str) -> tuple[Function | None, tuple[Statement, ...] | None]:
        """The function whose variable this is, or None for a module's; and its body, None where that is not known."""
        facts = self._project.files[path]
        name, word = split_local(root)
        if not name:
            return None, facts.body if is_top_level(root) else None
        functions = [each for each in facts.functions if each.name == name] if is_top_level(word) else []
        return (functions[0], functions[0].body) if len(functions) == 1 else (None, None)

    # --- attributes --------------------------------------------------------------------------------------------------

    def _of_attribute(self, closure: Closure, ref: Ref) -> DefaultValue | None:
        own = list(self._sources.reaching_definitions(closure, changes=False)) if len(ref.path) == 1 else []
        if own:
            values = [each.value for each in own if isinstance(each.value, Closure)]
            return agreed([self._of_stored(each, ref) for each in values]) if len(values) == len(own) else None
        start = self._of_option(closure.path, ref) or self._of_field(closure, ref) or self._of_configuration(closure)
        if start is None:
            return None
        for path in self._paths:
            stores = self._sources.set_attributes(path, (ref.path[-1],))
            for body in self._bodies_with(path, [each.value for each in stores]):
                if start is not None and not (path == closure.path and contains(body, ref.start)):
                    start = self._stored_in(path, body, ref, start)
        home = function_around(self._project.files[closure.path], ref)
        body = self._project.files[closure.path].body if home is None else home.body
        flow = _PlaceFlow(closure.path, closure.environment, ref.access_path)
        return start and self._at(flow, body, ref.start, start)

    def _of_stored(self, closure: Closure, ref: Ref) -> DefaultValue | None:
        """A value that an object's class assigns: a literal in the class body is the default of a field."""
        inside = function_around(self._project.files[closure.path], closure.value) is not None
        is_field = not inside and any(
            each.start <= closure.value.start < each.end for each in self._project.files[closure.path].classes
        )
        module = not inside and not is_field and isinstance(closure.value, Constant)
        return self._declared(closure, describe(ref)) if is_field or module else self.of(closure)

    def _of_option(self, path: str, read: Expression, text: str = "") -> DefaultValue | None:
        """The default of the one option that ``args.seed`` reads."""
        options = [each for each in self._project.resolver.options.of(path, read) if each.path in self._paths]
        if len(options) != 1 or (default := options[0].default) is None:
            return None
        path, call = options[0].path, options[0].call
        known = self.of(Closure(path, default, _NO_ARGUMENTS))
        declared = known and Declaration(path, call.start, call.end, text or describe(read), known.value)
        return known and known._replace(declared=declared)

    def _of_field(self, closure: Closure, ref: Ref) -> DefaultValue | None:
        """The default of a field of the class that a parser fills, ``args = tyro.cli(Args)``; or what a namespace is made with."""
        for each in self._sources.of(closure._replace(value=ref._replace(path=ref.path[:-1]))):
            if (given := namespace_argument(self._project.resolver, each.path, each.value, ref.path[-1])) is not None:
                return self._declared(each._replace(value=given), describe(ref))
            for file, parsed in parsed_classes(self._project.resolver, each.path, each.value):
                for name in filter(self._project.resolver.classes, self._project.names(file, parsed)):
                    found = self._project.resolver.assigned(f"{name}.{ref.path[-1]}")
                    stored = [Closure(path_of(name), value) for how, value in found if how == "="]
                    return self._declared(stored[0], describe(ref)) if len(stored) == 1 else None
        return None

    def _of_configuration(self, closure: Closure) -> DefaultValue | None:
        """What a configuration file has under a key under which the program does not store anything."""
        return configured_default(self._project.resolver, self._paths, closure.path, closure.value)

    def _bodies_with(self, path: str, places: list[Expression]) -> Iterator[tuple[Statement, ...]]:
        """The bodies of a file that hold any of these expressions themselves, not in a function inside."""
        facts = self._project.files[path]
        owners = {function_around(facts, each) for each in places}
        yield from (facts.body,) if None in owners else ()
        yield from (each.body for each in facts.functions if each in owners)

    def _stored_in(self, path: str, body: tuple[Statement, ...], ref: Ref, start: DefaultValue) -> DefaultValue | None:
        """What a body makes of an option's value, on whatever object it stores to the attribute."""
        places = {
            target.access_path
            for statement in statements(body)
            if isinstance(statement, Assign)
            for target in statement.targets
            if isinstance(target, Ref) and target.path[-1:] == ref.path[-1:]
        }
        found: DefaultValue | None = start
        for place in sorted(places):
            found = found and self._at(_PlaceFlow(path, _NO_ARGUMENTS, place), body, None, found)
        return found


class _PlaceFlow(Record, frozen=True):
    """A place, a variable or an attribute of one, in a body of a file; a literal there is a default if ``text`` names the place."""

    path: str
    environment: Environment
    place: AccessPath
    text: str = ""
