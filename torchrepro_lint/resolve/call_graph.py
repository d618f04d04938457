"""The call graph: which calls run a function of the project, and the arguments that they pass for a parameter.

It is demand driven: calls are found by the word that they call, and a file is looked into when one of its words is asked for.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from torchrepro_lint.query.database import query
from torchrepro_lint.query.fixpoint import TablingSolver
from torchrepro_lint.resolve.definitions import EventCache
from torchrepro_lint.resolve.higher_order import (
    QUESTION,
    AddressTaken,
    CallTargetTable,
    HigherOrderCalls,
    encode_target,
)
from torchrepro_lint.syntax.nodes import (
    Arg,
    Call,
    Expression,
    FrozenRecord,
    Function,
    ModuleSummary,
    Param,
    Ref,
    Statement,
)
from torchrepro_lint.syntax.qualified_names import MODULE_ROOT, Symbol, in_project, path_of, simple_name, super_call
from torchrepro_lint.syntax.visitor import (
    UNKNOWN_ARGUMENT,
    callee_identifier,
    is_classmethod,
    launched_call,
    parameter_argument,
    receiving_parameters,
    takes_receiver,
)

if TYPE_CHECKING:
    from torchrepro_lint.resolve.protocols import NameResolution


# A call's number has three parts: its file, its word, and its place among the calls by that word in the file. So other calls that
# come or go leave it unchanged.
_PER_WORD = 10_000_000
_PER_FILE = 10_000_000 * _PER_WORD
# A call's place in its file is the number of its body and its place in that body.
_PER_BODY = 1_000_000


# The calls that start a function in a process or thread, with its arguments in a tuple.
_LAUNCHERS = ("Process", "Thread", "spawn", "start_processes")


class _NumberedCall(FrozenRecord, frozen=True):
    """A call, and its place among those of its file."""

    place: int
    call: Call


class _BodyCalls(NamedTuple):
    """The calls of a body, or of a whole file, in order, each with the word that it calls; ``counts`` has the number of calls in
    each body, the top level first.
    """

    calls: tuple[Call, ...]
    words: tuple[str, ...]
    counts: tuple[int, ...]


class _PartialIndex(NamedTuple):
    """The files that pass a function to ``partial``, by function, and those that pass a variable or an attribute, which may hold
    any address-taken function.
    """

    known: dict[str, list[int]]
    unknown: list[int]


class CallGraph:
    """The call graph of a project; results are memoised for its life."""

    def __init__(self, names: NameResolution, events: EventCache, memo: TablingSolver) -> None:
        self._names = names
        self._events = events
        self._memo = memo
        self._paths = sorted(names.modules.files)
        self._files_of: dict[str, list[int]] = {}
        for number, path in enumerate(self._paths):
            for word in names.modules.summary(path).calls:
                self._files_of.setdefault(word, []).append(number)
        self._walked: dict[int, dict[str, list[int]]] = {}
        # By the numbers of files and bodies; under no number the calls of a whole file.
        self._bodies: dict[int, dict[int | None, _BodyCalls]] = {}
        self._calls: dict[int, _NumberedCall] = {}
        self._numbers_of: dict[str, int] = {}
        self._numbered: list[str] = []
        self.database = names.modules.database
        self._address_taken = AddressTaken(names)
        self._higher_order = HigherOrderCalls(names, self, memo)

    def replace(self, path: str, old: ModuleSummary, new: ModuleSummary) -> None:
        """A file has changed."""
        before, after = old.calls, new.calls
        number = bisect_left(self._paths, path)
        self._bodies.pop(number, None)
        for each in (call for calls in self._walked.pop(number, {}).values() for call in calls):
            del self._calls[each]
        for word in set(before) - set(after):
            self._files_of[word].remove(number)
        for word in set(after) - set(before):
            insort(self._files_of.setdefault(word, []), number)
        self._address_taken.replace(path, old.values, new.values)

    def calls(self, word: str) -> bool:
        """Whether any call in the project calls something by this word."""
        return bool(self._files_with(word) or self._files_with(super_call(word)))

    def paths(self, words: Iterable[str]) -> set[str]:
        """The files that call something by one of these words."""
        return {self._paths[number] for word in words for number in self._files_with(word)}

    def naming(self, words: Iterable[str]) -> set[str]:
        """The files that call something by one of these words, or name it as a value."""
        named = list(words)
        return self.paths(named).union(*map(self._address_taken.paths, named))

    def _by_word(self, word: str) -> Iterator[int]:
        """The numbers of all calls by a word (see ``callee_identifier``), in the order of files and text."""
        for number in self._files_with(word):
            yield from self._in(number, word)

    def _files_with(self, word: str) -> Sequence[int]:
        """The numbers of the files that call something by a word."""
        self._names.modules.reads.record_word("calls", word)
        return self._files_of.get(word, ())

    def _in(self, number: int, word: str) -> Sequence[int]:
        """The calls of a file by a word."""
        self._names.modules.reads.record_read(self._paths[number])
        known = self._walked.setdefault(number, {})
        if word not in known:
            first = self.first(number, word)
            found = list(self._look_for(number, word))
            known[word] = list(range(first, first + len(found)))
            self._calls.update(zip(known[word], found, strict=True))
        return known[word]

    def first(self, number: int, word: str) -> int:
        """The number of the first call of a file by a word."""
        if word not in self._numbers_of:
            self._numbers_of[word] = len(self._numbered)
            self._numbered.append(word)
        return number * _PER_FILE + self._numbers_of[word] * _PER_WORD

    def path(self, number: int) -> str:
        """The file of a number."""
        return self._paths[number]

    def number(self, path: str) -> int:
        """The number of a file."""
        return bisect_left(self._paths, path)

    @property
    def answers(self) -> CallTargetTable:
        """The call targets that are known, as a durable table."""
        return CallTargetTable(self, self._memo)

    def _look_for(self, number: int, word: str) -> Iterator[_NumberedCall]:
        """The calls of a file by a word, of the bodies that may hold any."""
        facts = self._names.modules.files[self._paths[number]]
        bodies = self._bodies.setdefault(number, {})
        for each in facts.bodies_calling(word):
            if each not in bodies:
                bodies[each] = self._walk(self._paths[number], each)
            calls, words, _ = bodies[each]
            if word in words:
                first = (each or 0) * _PER_BODY
                yield from (_NumberedCall(first + at, calls[at]) for at, called in enumerate(words) if called == word)

    def _walk(self, path: str, number: int | None) -> _BodyCalls:
        facts = self._names.modules.files[path]
        several: Iterable[int] = range(len(facts.functions) + 1) if number is None else (number,)
        found = [list(self._called(path, facts.functions[each - 1].body if each else facts.body)) for each in several]
        calls = tuple(chain.from_iterable(found))
        return _BodyCalls(calls, tuple([callee_identifier(each.func) for each in calls]), tuple(map(len, found)))

    def in_file(self, path: str) -> Iterator[tuple[str, Call]]:
        """All calls of a file, each with its function: ``path:`` for the top level."""
        facts = self._names.modules.files[path]
        bodies = self._bodies.setdefault(self.number(path), {})
        if None not in bodies:
            bodies[None] = self._walk(path, None)
        left = iter(bodies[None].calls)
        for function, count in zip(
            (MODULE_ROOT, *(each.name for each in facts.functions)), bodies[None].counts, strict=True
        ):
            name = f"{path}{function}"
            yield from ((name, call) for call in islice(left, count))

    def numbered_calls(self, number: int, word: str) -> Iterator[tuple[int, Call]]:
        """The calls of a file by a word, with their numbers."""
        return ((each, self._at(each).call) for each in self._in(number, word))

    def _at(self, number: int) -> _NumberedCall:
        """A call by its number; its file is looked into."""
        if self._names.modules.reads.early_cutoff:
            return self._by_number(number)
        return self._look_up(number)

    @query(cutoff=True)
    def _by_number(self, number: int) -> _NumberedCall:
        return self._look_up(number)

    def _look_up(self, number: int) -> _NumberedCall:
        if number in self._calls:
            self._names.modules.reads.record_read(self._paths[number // _PER_FILE])
        else:
            self._in(number // _PER_FILE, self._numbered[number % _PER_FILE // _PER_WORD])
        return self._calls[number]

    def _call(self, number: int) -> tuple[str, Call]:
        return self._paths[number // _PER_FILE], self._at(number).call

    def _in_order(self, numbers: Iterable[int]) -> list[int]:
        """By file and text."""
        return sorted(numbers, key=lambda number: (number // _PER_FILE, self._at(number).place))

    def _called(self, path: str, body: tuple[Statement, ...]) -> Iterator[Call]:
        for event in self._events.of_body(path, body):
            if event.kind == "call":
                yield event.value  # type: ignore[misc]  # a call happens to a Call

    def passed(self, name: str, function: Function, position: int) -> Iterator[tuple[str, Expression | None]]:
        """The arguments for the parameter at a position: the calling file and the expression, None where a call leaves it out.

        A call with ``*`` or ``**`` may pass anything and gives nothing.
        """
        yield from self.passed_by_name(name, function, position)
        bound = takes_receiver(function)
        for path, call in self._by_parameters(name, function):
            yield from _unless_starred(path, parameter_argument(call, function, position, bound=bound))
        for path, call in self._partials(name):
            rest = call._replace(args=call.args[1:])
            # The arguments that a partial leaves out come later.
            if (arg := parameter_argument(rest, function, position, bound=bound)) is not None:
                yield from _unless_starred(path, arg)
        if self._is_passed(name, function):
            for path, call in self._launches(name):
                launched = launched_call(call)
                arg = parameter_argument(launched, function, position, bound=bound) if launched is not None else None
                if launched is not None and (arg is None or arg.value is not UNKNOWN_ARGUMENT):
                    yield from _unless_starred(path, arg)

    def passed_by_name(self, name: str, function: Function, position: int) -> Iterator[tuple[str, Expression | None]]:
        """The same for the calls that name the function."""
        for path, call in self.of(name, function):
            yield from _unless_starred(path, self.argument(path, call, function, position))

    def argument(self, path: str, call: Call, function: Function, position: int) -> Arg | None:
        """The argument that a call of a function passes for the parameter at a position; see ``parameter_argument``."""
        return parameter_argument(call, function, position, bound=self.is_bound(path, call.func, function))

    def receiving(self, path: str, call: Call, function: Function) -> Iterator[tuple[Arg, Param]]:
        """The arguments of a call of a function, each with the parameter that receives it; see ``receiving_parameters``."""
        return receiving_parameters(function, call, bound=self.is_bound(path, call.func, function))

    def constructor_calls(self, owner: Symbol) -> Iterator[tuple[str, Call]]:
        """The calls that construct an object of a class."""
        return map(self._call, self._in_order(self._numbers(simple_name(owner), owner)))

    def is_bound(self, path: str, func: Expression, function: Function) -> bool:
        """Whether a call of ``func`` passes the receiver implicitly, so that its arguments start at the second parameter."""
        if not takes_receiver(function):
            return False
        match func:
            case Ref(path=(*words, _)):
                holders = self._names.names(path, func._replace(path=tuple(words)))
                return is_classmethod(function) or not holders or not all(map(self._names.classes, holders))
        return True

    def _by_parameters(self, name: Symbol, function: Function) -> Iterator[tuple[str, Call]]:
        """The higher-order calls of a function: calls of parameters that it, or its class, is passed for."""
        if not self._is_passed(name, function):
            return iter(())
        return map(self._call, self._in_order(_calls_running(self._higher_order.runs(), name)))

    def _is_passed(self, name: Symbol, function: Function) -> bool:
        """Whether a function, or its class, may be passed to another."""
        return self._address_taken.names(name) or any(map(self._address_taken.has, self._words(name, function)))

    def _launches(self, name: Symbol) -> Iterator[tuple[str, Call]]:
        """The calls that start a function in a process or thread, with its arguments in a tuple."""
        found = {
            number
            for word in _LAUNCHERS
            for file in self._files_with(word)
            for number in _calls_running(self._launch_targets(file, word), name)
        }
        return map(self._call, self._in_order(found))

    def _launch_targets(self, file: int, word: str) -> tuple[str, ...]:
        return self._memo.solve(("launches", file, word), lambda: self._find_launch_targets(file, word))

    def _find_launch_targets(self, file: int, word: str) -> Iterator[str]:
        for number in self._in(file, word):
            started = launched_call(self._at(number).call)
            for target in self._names.names(self._paths[file], started.func) if started is not None else ():
                if in_project(target):
                    yield encode_target(target, number)

    def _partials(self, name: Symbol) -> Iterator[tuple[str, Call]]:
        """The calls of ``functools.partial`` that bind some arguments of a function."""
        self._names.modules.reads.record_word("partials", "")
        index = self._partial_index()
        found = {
            number for file in index.known.get(name, ()) for number in _calls_running(self._partial_targets(file), name)
        }
        if index.unknown and self._address_taken.names(name):
            unknown = self._memo.solve(
                "partials", lambda: chain.from_iterable(map(self._partial_targets, index.unknown))
            )
            found.update(_calls_running(unknown, name))
        yield from map(self._call, self._in_order(found))

    def _partial_targets(self, file: int) -> tuple[str, ...]:
        return self._memo.solve(("partials", file), lambda: self._find_partial_targets(file))

    def _find_partial_targets(self, file: int) -> Iterator[str]:
        for number in self._in(file, "partial"):
            call = self._at(number).call
            if call.args and not call.args[0].star:
                for target in self._names.names(self._paths[file], call.args[0].value):
                    if in_project(target):
                        yield f"{target} {number:020}"

    @query()
    def _partial_index(self) -> _PartialIndex:
        """The functions that files pass to ``partial``, by their summaries."""
        index = _PartialIndex({}, [])
        for file in self._files_with("partial"):
            for name in self._memo.solve(("given", file), lambda file=file: self._outlined(file)):  # type: ignore[misc]
                if name:
                    index.known.setdefault(name, []).append(file)
                else:
                    index.unknown.append(file)
        return index

    def _outlined(self, file: int) -> Iterator[str]:
        """The functions that a file passes to ``partial``; an empty word where its summary does not tell."""
        path = self._paths[file]
        for each in self._names.modules.files[path].summary.partials:
            found = self._names.names_from_summary(path, *each)
            yield from ("",) if found is None else found

    def has_unknown_callers(self, name: Symbol, function: Function) -> bool:
        """Whether a function may have callers that are not known: its address is taken, it is decorated, or an unresolved call has
        its name.
        """
        if function.decorators or self.is_address_taken(name):
            return True
        return any(
            not self._names.names(path, call.func)
            for each in self._words(name, function)
            if each != "__init__"
            for word in (each, super_call(each))
            for path, call in map(self._call, self._by_word(word))
        )

    def is_address_taken(self, name: Symbol, *, count_stored: bool = True) -> bool:
        """Whether a function's address is taken: it, or for a constructor its class or a subclass, is named without being called.

        Without ``count_stored``, storing it in an attribute does not count, since ``names`` follows attributes.
        """
        return self._is_address_taken(name, count_stored)

    @query()
    def _is_address_taken(self, name: Symbol, count_stored: bool) -> bool:
        function = next(iter(self._names.functions(name)), None)
        words = [] if function is None else self._words(name, function)
        return function is not None and self._address_taken.any(name, function, words, count_stored)

    def of(self, name: Symbol, function: Function) -> Iterator[tuple[str, Call]]:
        """The calls that run a function: by its own name, for a constructor by the name of its class or a subclass.

        They are solved as equations, since resolving a call may lead back to the same question: see ``TablingSolver``.
        """
        found = {number for word in self._words(name, function) for number in self._numbers(word, name)}
        if function.owner:
            found.update(self._supers(name, f"{path_of(name)}{function.owner}"))
        return map(self._call, self._in_order(found))

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
        return _calls_running(self._memo.solve((QUESTION, word), lambda: self._runs_by(word)), name)

    def _runs_by(self, word: str) -> Iterator[str]:
        for file in self._files_with(word):
            yield from self._runs_in(word, file)

    def _runs_in(self, word: str, file: int) -> tuple[str, ...]:
        """The functions that the calls by a word in one file run; an edit of the file recomputes only these."""
        if not self._memo.in_isolation:
            self._names.modules.reads.recall("runs")
        return self._memo.solve((QUESTION, word, file), lambda: self._runs(self._in(file, word)))

    def _runs(self, numbers: Iterable[int]) -> Iterator[str]:
        """``path:function 12`` for each function that call number 12 runs."""
        for number in numbers:
            path, call = self._call(number)
            for target in self._names.names(path, call.func):
                if in_project(target):
                    yield encode_target(target, number)
                    if self._names.classes(target):
                        yield from (encode_target(each, number) for each in self._names.methods(target, "__init__"))

    def _words(self, name: Symbol, function: Function) -> list[str]:
        word = simple_name(name)
        if function.owner and word == "__init__":
            owner = f"{path_of(name)}{function.owner}"
            return [word, simple_name(function.owner), *self._names.subclass_words(owner)]
        return [word]


def _unless_starred(path: str, arg: Arg | None) -> Iterator[tuple[str, Expression | None]]:
    if arg is None or not arg.star:
        yield path, None if arg is None else arg.value


def _calls_running(runs: tuple[str, ...], name: str) -> Iterator[int]:
    """The numbers of the calls that run ``name``; ``runs`` are sorted texts of ``encode_target``."""
    start = f"{name} "
    for at in range(bisect_left(runs, start), len(runs)):
        if not runs[at].startswith(start):
            break
        yield int(runs[at][len(start) :])
