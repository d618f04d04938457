"""Tensor operations: what torch's functions, methods and layers return, as rows of shape, dtype, layout and gradient rules.

The table is ``tensor_operations.toml``, which explains its columns. The rules that the rows name are functions of type
inference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from torchrepro_lint.source.files import read_table
from torchrepro_lint.syntax.nodes import Record

# The columns with the names of operations: functions that are methods, too; methods; functions of ``torch.nn.functional``;
# functions by their full names; layers without and with parameters.
_COLUMNS = ("names", "methods", "functional", "functions", "layers", "learned")


class TensorOperation(Record, frozen=True):
    """What an operation returns; see the table for the columns. ``parameters`` are those of the rule for the shape."""

    operands: tuple[tuple[str, int], ...] = (("input", 0),)
    listed: int = -1
    variadic: int = -1
    shape: str = "same"
    parameters: Mapping[str, Any] = {}
    dtype: str = "same"
    cast: int = -1
    layout: str = "open"
    grad: str = "operands"
    device: str = ""
    result: str = "tensor"
    indices: int = -1
    function: str = ""


class TensorOperations(Record, frozen=True):
    """The rows by the names of operations, for each way to name them. ``tensor_only`` are methods that no array, data frame,
    container or module has.
    """

    names: dict[str, TensorOperation]
    methods: dict[str, TensorOperation]
    functional: dict[str, TensorOperation]
    functions: dict[str, TensorOperation]
    layers: dict[str, TensorOperation]
    learned: dict[str, TensorOperation]
    tensor_only: frozenset[str]

    def method(self, word: str) -> TensorOperation | None:
        """The row of a method of tensors."""
        return self.methods.get(word) or self.names.get(word)

    def function(self, name: str) -> TensorOperation | None:
        """The row of a function, by its qualified name."""
        if (found := self.functions.get(name)) is not None:
            return found
        module, _, word = name.rpartition(".")
        if module in ("torch.nn.functional", "torch._C._nn"):
            return self.functional.get(word) or self.names.get(word)
        if module == "torch.Tensor":
            return self.method(word)
        return self.names.get(word) if module in _MODULES else None


_MODULES = frozenset({"torch", "torch.special", "torch._C._VariableFunctions"})


@lru_cache(maxsize=1)
def tensor_operations() -> TensorOperations:
    """The rows of the table."""
    tables = read_table("tensor_operations.toml")
    found = TensorOperations({}, {}, {}, {}, {}, {}, frozenset(tables["tensor_only"]))
    for table in tables["operation"]:
        named = {column: table.pop(column, ()) for column in _COLUMNS}
        row = _row(table)
        for column, names in named.items():
            for name in names:
                getattr(found, column).update(_expanded(name, row))
    return found


def _expanded(name: str, row: TensorOperation) -> Iterator[tuple[str, TensorOperation]]:
    """The rows of a name; one with ``{n}`` stands for three, whose shape gets the number."""
    if "{n}" not in name:
        yield name, row
        return
    for n in (1, 2, 3):
        with_number = {**row.parameters, "n": n} if row.shape == "spatial" else row.parameters
        yield name.format(n=n), row._replace(parameters=with_number)


def _row(table: Mapping[str, Any]) -> TensorOperation:
    """The record of a row; further keys are the parameters of its shape."""
    known = {key: value for key, value in table.items() if key in TensorOperation.__struct_fields__}
    if "operands" in known:
        known["operands"] = tuple(known["operands"].items())
    parameters = {key: value for key, value in table.items() if key not in TensorOperation.__struct_fields__}
    return TensorOperation(**known, parameters=parameters)
