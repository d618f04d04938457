"""Value sources: demand-driven backward value analysis, from an expression to the displays, calls and constants behind it.

It is flow-sensitive, follows calls with the environment that they bind, and stops at limits on depth and steps: what is left there
stands for itself. ``ValueFlow`` is the layer of a project that answers these questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress

from torchrepro_lint import limits
from torchrepro_lint.dataflow.arguments import (
    appended_items,
    bind_arguments,
    construct,
    dictionary_entries,
    is_list,
    list_items,
)
from torchrepro_lint.dataflow.constants import correlated_tests
from torchrepro_lint.dataflow.environment import (
    BoundArguments,
    Budget,
    Closure,
    ConstructedObject,
    Environment,
    ReachingDefinition,
    distinct,
)
from torchrepro_lint.dataflow.feasibility import evaluate_test, ruling_tests, runs_always
from torchrepro_lint.dataflow.reaching_definitions import attribute_values, reaching_definitions
from torchrepro_lint.dataflow.uses import DefUse
from torchrepro_lint.query.database import query
from torchrepro_lint.query.memo_tables import MemoTable
from torchrepro_lint.resolve.program_index import ProgramIndex
from torchrepro_lint.syntax.binding import known_argument, takes_receiver
from torchrepro_lint.syntax.definitions import Assignments, MutationSites, assignments, attribute_stores, mutation_sites
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Function,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import local_symbol, path_of
from torchrepro_lint.syntax.scopes import evaluation_start, in_class_body
from torchrepro_lint.syntax.visitor import element_behind_view, returned_values

_COPIES = frozenset({"copy.copy", "copy.deepcopy"})


class ValueSourceAnalysis:
    """Backward value analysis over all expressions of a project."""

    def __init__(self, project: ProgramIndex) -> None:
        self.project = project
        self.database = project.database
        self._known: dict[Closure, tuple[Closure, ...]] = {}
        # The truth values of tests; the provisional ones, each with the least depth of an open test that it led back to.
        self._settled: MemoTable[Closure, bool | None] = MemoTable(project.database.reads)
        self._provisional: dict[Closure, tuple[bool | None, int]] = {}
        # The tests that are being evaluated, each with its depth, and the least depth of one that the current one led back to.
        self._open_tests: dict[Closure, int] = {}
        self._reached = 0
        # The answers to questions that are not nested.
        self._answers: MemoTable[tuple[Closure, int], tuple[Closure, ...]] = MemoTable(project.database.reads)
        # The cache of the feasibility module: places that always run.
        self.certain: dict[tuple[str, Function, int], bool] = {}
        self._nesting = 0
        self._steps = 0
        # The budget of dictionaries for the current question.
        self.dictionaries = Budget(limits.MAX_SOURCE_DICTIONARIES)

    @query()
    def assignments(self, path: str) -> Assignments:
        """The definitions of the variables of a file."""
        return assignments(self.project.files[path])

    def set_attributes(self, path: str, words: Sequence[str], made: Closure | None = None) -> list[Closure]:
        """The values that a file assigns to attributes of these names, of objects other than ``self``. With ``made``, a
        constructor call, objects known to come from other calls are left out.
        """
        set_ = [(target, value) for target, value in self._attribute_stores(path) if target.path[-1] in words]
        return [Closure(path, value) for target, value in set_ if made is None or self._may_be(path, target, made)]

    @query()
    def _attribute_stores(self, path: str) -> tuple[tuple[Ref, Expression], ...]:
        return tuple(attribute_stores(self.project.files[path]))

    def appended_to(self, made: Closure, words: Sequence[str]) -> Iterator[Closure]:
        """The items, or lists of items, that a file appends to list attributes of the object that ``made`` constructs."""
        for (root, words_read), changes in self.mutations(made.path).items():
            if words_read[-1:] and words_read[-1] in words and not root.endswith(".self"):
                for each in changes:
                    holder = Ref(each.statement.start, each.statement.start, (root,), words_read, each.statement.start)
                    if each.change.kind in ("add", "join") and self._may_be(made.path, holder, made):
                        yield from () if each.change.value is None else (Closure(made.path, each.change.value),)

    def _may_be(self, path: str, target: Ref, made: Closure) -> bool:
        """Whether the target may be an attribute of the object that ``made`` constructs."""
        holder = Closure(path, target._replace(path=target.path[:-1]))
        return any(
            not isinstance(each.value, Call) or (each.path, each.value.start) == (made.path, made.value.start)
            for each in (self._dataset_of(holder) or self.of(holder))
        )

    def _dataset_of(self, held: Closure) -> list[Closure]:
        """The datasets that ``loader.dataset`` may be, if all its loaders are known; none for other values."""
        match held.value:
            case Ref(path=(*words, "dataset")) as ref:
                loaders = self.of(held._replace(value=ref._replace(path=tuple(words))))
                calls = [(each, each.value) for each in loaders if isinstance(each.value, Call)]
                given = [(each, known_argument(call, 0, "dataset")) for each, call in calls]
                found = [each._replace(value=data) for each, data in given if data is not None]
                return [one for each in found for one in self.of(each)] if len(found) == len(loaders) else []
        return []

    @query()
    def correlated_tests(self, path: str) -> Mapping[Expression, bool]:
        """The tests of a file that earlier ones decide."""
        return correlated_tests(self.project.files[path])

    @query()
    def mutations(self, path: str) -> MutationSites:
        """The in-place updates of containers in a file."""
        return mutation_sites(self.project.files[path])

    def reaching_definitions(self, closure: Closure, *, changes: bool = True) -> Iterator[ReachingDefinition]:
        """The reaching definitions of a variable or an attribute, and with ``changes`` its in-place updates."""
        return reaching_definitions(self, closure, changes=changes)

    def is_feasible(self, path: str, function: Function, offset: int, environment: Environment) -> bool:
        """Whether a place of a function can be reached in an environment."""
        if not environment.arguments or runs_always(self, path, function, offset):
            return True
        ruling = ruling_tests(function.body, offset, lambda test: self.truth(Closure(path, test, environment)))
        return next(ruling, None) is None

    def truth(self, test: Closure) -> bool | None:
        """The truth value of a test of a function; None if it is unknown, or if nothing is known of the arguments.

        It is a question of its own, and so does not depend on the one that asks for it. Where it leads back to a test that is being
        evaluated, that one is unknown, and the answer is provisional: it holds until the evaluation of that test ends.
        """
        if not test.environment.arguments:
            return None
        if not self._nesting:
            self._provisional.clear()
        if test in self._provisional:
            answer, reached = self._provisional[test]
        elif test in self._open_tests or len(self._open_tests) >= limits.MAX_NESTED_TESTS:
            answer, reached = None, self._open_tests.get(test, -1)
        else:
            return self._settled.run(test, lambda: self._evaluate(test), tells=True)  # type: ignore[no-any-return]
        self._reached = min(self._reached, reached)
        return answer

    def _evaluate(self, test: Closure) -> tuple[bool | None, bool]:
        """The truth value of a test, and whether it is final: no test was left open that was being evaluated before."""
        depth = self._open_tests[test] = len(self._open_tests)
        outer = self._known, self._steps, self._nesting, self._reached, self.dictionaries
        self._known, self._steps, self._nesting, self._reached = {}, limits.MAX_SOURCE_STEPS, 1, depth
        self.dictionaries = Budget(limits.MAX_SOURCE_DICTIONARIES)
        try:
            answer = evaluate_test(self, test.path, test.value, test.environment)
        finally:
            reached = self._reached
            self._known, self._steps, self._nesting, self._reached, self.dictionaries = outer
            del self._open_tests[test]
        for each in [each for each, (_, other) in self._provisional.items() if other >= depth]:
            del self._provisional[each]
        if reached < depth:
            self._provisional[test] = answer, reached
            self._reached = min(self._reached, reached)
        return answer, reached == depth

    def construct(self, call: Closure, owner: str) -> ConstructedObject:
        """The object of a class of the project that a call constructs."""
        return construct(self, call, owner)

    def of(self, closure: Closure, steps: int = limits.MAX_SOURCE_STEPS) -> tuple[Closure, ...]:
        """The value sources of an expression; the expression itself if it has no other.

        On a cycle, or after ``steps`` steps, what is reached stands for itself.
        """
        if not self._nesting:
            return self._answers.of((closure, steps), lambda: self._begin(closure, steps))
        return self._nested(closure)

    def _begin(self, closure: Closure, steps: int) -> tuple[Closure, ...]:
        """The answer to a question that is not nested: it has all steps for itself, and so does not depend on earlier ones."""
        self._known.clear()
        self._provisional.clear()
        self._steps = steps
        return self._nested(closure)

    def _nested(self, closure: Closure) -> tuple[Closure, ...]:
        if closure not in self._known:
            self._known[closure] = (closure,)  # while it is asked for, as of itself
            if self._nesting < limits.MAX_SOURCE_DEPTH and self._steps > 0:
                self._nesting += 1
                self.dictionaries.begin()
                try:
                    self._known[closure] = self._follow(closure)
                finally:
                    self.dictionaries.leave()
                    self._nesting -= 1
        return self._known[closure]

    def _follow(self, closure: Closure) -> tuple[Closure, ...]:
        found: list[Closure] = []
        queue, seen = [closure], {closure}
        while queue:
            each = queue.pop()
            self._steps -= 1
            behind = list(self.step_back(each)) if self._steps > 0 else []
            if not behind:
                found.append(each)
            for one in reversed(behind):
                if one not in seen:
                    seen.add(one)
                    queue.append(one)
        return distinct(found)

    def step_back(self, closure: Closure) -> Iterator[Closure]:
        """The sources of an expression one step back."""
        match closure.value:
            case Ref(path=(*words, word)) as ref if words:  # ``self.options.augment``
                yield from self._of_made(closure._replace(value=ref._replace(path=tuple(words))), word)
            case Ref():
                yield from self._of_reference(closure)
            case Call():
                yield from self._returned(closure, closure.value)
            case Operation(op="if", operands=(test, *operands)):
                answer = evaluate_test(self, closure.path, test, closure.environment)
                kept = operands if answer is None else operands[:1] if answer else operands[1:]
                yield from (closure._replace(value=each) for each in kept)
            case Operation(op="or" | "and", operands=operands):
                yield from (closure._replace(value=each) for each in operands)
            case Operation(op=":=", operands=(_, value)) | Operation(op="await", operands=(value,)):
                yield closure._replace(value=value)
            case Subscript() as element if (behind := element_behind_view(element)) is not None:
                yield closure._replace(value=behind)
            case Subscript(value=value, indices=indices):
                yield from self._picked(closure._replace(value=value), indices)
            case Attribute(value=Call() as made, name=word):  # ``Transforms(32).test``
                yield from self._of_made(closure._replace(value=made), word)

    def _of_made(self, made: Closure, word: str) -> Iterator[Closure]:
        """The values of an attribute of the object of the project's that a call makes; none if it may be another object."""
        objects = [(each, [*self._classes_made(each)]) for each in self.of(made)]
        for each, classes in objects if all(classes for _, classes in objects) else ():
            for name in classes:
                yield from attribute_values(self, name, word, self.construct(each, name).environment)

    def _classes_made(self, made: Closure) -> Iterator[str]:
        """The classes of the project of which a call makes an object; none for the default of a field, since another may be given."""
        if not isinstance(made.value, Call) or in_class_body(self.project.files[made.path], made.value.start):
            return iter(())
        return filter(self.project.resolver.classes, self.project.names(made.path, made.value.func))

    def _fetched(self, made: Closure, index: Closure | None) -> Iterator[Closure]:
        """What ``__getitem__`` returns, of an object of the project that is indexed, or iterated where it has no ``__iter__``."""
        resolver = self.project.resolver
        for owner in self._classes_made(made):
            if index is None and resolver.methods(owner, "__iter__"):
                continue
            environment = self.construct(made, owner).environment
            for name in resolver.methods(owner, "__getitem__"):
                for function in resolver.functions(name):
                    own, taken = path_of(name) + function.name, function.params[1:2]
                    given = {local_symbol(own, each.name): (index,) for each in taken if index is not None}
                    inner = environment.with_arguments({**environment.arguments, **given})
                    yield from (Closure(path_of(name), each, inner) for each in returned_values(function.body))

    def _of_reference(self, closure: Closure) -> Iterator[Closure]:
        found: list[Closure] = []
        for step in reaching_definitions(self, closure):
            if isinstance(step.value, Closure):
                found.append(step.value)
            elif step.change is not None and any(is_list(self, each) for each in found):
                found.extend(appended_items(step, closure))
        yield from found

    def _returned(self, closure: Closure, call: Call) -> Iterator[Closure]:
        """The values that functions of the project return, in the environment of this call; None if one returns nothing."""
        resolver = self.project.resolver
        for name in self.project.names(closure.path, call.func):
            if name in _COPIES and call.args:
                yield closure._replace(value=call.args[0].value)
            for function in resolver.functions(name) if not resolver.is_generator(name) else ():
                path = path_of(name)
                skip = takes_receiver(function)
                environment = bind_arguments(
                    self,
                    closure,
                    name,
                    function,
                    skip=skip,
                    outer=Environment.of(receiver_class=self._receiver(closure, name)),
                )
                values = list(resolver.return_expressions(name))
                starts = [evaluation_start(each) for each in values]
                feasible = (self.is_feasible(path, function, start, environment) for start in starts)
                kept = [*compress(values, feasible)] or values
                yield from (Closure(path, each, environment) for each in kept or [Constant(call.start, call.end, None)])

    def _receiver(self, closure: Closure, name: str) -> str:
        """The class of the receiver."""
        owner = self.project.resolver.owner(name)
        known = closure.environment.receiver_class
        return known if known and owner in self.project.resolver.ancestry(known) else owner

    def _picked(self, holder: Closure, indices: tuple[Expression, ...]) -> Iterator[Closure]:
        """The item under a literal index or key, of a display or set later; all items if the index is unknown."""
        index = self._index(holder, indices[0]) if len(indices) == 1 else None
        key = index.value.value if index is not None and isinstance(index.value, Constant) else None
        given = dictionary_entries(self, holder).named if indices and isinstance(holder.value, Ref) else {}
        if isinstance(key, str) and key in given:
            yield from given[key]
            return
        if key is None:
            yield from (each for values in given.values() for each in values)
        for each in self.of(holder):
            value = each.value
            yield from self._fetched(each, index) if index is not None or not indices else ()
            if isinstance(value, Collection) and value.kind == "dict":
                pairs = list(zip(value.items[::2], value.items[1::2], strict=True))
                picked = [item for word, item in pairs if isinstance(word, Constant) and word.value == key]
                yield from (each._replace(value=item) for item in picked or [i for _, i in pairs] if item is not None)
            elif isinstance(value, Comprehension) and value.kind == "dict" and indices:
                yield _under_key(each, value, index)
            elif isinstance(value, Collection) and value.kind == "added":
                yield from (each._replace(value=item) for item in value.items if item is not None and key is None)
            elif isinstance(value, Collection) and type(key) is int and -len(value.items) <= key < len(value.items):
                item = value.items[key]
                yield from () if item is None else (each._replace(value=item),)
            elif not indices or key is None or isinstance(value, Comprehension):
                yield from self.list_items(each).excess
            elif isinstance(value, Collection) and type(key) is int and key >= 0:
                yield from self.list_items(holder).excess[key : key + 1]  # one that was appended

    def _index(self, holder: Closure, index: Expression) -> Closure:
        """An index, or the one literal that a call passes for it as a parameter."""
        place = holder._replace(value=index)
        if isinstance(index, Ref) and any(f"{place.path}{root}" in place.environment.arguments for root in index.roots):
            found = self.of(place)
            return found[0] if len(found) == 1 and isinstance(found[0].value, Constant) else place
        return place

    def list_items(self, closure: Closure) -> BoundArguments:
        """The items of a list or tuple, appended ones included, as excess arguments."""
        return list_items(self, closure)


def _under_key(made: Closure, value: Comprehension, key: Closure | None) -> Closure:
    """The value of a dictionary comprehension under a key, to which its variable is bound: ``{x: load(x) for x in names}["train"]``."""
    arguments = made.environment.arguments
    match value.elements[0]:
        case Ref(roots=(root,), path=()) if key is not None and isinstance(key.value, Constant):
            arguments = {**arguments, f"{made.path}{root}": (key,)}
    return Closure(made.path, value.elements[-1], made.environment.with_arguments(arguments))


class ValueFlow(ProgramIndex):
    """A project with data flow, on which type inference and taint analysis are built.

    Answers do not depend on the order of questions, nor on traces.
    """

    @cached_property
    def value_sources(self) -> ValueSourceAnalysis:
        """The value sources of the project's expressions."""
        return ValueSourceAnalysis(self)

    @cached_property
    def uses(self) -> DefUse:
        """The forward def-use of the project."""
        return DefUse(self)

    def environments_of(self, function: str) -> Iterator[Environment]:
        """The argument environment of each call of a function."""
        for definition in self.resolver.functions(function):
            for path, call in self.resolver.call_graph.of(function, definition):
                yield self.environment_of(path, call, function, definition)

    def environment_of(self, path: str, call: Call, function: str, definition: Function) -> Environment:
        """The argument environment that a call of a file gives a function."""
        skip = self.resolver.is_bound(path, call.func, definition)
        return bind_arguments(
            self.value_sources, Closure(path, call), function, definition, skip=skip, outer=Environment.of()
        )
