"""Forward def-use: where a value goes, to reads of its variable, of its attribute, and to callers.

A read counts if the definition reaches it: it does not stand behind a statement that always rebinds the variable
(or sorts the list in it), nor in the other branch of an ``if``. Reads of attributes are found by an inverted index
over the files of the project.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from torchrepro_lint import limits
from torchrepro_lint.dataflow.feasibility import implies_one_element
from torchrepro_lint.query.database import query
from torchrepro_lint.syntax.definitions import targets
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    DefinitionStatement,
    Expression,
    Function,
    If,
    Lambda,
    Loop,
    Ref,
    SimpleStatement,
    Statement,
    SyntaxTree,
    With,
)
from torchrepro_lint.syntax.qualified_names import (
    class_of,
    in_project,
    is_local,
    is_own,
    is_self,
    local_symbol,
    module_symbol,
    path_of,
    split_name,
    top_package,
)
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.use_def import Block, ExpressionPosition, Kill, UseDefIndex
from torchrepro_lint.syntax.visitor import blocks, expressions, operands_of, statements

if TYPE_CHECKING:
    from torchrepro_lint.resolve.program_index import ProgramIndex
    from torchrepro_lint.syntax.nodes import ModuleSummary


class AttributeReads:
    """An inverted index of attribute reads; a file is searched if its summary contains the name."""

    def __init__(self, project: ProgramIndex) -> None:
        self.database = project.database
        self._project = project

    @query()
    def having(self, word: str) -> list[tuple[str, Expression, int]]:
        """All reads of an attribute name: file, expression, and the position of the name in a reference's path."""
        modules = self._project.resolver.modules
        for kind in ("values", "calls", "inner"):
            modules.reads.record_word(kind, word)
        return [
            (path, each, at)
            for path in sorted(modules.files)
            if may_read(modules.summary(path), word)
            for each in self._by_word(path).get(word, ())
            for at in ([at for at, one in enumerate(each.path) if one == word] if isinstance(each, Ref) else (0,))
        ]

    @query()
    def _by_word(self, path: str) -> dict[str, tuple[Ref | Attribute, ...]]:
        """The attribute reads of a file by name, each once for a name."""
        found: dict[str, list[Ref | Attribute]] = {}
        for each in attributes_read(self._project.files[path]):
            for word in dict.fromkeys(each.path) if isinstance(each, Ref) else (each.name,):
                found.setdefault(word, []).append(each)
        return {key: tuple(each) for key, each in found.items()}


def may_read(summary: ModuleSummary, word: str) -> bool:
    """Whether a file may read an attribute of this name."""
    return any(has_word(words, word) for words in (summary.values, summary.inner, summary.calls))


def attributes_read(facts: SyntaxTree) -> list[Ref | Attribute]:
    """All reads of attributes, of names and of other expressions; assignment targets are left out."""
    found: list[Ref | Attribute] = []
    for body in (facts.body, *(each.body for each in facts.functions)):
        _in_body(body, found)
    return found


def _in_body(body: tuple[Statement, ...], found: list[Ref | Attribute]) -> None:
    for statement in body:
        written = (*targets(statement),)
        for expression in expressions(statement):
            if type(expression) is not Ref or expression not in written:
                _in_expression(expression, found)
        for block in blocks(statement):
            _in_body(block, found)
        if type(statement) is DefinitionStatement:
            _in_body(statement.body, found)


def _in_expression(expression: Expression, found: list[Ref | Attribute]) -> None:
    kind = type(expression)
    if kind is Ref:
        if expression.path:  # type: ignore[union-attr]  # narrowed by exact type
            found.append(expression)  # type: ignore[arg-type]
        return
    if kind is Lambda:
        return
    if kind is Attribute:
        found.append(expression)  # type: ignore[arg-type]
    if kind is Comprehension:
        for clause in expression.clauses:  # type: ignore[union-attr]
            _in_expression(clause.target, found)
    for part in operands_of(expression):
        _in_expression(part, found)


# A thousand use-def indexes take as much memory as the syntax trees.
_CACHED_INDEXES = 16


class DefUse:
    """Forward def-use over all files of a project; the use-def index of a file is built on demand."""

    def __init__(self, project: ProgramIndex) -> None:
        self.database = project.database
        self._project = project
        self._names = project.resolver
        self.attributes = AttributeReads(project)

    def summary(self, path: str) -> ModuleSummary:
        """The summary of a file."""
        return self._names.modules.summary(path)

    def facts(self, path: str) -> SyntaxTree:
        """The syntax tree of a file."""
        return self._names.modules.files[path]

    @query(lru=_CACHED_INDEXES)
    def spots(self, path: str) -> UseDefIndex:
        """The use-def index of a file."""
        return UseDefIndex(self._names.modules.files[path])

    def of_variable(
        self, path: str, ref: Ref, defined: ExpressionPosition, after: int, but: frozenset[str] = frozenset()
    ) -> Iterator[tuple[str, Ref, tuple[str, ...]]]:
        """The reads that a definition of ``ref`` before ``after`` may reach: file, reference, further attributes.

        Reads in the same file that only call one of the methods ``but`` are left out.
        """
        for root in ref.roots:
            for found in self.reaching(path, root, ref.path, defined, after, but):
                yield path, found, found.path[len(ref.path) :]
            if not ref.path and is_own(root) and not is_local(root) and self.stays(path, ref, defined, after):
                yield from self._from_outside(f"{path}{root}", path)

    def reaching(
        self,
        path: str,
        root: str,
        words: tuple[str, ...],
        defined: ExpressionPosition,
        after: int,
        but: frozenset[str] = frozenset(),
    ) -> Iterator[Ref]:
        """The reads of a variable or its attribute in the same file that a definition reaches, except calls of the methods ``but``."""
        spots = self.spots(path)
        reached = _Reach(defined, after, spots.kills(root, words))
        for ref in spots.uses_matching(root, (words, but), partial(_is_more_than_call, spots, words, but)):
            spot = spots.of(ref)
            if spot is None or ref.path[: len(words)] != words or (spot.written and ref.path == words):
                continue
            if reached.by(spot, ref.start):
                yield ref

    def stays(self, path: str, ref: Ref, defined: ExpressionPosition, after: int) -> bool:
        """Whether a definition of ``ref`` reaches the end of the function or module."""
        around = {block.key for block in defined.blocks}
        return not any(
            each.at >= after and each.function == defined.function and each.blocks[-1].key in around
            for root in ref.roots
            for each in self.spots(path).kills(root, ref.path)
        )

    def of_parameter(self, path: str, function: Function, word: str) -> Iterator[tuple[str, Ref, tuple[str, ...]]]:
        """The reads of a parameter's value."""
        root = local_symbol(function.name, word)
        defined = ExpressionPosition(None, function.body[0], function.name, (Block(None, 0, function.end, ""),), False)
        for ref in self.reaching(path, root, (), defined, function.start):
            yield path, ref, ref.path

    def of_attribute(self, owner: str, word: str) -> Iterator[tuple[str, Expression, tuple[str, ...]]]:
        """The reads of an attribute of a class's objects, through ``self`` and other references; of classes beside it, if only it reads."""
        classes = {owner, *self._names.subclasses(owner), *filter(in_project, self._names.ancestry(owner))}
        reads = [(self._holders(*each), each) for each in self.attributes.having(word)]
        own = [each for holders, each in reads if not classes.isdisjoint(holders)]
        apart = [(holders, each) for holders, each in reads if not any(map(is_self, getattr(each[1], "roots", ())))]
        known = not apart or any(not classes.isdisjoint(holders) for holders, _ in apart)
        mates = frozenset[str]() if known else table_mates(self._project, owner)
        for path, read, at in (*own, *(each for holders, each in apart if mates & holders)):
            yield path, read, read.path[at + 1 :] if isinstance(read, Ref) else ()

    def _holders(self, path: str, read: Expression, at: int) -> frozenset[str]:
        """The classes of the object whose attribute is read."""
        if isinstance(read, Ref):
            return frozenset(map(class_of, self._names.names_of(path, read._replace(path=read.path[:at]))))
        return frozenset(map(class_of, self._names.names(path, read.value) if isinstance(read, Attribute) else ()))

    def of_result(self, function: str) -> list[tuple[str, Call]]:
        """The calls of the project that run a function, each with its file."""
        definitions = self._names.functions(function)[:1]
        return [found for definition in definitions for found in self._names.call_graph.of(function, definition)]

    def of_definition(self, path: str, function: str) -> Iterator[tuple[str, Ref, tuple[str, ...]]]:
        """The references to a function of a module, in its own file and in others: file, reference, further attributes."""
        for ref in self.spots(path).uses(function):
            yield path, ref, ref.path
        yield from self._from_outside(f"{path}{function}", path)

    def single(self, path: str, ref: Ref, at: Expression | None = None) -> bool:
        """Whether the function around ensures that a variable holds one element where it is read, or at an expression."""
        spots = self.spots(path)
        here = spots.of(ref if at is None else at)
        return here is not None and any(
            each.path[: len(ref.path)] == ref.path
            and (spot := spots.of(each)) is not None
            and spot.function == here.function
            and implies_one_element(spots, length, here, partial(self._only_raises, path))
            for root in ref.roots
            for each in spots.uses_matching(root, "measured", partial(_is_length_read, spots))
            for length in self._lengths(path, each)
        )

    def _lengths(self, path: str, measured: Ref) -> Iterator[ExpressionPosition]:
        """The positions of a length: of ``len(x)``, and where it is all that a variable gets, of the reads of that."""
        spots = self.spots(path)
        found, spot = list[Expression](), spots.of(measured)
        if spot is not None and spot.parent is not None:
            found.append(spot.parent)
            match spot.statement:
                case Assign(op="=", targets=(Ref(roots=(root,), path=()),), value=value) if value == spot.parent:
                    found += spots.uses(root) if len(self._names.assigned(path + root)) == 1 else ()
        yield from filter(None, map(spots.of, found))

    def _only_raises(self, path: str, call: Call) -> bool:
        """Whether a call runs functions of the project that end in a ``raise``, and do not return before."""
        names = self._names.names(path, call.func)
        found = [function for name in names for function in self._names.functions(name)]
        return bool(found) and all(_ends_in_raise(function.body) for function in found)

    def _from_outside(self, target: str, home: str) -> Iterator[tuple[str, Ref, tuple[str, ...]]]:
        """The reads of a module's variable in other files, by import or as an attribute of the module."""
        for path, root in _importers_of(self._project, target):
            for ref in self.spots(path).uses(root):
                yield path, ref, ref.path
        module, _, word = split_name(target)
        for path, root in _importers_of(self._project, module_symbol(module)):
            for ref in self.spots(path).uses(root):
                if path != home and ref.path[:1] == (word,):
                    yield path, ref, ref.path[1:]


@query(cutoff=True)
def table_mates(project: ProgramIndex, owner: str) -> frozenset[str]:
    """The classes beside a class in a dictionary of which a key chooses one: whose default picks another says nothing of its objects."""
    uses, names, found = DefUse(project), project.resolver, set[str]()
    for path, ref, _ in uses.of_definition(path_of(owner), owner.removeprefix(path_of(owner))):
        spot = uses.spots(path).of(ref)
        if spot is not None and isinstance(spot.parent, Collection) and spot.parent.kind == "dict":
            for each in spot.parent.items[1 : 2 * limits.MAX_TABLE_MATES : 2]:
                found.update(filter(names.classes, names.names(path, each)) if isinstance(each, Ref) else ())
    return frozenset(found)


@query(cutoff=True)
def _importers_of(project: ProgramIndex, target: str) -> tuple[tuple[str, str], ...]:
    """The files that import a name of the project, and under which name."""
    return tuple(_importers(project).get(target, ()))


@query()
def _importers(project: ProgramIndex) -> dict[str, list[tuple[str, str]]]:
    """For each name of the project, the files that import it and under which name."""
    modules, uses = project.resolver.modules, DefUse(project)
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(modules.files):
        # The names of a file that other files may define, sorted: imported ones, and after a star import all.
        summary = modules.summary(path)
        for root in uses.spots(path).roots() if summary.stars else summary.imports:
            if not is_own(root) and top_package(root) != "builtins":
                for target in modules.resolve(path, root):
                    if in_project(target):
                        found.setdefault(target, []).append((path, root))
    return found


def _ends_in_raise(body: tuple[Statement, ...]) -> bool:
    kinds = [each.kind for each in statements(body) if isinstance(each, SimpleStatement)]
    return bool(body) and isinstance(body[-1], SimpleStatement) and body[-1].kind == "raise" and "return" not in kinds


def _is_length_read(spots: UseDefIndex, ref: Ref) -> bool:
    """Whether a read of a variable is the ``x`` of ``len(x)``."""
    call = spot.parent if (spot := spots.of(ref)) is not None else None
    return isinstance(call, Call) and isinstance(call.func, Ref) and call.func.roots == ("builtins.len",)


def _is_more_than_call(spots: UseDefIndex, words: tuple[str, ...], but: frozenset[str], ref: Ref) -> bool:
    """Whether a read of the attribute ``words`` is more than a call of one of its methods ``but``."""
    if not ref.path or ref.path[:-1] != words or ref.path[-1] not in but:
        return True
    return (spot := spots.of(ref)) is None or not isinstance(spot.parent, Call) or spot.parent.func != ref


class _Reach:
    """The reach of a definition in effect at ``after``: the reads that no reset kills on the way. Resets are looked up by block, since
    a variable may have as many of them as reads.
    """

    def __init__(self, defined: ExpressionPosition, after: int, resets: list[Kill]) -> None:
        self._defined, self._after = defined, after
        self._resets = [each for each in resets if each.function == defined.function]
        self._around = {block.key for block in defined.blocks}
        self._later = _effect_by_block(each for each in self._resets if each.at >= after)
        # For each loop around the definition, what decides about the next round.
        self._rounds: dict[int, tuple[bool, dict[tuple[int, int], int]]] = {}

    def by(self, read: ExpressionPosition, at: int) -> bool:
        """Whether the definition reaches a read at an offset."""
        if self._defined.function != read.function:
            # A nested function sees the definition that reaches the end.
            return self._around.isdisjoint(self._later)
        there = {block.key for block in read.blocks}
        if (
            at >= self._after
            and not _is_on_other_path(self._defined, read)
            and not _has_effect(self._later, there | self._around, at)
        ):
            return True
        return any(
            self._by_next_round(loop, there, at)
            for loop in self._defined.blocks
            if isinstance(loop.owner, Loop) and loop.number == 0 and loop.key in there
        )

    def _by_next_round(self, loop: Block, there: set[tuple[int, int]], at: int) -> bool:
        """Whether the definition reaches an earlier read of the loop in the next round."""
        assert loop.owner is not None
        if loop.owner.start not in self._rounds:
            inside = [each for each in self._resets if loop.owner.start <= each.at <= loop.end]
            ended = any(each.at >= self._after and each.blocks[-1].key in self._around for each in inside)
            self._rounds[loop.owner.start] = ended, _effect_by_block(inside)
        ended, begun = self._rounds[loop.owner.start]
        return not ended and not _has_effect(begun, there, at)


def _effect_by_block(resets: Iterable[Kill]) -> dict[tuple[int, int], int]:
    """The offset from which on a reset is in effect, by the block that it stands in: the least one."""
    found: dict[tuple[int, int], int] = {}
    for each in resets:
        key, effect = each.blocks[-1].key, _effect(each)
        found[key] = min(found.get(key, effect), effect)
    return found


def _has_effect(effects: dict[tuple[int, int], int], blocks: set[tuple[int, int]], at: int) -> bool:
    return any(key in effects and effects[key] <= at for key in blocks)


def _effect(reset: Kill) -> int:
    """The offset from which on a reset is in effect: an assignment reads its right side before it binds."""
    return reset.at if isinstance(reset.statement, (Loop, With)) else max(reset.at, reset.statement.end)


def _is_on_other_path(defined: ExpressionPosition, read: ExpressionPosition) -> bool:
    """Whether the read is in another branch, or behind a block that the definition cannot leave."""
    there = {block.key for block in read.blocks}
    loop = None
    for block in defined.blocks:
        if isinstance(block.owner, Loop) and block.number == 0:
            loop = block.key
        if block.key in there:
            continue
        if block.exit_kind in ("return", "raise") or (block.exit_kind and loop in there):
            return True
        if isinstance(block.owner, If) and (block.owner.start, 1 - block.number) in there:
            return True
    return False
