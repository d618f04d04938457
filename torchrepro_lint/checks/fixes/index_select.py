"""The fix of TRL401: which rewriting an ``index_select`` call gets, and whether it keeps the meaning of the program.

Where the function views the result, its memory layout matters, not only its values.
"""

from __future__ import annotations

from functools import cached_property

from torchrepro_lint.checks.fixes.helpers import Helper, provide_helper
from torchrepro_lint.checks.fixes.index_select_call import IndexSelectCall
from torchrepro_lint.checks.fixes.index_select_rewrite import RewriteOptions, rewrite
from torchrepro_lint.checks.fixes.insertions import means_builtin
from torchrepro_lint.checks.fixes.scripted import scripted_functions
from torchrepro_lint.dataflow.types.tensor_facts import (
    TensorFacts,
    Variable,
    makes_sparse,
    sparse_carriers,
    sparse_variables,
)
from torchrepro_lint.domain.programs import on_accelerator, programs_reaching
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.files import release
from torchrepro_lint.source.text import Edit, Fix, NoFix
from torchrepro_lint.syntax.nodes import (
    AccessPath,
    Assign,
    Attribute,
    Call,
    Expression,
    Operation,
    Ref,
    Statement,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import qualname_of
from torchrepro_lint.syntax.visitor import (
    all_expressions,
    expressions_within,
    last_identifier,
    statements,
)
from torchrepro_lint.trace.traces import Context

_VIEWS = frozenset({"view", "view_as"})
# Methods whose result has a new memory layout, or is no tensor.
_NEW_LAYOUT = frozenset(
    {"contiguous", "reshape", "flatten", "matmul", "mm", "bmm", "size", "dim", "tolist", "item", "numel"}
)


class ViewUses:
    """The calls of ``view`` in a body, which is visited once."""

    def __init__(self, body: tuple[Statement, ...]) -> None:
        every = list(statements(body))
        self._views = [each for statement in every for each in expressions_within(statement) if _may_view(each)]
        self._assigned = [each for each in every if isinstance(each, Assign)] if self._views else []

    def of(self, call: Call) -> bool:
        """Whether ``view`` or ``view_as`` is called on a call's result, directly or through variables."""
        carriers: set[AccessPath] = set()
        while fresh := {each for one in self._assigned for each in _new_carriers(one, call, carriers)} - carriers:
            carriers |= fresh
        return any(_is_view(each, call, carriers) for each in self._views)


def _may_view(expression: Expression) -> bool:
    return isinstance(expression, Call) and last_identifier(expression.func) in _VIEWS


def _new_carriers(statement: Assign, call: Call, carriers: set[AccessPath]) -> list[AccessPath]:
    """The variables to which a statement assigns the result."""
    if statement.value is None or not _carries(statement.value, call, carriers):
        return []
    return [target.access_path for target in statement.targets if isinstance(target, Ref)]


def _is_view(expression: Expression, call: Call, carriers: set[AccessPath]) -> bool:
    match expression:
        case Call(func=Ref(roots=roots, path=(*before, word))):
            return word in _VIEWS and _is_carrier(roots, tuple(before), carriers)
        case Call(func=Attribute(value=value, name=word)):
            return word in _VIEWS and _carries(value, call, carriers)
    return False


def _carries(expression: Expression, call: Call, carriers: set[AccessPath]) -> bool:
    """Whether an expression is the result of the call, or has its memory layout."""
    match expression:
        case Call(start=start, end=end) if (start, end) == (call.start, call.end):
            return True
        case Call(func=Attribute(value=value, name=word)):
            return word not in _NEW_LAYOUT and _carries(value, call, carriers)
        case Call(func=Ref(roots=roots, path=(*before, word))):
            return word not in _NEW_LAYOUT and _is_carrier(roots, tuple(before), carriers)
        case Ref(roots=roots, path=path):
            return _is_carrier(roots, path, carriers)
        case Attribute(value=value) | Subscript(value=value):
            return _carries(value, call, carriers)
        case Operation(operands=operands):
            return any(_carries(operand, call, carriers) for operand in operands)
    return False


def _is_carrier(roots: tuple[str, ...], path: tuple[str, ...], carriers: set[AccessPath]) -> bool:
    """Whether a variable, or the object that it is an attribute of, carries the result."""
    return any((roots, path[:count]) in carriers for count in range(len(path) + 1))


# From this release on, indexing takes 32-bit integers: the error message "must be long, byte or bool" is in the binaries of 1.13.1 and
# not in the indexing of 2.0.0.
_INT32_SINCE = "2.0"
_HOOKS = frozenset({"__getitem__", "index_select"})
_TITLE = "Replace index_select by indexing"

HELPER = Helper(
    "deterministic_index_select",
    '''\
def deterministic_index_select(input, dim, index):
    """Select as torch.index_select does, by indexing: its gradient is deterministic on CUDA."""
    return input[(slice(None),) * range(input.dim())[dim] + (index,)]''',
    ("range", "slice"),
)


class IndexSelectFixes:
    """The fixes of one module."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._project = context.project
        self._path = context.path
        self._text = context.lines.text
        self._tensors = TensorFacts(context.project, context.path)
        self._known_views: dict[str, ViewUses] = {}

    def remedy(self, site: CallSite, parts: IndexSelectCall) -> Fix | NoFix:
        """The fix of a call, or why there is none: indexing would not be the same, or the text cannot take it."""
        if (obstacle := self._obstacle(site)) is not None:
            return obstacle
        if self._may_be_sparse(parts):
            return NoFix("the input may not be a plain dense tensor, and other tensors cannot be indexed this way")
        wishes = RewriteOptions(
            flatten=self._tensors.scalar(parts.by.value),
            long=release(self._context.catalogue.version) < release(_INT32_SINCE)
            and self._tensors.int32(parts.by.value),
            viewed=self._views(site.function).of(parts.call),
            contiguous=self._tensors.contiguous(parts.source),
            scripted=site.function in self._scripted,
        )
        edits = self._edits(parts, wishes)
        return edits if isinstance(edits, NoFix) else Fix(_TITLE, edits, self._is_safe(site, wishes))

    def _views(self, function: str) -> ViewUses:
        if function not in self._known_views:
            self._known_views[function] = ViewUses(self._body(function))
        return self._known_views[function]

    def _edits(self, parts: IndexSelectCall, wishes: RewriteOptions) -> tuple[Edit, ...] | NoFix:
        plain = rewrite(self._text, parts, wishes, HELPER.word)
        if isinstance(plain, NoFix) or not plain.helped:
            return plain if isinstance(plain, NoFix) else plain.edits
        if self._helper is None:
            return self._without_helper()
        word, given = self._helper
        helped = rewrite(self._text, parts, wishes, word)
        return helped if isinstance(helped, NoFix) else (*given, *helped.edits)

    def _without_helper(self) -> NoFix:
        """Why the file cannot have the helper."""
        if not all(means_builtin(self._project, self._path, each) for each in HELPER.builtins):
            return NoFix("the file redefines range or slice, which the helper for a computed dimension needs")
        return NoFix("there is no place above the call for the helper that a computed dimension needs")

    def _is_safe(self, site: CallSite, wishes: RewriteOptions) -> bool:
        """Indexing is deterministic where ``index_select`` is not only on CUDA, so the program must say that it runs
        there.
        """
        if wishes.flatten or wishes.scripted:
            return False
        if self._context.settings.device != "auto":
            return self._context.settings.device == "cuda"
        return any(
            on_accelerator(self._project, program) for program in programs_reaching(self._project, site.function)
        )

    def _may_be_sparse(self, parts: IndexSelectCall) -> bool:
        """Sparse tensors cannot be indexed, and objects that only resemble tensors need not be."""
        if self._tensors.unusual(parts.source) or makes_sparse(parts.source):
            return True
        return not self._sparse.isdisjoint((*sparse_carriers(parts.source), *sparse_carriers(parts.call)))

    def _obstacle(self, site: CallSite) -> NoFix | None:
        """What keeps a call from being edited where it stands."""
        if not _is_index_select(site):
            return NoFix("the function is called through another name, which may also stand for other functions")
        if not _HOOKS.isdisjoint(qualname_of(site.function).split(".")):
            return NoFix("the call is inside __getitem__ or index_select of a class, where indexing may call itself")
        if any(start <= site.call.start < end for start, end in self._strings):
            return NoFix("the call is inside an f-string, which the fix does not edit")
        return None

    @cached_property
    def _helper(self) -> tuple[str, tuple[Edit, ...]] | None:
        return provide_helper(self._project, self._path, self._text, HELPER, self._first_use())

    def _first_use(self) -> int:
        """The start of the first top-level statement that may call the helper."""
        tree = self._project.files[self._path]
        uses = {site.call.start for site in self._project.calls(self._path) if _is_index_select(site)}
        for statement in tree.body:
            if any(statement.start <= use < statement.end for use in uses):
                return statement.start
        return len(self._text)

    @cached_property
    def _sparse(self) -> frozenset[Variable]:
        return sparse_variables(self._project, self._path)

    @cached_property
    def _scripted(self) -> frozenset[str]:
        return scripted_functions(self._project, self._path)

    @cached_property
    def _strings(self) -> tuple[tuple[int, int], ...]:
        tree = self._project.files[self._path]
        found = all_expressions(tree)
        return tuple((each.start, each.end) for each in found if isinstance(each, Operation) and each.op == "f")

    def _body(self, function: str) -> tuple[Statement, ...]:
        found = self._project.resolver.functions(function)
        return found[0].body if found else self._project.files[self._path].body


def _is_index_select(site: CallSite) -> bool:
    """Whether a call may become one of the helper, by its method name alone."""
    return last_identifier(site.call.func) == "index_select"
