"""Higher-order calls and escapes: address-taken functions, and the calls of parameters that functions are passed for.

A function escapes (its address is taken) where it is named without being called: whoever gets the value may call it. In
``run(step)`` with ``def run(do)``, the call ``do(batch)`` runs ``step``.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from torchrepro_lint import limits
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.call_sites import NumberedCalls
from torchrepro_lint.resolve.symbols import NAMES, ClassHierarchy
from torchrepro_lint.syntax.binding import COMPARING, compare_only, receiver_giving_all, takes_receiver
from torchrepro_lint.syntax.nodes import (
    Arg,
    Assign,
    Call,
    Expression,
    Function,
    Operation,
    Ref,
    Statement,
    Subscript,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import (
    Root,
    Symbol,
    Value,
    class_below,
    class_of,
    in_project,
    is_lambda,
    is_nested,
    is_super,
    local_symbol,
    path_of,
    simple_name,
)
from torchrepro_lint.syntax.visitor import (
    all_expressions,
    all_statements,
    bodies,
    expressions,
    held_references,
    last_identifier,
    operands_of,
    statements,
)

# Functions that compare the class that they get, and call nothing.
_NAMING = frozenset({"builtins.isinstance", "builtins.issubclass"})


class AddressTaken:
    """The address-taken functions of a project; a file is looked into when a word that it names as a value is asked for."""

    def __init__(self, names: ClassHierarchy) -> None:
        self._names = names
        self.database = names.modules.database
        # The files, sorted, that name a value by a word without calling it.
        self._paths: dict[str, list[str]] = {}
        for path in sorted(names.modules.files):
            for word in names.modules.summary(path).values:
                self._paths.setdefault(word, []).append(path)

    def any(self, name: Symbol, function: Function, words: list[str], count_stored: bool) -> bool:
        """Whether a function is named as a value by one of these words; ``count_stored`` includes storing it in an attribute."""
        return any(
            self._is_value(one, name, function, count_stored) for one in words if one != "__init__" and self.has(one)
        )

    def replace(self, path: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        """Replace the value words of a changed file."""
        for word in set(before) - set(after):
            self._paths[word].remove(path)
        for word in set(after) - set(before):
            insort(self._paths.setdefault(word, []), path)

    def names(self, name: Symbol) -> bool:
        """Whether the last word of a function is named as a value anywhere; a lambda is a value by itself."""
        return self.has(simple_name(name)) or is_lambda(name)

    def has(self, word: str) -> bool:
        """Whether any value is named by a word."""
        return bool(self.paths(word))

    def paths(self, word: str) -> Sequence[str]:
        """The files that name a value by a word without calling it."""
        self._names.modules.reads.record_word("values", word)
        return self._paths.get(word, ())

    @query(cutoff=True)
    def aliases(self, word: str) -> tuple[str, ...]:
        """The other words of variables and attributes that hold what a word names, or a table of it: ``make`` of ``self.make = build``;
        none if it, or one that holds it, is also passed to what may call it, so that it may have calls that are not found.
        """
        waiting: list[tuple[str, str, Root]] = [(word, "", "")]
        found = {*waiting}
        while waiting:
            each, home, root = waiting.pop()
            for path in (home,) if home else self.paths(each):
                held = [one for one in self._held_in(path).get(each, ()) if not root or root in one[0].roots]
                named = (ref for ref in self._named_in(path, True).get(each, ()) if not root or root in ref.roots)
                others = {*named} - {ref for ref, _ in held}
                if (others and not others <= self._compared_in(path)) or len(found) > limits.MAX_ALIASES:
                    return ()
                new = {_holder(path, target) for _, targets in held for target in targets} - found
                found |= new
                waiting += sorted(new)
        return tuple(sorted({each for each, _, _ in found} - {word}))

    @query()
    def _held_in(self, path: str) -> dict[str, list[tuple[Ref, tuple[Expression, ...]]]]:
        """By its last word, each reference that a file stores or makes the default of a parameter, with what holds it."""
        found: dict[str, list[tuple[Ref, tuple[Expression, ...]]]] = {}
        tree = self._names.modules.files[path]
        stored = [(one.value, one.targets) for one in all_statements(tree) if isinstance(one, Assign) and one.op == "="]
        for each in tree.functions:
            held = ((param.default, local_symbol(each.name, param.name)) for param in each.params if param.default)
            stored += ((default, (Ref(0, 0, (symbol,), (), 0),)) for default, symbol in held)
        for value, targets in stored:
            for ref in held_references(value):
                found.setdefault(last_identifier(ref), []).append((ref, targets))
        return found

    @query()
    def _compared_in(self, path: str) -> frozenset[Ref]:
        """The references that a file passes to functions of the project that only compare them: ``exists(net)``."""
        return frozenset(self._compared_by(path))

    def _compared_by(self, path: str) -> Iterator[Ref]:
        for each in all_expressions(self._names.modules.files[path]):
            match each:
                case Call(func=Ref(roots=(root,), path=()), args=(Arg(value=Ref() as given),)):
                    called = map(self._names.functions, self._names.modules.resolve(path, root))
                    yield from [given] if compare_only(chain.from_iterable(called)) else ()

    def _is_value(self, word: str, name: Symbol, function: Function, count_stored: bool) -> bool:
        named = ((path, self._named_in(path, count_stored).get(word, ())) for path in self.paths(word))
        return any(self._may_be(path, each, name, function) for path, refs in named for each in refs)

    @query()
    def _named_in(self, path: str, count_stored: bool) -> dict[str, tuple[Ref, ...]]:
        return _value_references(self._names.modules.files[path], count_stored)

    def _may_be(self, path: str, each: Ref, name: Symbol, function: Function) -> bool:
        """Whether a reference may be to a function; to a method, unless the object is known to be of an unrelated class."""
        if not function.owner or not each.path:
            return name in self._names.names(path, each)
        owner = f"{path_of(name)}{function.owner}"
        of = [class_below(class_of(one)) for one in self._names.receiver(path, each)]
        return not of or not all(self._names.classes(one) and not self._related(one, owner) for one in of)

    def _related(self, one: Value, other: Symbol) -> bool:
        return other in self._names.ancestry(one) or one in self._names.ancestry(other)


def _value_references(facts: SyntaxTree, count_stored: bool) -> dict[str, tuple[Ref, ...]]:
    """The references in a file by their last words, without those that are called, compared or assigned to.

    Without ``count_stored``, values are also left out that are stored in an attribute or in a variable that is only called, or saved
    before a reassignment.
    """
    found: dict[str, list[Ref]] = {}
    called = frozenset[str]() if count_stored else _only_called(facts)
    for body in bodies(facts):
        inside = statements(body)
        replaced = set[str]() if count_stored else {word for each in inside for word in _reassigned_attributes(each)}
        for statement in inside:
            for takes in (False, True) if replaced else (False,):
                uncalled: list[Ref] = []
                for value in _evaluated(statement, count_stored, takes, called):
                    _add_uncalled(value, uncalled)
                for each in uncalled:
                    if ((word := last_identifier(each)) in replaced) is takes:
                        found.setdefault(word, []).append(each)
    return {key: tuple(each) for key, each in found.items()}


def _reassigned_attributes(statement: Statement) -> Iterator[str]:
    """``net.run = wrapped``: code that saved ``net.run`` before calls it when ``wrapped`` is called."""
    targets = statement.targets if isinstance(statement, Assign) else ()
    yield from (target.path[-1] for target in targets if isinstance(target, Ref) and target.path)


def _only_called(facts: SyntaxTree) -> frozenset[str]:
    """The local variables of a file that are only assigned and called: their calls are found by name."""
    held, read = set[str](), list[Ref]()
    for body in bodies(facts):
        for statement in statements(body):
            for target in statement.targets if isinstance(statement, Assign) and statement.op == "=" else ():
                if isinstance(target, Ref) and not target.path:
                    held.update(filter(is_nested, target.roots))
            for value in _evaluated(statement, True, False):
                _add_uncalled(value, read)
    return frozenset(held.difference(root for each in read for root in each.roots))


def _evaluated(
    statement: Statement, count_stored: bool, replaced: bool, called: frozenset[str] = frozenset()
) -> Sequence[Expression]:
    if not isinstance(statement, Assign):
        return expressions(statement)
    keeps = all(
        isinstance(target, Ref)
        and (replaced or len(target.path) == 1 or (not target.path and called.issuperset(target.roots)))
        for target in statement.targets
    )
    others = [target for target in statement.targets if not isinstance(target, Ref)]
    if statement.value is not None and (count_stored or not keeps or not _chooses(statement.value)):
        return [statement.value, *others]
    return others


def _chooses(value: Expression) -> bool:
    """Whether a value is a reference, or a conditional expression of references."""
    match value:
        case Operation(op="if", operands=(_, one, other)):
            return _chooses(one) and _chooses(other)
    return isinstance(value, Ref)


def _holder(path: str, target: Expression) -> tuple[str, str, Root]:
    """What holds a value, by its last word; for a variable of a function with its file and name, since it is known there alone."""
    match target:
        case Ref(roots=(root,), path=()) if is_nested(root):
            return simple_name(root), path, root
        case Subscript(value=Ref() as table):
            return _holder(path, table)
    return last_identifier(target), "", ""


def _add_uncalled(expression: Expression, found: list[Ref]) -> None:
    """Add the references in an expression that are not called, or a table whose entry is called, or compared."""
    kind = type(expression)
    if kind is Ref:
        found.append(expression)  # type: ignore[arg-type]  # narrowed by exact type, as below
    elif kind is Call:
        func = expression.func  # type: ignore[union-attr]
        if type(func) is Subscript and type(func.value) is Ref:
            for each in func.indices:
                _add_uncalled(each, found)
        elif (table := receiver_giving_all(func)) is not None:
            found.append(table)
        elif type(func) is not Ref:
            _add_uncalled(func, found)
        elif func.roots and (_NAMING.issuperset(func.roots) or is_super(func.roots[0])):
            return
        for arg in expression.args:  # type: ignore[union-attr]
            _add_uncalled(arg.value, found)
    elif kind is not Operation or expression.op not in COMPARING:  # type: ignore[union-attr]
        for each in operands_of(expression):
            _add_uncalled(each, found)


_BETWEEN = "\n"
# The prefix of memo keys for calls of parameters.
_PARAMETER_CALL = "<through>."


def parameter_call_key(word: str) -> str:
    """The memo key for the targets of calls of parameters with this name."""
    return f"{_PARAMETER_CALL}{word}"


class CallTargetTable:
    """Call targets as a durable memo table: by file and word, the functions that the calls by the word run, each with the call's place
    among them; by ``parameter_call_key``, those that calls of parameters run.

    Its answers number the calls of the project in the order of this process, so they are converted.
    """

    def __init__(self, names: ClassHierarchy, callers: NumberedCalls) -> None:
        self._names = names
        self._callers = callers
        self._table = names.database.table("runs", compare=True, cycle=NAMES)

    def of(self, word: str, file: int, compute: Callable[[], Iterable[str]]) -> tuple[str, ...]:
        """The answer about the calls by a word in one file; an edit of the file recomputes only these."""
        if not self._names.in_isolation:
            self._names.modules.reads.recall("runs")
        return self._table.of((word, file), compute)  # type: ignore[no-any-return]

    def entries(self) -> list[tuple[str, tuple[tuple[str, int], ...], int]]:
        """The entries that are not on a cycle: key, targets and dependencies."""
        found = []
        for (word, file), answer, seen in self._table.entries():
            first = self._callers.first(file, word.removeprefix(_PARAMETER_CALL))
            rows = tuple((target, int(number) - first) for target, number in map(_decode_target, answer))
            found.append((f"{self._callers.path(file)}{_BETWEEN}{word}", rows, seen))
        return found

    def restore(self, key: str, answer: tuple[tuple[str, int], ...], seen: int) -> None:
        """Restore an entry of a project in the same state."""
        path, _, word = key.rpartition(_BETWEEN)
        file = self._callers.number(path)
        first = self._callers.first(file, word.removeprefix(_PARAMETER_CALL))
        self._table.restore(
            (word, file), tuple(sorted(encode_target(target, first + at) for target, at in answer)), seen
        )


def encode_target(target: Symbol, number: int) -> str:
    """A function that call ``number`` runs, as a text of the solver's sets."""
    return f"{target} {number:020}"


def _decode_target(answer: str) -> tuple[str, str]:
    target, _, number = answer.rpartition(" ")
    return target, number


class HigherOrderCalls:
    """The calls of parameters and their targets: the arguments that are passed where the parameters' functions are called by name.

    An argument is followed where it is forwarded from one parameter to another. Not followed are unbound methods, and partials.
    """

    def __init__(
        self,
        names: ClassHierarchy,
        callers: NumberedCalls,
        answers: CallTargetTable,
        passed: Callable[[Symbol, Function, int], Iterator[tuple[str, Expression | None]]],
    ) -> None:
        self._names = names
        self._callers = callers
        self._answers = answers
        # The arguments for a parameter of the calls that name its function, as ``CallGraph`` has them.
        self._passed_by_name = passed
        self.database = names.modules.database

    @query(cutoff=True, cycle=NAMES)
    def runs(self) -> Iterable[str]:
        """The targets of these calls, sorted: see ``encode_target``."""
        return chain.from_iterable(map(self._in_file, self._having()))

    @query()
    def _having(self) -> tuple[int, ...]:
        """The numbers of the files in which parameters are called."""
        self._names.modules.reads.record_word("through", "")
        summary = self._names.modules.summary
        return tuple(self._callers.number(path) for path in sorted(self._names.modules.files) if summary(path).through)

    def _in_file(self, file: int) -> Iterator[str]:
        roots = self._names.modules.summary(self._callers.path(file)).through
        for word in sorted(set(map(simple_name, roots))):
            yield from self._runs_in(file, word)

    def _runs_in(self, file: int, word: str) -> tuple[str, ...]:
        """The targets of calls of parameters with a name in one file; an edit of the file recomputes only these."""
        return self._answers.of(parameter_call_key(word), file, lambda: self._runs(file, word))

    def _runs(self, file: int, word: str) -> Iterator[str]:
        path = self._callers.path(file)
        for root in self._names.modules.files[path].summary.through:
            targets = tuple(self._passed(path, root)) if simple_name(root) == word else ()
            for number, call in self._callers.numbered_calls(file, word) if targets else ():
                if isinstance(call.func, Ref) and not call.func.path and root in call.func.roots:
                    yield from (encode_target(target, number) for target in targets)

    def _passed(self, path: str, root: Root, seen: set[Symbol] | None = None) -> Iterator[Symbol]:
        """The functions, and the constructors of the classes, that are passed for a parameter where it is called by name."""
        seen, found = set() if seen is None else seen, self._names.parameter(path + root)
        if found is None or not self._is_kept(path + root) or path + root in seen or len(seen) > limits.MAX_FORWARDS:
            return
        seen.add(path + root)
        function, param, position = found
        for caller, given in self._passed_by_name(path + function.name, function, position):
            roots = given.roots if isinstance(given, Ref) and not given.path else ()
            handed_on = [each for each in roots if self._is_kept(caller + each)]
            yield from chain.from_iterable(self._passed(caller, each, seen) for each in handed_on)
            value, file = (param.default, path) if given is None else (given, caller)
            yield from self._callable(file, value) if value is not None and not handed_on else ()

    def _is_kept(self, symbol: Symbol) -> bool:
        """Whether a variable is a parameter to which nothing is assigned."""
        return self._names.parameter(symbol) is not None and not self._names.assigned(symbol)

    def _callable(self, path: str, given: Expression) -> Iterator[Symbol]:
        if self._is_partial(path, given):
            return
        for name in self._names.names(path, given):
            functions = self._names.functions(name) if in_project(name) else ()
            if functions and all(self._names.is_bound(path, given, each) is takes_receiver(each) for each in functions):
                yield name
            elif in_project(name) and self._names.classes(name):
                yield from self._names.methods(name, "__init__")

    def _is_partial(self, path: str, given: Expression, *, variables: bool = True) -> bool:
        if isinstance(given, Call):
            return "functools.partial" in self._names.names(path, given.func)
        roots = given.roots if isinstance(given, Ref) else ()
        values = (value for root in roots for _, value in self._names.assigned(path + root))
        return variables and any(self._is_partial(path, each, variables=False) for each in values)
