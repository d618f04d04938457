"""Functions that are named without being called: whoever gets such a value may call it."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from torchrepro_lint.query.memo_tables import Kept, tight
from torchrepro_lint.syntax.nodes import Assign, Call, Expression, Facts, Function, Operation, Ref, Statement, path_of
from torchrepro_lint.syntax.visitor import bodies, expressions, last_word, parts, statements

if TYPE_CHECKING:
    from torchrepro_lint.name_context import NameResolution

_COMPARISONS = frozenset({"is", "is not", "==", "!=", "in", "not in"})


class HandedOn:
    """Answers for the functions of a project; a file is walked when a word that it names as a value is asked for."""

    def __init__(self, names: NameResolution) -> None:
        self._names = names
        self._known: Kept[tuple[str, bool], bool] = Kept(names.modules.reads)
        self._named: Kept[tuple[str, bool], dict[str, tuple[Ref, ...]]] = Kept(names.modules.reads)
        # The files, sorted, that name something by a word without calling it.
        self._paths: dict[str, list[str]] = {}
        for path in sorted(names.modules.files):
            for word in names.modules.summary(path).values:
                self._paths.setdefault(word, []).append(path)

    def any(self, name: str, function: Function, words: list[str], *, kept: bool) -> bool:
        """Whether a function is named as a value by one of these words; ``kept`` counts what is kept in an attribute."""
        return self._known.of((name, kept), lambda: self._any(name, function, words, kept))

    def _any(self, name: str, function: Function, words: list[str], kept: bool) -> bool:
        return any(
            self._is_value(word, name, function, kept) for word in words if word != "__init__" and self.has(word)
        )

    def replace(self, path: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        """A file has changed, which named the words ``before``."""
        for word in set(before) - set(after):
            self._paths[word].remove(path)
        for word in set(after) - set(before):
            insort(self._paths.setdefault(word, []), path)

    def drop(self, changed: int) -> None:
        """Forget what was worked out from anything that has changed."""
        self._known.drop(changed)
        self._named.drop(changed)

    def names(self, name: str) -> bool:
        """Whether anything that has the last word of a function is named as a value; a lambda is one where it stands."""
        word = name.rpartition(".")[2].rpartition(":")[2]
        return self.has(word) or "<" in word

    def has(self, word: str) -> bool:
        """Whether anything is named so."""
        return bool(self._having(word))

    def _having(self, word: str) -> Sequence[str]:
        self._names.modules.reads.see_word("values", word)
        return self._paths.get(word, ())

    def _is_value(self, word: str, name: str, function: Function, kept: bool) -> bool:
        return any(
            self._may_be(path, each, name, function)
            for path in self._having(word)
            for each in self._named_in(path, kept).get(word, ())
        )

    def _named_in(self, path: str, kept: bool) -> dict[str, tuple[Ref, ...]]:
        return self._named.of((path, kept), lambda: _named(self._names.modules.files[path], kept))

    def _may_be(self, path: str, each: Ref, name: str, function: Function) -> bool:
        """Whether a reference is one to a function: a method's may be of any object, unless that is of another class."""
        if not function.owner or not each.path:
            return name in self._names.names(path, each)
        owner = f"{path_of(name)}{function.owner}"
        of = [one.removesuffix("()").removesuffix(".<super>") for one in self._names.receiver(path, each)]
        return not of or not all(self._names.classes(one) and not self._related(one, owner) for one in of)

    def _related(self, one: str, other: str) -> bool:
        return other in self._names.ancestry(one) or one in self._names.ancestry(other)


def _named(facts: Facts, kept: bool) -> dict[str, tuple[Ref, ...]]:
    """The references in a file by their last words, but for those that are called, compared or assigned to.

    Without what is ``kept``, those are left out, too, that are kept in an attribute, in a variable that is only called, or before
    something takes their place.
    """
    found: dict[str, list[Ref]] = {}
    called = frozenset[str]() if kept else _only_called(facts)
    for body in bodies(facts):
        inside = statements(body)
        replaced = set[str]() if kept else {word for each in inside for word in _replaced(each)}
        for statement in inside:
            for takes in (False, True) if replaced else (False,):
                uncalled: list[Ref] = []
                for value in _evaluated(statement, kept, takes, called):
                    _add_uncalled(value, uncalled)
                for each in uncalled:
                    if ((word := last_word(each)) in replaced) is takes:
                        found.setdefault(word, []).append(each)
    return tight(found)


def _replaced(statement: Statement) -> Iterator[str]:
    """``net.run = wrapped``: who keeps ``net.run`` before that calls it when the other is called."""
    targets = statement.targets if isinstance(statement, Assign) else ()
    yield from (target.path[-1] for target in targets if isinstance(target, Ref) and target.path)


def _only_called(facts: Facts) -> frozenset[str]:
    """The local variables of a file that are assigned, and otherwise called: who calls them is found by their names."""
    held, read = set[str](), list[Ref]()
    for body in bodies(facts):
        for statement in statements(body):
            for target in statement.targets if isinstance(statement, Assign) and statement.op == "=" else ():
                if isinstance(target, Ref) and not target.path:
                    held.update(root for root in target.roots if ".<locals>." in root)
            for value in _evaluated(statement, True, False):
                _add_uncalled(value, read)
    return frozenset(held.difference(root for each in read for root in each.roots))


def _evaluated(
    statement: Statement, kept: bool, replaced: bool, called: frozenset[str] = frozenset()
) -> Sequence[Expression]:
    if not isinstance(statement, Assign):
        return expressions(statement)
    keeps = all(
        isinstance(target, Ref)
        and (replaced or len(target.path) == 1 or (not target.path and called.issuperset(target.roots)))
        for target in statement.targets
    )
    others = [target for target in statement.targets if not isinstance(target, Ref)]
    if statement.value is not None and (kept or not keeps or not _chooses(statement.value)):
        return [statement.value, *others]
    return others


def _chooses(value: Expression) -> bool:
    """Whether a value is a name, or one of several by a test."""
    match value:
        case Operation(op="if", operands=(_, one, other)):
            return _chooses(one) and _chooses(other)
    return isinstance(value, Ref)


def _add_uncalled(expression: Expression, found: list[Ref]) -> None:
    """Add the references in an expression that are not called or compared."""
    kind = type(expression)
    if kind is Ref:
        found.append(expression)  # type: ignore[arg-type]  # narrowed by exact type, as below
    elif kind is Call:
        if type(expression.func) is not Ref:  # type: ignore[union-attr]
            _add_uncalled(expression.func, found)  # type: ignore[union-attr]
        for arg in expression.args:  # type: ignore[union-attr]
            _add_uncalled(arg.value, found)
    elif kind is not Operation or expression.op not in _COMPARISONS:  # type: ignore[union-attr]
        for each in parts(expression):
            _add_uncalled(each, found)
