"""Each row of the table of tensor operations against torch: on random tensors, what is inferred is unknown or what torch returns."""

from __future__ import annotations

import ast
import contextlib
import random
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import installed

torch = installed.torch("2.13")

from agreement import contradiction  # noqa: E402  it needs torch
from one_file import NAME, project_of  # noqa: E402
from tensor_calls import CALLS, Drawn, tensors  # noqa: E402
from torchrepro_lint.dataflow.types.inference import type_inference  # noqa: E402
from torchrepro_lint.dataflow.types.lattice import AbstractValue  # noqa: E402
from torchrepro_lint.source.files import read_table  # noqa: E402
from torchrepro_lint.syntax.nodes import ExpressionStatement  # noqa: E402

ROWS = read_table("tensor_operations.toml")["operation"]
_COLUMNS = ("names", "methods", "functional", "functions", "layers", "learned")
_HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
_TRIALS = 4


class Call(NamedTuple):
    """A call with the tensors in it, what it returned, and how much of them the program shows."""

    text: str
    given: dict[str, Drawn]
    shown: str
    returned: Any


def _first(row: dict[str, Any]) -> str:
    return next(row[column][0] for column in _COLUMNS if column in row)


@pytest.mark.parametrize("row", ROWS, ids=_first)
def test_what_is_inferred_is_unknown_or_what_torch_returns(row: dict[str, Any]) -> None:
    calls = [call for column in _COLUMNS for name in row.get(column, ()) for call in _calls(row, column, name)]
    wrong = [
        (
            call.text,
            call.shown,
            {word: each.exact for word, each in call.given.items() if word in _words(call.text)},
            said,
        )
        for call, value in zip(calls, _inferred(calls), strict=True)
        if (said := contradiction(value, call.returned))
    ]
    assert wrong == []


@pytest.mark.parametrize("row", ROWS, ids=_first)
def test_everything_is_known_of_a_simple_call(row: dict[str, Any]) -> None:
    for column in _COLUMNS:
        for name in row.get(column, ()):
            calls = list(_simple(row, column, name))
            assert calls or name in _NOT_RUN, name
            for call, value in zip(calls, _inferred(calls), strict=True):
                assert _unknown(value, call.returned) <= _UNKNOWN.get(_first(row), set()) | _UNKNOWN_OF.get(
                    column, set()
                ), call.text


# What is not run here: it needs a device, a file, or a pinned memory; or agreement knows no such tensors.
_NOT_RUN = {
    *(
        "cuda",
        "torch.cuda.sparse.FloatTensor",
        "pin_memory",
        "torch.nested.nested_tensor",
        "torch.nested.as_nested_tensor",
        "torch.load",
    ),
    *(
        "torch.hub.load_state_dict_from_url",
        "torchvision.models.utils.load_state_dict_from_url",
        "torch.utils.model_zoo.load_url",
        "safetensors.torch.load_file",
    ),
}
# The fields of results that are not known even where those of the arguments are, by the first name of the row. The default
# dtype is that of the program; a layer may have been cast or moved, and its parameters need a gradient.
_DEFAULT_DTYPE = (
    "torch.zeros",
    "torch.full",
    "torch.linspace",
    "torch.eye",
    "torch.tensor",
    "torch.as_tensor",
    "histc",
)
_UNKNOWN = {
    **{key: {"dtype"} for key in _DEFAULT_DTYPE},
    **{key: {"rank"} for key in ("Bilinear", "LSTM", "unfold", "values", "torch.from_numpy")},
    **{f"torch.sparse_{layout}_tensor": {"rank", "device", "gradient"} for layout in ("coo", "csr")},
    "torch.sparse.FloatTensor": {"rank", "gradient"},
    "torch.nn.Parameter": {"device", "gradient"},
    "torch.quantize_per_tensor": {"dtype", "family"},
}
_UNKNOWN_OF = {"layers": {"dtype"}, "learned": {"dtype", "gradient"}}


def _unknown(value: AbstractValue, returned: object) -> set[str]:
    """The fields of a result of which nothing is known."""
    if isinstance(returned, tuple | list) and returned and isinstance(returned[0], torch.Tensor):
        return _unknown(value.items[0] if value.items else value.element, returned[0])
    if not isinstance(returned, torch.Tensor):
        return set() if value.kind else {"kind"}
    known = {
        "kind": value.kind,
        "family": value.family,
        "dtype": value.dtype,
        "rank": value.ndim is not None,
        "device": value.device,
        "gradient": value.grad is False,
    }
    return {field for field, one in known.items() if not one}


def _calls(row: dict[str, Any], column: str, name: str) -> Iterator[Call]:
    """The calls of an operation on random tensors that torch accepts."""
    chance = random.Random(name)
    for text in _texts(row, column, name):
        for trial in range(_TRIALS):
            given = tensors(chance, {"x", *_words(text)}, simple=False)
            filled = _filled(text, given["x"].value, chance)
            yield from _run(filled, given, ("exact", "ranked", "tensor", "nothing")[trial % 4], chance)


def _simple(row: dict[str, Any], column: str, name: str) -> Iterator[Call]:
    """The first call of an operation that torch accepts with simple tensors."""
    chance = random.Random(name)
    for whole in (False, True):
        for text in _texts(row, column, name):
            given = tensors(chance, {"x", *_words(text)}, simple=True, whole=whole)
            for call in _run(_filled(text, given["x"].value, None), given, "exact", chance):
                yield call
                return


def _texts(row: dict[str, Any], column: str, name: str) -> Iterator[str]:
    """The calls of an operation, with placeholders for dimensions."""
    layers = column in ("layers", "learned")
    key = row[column][0] if layers and row[column][0] in CALLS else _first(row)
    for n in (1, 2, 3) if "{n}" in name else (2,):
        word = name.replace("{n}", str(n))
        for each in CALLS[key].split("; "):
            filters = f"{'back' if 'transpose' in name else 'filters'}{n}"
            arguments = each.replace("{n}", str(n)).replace("{filters}", filters)
            if layers:
                yield f"nn.{word}{arguments}"
            elif column == "functional":
                yield f"F.{word}({arguments})"
            elif column == "functions":
                yield f"{word}({arguments})"
            else:
                if column == "names":
                    yield from (f"{module}.{word}({arguments})" for module in ("torch", "F", "torch.special"))
                first, rest = _parted(arguments)
                yield f"{first}.{word}({rest})"


def _parted(arguments: str) -> tuple[str, str]:
    """The first argument, and the others."""
    text = arguments.replace("{", "(").replace("}", ")")
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    end = call.args[0].end_col_offset - 2 if call.args else 0
    return arguments[:end] or "x", arguments[end:].lstrip(", ")


def _filled(text: str, x: torch.Tensor, chance: random.Random | None) -> str:
    """The text of a call, its placeholders replaced."""
    dims = list(range(-x.dim(), x.dim())) or [0]
    one, other = (1, 0) if chance is None else (chance.choice(dims), chance.choice(dims))
    for word, value in {"d": one, "e": other, "count": x.numel()}.items():
        text = text.replace(f"{{{word}}}", str(value))
    return text


def _run(text: str, given: dict[str, Drawn], shown: str, chance: random.Random) -> Iterator[Call]:
    """The call with what it returns, if torch accepts it."""
    values = {word: each.value for word, each in given.items()}
    names = {**values, "torch": torch, "F": torch.nn.functional, "nn": torch.nn, "n": chance.randrange(3)}
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # What is changed in place must be no leaf.
        names |= {word: each.clone() if each.requires_grad and "_(" in text else each for word, each in values.items()}
        returned = eval(text, names)
        if not _is_limit(text, shown, returned):
            yield Call(text, given, shown, returned)


def _is_limit(text: str, shown: str, returned: Any) -> bool:
    """Whether something wrong may be inferred: of what hardly occurs, if its dtype or kind is not known."""
    if not isinstance(returned, torch.Tensor) or returned.is_nested:
        return isinstance(returned, torch.Tensor)
    hidden = shown in ("tensor", "nothing")
    of_bytes = bool(re.search(r"\b(any|all)\(", text)) and returned.dtype == torch.uint8
    of_tensor = text.startswith(("torch.tensor(x", "torch.as_tensor(x", "torch.asarray(x"))
    # A method in place makes a tensor of integers need a gradient, if the argument does.
    return (hidden and (of_bytes or of_tensor)) or (returned.requires_grad and not _can_need_gradient(returned))


def _can_need_gradient(what: torch.Tensor) -> bool:
    return what.is_floating_point() or what.is_complex()


def _inferred(calls: list[Call]) -> Iterator[AbstractValue]:
    """What is inferred of each call."""
    project = project_of({NAME: _HEAD + "".join(_function(number, call) for number, call in enumerate(calls))})
    inference = type_inference(project)
    for function in project.files[NAME].functions:
        statement = function.body[-1]
        assert isinstance(statement, ExpressionStatement)
        yield inference.of(NAME, statement.value)


def _function(number: int, call: Call) -> str:
    words = [word for word in call.given if word in _words(call.text)]
    if call.shown == "nothing":
        return f"def f{number}({', '.join([*words, 'n'])}):\n    {call.text}\n"
    if call.shown == "tensor":
        return f"def f{number}({', '.join([*(f'{word}: torch.Tensor' for word in words), 'n'])}):\n    {call.text}\n"
    lines = [f"    {word} = {getattr(call.given[word], call.shown)}\n" for word in words]
    return f"def f{number}(n):\n{''.join(lines)}    {call.text}\n"


def _words(text: str) -> set[str]:
    return {
        node.id for node in ast.walk(ast.parse(text.replace("{", "(").replace("}", ")"))) if isinstance(node, ast.Name)
    }
