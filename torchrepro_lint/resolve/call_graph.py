"""The call graph: which calls run a function of the project, and the arguments that they pass for a parameter.

It is demand driven: calls are found by the word that they call, and a file is looked into when one of its words is asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias

from torchrepro_lint import limits
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.call_sites import NumberedCalls
from torchrepro_lint.resolve.definitions import EventCache
from torchrepro_lint.resolve.higher_order import AddressTaken, CallTargetTable, HigherOrderCalls, encode_target
from torchrepro_lint.resolve.symbols import NAMES, ClassHierarchy
from torchrepro_lint.syntax.binding import (
    STARTING,
    UNKNOWN_ARGUMENT,
    accepts,
    computed_callees,
    entries_of_display,
    given_function,
    launched_call,
    parameter_argument,
    passing_argument,
    receiving_parameters,
    takes_receiver,
)
from torchrepro_lint.syntax.nodes import Arg, Attribute, Call, Expression, Function, ModuleSummary, Param, Record, Ref
from torchrepro_lint.syntax.qualified_names import (
    Symbol,
    Value,
    enclosing_function,
    in_project,
    is_own,
    path_of,
    simple_name,
    super_call,
)
from torchrepro_lint.syntax.visitor import held_references, last_identifier

# An argument with the file of the call; None where the call leaves it out.
_Passed: TypeAlias = "tuple[str, Expression | None]"


class _PartialIndex(Record, frozen=True):
    """The files that pass a function to ``partial``, by function, and those that pass a variable or an attribute, which may hold
    any address-taken function.
    """

    known: dict[str, list[int]]
    unknown: list[int]


class _Receiving(NamedTuple):
    """A function that gets an argument, and at which position, its receiver counted; without one it gets it by name alone."""

    name: Symbol
    function: Function
    position: int | None


class CallGraph(NumberedCalls):
    """The call graph of a project; results are memoised for its life."""

    def __init__(self, names: ClassHierarchy, events: EventCache) -> None:
        super().__init__(names.modules, events)
        self._names = names
        self._address_taken = AddressTaken(names)
        # The call targets that are known, as a durable table.
        self.answers = CallTargetTable(names, self)
        self._higher_order = HigherOrderCalls(names, self, self.answers, self.passed_by_name)

    def replace(self, path: str, old: ModuleSummary, new: ModuleSummary) -> None:
        """A file has changed."""
        super().replace(path, old, new)
        self._address_taken.replace(path, old.values, new.values)

    def naming(self, words: Iterable[str]) -> set[str]:
        """The files that call something by one of these words, or name it as a value."""
        named = list(words)
        return self.paths(named).union(*map(self._address_taken.paths, named))

    def passed(self, name: str, function: Function, position: int) -> Iterator[_Passed]:
        """The arguments for the parameter at a position. A call with ``*`` or ``**`` gives what a display that is passed so has for it."""
        yield from self.passed_by_name(name, function, position)
        bound = takes_receiver(function)
        for path, call in self._by_parameters(name, function):
            arg = parameter_argument(call, function, position, bound=bound)
            yield from _unless_starred(path, arg)
            if arg is not None and arg.star:
                before = sum(not each.keyword for each in call.args[: call.args.index(arg)])
                key = function.params[position].name if arg.star == "**" else position - bound - before
                shown = ((file, entries_of_display(each) or {}) for file, each in self._names.values(path, arg.value))
                yield from ((file, entries[key]) for file, entries in shown if key in entries)
        for path, call in self._partials(name):
            rest = call._replace(args=call.args[1:])  # the arguments that a partial leaves out come later
            if (arg := parameter_argument(rest, function, position, bound=bound)) is not None:
                yield from _unless_starred(path, arg)
        if self.may_be_passed(name, function):
            for path, call in self._launches(name):
                launched = launched_call(call)
                arg = parameter_argument(launched, function, position, bound=bound) if launched is not None else None
                if launched is not None and (arg is None or arg.value is not UNKNOWN_ARGUMENT):
                    yield from _unless_starred(path, arg)
                    match arg:
                        case Arg(star="*", value=Ref(path=()) as packed):
                            yield from self._from_displays(path, packed, position - bound - launched.args.index(arg))

    def passed_by_name(self, name: str, function: Function, position: int) -> Iterator[_Passed]:
        """The same for the calls that name the function, also of one that hands its ``*args`` and ``**kwargs`` on to it.

        Functions that hand them on to one another are followed level by level, each once however many calls lead to it.
        """
        param = function.params[position]
        level = [_Receiving(name, function, None if param.kind == "kw" else position)]
        seen = {(name, level[0].position)}
        for _ in range(limits.MAX_HANDED_ON + 1):
            outer: list[_Receiving] = []
            for inner in level:
                for path, call in self.of(inner.name, inner.function):
                    at = inner.position
                    at = None if at is None else at - self._names.is_bound(path, call.func, inner.function)
                    arg = passing_argument(call, at, *(() if param.kind == "/" else (param.name,)))
                    if arg is None or not arg.star:
                        yield path, None if arg is None else arg.value
                        continue
                    yield from self._names.mapped(path, arg.value, param.name) if arg.star == "**" else ()
                    behind = at - call.args.index(arg) if arg.star == "*" and at is not None else None
                    if isinstance(held := arg.value, Call):
                        yield from self._from_displays(path, held, behind)
                    elif isinstance(held, Ref) and not (held.path or any(self._events.updates(path, held))):
                        handing = self._handing_on(path, held, arg.star, behind)
                        if handing is None:
                            yield from self._from_displays(path, held, param.name if arg.star == "**" else behind)
                        elif (handing.name, handing.position) not in seen:
                            seen.add((handing.name, handing.position))
                            outer.append(handing)
            level = outer

    def _handing_on(self, path: str, held: Ref, star: str, behind: int | None) -> _Receiving | None:
        """The function whose ``*args`` or ``**kwargs`` a variable is, with the position so far behind the star; None for others."""
        outer = self._names.parameter(path + held.roots[0])
        if outer is None or outer.param.kind != star:
            return None
        inorder = sum(each.kind in ("", "/") for each in outer.function.params)
        return _Receiving(path + outer.function.name, outer.function, None if behind is None else inorder + behind)

    def _from_displays(self, path: str, held: Expression, key: str | int | None) -> Iterator[_Passed]:
        """What literal tuples or dictionaries, also from functions, have under a key, or in a place before a star: all that a variable gets."""
        assigned = self._names.assigned(path + held.roots[0]) if isinstance(held, Ref) else [("=", held)]
        made = [
            each for how, it in assigned if key is not None for each in self._made(path, it if how == "=" else held)
        ]
        found = [(file, entries_of_display(value)) for file, value in made]
        for file, entries in found if all(each is not None for _, each in found) else ():
            if entries is not None and key is not None and (key in entries or isinstance(key, str)):
                yield file, entries.get(key)

    def _made(self, path: str, value: Expression) -> list[tuple[str, Expression]]:
        """A value, or for a call of functions of the project what they return."""
        names = self._names.names(path, value.func) if isinstance(value, Call) else ()
        return [(path_of(it), each) for it in names for each in self._names.return_expressions(it)] or [(path, value)]

    def argument(self, path: str, call: Call, function: Function, position: int) -> Arg | None:
        """The argument that a call of a function passes for the parameter at a position; see ``parameter_argument``."""
        return parameter_argument(call, function, position, bound=self._names.is_bound(path, call.func, function))

    def receiving(self, path: str, call: Call, function: Function) -> Iterator[tuple[Arg, Param]]:
        """The arguments of a call of a function, each with the parameter that receives it; see ``receiving_parameters``."""
        return receiving_parameters(function, call, bound=self._names.is_bound(path, call.func, function))

    def by_word(self, word: str) -> Iterator[tuple[str, Call]]:
        """The calls by a word, whatever they call."""
        return map(self._call, self._by_word(word))

    def constructor_calls(self, owner: Symbol) -> Iterator[tuple[str, Call]]:
        """The calls that construct an object of a class, by its name or by that of a variable that holds it."""
        words = (simple_name(owner), *self._address_taken.aliases(simple_name(owner)))
        return map(self._call, self._in_order({each for word in words for each in self._numbers(word, owner)}))

    def _by_parameters(self, name: Symbol, function: Function) -> Iterator[tuple[str, Call]]:
        """The higher-order calls of a function: calls of parameters that it, or its class, is passed for."""
        if not self.may_be_passed(name, function):
            return iter(())
        return map(self._call, self._in_order(_calls_running(self._higher_order.runs(), name)))

    def may_be_passed(self, name: Symbol, function: Function) -> bool:
        """Whether a function, or its class, may be passed to another: it is named as a value anywhere."""
        return self._address_taken.names(name) or any(map(self._address_taken.has, self._words(name, function)))

    def _launches(self, name: Symbol) -> Iterator[tuple[str, Call]]:
        """The calls that start a function in a process or thread, with its arguments in a tuple, or for each row of a dataset."""
        runs = (self._given_targets(file, word) for word in STARTING for file in self._files_with(word))
        return map(self._call, self._in_order({number for each in runs for number in _calls_running(each, name)}))

    def _partials(self, name: Symbol) -> Iterator[tuple[str, Call]]:
        """The calls of ``functools.partial`` that bind some arguments of a function, or of the class whose constructor it is."""
        self._names.modules.reads.record_word("partials", "")
        index = self._partial_index()
        named = (name, self._names.owner(name)) if name.endswith(".__init__") else (name,)
        found = {
            number
            for given in named
            for file in index.known.get(given, ())
            for number in _calls_running(self._given_targets(file, "partial"), given)
        }
        for given in named if index.unknown else ():
            found.update(_calls_running(self._unknown_partials(), given) if self._address_taken.names(given) else ())
        yield from map(self._call, self._in_order(found))

    @query(cutoff=True, cycle=NAMES)
    def _unknown_partials(self) -> Iterable[str]:
        """The functions that ``partial`` may get from the files whose summaries do not tell."""
        return chain.from_iterable(self._given_targets(file, "partial") for file in self._partial_index().unknown)

    @query(cutoff=True, cycle=NAMES)
    def _given_targets(self, file: int, word: str) -> Iterator[str]:
        """The functions that the calls by a word in one file get, to start them or to bind their arguments."""
        for number in self._in(file, word):
            given = given_function(self._at(number).call, word)
            for target in self._targets(self._paths[file], given) if given is not None else ():
                if in_project(target):
                    yield encode_target(target, number)

    @query()
    def _partial_index(self) -> _PartialIndex:
        """The functions that files pass to ``partial``, by their summaries."""
        index = _PartialIndex({}, [])
        for file in self._files_with("partial"):
            for name in self._outlined(file):
                if name:
                    index.known.setdefault(name, []).append(file)
                else:
                    index.unknown.append(file)
        return index

    @query(cutoff=True, cycle=NAMES)
    def _outlined(self, file: int) -> Iterator[str]:
        """The functions that a file passes to ``partial``; an empty word where its summary does not tell."""
        path = self._paths[file]
        for each in self._names.modules.files[path].summary.partials:
            found = self._names.names_from_summary(path, *each)
            yield from ("",) if found is None else found

    def has_unknown_callers(self, name: Symbol, function: Function) -> bool:
        """Whether a function may have callers that are not known: it is decorated, what holds it may be called elsewhere, or an unresolved
        call has its name, or that of what holds it, and arguments that it takes.
        """
        words = self._words(name, function)
        held = [self._address_taken.aliases(each) for each in words if self._address_taken.has(each)]
        if function.decorators or (not all(held) and self.is_address_taken(name)):
            return True
        return any(
            not self._names.names(path, call.func)
            for each in (*words, *chain.from_iterable(held))
            if each != "__init__"
            for word in (each, super_call(each))
            for path, call in map(self._call, self._by_word(word))
            if accepts(function, call) or accepts(function, call, bound=False)
        )

    def is_address_taken(self, name: Symbol, *, count_stored: bool = True) -> bool:
        """Whether a function's address is taken: it, or for a constructor its class or a subclass, is named without being called.

        Without ``count_stored``, storing it in an attribute does not count, since ``names`` follows attributes.
        """
        return self._is_address_taken(name, count_stored)

    @query()
    def _is_address_taken(self, name: Symbol, count_stored: bool) -> bool:
        first = self._names.functions(name)[:1]
        return any(self._address_taken.any(name, each, self._words(name, each), count_stored) for each in first)

    def of(self, name: Symbol, function: Function) -> Iterator[tuple[str, Call]]:
        """The calls that run a function: by its own name, for a constructor by the name of its class or a subclass.

        They are solved as equations, since resolving a call may lead back to the same question: see ``TablingSolver``.
        """
        words = self._words(name, function)
        aliases = [each for word in words if word != "__init__" for each in self._address_taken.aliases(word)]
        found = {number for word in (*words, *aliases) for number in self._numbers(word, name)}
        found.update(self._by_tables(name, aliases), _calls_running(self._runs_computed(), name))
        if function.owner:
            owner = f"{path_of(name)}{function.owner}"
            found.update(self._supers(name, owner), self._overridden(words[0], owner))
        return map(self._call, self._in_order(found))

    def _by_tables(self, name: Symbol, tables: Sequence[str]) -> Iterator[int]:
        """The calls of entries of tables that hold a function: ``TABLE[key](x)``, ``TABLE.get(key)(x)``."""
        for file in sorted({self.number(path) for table in tables for path in self._address_taken.paths(table)}):
            for number in self._in(file, ""):
                func = self._at(number).call.func
                held = () if isinstance(func, Attribute) else map(last_identifier, held_references(func))
                if not set(tables).isdisjoint(held) and name in self._run_by(
                    self._names.names(self._paths[file], func)
                ):
                    yield number

    @query(cutoff=True, cycle=NAMES)
    def _runs_computed(self) -> Iterator[str]:
        """The functions that calls by a computed name of a module run, also of a variable that holds one: ``getattr(nets, word)(x)``."""
        for path, file in ((self._paths[file], file) for file in self._files_with("getattr")):
            words = computed_callees(self._modules.files[path], partial(self._is_module, path))
            for number in (each for word in words for each in self._in(file, word)):
                targets = self._names.without_imported_bases(self._targets(path, self._at(number).call.func))
                yield from (encode_target(each, number) for each in self._run_by(targets))

    def _is_module(self, path: str, holder: Ref) -> bool:
        """Whether an imported name leads to a module of the project."""
        roots = tuple(root for root in holder.roots if not is_own(root))
        return any(in_project(name) for name, _ in self._modules.referents(path, roots, holder.path))

    def _overridden(self, word: str, owner: Symbol) -> Iterator[int]:
        """The calls by which methods of base classes run a method of their object, ``self.step(batch)``, that a class overrides."""
        bases = set(filter(in_project, self._names.above(owner) if word != "__init__" else ()))
        for file in {self.number(path_of(each)) for each in bases}:
            path = self._paths[file]
            for number in self._in(file, word):
                match self._at(number).call.func:
                    case Ref(roots=(root,), path=(_,)) as func if self._names.starts_at_receiver(path, func):
                        caller = path + enclosing_function(root)
                        base = self._names.owner(caller)
                        if base in bases and self._is_inherited(caller, base, owner):
                            yield number

    def _is_inherited(self, method: Symbol, base: Symbol, owner: Symbol) -> bool:
        """Whether an object of a class may run a method of a base class: it has no other of that name, or that calls ``super()``."""
        return method in self._names.methods(owner, simple_name(method)) or any(self._supers(method, base))

    def _supers(self, name: Symbol, owner: Symbol) -> Iterator[int]:
        """The calls of a method by ``super()``, which are in subclasses of the method's class."""
        word = super_call(simple_name(name))
        having = self._files_with(word)
        if not self._names.in_isolation:
            among = {path_of(each) for each in self._names.subclasses(owner)}
            having = sorted(set(having).intersection(map(self.number, among)))
        for number in having:
            yield from _calls_running(self._runs_in(word, number), name)

    def _numbers(self, word: str, name: Symbol) -> Iterator[int]:
        """The calls by a word that run ``name``; all calls by the word are resolved together."""
        return _calls_running(self._runs_by(word), name)

    @query(cutoff=True, cycle=NAMES)
    def _runs_by(self, word: str) -> Iterator[str]:
        for file in self._files_with(word):
            yield from self._runs_in(word, file)

    def _runs_in(self, word: str, file: int) -> tuple[str, ...]:
        """The functions that the calls by a word in one file run; an edit of the file recomputes only these."""
        return self.answers.of(word, file, lambda: self._runs(self._in(file, word)))

    def _runs(self, numbers: Iterable[int]) -> Iterator[str]:
        """``path:function 12`` for each function that call number 12 runs."""
        for number in numbers:
            path, call = self._call(number)
            yield from (encode_target(each, number) for each in self._run_by(self._targets(path, call.func)))

    def _run_by(self, targets: Iterable[Value]) -> Iterator[Symbol]:
        """What calling targets runs, those of the project: a function, or a class with its constructor."""
        for target in filter(in_project, targets):
            yield target
            if self._names.classes(target):
                yield from self._names.methods(target, "__init__")

    def _targets(self, path: str, func: Expression) -> tuple[Value, ...]:
        """The names of a callee; of a method of an object that an attribute holds, by what callers pass: ``self.diffusion.losses``; and
        of a function that an attribute or a parameter holds, ``self.model_fn``. Of other objects without a name this would ask too much.
        """
        found = self._names.names(path, func)
        if found or not isinstance(func, Ref) or len(func.path) > 2:
            return found
        held = self._names.starts_at_receiver(path, func) if func.path else self._names.parameter(path + func.roots[0])
        return self._names.object_names(path, func) if held else ()

    def _words(self, name: Symbol, function: Function) -> list[str]:
        word = simple_name(name)
        if function.owner and word == "__init__":
            owner = f"{path_of(name)}{function.owner}"
            return [word, simple_name(function.owner), *self._names.subclass_words(owner)]
        return [word]


def _unless_starred(path: str, arg: Arg | None) -> Iterator[_Passed]:
    if arg is None or not arg.star:
        yield path, None if arg is None else arg.value


def _calls_running(runs: tuple[str, ...], name: str) -> Iterator[int]:
    """The numbers of the calls that run ``name``; ``runs`` are sorted texts of ``encode_target``."""
    start = f"{name} "
    for at in range(bisect_left(runs, start), len(runs)):
        if not runs[at].startswith(start):
            break
        yield int(runs[at][len(start) :])
