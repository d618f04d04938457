"""The kind of record that a project has by the hundred thousand.

What one file says, as plain records: a slim syntax tree whose names are resolved.

Nothing here knows a rule, torch, another file, or where the file lies: equal texts give equal facts. The records hold
no libcst node, so they can be written to JSON and read back and kept for as long as the bytes of the file stay.

Names in a file
    ``:main`` is what the file itself defines, ``:Net.forward`` a method, ``:main.<locals>.x`` a local variable or
    parameter, ``torch.nn.Linear`` what an import brings in (as written, ``.utils.seed`` for a relative one),
    ``builtins.len`` a builtin, ``:Net.<super>`` the ``super`` of a method, ``?x`` a name that nothing binds (a star import may). Linking turns them into names of
    the project (``src/train.py:main``).
Order
    Bodies, operands and arguments stand in the order in which Python evaluates them.
Offsets
    ``start`` and ``end`` count code points; an expression's own parentheses are not in its span.

What the variables of a file are assigned, in little room: a project has a hundred thousand of them.

What a call gives for the parameters of a function of the project.

What a method gets for its first parameter, as its decorators say.

Names of the project taken apart: ``path:function``, where the path may hold colons, and what follows it none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple, replace

from torchrepro_lint.source.text import Span

if TYPE_CHECKING:
    from typing_extensions import Self


class Small(Struct, frozen=True, gc=False):
    """A frozen record, equal to one of its type with equal fields, and matched by them in their order.

    It takes a third less memory than a named tuple and is made in a quarter of the time (``python -m benchmarks.records``). The
    garbage collector does not look into it: nothing may be in it that leads back to it.
    """

    def _replace(self, **changes: Any) -> Self:
        """The record with other fields, as named tuples have it."""
        return replace(self, **changes)


def fields(of: Small) -> tuple[Any, ...]:
    """What is in a record, in its order."""
    return astuple(of)


# --- expressions -----------------------------------------------------------------------------------------------------


class Constant(Small, frozen=True):
    """A literal: number, string (adjacent parts joined), bytes, ``True``, ``False``, ``None`` or ``...``."""

    start: int
    end: int
    value: str | bytes | int | float | complex | bool | None


class Ref(Small, frozen=True):
    """A name with the attributes read from it: ``x``, ``torch.nn.Linear``, ``self.proj.weight``.

    ``roots`` are the names that its first word may be bound to, sorted; ``path`` are the attributes.
    ``base_end`` is where the text before the last attribute ends (``x`` in ``x.T``), parentheses included.
    """

    start: int
    end: int
    roots: tuple[str, ...]
    path: tuple[str, ...]
    base_end: int


class Attribute(Small, frozen=True):
    """An attribute of what is not a name: ``f(x).T``."""

    start: int
    end: int
    value: Expression
    name: str
    base_end: int


class Arg(Small, frozen=True):
    """An argument of a call. ``star`` is ``""``, ``"*"`` or ``"**"``; ``start`` to ``end`` spans the value with its
    parentheses, but neither the keyword nor the comma.
    """

    start: int
    end: int
    keyword: str | None
    star: str
    value: Expression


class Call(Small, frozen=True):
    """``func(args)``; ``open`` is the offset after the opening parenthesis of the arguments."""

    start: int
    end: int
    func: Expression
    args: tuple[Arg, ...]
    open: int


class Subscript(Small, frozen=True):
    """``value[indices]``; several indices mean a tuple. A slice is an ``Operation(":")``."""

    start: int
    end: int
    value: Expression
    indices: tuple[Expression, ...]
    base_end: int


class Collection(Small, frozen=True):
    """A tuple, list, set or dict display. A dict's items are keys and values in turn; ``**d`` has the key ``None``."""

    start: int
    end: int
    kind: str
    items: tuple[Expression | None, ...]


class Operation(Small, frozen=True):
    """Anything else that is made of operands: ``op`` names it.

    Binary operators and comparisons by their sign, ``and``/``or``/``not``, ``if`` (test, value, other value),
    ``await``, ``yield``, ``*`` (starred), ``f`` (f-string: its texts, placed at its start, and its values), ``:`` (slice), ``:=`` (target, value).
    A chained comparison is an ``and`` of comparisons.
    """

    start: int
    end: int
    op: str
    operands: tuple[Expression, ...]


class Lambda(Small, frozen=True):
    """A lambda; ``function`` is the name of its ``Function``, whose body is one ``Return``."""

    start: int
    end: int
    function: str


class Clause(Small, frozen=True):
    """``for target in source if tests`` of a comprehension."""

    target: Expression
    source: Expression
    tests: tuple[Expression, ...]


class Comprehension(Small, frozen=True):
    """``kind`` is ``list``, ``set``, ``dict`` or ``generator``; a dict comprehension has a key and a value."""

    start: int
    end: int
    kind: str
    elements: tuple[Expression, ...]
    clauses: tuple[Clause, ...]


Expression: TypeAlias = Constant | Ref | Attribute | Call | Subscript | Collection | Operation | Lambda | Comprehension

# --- statements ------------------------------------------------------------------------------------------------------


class Do(Small, frozen=True):
    """An expression that stands as a statement."""

    start: int
    end: int
    value: Expression


class Assign(Small, frozen=True):
    """``targets = value``, ``target op= value`` or ``target: annotation [= value]``."""

    start: int
    end: int
    targets: tuple[Expression, ...]
    value: Expression | None
    op: str
    annotation: Expression | None


class Import(Small, frozen=True):
    """An import: the modules it loads as written, and what it binds: (local name, name). A star binds ``*``."""

    start: int
    end: int
    modules: tuple[str, ...]
    names: tuple[tuple[str, str], ...]


class If(Small, frozen=True):
    start: int
    end: int
    test: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


class Loop(Small, frozen=True):
    """``for target in source`` or, without a target, ``while source``."""

    start: int
    end: int
    target: Expression | None
    source: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


class With(Small, frozen=True):
    start: int
    end: int
    items: tuple[tuple[Expression, Expression | None], ...]
    body: tuple[Statement, ...]


class Try(Small, frozen=True):
    """Handlers are (exception types or None, body)."""

    start: int
    end: int
    body: tuple[Statement, ...]
    handlers: tuple[tuple[Expression | None, tuple[Statement, ...]], ...]
    orelse: tuple[Statement, ...]
    final: tuple[Statement, ...]


class Match(Small, frozen=True):
    """``match subject``: the cases' patterns are not kept, their guards and bodies are."""

    start: int
    end: int
    subject: Expression
    cases: tuple[tuple[Expression | None, tuple[Statement, ...]], ...]


class Define(Small, frozen=True):
    """A ``def`` or ``class`` statement: where decorators, defaults and bases are evaluated and the name is bound.

    ``body`` is what runs there, too: a class's, empty for a function.
    """

    start: int
    end: int
    name: str
    values: tuple[Expression, ...]
    body: tuple[Statement, ...]


class Leave(Small, frozen=True):
    """``return``, ``raise``, ``assert``, ``del``, ``break`` or ``continue``, with its operands."""

    start: int
    end: int
    kind: str
    values: tuple[Expression, ...]


Statement: TypeAlias = Do | Assign | Import | If | Loop | With | Try | Match | Define | Leave

# --- definitions -----------------------------------------------------------------------------------------------------


class Param(Small, frozen=True):
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


class Class(NamedTuple):
    """A class. ``body`` runs where the class is defined; ``methods`` maps short names to functions, last one wins."""

    start: int
    end: int
    name: str
    bases: tuple[Arg, ...]
    decorators: tuple[Expression, ...]
    body: tuple[Statement, ...]
    methods: tuple[tuple[str, str], ...]


class Summary(NamedTuple):
    """What a link asks of every file of a project, gathered once so that it need not look into them; words are sorted.

    ``exports`` maps each word that the module binds at its top level to the names it may stand for. ``stars`` are the
    modules of star imports, ``imports`` those that import statements anywhere in the file may load, as written.
    ``calls`` are the words by which something is called (see ``walk.called_word``), ``values`` the last words of what is
    named without being called, ``inner`` those of attributes from which others are read, or that are of what is no name,
    ``keywords`` those by which arguments are passed, with the literal keys of dictionaries,
    ``decorators`` the roots and paths of what functions and classes are decorated with (of an expression, none),
    ``partials`` those of what ``partial`` is given. ``through`` are the parameters that are called, as they are named in
    the file. ``options`` are the words of the
    command-line options that are declared here, ``entered`` of what ``with`` statements enter, with ``()`` where it is called,
    ``properties`` of the methods that run when they are read. ``tables`` are
    the variables in which a function stores its parameter, each with the outermost function that does. ``holds`` maps the
    words of top-level variables and functions to those of what they may stand for or return (see ``walk.held_words``).
    ``guarded`` says
    that there is an ``if __name__ == "__main__":`` block, ``acts`` that a top-level statement calls something.
    ``functions`` are the names of the functions outside classes and functions, ``classes`` those of all classes, in the
    order of the file, each with its bases.
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
    guarded: bool
    acts: bool
    functions: tuple[str, ...]
    classes: tuple[tuple[str, tuple[Expression, ...]], ...]


# How a variable is reached in a value (see ``Facts``), and the value; all that it is assigned.
Values: TypeAlias = "tuple[tuple[str, Expression], ...]"


class Facts(NamedTuple):
    """All that is kept of a file.

    ``assigned`` maps the name of each variable to what is assigned to it anywhere: how the variable is reached in the
    value (``"="`` it is the value, ``"[]"`` an element of it, as in a loop or in unpacking, ``"with"`` entered from it,
    ``"+="`` and the like, ``"?"`` otherwise), and the value. ``imports_end`` is the offset after the last top-level
    import, or where one may be put.
    """

    body: tuple[Statement, ...]
    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    assigned: Mapping[str, Values]
    imports_end: int
    summary: Summary

    @property
    def exports(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """As ``Summary`` has them."""
        return self.summary.exports

    def calling(self, _word: str) -> Sequence[int | None]:
        """The bodies that may call something by a word (see ``walk.called_word``): 0 is the top level, others are the numbers
        of functions plus one; None where nothing is known of single bodies, as here. Stored facts know it.
        """
        return (None,)


def span(of: Expression | Statement | Arg | Function | Class) -> Span:
    """The span of any record that has one."""
    return Span(of.start, of.end)


class Assigned(Mapping[str, "Values"]):
    """The values of each variable, by its name; sorted.

    Most variables are assigned one value as it is: of these, only the value is held. Of others the row of ways and values
    is, without a tuple for each pair.
    """

    __slots__ = ("_held", "_names")

    def __init__(self, values: Mapping[str, Sequence[tuple[str, Expression]]]) -> None:
        self._names = tuple(sorted(values))
        self._held = tuple([_held(values[name]) for name in self._names])

    def __getitem__(self, name: str) -> Values:
        found: Values | None = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """As a dictionary's: most names that are asked for are no variables, so no error is raised on the way."""
        at = bisect_left(self._names, name)
        if at == len(self._names) or self._names[at] != name:
            return default
        held = self._held[at]
        return tuple(zip(held[::2], held[1::2], strict=True)) if type(held) is tuple else (("=", held),)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self)!r})"


def _held(values: Sequence[tuple[str, Expression]]) -> Any:
    match values:
        case [("=", value)]:
            return value
    return tuple([each for pair in values for each in pair])


def given(function: Function, call: Call) -> Iterator[tuple[str, Expression]]:
    """What a call passes for the parameters of a function, by their words; what stands behind a star is not known."""
    words = [param.name for param in function.params if param.kind in ("", "/")][bool(function.owner) :]
    placed = takewhile(lambda arg: arg.keyword is None and not arg.star, call.args)
    yield from zip(words, (arg.value for arg in placed), strict=False)
    yield from ((arg.keyword, arg.value) for arg in call.args if arg.keyword)


def takes_object(function: Function) -> bool:
    """Whether the first parameter of a function is the object, or the class, that it is a method of."""
    return bool(function.owner) and not _is_decorated(function, "builtins.staticmethod")


def is_on_class(function: Function) -> bool:
    """Whether a method gets its class."""
    return _is_decorated(function, "builtins.classmethod")


def _is_decorated(function: Function, name: str) -> bool:
    return any(isinstance(each, Ref) and each.roots == (name,) for each in function.decorators)


# The files of the names that were taken apart, each the same text for all that ask: many thousand answers hold one.
_paths: dict[str, str] = {}


def path_of(name: str) -> str:
    """The file that a name is of; a name from outside the project is given back."""
    if ":" not in name:
        return name
    path = name[: name.rfind(":")]
    return _paths.setdefault(path, path)


def parted(name: str) -> tuple[str, str, str]:
    """The file, the colon, and the name within the file; of a name from outside, itself and nothing else."""
    if ":" not in name:
        return name, "", ""
    path, colon, own = name.rpartition(":")
    return _paths.setdefault(path, path), colon, own
