"""Whether a function views what a call gives: then the layout of the result matters, not only its values.

Which rewriting an ``index_select`` call gets in its place, and whether it keeps the meaning of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from torchrepro_lint.checks.fixes.helpers import Helper, provide
from torchrepro_lint.checks.fixes.index_select_forms import Selecting, Wishes, rewrite
from torchrepro_lint.dataflow.types.tensors import Tensors, Variable, carriers, makes_sparse, sparse_variables
from torchrepro_lint.domain.scripted import scripted
from torchrepro_lint.resolve.program_index import Site
from torchrepro_lint.source.files import release
from torchrepro_lint.source.text import Edit, Fix
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Expression,
    Facts,
    Operation,
    Ref,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.visitor import expressions, last_word, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.domain.project import Context


_VIEWS = frozenset({"view", "view_as"})
# What they give is laid out afresh, or is no tensor.
_FRESH = frozenset(
    {"contiguous", "reshape", "flatten", "matmul", "mm", "bmm", "size", "dim", "tolist", "item", "numel"}
)

_Variable: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


class Views:
    """The views of a body, which is walked once."""

    def __init__(self, body: tuple[Statement, ...]) -> None:
        every = list(statements(body))
        self._views = [
            each for statement in every for part in expressions(statement) for each in within(part) if _may_view(each)
        ]
        self._assigned = [each for each in every if isinstance(each, Assign)] if self._views else []

    def of(self, call: Call) -> bool:
        """Whether ``view`` or ``view_as`` is called on what a call of the body gives, through variables or not."""
        carriers: set[_Variable] = set()
        while fresh := {each for one in self._assigned for each in _assigned(one, call, carriers)} - carriers:
            carriers |= fresh
        return any(_is_view(each, call, carriers) for each in self._views)


def _may_view(expression: Expression) -> bool:
    return isinstance(expression, Call) and last_word(expression.func) in _VIEWS


def _assigned(statement: Assign, call: Call, carriers: set[_Variable]) -> list[_Variable]:
    """The variables that a statement makes carry the result."""
    if statement.value is None or not _carries(statement.value, call, carriers):
        return []
    return [(target.roots, target.path) for target in statement.targets if isinstance(target, Ref)]


def _is_view(expression: Expression, call: Call, carriers: set[_Variable]) -> bool:
    match expression:
        case Call(func=Ref(roots=roots, path=(*before, word))):
            return word in _VIEWS and _is_carrier(roots, tuple(before), carriers)
        case Call(func=Attribute(value=value, name=word)):
            return word in _VIEWS and _carries(value, call, carriers)
    return False


def _carries(expression: Expression, call: Call, carriers: set[_Variable]) -> bool:
    """Whether an expression gives the result of the call, or something laid out as that is."""
    match expression:
        case Call(start=start, end=end) if (start, end) == (call.start, call.end):
            return True
        case Call(func=Attribute(value=value, name=word)):
            return word not in _FRESH and _carries(value, call, carriers)
        case Call(func=Ref(roots=roots, path=(*before, word))):
            return word not in _FRESH and _is_carrier(roots, tuple(before), carriers)
        case Ref(roots=roots, path=path):
            return _is_carrier(roots, path, carriers)
        case Attribute(value=value) | Subscript(value=value):
            return _carries(value, call, carriers)
        case Operation(operands=operands):
            return any(_carries(operand, call, carriers) for operand in operands)
    return False


def _is_carrier(roots: tuple[str, ...], path: tuple[str, ...], carriers: set[_Variable]) -> bool:
    """Whether a variable, or what it is an attribute of, carries the result."""
    return any((roots, path[:count]) in carriers for count in range(len(path) + 1))


# From here on indexing takes 32-bit integers: the refusal "must be long, byte or bool" is in the binaries of 1.13.1 and
# not in the indexing of 2.0.0.
_INT32_SINCE = "2.0"
_HOOKS = frozenset({"__getitem__", "index_select"})
_TITLE = "Index instead of calling index_select"

HELPER = Helper(
    "deterministic_index_select",
    '''\
def deterministic_index_select(input, dim, index):
    """Select as torch.index_select does, by indexing: its gradient is deterministic on CUDA."""
    return input[(slice(None),) * range(input.dim())[dim] + (index,)]''',
    ("range", "slice"),
)


class Fixes:
    """The fixes of one module."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._project = context.project
        self._path = context.path
        self._text = context.lines.text
        self._tensors = Tensors(context.project, context.path)
        self._known_views: dict[str, Views] = {}

    def fix(self, site: Site, parts: Selecting) -> Fix | None:
        """The fix of a call; None where indexing would not be the same, or the text can not take it."""
        if self._is_forbidden(site) or self._may_be_sparse(parts):
            return None
        wishes = Wishes(
            flatten=self._tensors.scalar(parts.by.value),
            long=release(self._context.catalogue.version) < release(_INT32_SINCE)
            and self._tensors.int32(parts.by.value),
            viewed=self._views(site.function).of(parts.call),
            contiguous=self._tensors.contiguous(parts.source),
            scripted=site.function in self._scripted,
        )
        edits = self._edits(parts, wishes)
        return Fix(_TITLE, edits, self._is_safe(site, wishes)) if edits else None

    def _views(self, function: str) -> Views:
        if function not in self._known_views:
            self._known_views[function] = Views(self._body(function))
        return self._known_views[function]

    def _edits(self, parts: Selecting, wishes: Wishes) -> tuple[Edit, ...]:
        plain = rewrite(self._text, parts, wishes, HELPER.word)
        if plain is None or not plain.helped:
            return plain.edits if plain else ()
        if self._helper is None:
            return ()
        word, given = self._helper
        helped = rewrite(self._text, parts, wishes, word)
        return (*given, *helped.edits) if helped else ()

    def _is_safe(self, site: Site, wishes: Wishes) -> bool:
        """Only on CUDA is indexing the deterministic one of the two: the program has to say that it runs there."""
        if wishes.flatten or wishes.scripted:
            return False
        if self._context.settings.device != "auto":
            return self._context.settings.device == "cuda"
        return any(self._project.on_accelerator(program) for program in self._project.reaching(site.function))

    def _may_be_sparse(self, parts: Selecting) -> bool:
        """Sparse tensors cannot be indexed, and objects that only stand for tensors need not be."""
        if self._tensors.unusual(parts.source) or makes_sparse(parts.source):
            return True
        return not self._sparse.isdisjoint((*carriers(parts.source), *carriers(parts.call)))

    def _is_forbidden(self, site: Site) -> bool:
        """In ``__getitem__`` indexing may lead back to itself, as may ``index_select`` under another name where something
        takes its place; text inside an f-string is not edited.
        """
        if not _HOOKS.isdisjoint(site.function.replace(":", ".").split(".")) or not _is_use(site):
            return True
        return any(start <= site.call.start < end for start, end in self._strings)

    @cached_property
    def _helper(self) -> tuple[str, tuple[Edit, ...]] | None:
        return provide(self._project, self._path, self._text, HELPER, self._first_use())

    def _first_use(self) -> int:
        """The start of the first top-level statement that may call the helper."""
        facts = self._project.files[self._path]
        uses = {site.call.start for site in self._project.calls(self._path) if _is_use(site)}
        for statement in facts.body:
            if any(statement.start <= use < statement.end for use in uses):
                return statement.start
        return len(self._text)

    @cached_property
    def _sparse(self) -> frozenset[Variable]:
        return sparse_variables(self._project, self._path)

    @cached_property
    def _scripted(self) -> frozenset[str]:
        return scripted(self._project, self._path)

    @cached_property
    def _strings(self) -> tuple[tuple[int, int], ...]:
        facts = self._project.files[self._path]
        found = (
            each for statement in _all_statements(facts) for part in expressions(statement) for each in within(part)
        )
        return tuple((each.start, each.end) for each in found if isinstance(each, Operation) and each.op == "f")

    def _body(self, function: str) -> tuple[Statement, ...]:
        found = self._project.resolver.functions(function)
        return found[0].body if found else self._project.files[self._path].body


def _is_use(site: Site) -> bool:
    """Whether a call may become one of the helper: by its word, whatever it is called on."""
    return last_word(site.call.func) == "index_select"


def _all_statements(facts: Facts) -> Iterator[Statement]:
    for body in (facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes)):
        yield from statements(body)
