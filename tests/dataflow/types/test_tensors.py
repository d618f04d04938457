"""Tensor types, and termination of their inference."""

from __future__ import annotations

import pytest

from one_file import NAME, project_of
from torchrepro_lint.dataflow.types.tensor_facts import TensorFacts
from torchrepro_lint.syntax.nodes import ExpressionStatement

ASKED = ("without_gradient", "integral", "int32", "scalar", "contiguous", "unusual")

CASES = [
    ("x", ()),
    ("x.detach()", ("without_gradient",)),
    ("x.detach().to('cuda').clone()", ("without_gradient",)),
    ("x.data", ("without_gradient",)),
    ("torch.load('x.pt')", ("without_gradient",)),
    ("x.long()", ("without_gradient", "integral")),
    ("x.long().float()", ("without_gradient",)),
    ("x.int()", ("without_gradient", "integral", "int32")),
    ("x.to(torch.int32)", ("without_gradient", "integral", "int32")),
    ("x.int().to(torch.int64)", ("without_gradient", "integral")),
    ("x.to(dtype=torch.float32)", ()),
    ("x == y", ("without_gradient", "integral")),
    ("x + y", ()),
    ("torch.tensor(3)", ("without_gradient", "integral", "scalar", "contiguous")),
    ("torch.tensor(3.0)", ("without_gradient", "scalar", "contiguous")),
    ("torch.tensor([3])", ("without_gradient", "integral", "contiguous")),
    ("torch.tensor(3).cuda().long()", ("without_gradient", "integral", "scalar", "contiguous")),
    ("torch.tensor(k)", ("without_gradient", "contiguous")),
    ("x.argmax()", ("without_gradient", "integral", "scalar")),
    ("x.argmax(0)", ("without_gradient", "integral")),
    ("torch.argmax(x)", ("without_gradient", "integral", "scalar")),
    ("torch.randn(3)", ("without_gradient", "contiguous")),
    ("torch.randn(3, requires_grad=True)", ("contiguous",)),
    ("torch.randn(3, requires_grad=k)", ("contiguous",)),
    ("torch.randn(3) < k", ("without_gradient", "integral")),
    ("torch.randn(3, requires_grad=True) >= y", ("without_gradient", "integral")),
    ("torch.randn(3, requires_grad=True) * y", ()),
    ("torch.IntTensor([1])", ("without_gradient", "integral", "int32")),
    ("x.contiguous()", ("contiguous",)),
    ("x.contiguous(memory_format=torch.channels_last)", ()),
    ("x.to_sparse()", ("unusual",)),
    ("torch.sparse_coo_tensor(x, y)", ("unusual",)),
    ("a", ("without_gradient", "contiguous")),
    ("b", ("without_gradient", "contiguous")),
    ("looping", ("without_gradient", "contiguous")),
]


@pytest.mark.parametrize(("expression", "known"), CASES)
def test_what_is_known(expression: str, known: tuple[str, ...]) -> None:
    source = (
        "import torch\na = torch.zeros(3)\nb = torch.zeros(3)\nb += 1\n\n\ndef f(x, y, k):\n"
        f"    looping = y\n    looping = looping.contiguous()\n    looping = looping.detach()\n    {expression}\n"
    )
    project = project_of({NAME: source})
    statement = project.files[NAME].functions[0].body[-1]
    assert isinstance(statement, ExpressionStatement)
    tensors = TensorFacts(project, NAME)
    assert tuple(word for word in ASKED if getattr(tensors, word)(statement.value)) == known
