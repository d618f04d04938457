"""What an expression stands for: the displays, calls and constants behind variables, attributes, parameters and calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint.dataflow.arguments import bind, construct, entries
from torchrepro_lint.dataflow.environment import Arguments, Construction, Scope, Scoped, Step, distinct
from torchrepro_lint.dataflow.feasibility import idle, is_certain, truth
from torchrepro_lint.dataflow.reaching_definitions import added, collected, history, is_list
from torchrepro_lint.query.fixpoint import Allowance
from torchrepro_lint.syntax.definitions import Assignments, Mutations, assignments, mutations, set_attributes
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Function,
    Operation,
    Ref,
    Subscript,
    path_of,
    takes_object,
)

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex

_COPIES = frozenset({"copy.copy", "copy.deepcopy"})
# Questions may lead to others so deep, and to so many steps; what is left stands for itself.
_DEEPEST = 10
_MOST = 1000
# So many dictionaries are looked into for one question: one that is filled from others in a loop leads back to itself by ever more ways.
_MOST_DICTIONARIES = 500


# The ranges of functions that do not run in scopes, with the scopes, so that no other gets the identity of one meanwhile.
_Idle: TypeAlias = dict[tuple[str, int, int], tuple[Scope, tuple[tuple[int, int], ...]]]


class Origins:
    """Answers for all expressions of a project."""

    def __init__(self, project: ProgramIndex) -> None:
        self.project = project
        self._assignments: dict[str, Assignments] = {}
        self._attributes: dict[str, tuple[tuple[Ref, Expression], ...]] = {}
        self._mutations: dict[str, Mutations] = {}
        self._known: dict[tuple[object, ...], tuple[Scoped, tuple[Scoped, ...]]] = {}
        self._idle: _Idle = {}
        # The same, of what is not asked in the midst of something else: that is always answered in full.
        self._settled: _Idle = {}
        # For ``branches``: by their identities, the places of bodies that run in any case, and the choices in statements.
        self.certain: dict[tuple[int, int], bool] = {}
        self.choices: dict[int, tuple[Operation, ...]] = {}
        self._nesting = 0
        self._steps = 0
        # How many dictionaries may be looked into for what is asked.
        self.dictionaries = Allowance(_MOST_DICTIONARIES)

    def assignments(self, path: str) -> Assignments:
        """What the variables of a file are given."""
        if path not in self._assignments:
            self._assignments[path] = assignments(self.project.files[path])
        return self._assignments[path]

    def set_attributes(self, path: str, words: Sequence[str], made: Scoped | None = None) -> list[Scoped]:
        """What a file sets as attributes of these names, of objects other than ``self``; with ``made``, a call, not those
        of what other calls are known to have made.
        """
        if path not in self._attributes:
            self._attributes[path] = tuple(set_attributes(self.project.files[path]))
        set_ = [(target, value) for target, value in self._attributes[path] if target.path[-1] in words]
        return [Scoped(path, value) for target, value in set_ if made is None or self._may_be(path, target, made)]

    def added_to(self, made: Scoped, words: Sequence[str]) -> Iterator[Scoped]:
        """What a file adds to lists that are attributes of these names of what a call has made: an item, or a list of them."""
        for (root, words_read), changes in self.mutations(made.path).items():
            if words_read[-1:] and words_read[-1] in words and not root.endswith(".self"):
                for each in changes:
                    holder = Ref(each.statement.start, each.statement.start, (root,), words_read, each.statement.start)
                    if each.change.kind in ("add", "join") and self._may_be(made.path, holder, made):
                        yield from () if each.change.value is None else (Scoped(made.path, each.change.value),)

    def _may_be(self, path: str, target: Ref, made: Scoped) -> bool:
        """Whether an attribute may be of what a call has made."""
        objects = self.of(Scoped(path, target._replace(path=target.path[:-1])))
        return any(
            not isinstance(each.value, Call) or (each.path, each.value.start) == (made.path, made.value.start)
            for each in objects
        )

    def mutations(self, path: str) -> Mutations:
        """What the statements of a file do to dictionaries and lists."""
        if path not in self._mutations:
            self._mutations[path] = mutations(self.project.files[path])
        return self._mutations[path]

    def history(self, scoped: Scoped, *, changes: bool = True) -> Iterator[Step]:
        """What a variable or an attribute is given before a place, and with ``changes`` the statements that may change it."""
        return history(self, scoped, changes=changes)

    def runs(self, path: str, function: Function, offset: int, scope: Scope) -> bool:
        """Whether a place of a function can be reached with what a scope passes."""
        if not scope.given:
            return True
        if is_certain(self, function.body, offset):
            return True
        known = self._idle if self._nesting else self._settled
        key = (path, function.start, id(scope))
        if key not in known:
            known[key] = (scope, idle(self, path, function.body, scope))
        return not any(start <= offset < end for start, end in known[key][1])

    def construct(self, call: Scoped, owner: str) -> Construction:
        """The object of a class of the project that a call makes."""
        return construct(self, call, owner)

    def of(self, scoped: Scoped, steps: int = _MOST) -> tuple[Scoped, ...]:
        """The expressions that an expression may stand for; itself where nothing is behind it.

        A question that leads back to itself, or takes more than so many steps, stands for itself there.
        """
        if not self._nesting:
            self._known.clear()
            self._idle.clear()
            self._steps = steps
        key = _key(scoped)
        if key not in self._known:
            # What is asked stays here with its answer, so that no other gets its identity meanwhile.
            self._known[key] = (scoped, (scoped,))
            if self._nesting < _DEEPEST and self._steps > 0:
                self._nesting += 1
                self.dictionaries.begin()
                try:
                    self._known[key] = (scoped, self._follow(scoped))
                finally:
                    self.dictionaries.leave()
                    self._nesting -= 1
        return self._known[key][1]

    def _follow(self, scoped: Scoped) -> tuple[Scoped, ...]:
        found: list[Scoped] = []
        queue, seen = [scoped], {_key(scoped): scoped}
        while queue:
            each = queue.pop()
            self._steps -= 1
            behind = list(self._behind(each)) if self._steps > 0 else []
            if not behind:
                found.append(each)
            for one in reversed(behind):
                if (key := _key(one)) not in seen:
                    seen[key] = one
                    queue.append(one)
        return distinct(found)

    def _behind(self, scoped: Scoped) -> Iterator[Scoped]:
        """What one step leads to."""
        match scoped.value:
            case Ref():
                yield from self._given(scoped)
            case Call():
                yield from self._returned(scoped, scoped.value)
            case Operation(op="if", operands=(test, *operands)):
                answer = truth(self, scoped.path, test, scoped.scope)
                kept = operands if answer is None else operands[:1] if answer else operands[1:]
                yield from (scoped._replace(value=each) for each in kept)
            case Operation(op="or" | "and", operands=operands):
                yield from (scoped._replace(value=each) for each in operands)
            case Operation(op=":=", operands=(_, value)) | Operation(op="await", operands=(value,)):
                yield scoped._replace(value=value)
            case Subscript(value=value, indices=indices):
                yield from self._picked(scoped._replace(value=value), indices)

    def _given(self, scoped: Scoped) -> Iterator[Scoped]:
        found: list[Scoped] = []
        for step in history(self, scoped):
            if isinstance(step.value, Scoped):
                found = [step.value] if step.certain else [*found, step.value]
            elif step.change is not None and any(is_list(self, each) for each in found):
                found.extend(added(step, scoped))
        yield from found

    def _returned(self, scoped: Scoped, call: Call) -> Iterator[Scoped]:
        """What functions of the project return, with what this call passes; None where one returns nothing."""
        resolver = self.project.resolver
        for name in self.project.names(scoped.path, call.func):
            if name in _COPIES and call.args:
                yield scoped._replace(value=call.args[0].value)
            for function in resolver.functions(name) if not resolver.is_generator(name) else ():
                path = path_of(name)
                skip = takes_object(function)
                scope = bind(self, scoped, name, function, skip=skip, outer=Scope(owner=self._receiver(scoped, name)))
                values = list(resolver.return_expressions(name))
                kept = [each for each in values if self.runs(path, function, each.start, scope)] or values
                yield from (Scoped(path, each, scope) for each in kept or [Constant(call.start, call.end, None)])

    def _receiver(self, scoped: Scoped, name: str) -> str:
        """The class of the object whose method is called."""
        owner = self.project.resolver.owner(name)
        known = scoped.scope.owner
        return known if known and owner in self.project.resolver.ancestry(known) else owner

    def _picked(self, holder: Scoped, indices: tuple[Expression, ...]) -> Iterator[Scoped]:
        """The item of a display that a literal index or key picks, or that was set under a key; any of them without."""
        key = indices[0].value if len(indices) == 1 and isinstance(indices[0], Constant) else None
        given = entries(self, holder).given if indices and isinstance(holder.value, Ref) else {}
        if isinstance(key, str) and key in given:
            yield from given[key]
            return
        if key is None:
            yield from (each for values in given.values() for each in values)
        for each in self.of(holder):
            value = each.value
            if isinstance(value, Collection) and value.kind == "dict":
                pairs = list(zip(value.items[::2], value.items[1::2], strict=True))
                picked = [item for word, item in pairs if isinstance(word, Constant) and word.value == key]
                yield from (each._replace(value=item) for item in picked or [i for _, i in pairs] if item is not None)
            elif isinstance(value, Comprehension) and value.kind == "dict" and indices:
                yield each._replace(value=value.elements[-1])
            elif isinstance(value, Collection) and value.kind == "added":
                yield from (each._replace(value=item) for item in value.items if item is not None and key is None)
            elif isinstance(value, Collection) and type(key) is int and -len(value.items) <= key < len(value.items):
                item = value.items[key]
                yield from () if item is None else (each._replace(value=item),)
            elif not indices or key is None or isinstance(value, Comprehension):
                yield from self.collected(each).spare

    def collected(self, scoped: Scoped) -> Arguments:
        """The items of a list or tuple, those that are added later among them, as spare arguments."""
        return collected(self, scoped)


def _key(scoped: Scoped) -> tuple[object, ...]:
    """References are made up for questions, too, so they are known by what they say; other expressions stay."""
    value = scoped.value
    what = (value.roots, value.path, value.start) if isinstance(value, Ref) else id(value)
    return (scoped.path, what, id(scoped.scope))
