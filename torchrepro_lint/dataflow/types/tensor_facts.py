"""Tensor facts: what type inference knows of an expression, as yes-or-no questions; unknown is never yes.

A second analysis is flow-insensitive: the variables of a file that may hold a sparse tensor, by how they are used,
where no value is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import AbstractValue
from torchrepro_lint.dataflow.value_sources import ValueFlow
from torchrepro_lint.resolve.program_index import CallSite, ProgramIndex
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import (
    Assign,
    Attribute,
    Call,
    Collection,
    Comprehension,
    Constant,
    Expression,
    Operation,
    Ref,
    Statement,
)
from torchrepro_lint.syntax.qualified_names import is_own, is_self, local_symbol, path_of
from torchrepro_lint.syntax.visitor import (
    bodies,
    expressions_within,
    last_identifier,
    statements,
)

_UNUSUAL = ("sparse", "quantized", "nested")


class TensorFacts:
    """Tensor facts of the expressions of one file."""

    def __init__(self, project: ValueFlow, path: str) -> None:
        self._inference = type_inference(project)
        self._path = path
        self._assigned = project.files[path].assigned
        self._resolver = project.resolver

    def value(self, expression: Expression) -> AbstractValue:
        """The abstract value of an expression."""
        return self._inference.of(self._path, expression)

    def without_gradient(self, expression: Expression) -> bool:
        """Whether it needs no gradient: detached, loaded from a file, integral, or made without one."""
        what = self.value(expression)
        return what.grad is False or what.integral

    def integral(self, expression: Expression) -> bool:
        """Whether it holds integers or booleans."""
        return self.value(expression).integral

    def int32(self, expression: Expression) -> bool:
        """Whether it holds 32-bit integers."""
        return self.value(expression).dtype == "int32"

    def scalar(self, expression: Expression) -> bool:
        """Whether it is known that it may be zero-dimensional, on one of the paths at least."""
        return self.value(expression).may_be_scalar

    def unusual(self, expression: Expression) -> bool:
        """Whether it is sparse, quantised or nested: indexing rejects these."""
        return self.value(expression).layout in _UNUSUAL

    def contiguous(self, expression: Expression) -> bool:
        """Whether it is contiguous in memory."""
        return self.value(expression).layout == "contiguous"

    def may_be_tensor(self, expression: Expression) -> bool:
        """Whether a variable may hold a tensor, by the syntax of what is assigned to it: a cheap test before ``value``."""
        if not isinstance(expression, Ref) or expression.path or len(expression.roots) != 1:
            return True
        values = self._assigned.get(expression.roots[0], ())
        return not values or any(_may_give_tensor(how, value) for how, value in values)

    def is_number_by_default(self, expression: Expression) -> bool:
        """Whether it is a parameter whose default is a number."""
        default = self._resolver.default(self._path, expression)
        return isinstance(default, Constant) and isinstance(default.value, int | float)


# Functions that give containers; and iterations that give numbers and keys.
_CONTAINERS = frozenset({"dict", "list", "set", "OrderedDict", "defaultdict", "Counter", "deque", "len", "int", "str"})
_COUNTING = frozenset({"range", "keys"})


def _may_give_tensor(how: str, value: Expression) -> bool:
    if isinstance(value, Constant | Collection | Comprehension):
        return how != "="
    if not isinstance(value, Call):
        return True
    return last_identifier(value.func) not in (_CONTAINERS if how == "=" else _COUNTING)


Variable: TypeAlias = tuple[str, tuple[str, ...]]

# Attributes and methods that are only used on sparse tensors.
_SPARSE_ONLY = frozenset(
    {
        "coalesce",
        "is_coalesced",
        "sparse_dim",
        "dense_dim",
        "crow_indices",
        "ccol_indices",
        "col_indices",
        "row_indices",
    }
    | {"_indices", "_values", "_nnz", "to_dense", "is_sparse", "is_sparse_csr"}
)
_SPARSE = lazy_pattern(r"(?i)sparse|(^|_)(coo|csr|csc)(_|$)")
# The results of these are dense, or no tensors.
_DENSE = frozenset(
    {
        "to_dense",
        "mm",
        "spmm",
        "matmul",
        "bmm",
        "addmm",
        "mv",
        "dim",
        "size",
        "numel",
        "item",
        "tolist",
        "values",
        "indices",
    }
    | {"_values", "_indices", "_nnz", "nnz", "len"}
)
_ARITHMETIC = frozenset({"+", "-", "*", "/", "if", "or", "and"})


def sparse_variables(project: ProgramIndex, path: str) -> frozenset[Variable]:
    """The variables that may be sparse: used as only sparse tensors are, or connected with such a variable by
    assignments and arguments.
    """
    sparse, links = set(_used_as_sparse(project, path)), list(_links(project, path))
    while more := {each for pair in links for each in pair if not sparse.isdisjoint(pair)} - sparse:
        sparse |= more
    return frozenset(sparse)


def sparse_carriers(value: Expression) -> Iterator[Variable]:
    """The variables from which a value takes its layout."""
    match value:
        case Ref(roots=roots, path=path) if is_own(roots[0]):
            yield _variable(roots[0], path)
        case Operation(op=op, operands=operands) if op in _ARITHMETIC:
            for each in operands:
                yield from sparse_carriers(each)
        case Call(func=Ref(roots=roots, path=(*before, word))) if is_own(roots[0]):
            yield from () if word in _DENSE else (_variable(roots[0], tuple(before)),)
        case Call(func=Attribute(value=inner, name=word)):
            yield from () if word in _DENSE else sparse_carriers(inner)
        case Call(func=Ref(path=(*_, word)), args=(arg, *_)):
            yield from () if word in _DENSE else sparse_carriers(arg.value)


def makes_sparse(value: Expression) -> bool:
    """Whether a value is the result of a call named for a sparse layout."""
    return (
        isinstance(value, Call)
        and bool(_SPARSE.search(last_identifier(value.func)))
        and last_identifier(value.func) not in _DENSE
    )


def _variable(root: str, path: tuple[str, ...]) -> Variable:
    """A variable; ``self.adj`` is the same in all methods of a file."""
    return ("self" if is_self(root) and path else root, path)


def _used_as_sparse(project: ProgramIndex, path: str) -> Iterator[Variable]:
    for statement in _statements(project, path):
        if isinstance(statement, Assign) and statement.value is not None and makes_sparse(statement.value):
            yield from (each for target in statement.targets for each in sparse_carriers(target))
        for part in expressions_within(statement):
            yield from _used_as_sparse_in(part)


def _used_as_sparse_in(part: Expression) -> Iterator[Variable]:
    """``adj.coalesce()``, ``adj.is_sparse``, ``torch.sparse.mm(adj, x)``, ``is_sparse(adj)``."""
    match part:
        case Ref(roots=roots, path=(*before, word)) if word in _SPARSE_ONLY and is_own(roots[0]):
            yield _variable(roots[0], tuple(before))
        case Attribute(value=value, name=word) if word in _SPARSE_ONLY:
            yield from sparse_carriers(value)
        case Call(func=Ref(roots=roots, path=words), args=(arg, *_)) if _SPARSE.search(" ".join((*roots, *words))):
            called = last_identifier(part.func)
            if called.startswith("is_") or "sparse" in words[:-1] or roots[0].startswith("torch.sparse"):
                yield from sparse_carriers(arg.value)


def _links(project: ProgramIndex, path: str) -> Iterator[tuple[Variable, Variable]]:
    """Pairs of variables connected by an assignment, or as argument and parameter."""
    for statement in _statements(project, path):
        if isinstance(statement, Assign) and statement.value is not None:
            for target in statement.targets:
                yield from (
                    (one, other) for one in sparse_carriers(target) for other in sparse_carriers(statement.value)
                )
    for site in project.calls(path):
        yield from _argument_links(project, path, site)


def _argument_links(project: ProgramIndex, path: str, site: CallSite) -> Iterator[tuple[Variable, Variable]]:
    for name in site.names:
        for function in project.resolver.functions(name) if path_of(name) == path else ():
            for arg, param in project.resolver.call_graph.receiving(path, site.call, function):
                variable = (local_symbol(function.name, param.name), ())
                yield from ((variable, each) for each in sparse_carriers(arg.value))


def _statements(project: ProgramIndex, path: str) -> Iterator[Statement]:
    return (each for body in bodies(project.files[path]) for each in statements(body))
