"""Tables of sets as taint sources: dictionaries whose values are sets, ``defaultdict(set)`` and those that are filled with sets.

Such a table is followed to where it is read, through returns, parameters and attributes. What is added to its sets says
of which type their elements are.
"""

from __future__ import annotations

from torchrepro_lint.dataflow.taint.numeric_sets import is_number
from torchrepro_lint.dataflow.taint.prefilter import makes_set
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import UNKNOWN, AbstractValue, join_all
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.query.database import query
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    ModuleSummary,
    Operation,
    Record,
    Ref,
    Subscript,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import in_project, path_of
from torchrepro_lint.syntax.scopes import stored_before
from torchrepro_lint.syntax.summary import has_word
from torchrepro_lint.syntax.visitor import (
    bodies,
    expressions_within,
    last_identifier,
    statements,
)

# A variable of a file by its root; an attribute by its name, with a dot before it.
_Key = str
_READING = frozenset({"get", "pop", "setdefault"})
_ANY = frozenset({"values", "items"})


class _FileTables(Record, frozen=True):
    """The tables of sets of one file, where each is created, and what is added to the sets of each."""

    tables: frozenset[_Key]
    created: dict[tuple[int, int], _Key]
    added: dict[_Key, tuple[Expression, ...]]
    merged: dict[_Key, tuple[Expression, ...]]


_NOTHING = _FileTables(frozenset(), {}, {}, {})


class SetTables:
    """The tables of sets of a project; each file is searched once, if its words allow for one."""

    def __init__(self, project: ValueFlow) -> None:
        self._project = project
        self._names = project.resolver
        self.database = project.database

    def elements(self, path: str, expression: Expression) -> AbstractValue | None:
        """The type of the elements, if an expression is a set that a table holds; None for anything else."""
        if not self._is_anywhere():
            return None
        if (stored := self._stored(path, expression)) is not None:
            return type_inference(self._project).of(path, stored).element if _is_set(stored) else None
        table = self._read_table(path, expression)
        if table is None:
            return None
        found = sorted(self._tables_of(path, table))
        return join_all(*(self._added(file, key) for file, key in found)) if found else None

    def _stored(self, path: str, expression: Expression) -> Expression | None:
        """What the function stores under the literal key of a dictionary that is read: ``splits["train"]``."""
        match expression:
            case Subscript(value=Ref(), indices=(Constant(value=str()),)) if _may_have(
                self._names.modules.summary(path)
            ):
                return stored_before(self._names.modules.files[path], expression)
        return None

    def _read_table(self, path: str, expression: Expression) -> Ref | None:
        """The table of which an expression reads one value, as it is written."""
        match expression:
            case Subscript(value=Ref() as table, indices=(index,)) if not _is_slice(index):
                return table
            case Call(func=Ref(path=(*before, word)) as func, args=(_, *_)) if word in _READING:
                return func._replace(path=tuple(before))
            case Ref(roots=(root,), path=()) if self._is_iterated(f"{path}{root}"):
                for each in self._project.value_sources.assignments(path).get(root, ()):
                    if (iterated := _iterated_table(each.value)) is not None:
                        return iterated
        return None

    def _is_iterated(self, name: str) -> bool:
        """Whether a variable gets elements of what ``.items()`` or ``.values()`` gives."""
        return any(
            how == "[]" and isinstance(value, Call) and last_identifier(value.func) in _ANY
            for how, value in self._names.assigned(name)
        )

    def _tables_of(self, path: str, table: Ref) -> set[tuple[str, _Key]]:
        """The tables of sets that a variable or an attribute may hold."""
        here = self._of_file(path)
        if not table.path:
            direct = {(path, root) for root in table.roots if root in here.tables}
            if direct:
                return direct
        elif len(table.path) == 1:
            owners = self._names.names_of(path, table._replace(path=()))
            places = {(path_of(each), f".{table.path[0]}") for each in owners if in_project(each)}
            direct = {(file, key) for file, key in places if key in self._of_file(file).tables}
            if direct:
                return direct
        return {
            (file, key)
            for file, value in self._names.values_through_calls(path, table)
            if (key := self._of_file(file).created.get((value.start, value.end))) is not None
        }

    @query()
    def _is_anywhere(self) -> bool:
        """Whether any file may have such a table."""
        modules = self._names.modules
        for kind, word in (("calls", "set"), ("calls", "defaultdict"), ("values", "set")):
            modules.reads.record_word(kind, word)
        return any(_may_have(summary) for _, summary in modules.summaries())

    def _added(self, path: str, key: _Key) -> AbstractValue:
        """The type of what is added to the sets of a table."""
        inference = type_inference(self._project)
        file = self._of_file(path)
        values = [
            AbstractValue("int") if is_number(self._project, path, each) else inference.of(path, each)
            for each in file.added.get(key, ())
        ]
        values += [inference.of(path, each).element for each in file.merged.get(key, ())]
        return join_all(*values) if values and all(each.kind for each in values) else UNKNOWN

    @query()
    def _of_file(self, path: str) -> _FileTables:
        facts = self._names.modules.files.get(path)
        return _find_tables(facts) if facts is not None and _may_have(facts.summary) else _NOTHING


def _may_have(summary: ModuleSummary) -> bool:
    """Whether a file names sets and the calls that fill them."""
    return has_word(summary.calls, "set") or (
        has_word(summary.calls, "defaultdict") and has_word(summary.values, "set")
    )


def _iterated_table(value: Expression | None) -> Ref | None:
    """The table of whose values a loop variable is one: of ``for key, found in table.items()``."""
    match value:
        case Subscript(value=Subscript(value=Call(func=Ref(path=(*before, "items")) as func), indices=())):
            return func._replace(path=tuple(before))
        case Subscript(value=Call(func=Ref(path=(*before, "values")) as func), indices=()):
            return func._replace(path=tuple(before))
    return None


def _is_slice(index: Expression) -> bool:
    return isinstance(index, Operation) and index.op == ":"


def _find_tables(facts: SyntaxTree) -> _FileTables:
    search = _Search()
    for body in bodies(facts):
        for statement in statements(body):
            if isinstance(statement, Assign) and statement.value is not None:
                search.assigned(statement, statement.value)
            for each in expressions_within(statement):
                if isinstance(each, Call):
                    search.called(each)
    return search.found()


class _Search:
    """The search of one file; a table that gets something else than sets is none."""

    def __init__(self) -> None:
        self._tables: set[_Key] = set()
        self._others: set[_Key] = set()
        self._created: dict[tuple[int, int], _Key] = {}
        self._added: dict[_Key, list[Expression]] = {}
        self._merged: dict[_Key, list[Expression]] = {}

    def assigned(self, statement: Assign, value: Expression) -> None:
        """``table = defaultdict(set)``, ``table = {}``, ``table[key] = set()``."""
        for target in statement.targets:
            match target:
                case Ref() if (key := _key(target)) and _is_empty_table(value):
                    self._created[value.start, value.end] = key
                    if _makes_sets(value):
                        self._tables.add(key)
                case Subscript(value=Ref() as whole) if statement.op == "=" and (key := _key(whole)):
                    self._filled(key, value)

    def called(self, call: Call) -> None:
        """``table[key].add(value)``, ``table.setdefault(key, set()).add(value)``."""
        match call:
            case Call(func=Ref(path=(*before, "setdefault")) as func, args=(_, default)):
                if key := _key(func._replace(path=tuple(before))):
                    self._filled(key, default.value)
            case Call(func=Attribute(value=value, name="add" | "update" as word), args=(arg,)):
                whole = _table_of_element(value)
                if whole is not None and (key := _key(whole)):
                    (self._added if word == "add" else self._merged).setdefault(key, []).append(arg.value)

    def _filled(self, key: _Key, value: Expression) -> None:
        if not _is_set(value):
            self._others.add(key)
            return
        self._tables.add(key)
        if not (isinstance(value, Call) and not value.args):
            self._merged.setdefault(key, []).append(value)

    def found(self) -> _FileTables:
        return _FileTables(
            frozenset(self._tables - self._others),
            {where: key for where, key in self._created.items() if key in self._tables - self._others},
            {key: tuple(values) for key, values in self._added.items()},
            {key: tuple(values) for key, values in self._merged.items()},
        )


def _key(ref: Ref) -> _Key:
    """The key of a variable or of an attribute; empty for anything else."""
    if len(ref.path) == 1:
        return f".{ref.path[0]}"
    return ref.roots[0] if not ref.path and len(ref.roots) == 1 else ""


def _is_set(value: Expression) -> bool:
    """Whether a value is written like one set, and not like a container of sets."""
    match value:
        case Collection(kind=kind) | Comprehension(kind=kind):
            return kind == "set"
    return makes_set(value)


def _is_empty_table(value: Expression) -> bool:
    match value:
        case Collection(kind="dict", items=()):
            return True
        case Call(func=func):
            return last_identifier(func) in ("dict", "defaultdict", "OrderedDict")
    return False


def _makes_sets(value: Expression) -> bool:
    """``defaultdict(set)``, ``defaultdict(lambda: set())``."""
    match value:
        case Call(func=func, args=(arg, *_)) if last_identifier(func) == "defaultdict":
            return isinstance(arg.value, Ref) and last_identifier(arg.value) in ("set", "frozenset")
    return False


def _table_of_element(value: Expression) -> Ref | None:
    match value:
        case Subscript(value=Ref() as whole):
            return whole
        case Call(func=Ref(path=(*before, "setdefault")) as func):
            return func._replace(path=tuple(before))
    return None
