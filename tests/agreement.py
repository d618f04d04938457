"""Differential check of type inference: inferred types of local variables against their values at run time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch

from torchrepro_lint.dataflow.types.bindings import FLOW, MODES
from torchrepro_lint.dataflow.types.inference import type_inference
from torchrepro_lint.dataflow.types.lattice import AbstractValue
from torchrepro_lint.source.text import Lines
from torchrepro_lint.syntax.nodes import Loop, Ref, Statement, With
from torchrepro_lint.syntax.visitor import bodies, statements
from torchrepro_lint.trace.traces import Traces

# So many values of one variable at one line are looked at.
_MOST_VALUES = 4
_MOST_ITEMS = 5


class Contradiction(NamedTuple):
    """A variable at a row of a file: what inference says of it, and what is wrong with that."""

    path: str
    row: int
    variable: str
    said: AbstractValue
    wrong: str


class Recorder:
    """What local variables are at each line of some files that runs. Values are judged at once: they may change later."""

    def __init__(self, project: Traces, files: Mapping[str, str], texts: Mapping[str, str]) -> None:
        self.contradictions: list[Contradiction] = []
        self.compared = 0
        self._kinds = type_inference(project)
        self._files = dict(files)  # by the name that Python knows them by: the project's
        self._rows = {path: rows(project, path, text) for path, text in texts.items()}
        self._seen: dict[tuple[str, int, str], int] = {}
        self._said: dict[tuple[str, int], list[tuple[str, AbstractValue]]] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch what runs inside."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        path = self._files.get(frame.f_code.co_filename)
        if path is None or event != "call" or frame.f_code.co_name.startswith("<"):
            return None

        def line(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
            if event == "line":
                self._look(path, frame)
            return line

        return line

    def _look(self, path: str, frame: FrameType) -> None:
        row, values = frame.f_lineno, frame.f_locals
        for word, said in self._said_at(path, row):
            key = (path, row, word)
            if word not in values or self._seen.get(key, 0) >= _MOST_VALUES:
                continue
            self._seen[key] = self._seen.get(key, 0) + 1
            self.compared += bool(said.kind)
            if wrong := contradiction(said, values[word]):
                self.contradictions.append(Contradiction(path, row, word, said, wrong))

    def _said_at(self, path: str, row: int) -> list[tuple[str, AbstractValue]]:
        """What inference says of the variables where the statement of a row begins."""
        key = (path, row)
        if key not in self._said:
            statement = self._rows[path].get(row)
            found = [] if statement is None else list(self._variables(path, statement))
            self._said[key] = found
        return self._said[key]

    def _variables(self, path: str, statement: Statement) -> Iterator[tuple[str, AbstractValue]]:
        sys_trace = sys.gettrace()
        sys.settrace(None)
        try:
            for root in self._kinds.program_point(path, statement.start).env:
                if root not in (FLOW, MODES):
                    said = self._kinds.of(path, Ref(statement.start, statement.start, (root,), (), 0), statement.start)
                    yield root.rpartition(".")[2], said
        finally:
            sys.settrace(sys_trace)


def rows(project: Traces, path: str, text: str) -> dict[int, Statement]:
    """The statement that begins in each row, but for those whose row Python comes back to: loops and ``with``."""
    lines, found = Lines(text), {}
    for body in bodies(project.files[path]):
        for statement in statements(body):
            found.setdefault(lines.position(statement.start).row, statement)
    return {row: each for row, each in found.items() if not isinstance(each, Loop | With)}


def contradiction(said: AbstractValue, value: object, depth: int = 3) -> str:
    """What is wrong with what is said of a value; empty where nothing is. None fits everything but what holds for None."""
    if value is None or (not said.kind and not isinstance(value, torch.Tensor)):
        return ""
    if said.is_tensor or (not said.kind and isinstance(value, torch.Tensor)):
        return _of_tensor(said, value)
    if said.kind == "loaded":
        return "needs a gradient" if isinstance(value, torch.Tensor) and value.requires_grad else ""
    test = _KINDS.get(said.kind)
    if test is not None and not test(value):
        return f"is a {type(value).__name__}"
    if said.value is not None and said.kind in ("int", "float", "str", "bool") and not _same(said.value, value):
        return f"is {value!r}"
    return _of_items(said, value, depth) if depth else ""


def _same(said: object, value: object) -> bool:
    both_nan = isinstance(said, float) and isinstance(value, float) and math.isnan(said) and math.isnan(value)
    return both_nan or said == value


def _of_items(said: AbstractValue, value: Any, depth: int) -> str:
    if said.kind in ("list", "tuple") and said.items is not None:
        if len(said.items) != len(value):
            return f"has {len(value)} items"
        pairs: Iterable[tuple[AbstractValue, object]] = zip(said.items, value, strict=True)
    elif said.contents is not None and said.kind in ("list", "tuple", "set", "frozenset", "dict"):
        elements = list(value.values()) if said.kind == "dict" else list(value)
        pairs = [(said.contents, each) for each in elements[:_MOST_ITEMS]]
    else:
        return ""
    for at, (each, item) in enumerate(pairs):
        if each.kind == "nothing":
            return f"[{at}] is there"
        if wrong := contradiction(each, item, depth - 1):
            return f"[{at}] {wrong}"
    return ""


def _of_tensor(said: AbstractValue, value: object) -> str:
    if not isinstance(value, torch.Tensor):
        return f"is a {type(value).__name__}"
    if said.kind == "parameter" and not isinstance(value, torch.nn.Parameter):
        return "is no parameter"
    checks = {
        f"is {value.dtype}": not said.dtype or f"torch.{said.dtype}" == str(value.dtype),
        f"is of {_family(value)}": not said.family or said.family == _family(value),
        f"has {value.ndim} dimensions": said.min_ndim <= value.ndim
        and (said.max_ndim is None or value.ndim <= said.max_ndim),
        f"has the sizes {tuple(value.shape)}": said.sizes is None or _fit(said.sizes, tuple(value.shape)),
        f"is on {value.device.type}": not said.device or said.device == value.device.type,
        "needs a gradient": said.grad is not False or not value.requires_grad or not torch.is_grad_enabled(),
        "is not contiguous": said.layout != "contiguous" or value.is_contiguous(),
        "is not sparse": said.layout != "sparse" or value.layout != torch.strided,
    }
    return next((wrong for wrong, fine in checks.items() if not fine), "")


def _fit(said: tuple[int | None, ...], sizes: tuple[int, ...]) -> bool:
    return len(said) == len(sizes) and all(a is None or a == b for a, b in zip(said, sizes, strict=True))


def _family(value: torch.Tensor) -> str:
    if value.dtype == torch.bool:
        return "bool"
    return "floating" if value.is_floating_point() else "complex" if value.is_complex() else "integer"


_GENERATORS = (torch.Generator, np.random.Generator, np.random.RandomState)
_KINDS: dict[str, Callable[[object], bool]] = {
    **{kind.__name__: (lambda value, kind=kind: isinstance(value, kind)) for kind in (int, str, bool, bytes)},  # type: ignore[misc]
    **{kind.__name__: (lambda value, kind=kind: isinstance(value, kind)) for kind in (list, tuple, dict, frozenset)},  # type: ignore[misc]
    "float": lambda value: isinstance(value, float | int),  # as annotations have it
    "set": lambda value: isinstance(value, set | frozenset),
    "ndarray": lambda value: isinstance(value, np.ndarray | np.generic),
    "path": lambda value: isinstance(value, PurePath),
    "module": lambda value: isinstance(value, torch.nn.Module),
    "generator": lambda value: isinstance(value, _GENERATORS) or type(value).__name__ == "Random",
    "dtype": lambda value: isinstance(value, torch.dtype | np.dtype | type),
    "device": lambda value: isinstance(value, torch.device | str | int),
    "iterator": lambda value: hasattr(value, "__iter__") or hasattr(value, "__getitem__"),
    "function": lambda value: callable(value) or isinstance(value, ModuleType),  # a dotted name may be either
    "class": lambda value: isinstance(value, type),
    "loader": lambda value: isinstance(value, torch.utils.data.DataLoader),
    "dataset": lambda value: isinstance(value, torch.utils.data.Dataset),
}


def texts_of(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Texts of files by their names below a root."""
    return {name: (root / name).read_text(encoding="utf-8") for name in names}
