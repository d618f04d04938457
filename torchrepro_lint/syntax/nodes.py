"""The syntax tree of a file: nodes of expressions, statements and definitions, with resolved names and without a parser's objects.

Nothing here knows a rule, torch, another file, or where the file lies: equal texts give equal trees. The nodes are plain immutable records
that are written to JSON, read back, and kept as long as the bytes of the file stay the same.

What identifies a node
    Its file, its position and its content. So a node is its own key in a table about one file, and ``(path, node)`` where a table serves
    several. Nodes are compared by ``==``, never by ``is``: a remembered answer may have those of the tree before an edit. The hash is
    that of the position, and two nodes mostly are one object or differ in their positions.

Names in a file
    ``:main`` is what the file itself defines, ``:Net.forward`` a method, ``:main.<locals>.x`` a local variable or
    parameter, ``torch.nn.Linear`` what an import brings in (as written, ``.utils.seed`` for a relative one),
    ``builtins.len`` a builtin, ``:Net.<super>`` the ``super`` of a method, ``?x`` a name that nothing binds (a star import may).
    Linking turns them into qualified names of the project, ``src/train.py:main``: the path may hold colons, the rest does not.
Order
    Bodies, operands and arguments stand in the order in which Python evaluates them.
Offsets
    ``start`` and ``end`` count code points; an expression's own parentheses are not in its span.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple, replace

from torchrepro_lint.source.text import Span

if TYPE_CHECKING:
    from typing_extensions import Self


class Record(Struct, frozen=True, order=True):
    """An immutable record: equal to one of its type with equal fields, hashable if they are, and matched by position.

    It takes a quarter of the time of a named tuple to create (``python -m benchmarks.records``), and an eighth to define. It is no tuple:
    it is not unpacked. Two of one type are ordered by their fields.
    """

    def _replace(self, **changes: Any) -> Self:
        """A copy with some fields replaced, as with named tuples."""
        return replace(self, **changes)


class FrozenRecord(Record, frozen=True, gc=False):
    """A record such as a node of the syntax tree, of which a project has hundreds of thousands.

    It takes a third less memory than a named tuple. The garbage collector skips it, so it must not contain a reference cycle.
    """


class Node(FrozenRecord, frozen=True):
    """A node of the syntax tree, which spans the text from ``start`` to ``end``."""

    start: int
    end: int

    def __hash__(self) -> int:
        """By the position alone, whatever is below the node; few nodes end at the same offset."""
        return self.end


def fields(of: Record) -> tuple[Any, ...]:
    """The values of the fields of a record, in order."""
    return astuple(of)


# --- expressions -----------------------------------------------------------------------------------------------------


class Constant(Node, frozen=True):
    """A literal: number, string (adjacent parts joined), bytes, ``True``, ``False``, ``None`` or ``...``."""

    value: str | bytes | int | float | complex | bool | None


class Ref(Node, frozen=True):
    """A name with the attributes read from it: ``x``, ``torch.nn.Linear``, ``self.proj.weight``.

    ``roots`` are the names that its first word may be bound to, sorted; ``path`` are the attributes.
    ``base_end`` is where the text before the last attribute ends (``x`` in ``x.T``), parentheses included.
    """

    roots: tuple[str, ...]
    path: tuple[str, ...]
    base_end: int

    @property
    def access_path(self) -> AccessPath:
        """The roots and the attributes. In one scope, equal ones stand for the same variable or attribute."""
        return self.roots, self.path


class Attribute(Node, frozen=True):
    """An attribute of an expression that is not a name: ``f(x).T``."""

    value: Expression
    name: str
    base_end: int


class Arg(Node, frozen=True):
    """An argument of a call. ``star`` is ``""``, ``"*"`` or ``"**"``; ``start`` to ``end`` spans the value with its
    parentheses, but neither the keyword nor the comma.
    """

    keyword: str | None
    star: str
    value: Expression


class Call(Node, frozen=True):
    """``func(args)``; ``open`` is the offset after the opening parenthesis of the arguments."""

    func: Expression
    args: tuple[Arg, ...]
    open: int


class Subscript(Node, frozen=True):
    """``value[indices]``; several indices mean a tuple. A slice is an ``Operation(":")``."""

    value: Expression
    indices: tuple[Expression, ...]
    base_end: int


class Collection(Node, frozen=True):
    """A tuple, list, set or dict display. A dict's items are keys and values in turn; ``**d`` has the key ``None``."""

    kind: str
    items: tuple[Expression | None, ...]


class Operation(Node, frozen=True):
    """An operation on operands, named by ``op``: every expression that has no node of its own.

    Binary operators and comparisons by their sign, ``and``/``or``/``not``, ``if`` (test, value, other value),
    ``await``, ``yield``, ``*`` (starred), ``f`` (f-string: its texts, placed at its start, and its values), ``:`` (slice), ``:=`` (target, value).
    A chained comparison is an ``and`` of comparisons.
    """

    op: str
    operands: tuple[Expression, ...]


class Lambda(Node, frozen=True):
    """A lambda; ``function`` is the name of its ``Function``, whose body is one ``Return``."""

    function: str


class Clause(FrozenRecord, frozen=True):
    """``for target in source if tests`` of a comprehension."""

    target: Expression
    source: Expression
    tests: tuple[Expression, ...]


class Comprehension(Node, frozen=True):
    """``kind`` is ``list``, ``set``, ``dict`` or ``generator``; a dict comprehension has a key and a value."""

    kind: str
    elements: tuple[Expression, ...]
    clauses: tuple[Clause, ...]


AccessPath: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
Expression: TypeAlias = Constant | Ref | Attribute | Call | Subscript | Collection | Operation | Lambda | Comprehension

# --- statements ------------------------------------------------------------------------------------------------------


class ExpressionStatement(Node, frozen=True):
    """An expression statement."""

    value: Expression


class Assign(Node, frozen=True):
    """``targets = value``, ``target op= value`` or ``target: annotation [= value]``."""

    targets: tuple[Expression, ...]
    value: Expression | None
    op: str
    annotation: Expression | None


class Import(Node, frozen=True):
    """An import statement: the modules that it loads, as written, and its bindings (local name, name). A star binds ``*``."""

    modules: tuple[str, ...]
    names: tuple[tuple[str, str], ...]


class If(Node, frozen=True):
    test: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


class Loop(Node, frozen=True):
    """``for target in source`` or, without a target, ``while source``."""

    target: Expression | None
    source: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


class With(Node, frozen=True):
    items: tuple[tuple[Expression, Expression | None], ...]
    body: tuple[Statement, ...]


class Try(Node, frozen=True):
    """Handlers are (exception types or None, body)."""

    body: tuple[Statement, ...]
    handlers: tuple[tuple[Expression | None, tuple[Statement, ...]], ...]
    orelse: tuple[Statement, ...]
    final: tuple[Statement, ...]


class Match(Node, frozen=True):
    """``match subject``: the guards and bodies of the cases, without their patterns."""

    subject: Expression
    cases: tuple[tuple[Expression | None, tuple[Statement, ...]], ...]


class DefinitionStatement(Node, frozen=True):
    """A ``def`` or ``class`` statement: it evaluates decorators, defaults and bases, and binds the name.

    ``body`` is that of a class, which runs here, too; empty for a function.
    """

    name: str
    values: tuple[Expression, ...]
    body: tuple[Statement, ...]


class SimpleStatement(Node, frozen=True):
    """A simple statement that is only a keyword and operands: ``return``, ``raise``, ``assert``, ``del``, ``break``, ``continue``."""

    kind: str
    values: tuple[Expression, ...]


Statement: TypeAlias = (
    ExpressionStatement | Assign | Import | If | Loop | With | Try | Match | DefinitionStatement | SimpleStatement
)

# --- definitions -----------------------------------------------------------------------------------------------------


class Param(FrozenRecord, frozen=True):
    """A parameter; ``kind`` is ``""``, ``"/"`` (positional only), ``"kw"`` (keyword only), ``"*"`` or ``"**"``."""

    name: str
    kind: str
    annotation: Expression | None
    default: Expression | None


class Function(NamedTuple):
    """A ``def`` or lambda. ``name`` starts with a colon; ``owner`` is the class whose body it stands in."""

    start: int
    end: int
    name: str
    params: tuple[Param, ...]
    decorators: tuple[Expression, ...]
    body: tuple[Statement, ...]
    owner: str | None
    generator: bool
    returns: Expression | None

    def __hash__(self) -> int:
        """By the position alone, as of a node."""
        return hash((self.start, self.end))


class Class(NamedTuple):
    """A class. ``body`` runs where the class is defined; ``methods`` maps short names to functions, last one wins."""

    start: int
    end: int
    name: str
    bases: tuple[Arg, ...]
    decorators: tuple[Expression, ...]
    body: tuple[Statement, ...]
    methods: tuple[tuple[str, str], ...]

    def __hash__(self) -> int:
        """By the position alone, as of a node."""
        return hash((self.start, self.end))


class ModuleSummary(NamedTuple):
    """The summary of a module: what linking needs from every file, collected once so that trees need not be read. All sorted.

    ``exports`` maps each word that the module binds at its top level to the names it may stand for. ``stars`` are the
    modules of star imports, ``imports`` those that import statements anywhere in the file may load, as written.
    ``calls`` are the identifiers by which something is called (see ``visitor.callee_identifier``); ``values`` the last
    identifiers of what is named without being called; ``inner`` the attributes from which others are read, or that belong to what is
    no name; ``keywords`` those of arguments, and the literal string keys of displays and of assignments to elements; ``decorators`` the roots and paths of
    decorators (of an expression, none); ``partials`` those of the first arguments of ``partial``; ``through`` the parameters
    that are called (higher-order calls), as they are named in the file; ``options`` the command-line options that are declared;
    ``entered`` what ``with`` statements enter, with ``()`` where it is called; ``properties`` the methods that run when they are
    read; ``tables`` the variables in which a function stores its parameter, each with the outermost such function.
    ``holds`` maps top-level variables and functions to the identifiers of their possible values (see ``visitor.value_identifiers``).
    ``has_main_guard`` says that there is an ``if __name__ == "__main__":`` block, ``calls_at_top_level`` that the module itself calls something.
    ``functions`` are the functions outside classes and functions, ``classes`` all classes, in the order of the file, with their bases.
    """

    exports: tuple[tuple[str, tuple[str, ...]], ...]
    stars: tuple[str, ...]
    imports: tuple[str, ...]
    calls: tuple[str, ...]
    values: tuple[str, ...]
    inner: tuple[str, ...]
    keywords: tuple[str, ...]
    decorators: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    partials: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    through: tuple[str, ...]
    options: tuple[str, ...]
    entered: tuple[str, ...]
    properties: tuple[str, ...]
    tables: tuple[tuple[str, str], ...]
    holds: tuple[tuple[str, tuple[str, ...]], ...]
    has_main_guard: bool
    calls_at_top_level: bool
    functions: tuple[str, ...]
    classes: tuple[tuple[str, tuple[Expression, ...]], ...]


# All values assigned to a variable: how the variable is reached in the value (see ``SyntaxTree``), and the value.
AssignedValues: TypeAlias = "tuple[tuple[str, Expression], ...]"


class SyntaxTree(NamedTuple):
    """The syntax tree of a file, with its definitions and its summary.

    ``assigned`` maps each variable to all values that are assigned to it anywhere: how the variable is reached in the
    value (``"="`` it is the value, ``"[]"`` an element of it, as in a loop or in unpacking, ``"with"`` entered from it,
    ``"+="`` and the like, ``"?"`` otherwise), and the value. ``imports_end`` is the offset after the last top-level
    import, or where one may be put.
    """

    body: tuple[Statement, ...]
    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    assigned: Mapping[str, AssignedValues]
    imports_end: int
    summary: ModuleSummary

    @property
    def exports(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """As ``Summary`` has them."""
        return self.summary.exports

    def bodies_calling(self, _word: str) -> Sequence[int | None]:
        """The bodies that may call something by an identifier (see ``visitor.callee_identifier``): 0 is the top level, others are the
        numbers of functions plus one; None where single bodies are not indexed, as here. A ``LazySyntaxTree`` has the index.
        """
        return (None,)


def span(of: Expression | Statement | Arg | Function | Class) -> Span:
    """The span of a node."""
    return Span(of.start, of.end)


# Offsets below this limit are interned: a project uses each of them about ten times.
SHARED_LIMIT = 1 << 17


@cache
def shared_numbers() -> Sequence[int]:
    """The interned integers below ``SHARED_LIMIT``, each at its own index."""
    return [*range(SHARED_LIMIT)]


def shared_number(value: int) -> int:
    """An integer, interned if it is a likely offset."""
    return shared_numbers()[value] if 0 <= value < SHARED_LIMIT else value


def make_ref(start: int, end: int, roots: tuple[str, ...], path: tuple[str, ...], base_end: int) -> Ref:
    """A reference whose offsets are interned."""
    if end < SHARED_LIMIT:
        shared = shared_numbers()
        return Ref(shared[start], shared[end], roots, path, shared[base_end])
    return Ref(start, end, roots, path, base_end)
