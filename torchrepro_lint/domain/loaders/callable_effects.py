"""What transforms, collating functions and other callables of a project draw from when workers call them."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint.catalogue.conditions import Truth, arguments, evaluate
from torchrepro_lint.catalogue.loaders import dataset, transforms
from torchrepro_lint.dataflow.environment import SameScopes, Scope, Scoped, Unbound, key_of
from torchrepro_lint.domain.rng.effects import called_value
from torchrepro_lint.query.fixpoint import Memo
from torchrepro_lint.syntax.events import mark
from torchrepro_lint.syntax.nodes import (
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Lambda,
    Operation,
    Ref,
    Subscript,
)
from torchrepro_lint.trace.contexts import Arrivals
from torchrepro_lint.trace.trace import Happening

if TYPE_CHECKING:
    from torchrepro_lint.domain.program_effects import ProgramEffects
    from torchrepro_lint.domain.programs import Work
    from torchrepro_lint.domain.rng.effects import Draw

Draws: TypeAlias = frozenset[str]
NOTHING: Draws = frozenset()
UNKNOWN: Draws = frozenset({"unknown"})
_OWN: Draws = frozenset({"own"})
_INNER = ("transforms", "transform", "lambd", "func")
# A variable of which nothing is known is taken for a transform by what it is called.
_TRANSFORM_WORD = re.compile(r"(?i).*(transf|trans$|tfm|tsfm|aug|preproc)")
_GENERATORS = re.compile(
    r"(numpy\.random\.(default_rng|RandomState|Generator)|random\.Random|torch\.Generator)\(\)(\..*)?"
)
# What a table gives of itself is an array, whatever the table was read from.
_ARRAYS = (".values", ".to_numpy()", ".numpy()", ".to_pandas()")
# Whose items are no samples that are fetched: containers, and the records that libraries make of one sample or a batch.
_RECORDS = re.compile(
    r"builtins\.(dict|list|tuple|str|bytes)|collections\.(UserDict|UserList|OrderedDict|defaultdict|Counter|deque|ChainMap)|"
    r"typing\.(NamedTuple|TypedDict)|torch\.(Tensor|nn\.\w+)|numpy\.ndarray|tensordict\.\w+|"
    r"torch_geometric\.data\.(\w+\.)*(Data|HeteroData|Batch|TemporalData)|dgl\.\w*Graph|"
    r"transformers\.(\w+\.)*(BatchEncoding|BatchFeature)"
)
# The method of what a transform has made of a sample: ``Compose()().clone``.
_OF_RESULT = re.compile(r"(\(\)\(\)|(^|\.)[a-z_]\w*\(\))\.\w+$")
_MOST = 16
# Events that may lead to what the run does not show.
_USING = frozenset({"call", "index", "iterate"})
_DISPLAYS = (Collection, Comprehension, Constant)
# Steps to take for what is indexed or iterated, which is nearly always an array.
_FEW = 40


class Transforming:
    """Answers for the callables of a project; ``datasets`` answers for its datasets."""

    def __init__(self, project: ProgramEffects, dataset: Callable[[Scoped], Draws]) -> None:
        self._origins = project.origins
        self._project = project
        self._dataset = dataset
        self._depth = 0
        # What methods do in scopes that say the same; and of what is being asked, by the class and the call that makes the
        # object, which question that is.
        self._known = Memo()
        self._asked: dict[tuple[str, tuple[str, ...], int], Hashable] = {}
        self._scopes = SameScopes()
        self._unbound = Unbound(project)
        # What is indexed or iterated and is no dataset, in whatever scope; it stays, so that no other gets its identity.
        self._others: dict[Hashable, Expression] = {}

    def draws(self, given: Scoped) -> Draws:
        """What calling a callable draws from."""
        if self._depth > _MOST:
            self._known.doubt()
            return UNKNOWN
        self._depth += 1
        try:
            return NOTHING.union(*(self._one(each) for each in self._origins.of(given)))
        finally:
            self._depth -= 1

    def passed(self, call: Scoped | None, words: Sequence[str]) -> Draws:
        """What the callables draw from that a call passes for parameters ``words``, by name or by position."""
        found: set[str] = set()
        assert call is None or isinstance(call.value, Call)
        for arg in call.value.args if call is not None and words else ():  # type: ignore[union-attr]
            value = call._replace(value=arg.value)  # type: ignore[union-attr]
            if arg.star:
                found |= UNKNOWN
            elif arg.keyword in words:
                found |= self.draws(value)
            elif arg.keyword is None and not isinstance(arg.value, Constant):
                drawn = self.draws(value)
                found |= drawn if drawn != UNKNOWN or _is_called_a_transform(arg.value) else NOTHING
        return frozenset(found)

    def _one(self, each: Scoped) -> Draws:
        match each.value:
            case Constant():
                return NOTHING
            case Collection(kind=kind, items=items):
                values = items[1::2] if kind == "dict" else items
                return self._all(each._replace(value=item) for item in values if item is not None)
            case Comprehension(elements=elements):
                return self.draws(each._replace(value=elements[-1]))
            case Operation(op="*", operands=(value,)):
                return self.draws(each._replace(value=value))
            case Operation(op="+", operands=operands):
                return self._all(each._replace(value=one) for one in operands)
            case Lambda(function=function):
                return self.instance("", each, [each.path + function])
            case Call():
                return self._made(each, each.value)
        return self._named(each)

    def _all(self, each: Iterable[Scoped]) -> Draws:
        return NOTHING.union(*(self.draws(one) for one in each))

    def _made(self, each: Scoped, call: Call) -> Draws:
        """A callable that a call makes: an object of the project or a library, a partial."""
        found: set[str] = set()
        names = self._project.names(each.path, call.func)
        for name in names:
            if name == "functools.partial" and call.args:
                found |= self.draws(each._replace(value=call.args[0].value))
            elif self._project.resolver.classes(name):
                found |= self.instance(name, each, self._project.resolver.call_methods(f"{name}()"))
            else:
                found |= self._of_rows(_plain(name), each)
        return frozenset(found) if names else UNKNOWN

    def _named(self, each: Scoped) -> Draws:
        """A function, a method, or an object of which only the class is known."""
        found: set[str] = set()
        names = self._project.names(each.path, each.value)
        for name in names:
            if self._project.resolver.functions(name):
                found |= self.instance(self._project.resolver.owner(name), None, [name], scope=each.scope)
            elif self._project.resolver.classes(name):
                return UNKNOWN
            elif ":" in name and name.endswith("()"):
                found |= self.instance(name[:-2], None, self._project.resolver.call_methods(name))
            else:
                found |= self._of_rows(_plain(name), None)
        return frozenset(found) if names else UNKNOWN

    def _of_rows(self, name: str, made: Scoped | None) -> Draws:
        """What a library's transform draws from, by the first row that holds of the call that makes it."""
        found: set[str] = set()
        for row in transforms(name, self._project.libraries):
            call = made.value if made is not None and isinstance(made.value, Call) else None
            argument = arguments(row.spelling, call) if call is not None else lambda _: None
            truth = evaluate(row.when, row.spelling, argument) if call is not None or not row.when else Truth.UNKNOWN
            if truth is Truth.FAILS:
                continue
            found |= row.draws
            if row.inner:
                found |= self._inner(made) if made is not None and call is not None else UNKNOWN
            if truth is Truth.HOLDS:
                return frozenset(found)
        return frozenset(found) or UNKNOWN

    def _inner(self, made: Scoped) -> Draws:
        assert isinstance(made.value, Call)
        kept = [arg for arg in made.value.args if arg.keyword is None or arg.keyword in _INNER]
        if any(arg.star == "**" for arg in kept):
            return UNKNOWN
        later = self._origins.added_to(made, _INNER)
        return self._all(made._replace(value=arg.value) for arg in kept) | self._all(later)

    # --- code of the project -----------------------------------------------------------------------------------------

    def instance(self, owner: str, call: Scoped | None, methods: Sequence[str], scope: Scope | None = None) -> Draws:
        """What functions of the project draw from, as methods of an object that ``call`` makes."""
        if not methods:
            return UNKNOWN if owner else NOTHING
        if scope is None:
            scope = self._origins.construct(call, owner).scope if call is not None and owner else Scope(owner=owner)
            scope = call.scope if call is not None and not owner else scope
        asked = (owner, tuple(methods), id(call.value) if call is not None else 0)
        if asked in self._asked:
            self._known.solve(self._asked[asked], tuple)  # who is being answered owes something to that
            return NOTHING  # by way of itself it draws nothing more
        question = self._asked[asked] = tuple(methods), self._scopes.number(scope)
        try:
            return frozenset(self._known.solve(question, lambda: self._worked(methods, scope)))
        finally:
            del self._asked[asked]

    def _worked(self, methods: Sequence[str], scope: Scope) -> Draws:
        work = self._project.work_of(methods)
        arrivals = Arrivals(self._origins, work.run, methods, scope)
        found: set[str] = set()
        known: set[tuple[str, int]] = set()
        free: frozenset[str] = frozenset()
        left = [each for each in work.run.happenings if each.event.kind in _USING]
        while left:
            behind = []
            for happening in left:
                if _is_known(happening, known, free):
                    behind.append(happening)
                elif self._runs(happening, scope):
                    seen = self._seen(work, happening, arrivals)
                    if seen is not None:
                        found |= seen
                        known.add(mark(happening.event))
            free = arrivals.reached_without(known) if behind else free
            left = behind if len(behind) < len(left) else []
        drawn = (
            each
            for each in own_draws(work)
            if not _is_known(each.happening, known, free)
            and self._runs(each.happening, scope)
            and arrivals.comes_to(each.happening)
        )
        return frozenset(found) | frozenset(each.family for each in drawn)

    def _runs(self, happening: Happening, scope: Scope) -> bool:
        """Whether an object of this scope gets to an event: none stands in a branch that its attributes rule out."""
        if not scope.given:
            return True  # as ``ValueSources.runs`` says of any place
        places = [(step.path, step.event.value) for step in happening.way]
        for path, value in [*places, (happening.path, happening.event.value)]:
            if value is None:
                continue
            around = [each for each in self._project.files[path].functions if each.start <= value.start < each.end]
            if any(not self._origins.runs(path, each, value.start, scope) for each in around):
                return False
        return True

    def _seen(self, work: Work, happening: Happening, arrivals: Arrivals) -> Draws | None:
        """What an event draws from that the run does not show; None where what the run shows is all.

        Asked first with whatever the project passes for parameters, and where that draws, with what is passed on the way.
        """
        seen = self._happens(work, happening, arrivals.scope)
        assumes = happening.assumed and any(":" in name for name in happening.names)
        if not happening.way or not (seen or assumes):
            return seen
        found: set[str] = set()
        for scope in arrivals.scopes(happening.function):
            one = self._happens(work, happening, scope)
            if one is None and not (assumes and self._is_no_dataset(happening, scope)):
                return seen
            found |= one or NOTHING
        return frozenset(found)

    def _happens(self, work: Work, happening: Happening, scope: Scope) -> Draws | None:
        value = happening.event.value
        if value is None:
            return None
        if happening.event.kind != "call":
            return self._fetched(Scoped(happening.path, value, scope))
        assert isinstance(value, Call)
        if any(_GENERATORS.fullmatch(name) for name in happening.names) and self._is_kept(
            work, happening, value, scope
        ):
            return _OWN
        if self._passes_kept(work, happening, value, scope):
            return _OWN
        return self._called(happening, value.func, scope)

    def _called(self, happening: Happening, func: Expression, scope: Scope) -> Draws | None:
        known = [
            name
            for name in happening.names
            if ":" not in name and not _OF_RESULT.search(name) and any(transforms(_plain(name)))
        ]
        objects = [name for name in happening.names if ":" in name and name.endswith("()")]
        if known and not any(name.endswith("()") for name in known):
            return NOTHING.union(*(self._of_rows(_plain(name), None) for name in known))
        if known or objects or ((not happening.names or happening.assumed) and _is_value(func)):
            drawn = self.draws(Scoped(happening.path, func, scope))
            return None if drawn == UNKNOWN and happening.names and not known else drawn
        return None

    def _fetched(self, holder: Scoped) -> Draws | None:
        """Samples that are fetched from another dataset: ``self.dataset[index]``."""
        key = key_of(holder)
        if key in self._others and self._unbound.is_one(holder):
            return None
        found = self._of_dataset(holder)
        if found is None and self._unbound.is_one(holder):
            self._others[key] = holder.value
        return found

    def _of_dataset(self, holder: Scoped) -> Draws | None:
        found: Draws | None = None
        for each in self._origins.of(holder, _FEW):
            if isinstance(each.value, Call):
                names = self._project.names(each.path, each.value.func)
                if any(self._is_dataset(name) for name in names):
                    found = (found or NOTHING) | self._dataset(each)
        return found

    def _is_no_dataset(self, happening: Happening, scope: Scope) -> bool:
        """Whether what is indexed or iterated is known, and none of the project's objects."""
        if happening.event.kind == "call" or happening.event.value is None:
            return False
        for each in self._origins.of(Scoped(happening.path, happening.event.value, scope), _FEW):
            names = self._project.names(each.path, each.value.func) if isinstance(each.value, Call) else ()
            if not isinstance(each.value, _DISPLAYS) and not (names and all(":" not in name for name in names)):
                return False
        return True

    def _is_dataset(self, name: str) -> bool:
        if self._project.resolver.classes(name):
            methods = self._project.resolver.methods(name, "__getitem__")
            return any(":" in each or not _RECORDS.fullmatch(each.removesuffix("().__getitem__")) for each in methods)
        return not name.endswith(_ARRAYS) and dataset(_plain(name)) is not None

    # --- generators that are kept ------------------------------------------------------------------------------------

    def _is_kept(self, work: Work, happening: Happening, call: Call, scope: Scope) -> bool:
        """Whether a generator whose method is called was made before the workers' code runs."""
        match call.func:
            case Ref(path=(*before, word)) as func if word not in ("seed", "manual_seed", "set_state"):
                return self._is_made_before(work, Scoped(happening.path, func._replace(path=tuple(before)), scope))
        return False

    def _passes_kept(self, work: Work, happening: Happening, call: Call, scope: Scope) -> bool:
        """Whether a function from outside draws from a generator that it is passed, and that was made before."""
        if not any(name.startswith(("torch.", "scipy.", "numpy.")) for name in happening.names):
            return False
        given = [arg.value for arg in call.args if arg.keyword in ("generator", "random_state", "rng")]
        return any(self._is_made_before(work, Scoped(happening.path, each, scope)) for each in given)

    def _is_made_before(self, work: Work, generator: Scoped) -> bool:
        for each in self._origins.of(generator):
            if isinstance(each.value, Call):
                names = self._project.names(each.path, each.value.func)
                if any(_GENERATORS.fullmatch(f"{name}()") for name in names):
                    return not self._runs_in(work, each.path, each.value.start)
        return False

    def _runs_in(self, work: Work, path: str, offset: int) -> bool:
        inner = [f for f in self._project.files[path].functions if f.start <= offset < f.end]
        return any(path + each.name in work.run.functions for each in inner)


def _is_known(happening: Happening, known: set[tuple[str, int]], free: frozenset[str]) -> bool:
    """Whether it is known what an event draws from, or one on the way to it, to whose function no other leads."""
    if mark(happening.event) in known:
        return True
    return happening.function not in free and any(mark(step.event) in known for step in happening.way)


def own_draws(work: Work) -> Iterator[Draw]:
    """What the code of the project draws itself from global generators that it has not seeded just before."""
    for draws in work.effects.draws.values():
        for draw in draws:
            if not any(seed.order < draw.order for seed in work.effects.reseeds.get(draw.family, ())):
                yield draw


def _is_value(func: Expression) -> bool:
    """Whether a variable, an attribute of ``self``, or an element of one is called."""
    return bool(called_value(func)) or (isinstance(func, Subscript) and bool(called_value(func.value)))


def _is_called_a_transform(value: Expression) -> bool:
    if isinstance(value, Ref):
        return bool(_TRANSFORM_WORD.fullmatch((value.path or (value.roots[0].rpartition(".")[2].lstrip(":?"),))[-1]))
    return False


def _plain(name: str) -> str:
    return name.replace("()", "").replace("[]", "")
