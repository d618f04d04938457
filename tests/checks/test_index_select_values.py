"""The fix of TRL401 preserves values, shapes and gradients: the fixed text is run by torch.

Small shapes hide the faults: from 32,768 gathered elements on torch's CPU kernels take other ways.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import installed
from one_file import findings, fixed
from torchrepro_lint.checks.index_select import check

torch = installed.torch()

FORMS = (
    "x.index_select({dim}, i)",
    "x.index_select(index=i, dim={dim})",
    "torch.index_select(x, {dim}, i)",
    "torch.index_select(input=x, index=i, dim={dim})",
    "torch.index_select(x * 1, {dim}, i)",
    "torch.index_select(\n        x,  # the table\n        {dim},  # along\n        i,  # the rows\n    )",
    "(x\n        .index_select({dim},\n                      i))",
)
FLOATS = ("float32", "float64", "float16", "bfloat16", "complex64")
EXACT_WHEN_REPEATED = ("float32", "float64")
_NUMBERS = count()


class Case(NamedTuple):
    """An input of a shape whose dimensions were permuted, and what is selected from it."""

    shape: tuple[int, ...]
    order: tuple[int, ...]
    dim: int
    index: tuple[int, ...]
    index_dtype: str
    dtype: str
    form: str
    dynamic: bool


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Up to four dimensions, any of them, by either sign; indices empty, unique or repeated."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    order = tuple(draw(st.permutations(range(len(shape)))))
    dim = draw(st.integers(-len(shape), len(shape) - 1))
    size = shape[order[dim]]
    index = tuple(draw(st.lists(st.integers(0, size - 1), max_size=7)))
    return Case(
        shape,
        order,
        dim,
        index,
        draw(st.sampled_from(("int64", "int32"))),
        draw(st.sampled_from(FLOATS)),
        draw(st.sampled_from(FORMS)),
        draw(st.booleans()),
    )


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(cases())
def test_values_shapes_and_gradients_are_the_same(case: Case) -> None:
    _compare(case)


LARGE = [
    ((70, 600), (0, 1), 0, 70),
    ((600, 70), (1, 0), 0, 70),
    ((70, 600), (0, 1), 1, 600),
    ((70, 600), (0, 1), -2, 70),
    ((9, 70, 64), (2, 0, 1), -1, 80),
    ((9, 70, 64), (0, 2, 1), 1, 80),
    ((40_000,), (0,), -1, 33_000),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dynamic", [False, True], ids=["constant", "dynamic"])
@pytest.mark.parametrize("repeated", [False, True], ids=["unique", "repeated"])
@pytest.mark.parametrize(("shape", "order", "dim", "length"), LARGE)
def test_large_selections_are_the_same(
    shape: tuple[int, ...], order: tuple[int, ...], dim: int, length: int, repeated: bool, dynamic: bool, dtype: str
) -> None:
    size = shape[order[dim]]
    generator = torch.Generator().manual_seed(length)
    if repeated:
        index = torch.randint(max(size // 7, 1), (length,), generator=generator)
    else:
        index = torch.randperm(size, generator=generator)[:length]
    _compare(Case(shape, order, dim, tuple(index.tolist()), "int64", dtype, FORMS[0], dynamic))


def test_the_sizes_are_large_enough_to_show_the_faults() -> None:
    for shape, order, dim, length in LARGE:
        permuted = [shape[axis] for axis in order]
        size = permuted.pop(dim)
        assert min(length, size) * torch.Size(permuted).numel() >= 32_768


SCRIPTED = [
    *(("x.index_select({dim}, i)", str(dim)) for dim in (0, 1, 2, -1, -2, -3)),
    ("torch.index_select(x, {dim}, i)", "-1"),
    ("torch.index_select(x, {dim}, i)", "d"),
    ("x.index_select({dim}, i).view(-1)", "d"),
    ("x.index_select({dim}, i).view(-1)", "1"),
]


@pytest.mark.parametrize(("form", "dim"), SCRIPTED)
def test_scripted_code_still_compiles_and_gives_the_same(form: str, dim: str, tmp_path: Path) -> None:
    source = (
        "import torch\n\n\n@torch.jit.script\ndef select(x: torch.Tensor, i: torch.Tensor, d: int):\n"
        f"    return {form.format(dim=dim)}\n"
    )
    after = fixed(check, source)
    assert "index_select" not in after
    assert fixed(check, source, unsafe=False) == source, "a fix of scripted code is unsafe"
    d = int(dim) if dim != "d" else 1
    for x in (torch.randn(6, 70, 90), torch.randn(90, 6, 70).permute(1, 2, 0)):
        for dtype in (torch.int64, torch.int32):
            i = torch.tensor([0, 2, 2, 1], dtype=dtype)
            before, result = _scripted(source, tmp_path)(x, i, d), _scripted(after, tmp_path)(x, i, d)
            assert before.shape == result.shape
            assert torch.equal(before, result)


def test_a_scripted_module_still_compiles(tmp_path: Path) -> None:
    source = (
        "import torch\n\n\nclass Select(torch.nn.Module):\n    def forward(self, x, i):\n"
        "        return x.index_select(-1, i)\n\n\nselect = torch.jit.script(Select())\n"
    )
    x, i = torch.randn(3, 4), torch.tensor([1, 1, 0])
    assert torch.equal(_scripted(fixed(check, source), tmp_path)(x, i), x[:, i])


@pytest.mark.parametrize("dynamic", [False, True], ids=["constant", "dynamic"])
@pytest.mark.parametrize("form", ["x.index_select({dim}, i).view(-1)", "torch.index_select(x, {dim}, i).view(-1)"])
def test_what_is_viewed_is_laid_out_as_before(form: str, dynamic: bool) -> None:
    for dim in range(-3, 3):
        before, after = _functions(form, dim, dynamic)
        for x in (torch.randn(4, 5, 6), torch.randn(4, 5, 6).permute(2, 0, 1), torch.randn(4, 5, 6).transpose(0, 1)):
            i = torch.tensor([0, 2, 2])
            assert torch.equal(before(x, i, dim), after(x, i, dim))


def test_an_index_without_dimensions_adds_nothing_twice() -> None:
    for dim in ("0", "1", "-1", "len(x) - 3"):
        source = f"import torch\n\n\ndef select(x):\n    return x.index_select({dim}, torch.tensor(2))\n"
        assert findings(check, source) == []
        assert findings(check, source.replace("torch.tensor(2)", "torch.tensor([2, 2])"))


@pytest.mark.parametrize("dim", ["0", "1", "-1", "len(x) - 3"])
@pytest.mark.parametrize("other", ["torch.tensor([1, 1])", "torch.load('rows.pt')"])
def test_an_index_without_dimensions_on_one_way_selects_one_row(dim: str, other: str) -> None:
    """Also where nothing is known of the dimensions on the other way."""
    source = (
        f"import torch\n\n\ndef select(x):\n    return pick(x, torch.tensor(2)), lambda: pick(x, {other})\n\n\n"
        f"def pick(x, i):\n    return x.index_select({dim}, i)\n"
    )
    x = torch.randn(4, 5)
    after = fixed(check, source)
    assert "reshape(-1)" in after
    assert torch.equal(_run(source)(x)[0], _run(after)(x)[0])


@pytest.mark.parametrize("dim", [2, -3, 7])
def test_a_dimension_out_of_range_is_still_an_error(dim: int) -> None:
    for function in _functions("x.index_select({dim}, i)", dim, dynamic=True):
        with pytest.raises(IndexError):
            function(torch.randn(3, 4), torch.tensor([0]), dim)


@pytest.mark.parametrize(
    "value",
    ["torch.randn(3, 4).as_subclass(Own)", "torch.randn(3, 4, device='meta')", "torch.randn(3, 4).expand(3, 4)"],
)
def test_other_tensors_stay_what_they_are(value: str) -> None:
    class Own(torch.Tensor):
        pass

    x = eval(value, {"torch": torch, "Own": Own})
    i = torch.tensor([0, 1], device=x.device)
    for dynamic in (False, True):
        before, after = (function(x, i, -1) for function in _functions("x.index_select({dim}, i)", -1, dynamic))
        assert type(before) is type(after)
        assert (before.shape, before.dtype, before.device) == (after.shape, after.dtype, after.device)


def _compare(case: Case) -> None:
    before, after = _functions(case.form, case.dim, case.dynamic)
    unique = len(set(case.index)) == len(case.index)
    with _deterministic(not unique):
        x, i = _input(case), torch.tensor(case.index, dtype=getattr(torch, case.index_dtype))
        one, gradient = _with_gradient(before, x, i, case.dim)
        other, fixed_gradient = _with_gradient(after, x, i, case.dim)
    assert one.shape == other.shape
    assert one.dtype == other.dtype
    assert _bits(one) == _bits(other)
    if unique or case.dtype in EXACT_WHEN_REPEATED:
        assert _bits(gradient) == _bits(fixed_gradient)


@contextmanager
def _deterministic(wanted: bool) -> Iterator[None]:
    torch.use_deterministic_algorithms(wanted)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def _input(case: Case) -> Any:
    generator = torch.Generator().manual_seed(len(case.index))
    dtype = getattr(torch, case.dtype)
    wide = torch.complex64 if dtype.is_complex else torch.float64
    return torch.randn(case.shape, generator=generator, dtype=wide).to(dtype).permute(case.order)


def _with_gradient(function: Callable[..., Any], x: Any, i: Any, dim: int) -> tuple[Any, Any]:
    leaf = x.detach().requires_grad_()
    result = function(leaf, i, dim)
    weights = torch.linspace(-1, 1, result.numel(), dtype=torch.float64).reshape(result.shape).to(result.dtype)
    (gradient,) = torch.autograd.grad(result, leaf, weights)
    return result.detach(), gradient


def _bits(tensor: Any) -> bytes:
    plain = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    # Not `contiguous()`: it leaves the strides of dimensions of size 1 as they are, which `view` minds.
    fresh = torch.empty(plain.shape, dtype=plain.dtype).copy_(plain)
    return fresh.view(torch.uint8).numpy().tobytes()


def _functions(form: str, dim: int, dynamic: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function as written and as fixed."""
    source = f"import torch\n\n\ndef select(x, i, d):\n    return {form.format(dim='d' if dynamic else dim)}\n"
    return _both(source)


@lru_cache(maxsize=256)
def _both(source: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    after = fixed(check, source)
    assert "index_select(" not in after.replace("deterministic_index_select(", "")
    return _run(source), _run(after)


def _run(source: str) -> Callable[..., Any]:
    space: dict[str, Any] = {}
    exec(compile(source, "main.py", "exec"), space)
    select: Callable[..., Any] = space["select"]
    return select


def _scripted(source: str, folder: Path) -> Callable[..., Any]:
    """The function of a module on disk: TorchScript reads the file."""
    name = f"scripted_{next(_NUMBERS)}"
    file = folder / f"{name}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    select: Callable[..., Any] = module.select
    return select
