"""All calls for the catalogue's operations on a device: the series of ``operation_calls``, and the ones here."""

from __future__ import annotations

from typing import Any

import torch

from operation_calls import (
    Case,
    F,
    Inputs,
    cells,
    convolutions,
    flat,
    index,
    interpolations,
    into,
    numbers,
    paddings,
    poolings,
    randn,
    rows,
    table,
    target,
    targets,
    vision,
)

T = "torch.Tensor."
N = "torch.nn."


def sampled(n: int) -> Inputs:
    return randn(2, 4, 5, 5), randn(2, 16 * n, 16 * n, 2).clamp(-1, 1)


def sampled_3d(n: int) -> Inputs:
    return randn(2, 4, 5, 5, 5), randn(2, 8, n, n, 3).clamp(-1, 1)


def spoken(n: int) -> Inputs:
    """Log-probabilities in time, sample and class, and targets without the blank."""
    return randn(32, 4 * n, 8).softmax(2).log(), 1 + index(7, 4 * n, 12)


def by_cudnn(speech: Any, labels: Any) -> Any:
    """The loss of cuDNN asks for concatenated 32-bit targets on the CPU, and as long inputs as there are."""
    samples = speech.shape[1]
    return F.ctc_loss(speech, labels.flatten().int().cpu(), (speech.shape[0],) * samples, (labels.shape[1],) * samples)


def natively(speech: Any, labels: Any) -> Any:
    samples = speech.shape[1]
    return F.ctc_loss(speech, labels, (speech.shape[0],) * samples, (labels.shape[1],) * samples)


def heads(n: int) -> Inputs:
    return randn(2, 4, 16 * n, 32), randn(2, 4, 16 * n, 32), randn(2, 4, 16 * n, 32)


def sparse(n: int) -> Inputs:
    return (randn(2, 16 * n, 16 * n).relu(), randn(2, 16 * n, 16))


def graph(n: int) -> Inputs:
    """Features of each node and an adjacency matrix with many neighbours; dense, since a case's inputs are strided."""
    return randn(128 * n, 16), (index(8, 128 * n, 128 * n) == 0).float()


def scattered(reduce: str) -> Case:
    return Case(
        f"{T}scatter_reduce", cells, lambda x, i, s: x.scatter_reduce(0, i, s, reduce), {"reduce": reduce, "dim": 0}
    )


def index_reduced(reduce: str) -> Case:
    return Case(f"{T}index_reduce", rows, lambda x, i, s: x.index_reduce(0, i, s, reduce), {"reduce": reduce})


def put(accumulate: bool) -> Case:
    return Case(f"{T}put_", into, lambda x, i, s: x.clone().put_(i, s, accumulate), {"accumulate": accumulate})


def looked_up(align: bool) -> Case:
    known = {"mode": "bilinear", "padding_mode": "zeros", "align_corners": align, "input.ndim": 4}
    return Case(
        f"{N}functional.grid_sample", sampled, lambda x, g: F.grid_sample(x, g, align_corners=align), known, leaves=2
    )


SPARSE = {"input.layout": "sparse", "program.CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
SECOND = {"other.layout": "sparse", "program.CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
UNSET = {"program.CUBLAS_WORKSPACE_CONFIG": ""}
LABELS = {"reduction": "mean", "input.target": "class indices"}

CASES = (
    *convolutions(),
    *paddings(),
    *interpolations(),
    *poolings(),
    looked_up(align=True),
    looked_up(align=False),
    Case(
        f"{N}functional.grid_sample",
        sampled_3d,
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        {"align_corners": False, "input.ndim": 5},
        leaves=2,
    ),
    Case(
        "torch.stft",
        lambda n: (randn(2, 256 * n), torch.hann_window(64)),
        lambda x, window: torch.stft(x, 64, window=window, return_complex=True),
        {"center": True, "pad_mode": "reflect"},
    ),
    # losses, embeddings, attention
    Case(f"{N}NLLLoss", target, F.nll_loss, {"input.ndim": 2, "reduction": "mean"}),
    Case(f"{N}NLLLoss", targets, F.nll_loss, {"input.ndim": 4, "reduction": "mean"}),
    Case(f"{N}CrossEntropyLoss", targets, F.cross_entropy, {"input.ndim": 4, **LABELS}),
    Case(f"{N}CTCLoss", spoken, natively, {"program.cudnn_ctc": False}),
    Case(f"{N}CTCLoss", spoken, by_cudnn, {"program.cudnn_ctc": True}),
    Case(f"{N}Embedding", lambda n: (randn(16, 33), index(16, 4096 * n)), lambda w, i: F.embedding(i, w)),
    Case(
        f"{N}EmbeddingBag",
        lambda n: (randn(16, 33), index(16, 128 * n, 4)),
        lambda w, i: F.embedding_bag(i, w, mode="max"),
        {"mode": "max"},
    ),
    Case(
        f"{N}EmbeddingBag",
        lambda n: (randn(16, 33), index(16, 128 * n, 4)),
        lambda w, i: F.embedding_bag(i, w, mode="mean"),
        {"mode": "mean"},
    ),
    Case(f"{N}functional.scaled_dot_product_attention", heads, F.scaled_dot_product_attention, {}, leaves=3),
    Case(
        f"{N}functional.scaled_dot_product_attention",
        heads,
        F.scaled_dot_product_attention,
        {"program.warn_only": True},
        leaves=3,
    ),
    # scattering and indexing
    Case("torch.gather", cells, lambda x, i, s: torch.gather(x, 0, i), {"input.ndim": 2}),
    Case("torch.gather", into, lambda x, i, s: torch.gather(x, 0, i), {"input.ndim": 1}),
    Case("torch.index_add", rows, lambda x, i, s: torch.index_add(x, 0, i, s)),
    Case("torch.index_select", rows, lambda x, i, s: torch.index_select(x, 0, i)),
    Case("torch.repeat_interleave", rows, lambda x, i, s: torch.repeat_interleave(x, i[:16], 0), {"repeats": "tensor"}),
    Case("torch.repeat_interleave", rows, lambda x, i, s: torch.repeat_interleave(x, 300, 0), {"repeats": 300}),
    Case("torch.take", into, lambda x, i, s: torch.take(x, i)),
    Case(f"{T}index_copy", rows, lambda x, i, s: x.index_copy(0, i, s)),
    Case(f"{T}index_put", rows, lambda x, i, s: x.index_put((i,), s), {"accumulate": False}),
    Case(f"{T}scatter_add_", cells, lambda x, i, s: x.clone().scatter_add_(0, i, s), {"input.ndim": 2}),
    Case(f"{T}scatter_add_", into, lambda x, i, s: x.clone().scatter_add_(0, i, s), {"input.ndim": 1}),
    Case(f"{T}scatter", cells, lambda x, i, s: x.scatter(0, i, s), {"src": "tensor", "reduce": "none"}),
    Case(
        f"{T}scatter",
        cells,
        lambda x, i, s: x.scatter(0, i, s, reduce="multiply"),
        {"src": "tensor", "reduce": "multiply"},
    ),
    *map(scattered, ("sum", "mean", "prod", "amax", "amin")),
    *map(index_reduced, ("prod", "mean", "amax", "amin")),
    put(accumulate=False),
    put(accumulate=True),
    # reductions and order
    Case("torch.cummax", numbers, lambda x: torch.cummax(x, 0)[0]),
    Case("torch.cummin", numbers, lambda x: torch.cummin(x, 0)[0]),
    Case("torch.cumsum", flat, lambda x: torch.cumsum(x, 0), {"input.dtype": "floating"}),
    Case("torch.histc", numbers, lambda x: torch.histc(x, 9), {"input.dtype": "floating"}),
    Case("torch.histc", numbers, lambda x: torch.histc(x.long(), 9), {"input.dtype": "integer"}, cpu=False),
    Case("torch.bincount", into, lambda x, i, s: torch.bincount(i, s), {"weights": "tensor"}),
    Case("torch.bincount", into, lambda x, i, s: torch.bincount(i)),
    Case("torch.median", table, lambda x: torch.median(x, 0), {"dim": 0}),
    Case("torch.nanmedian", table, lambda x: torch.nanmedian(x, 0), {"dim": 0}),
    Case("torch.kthvalue", table, lambda x: torch.kthvalue(x, 5, 0)),
    Case("torch.topk", numbers, lambda x: torch.topk(x, 100)),
    Case("torch.sort", numbers, torch.sort, {"stable": False}),
    # memory
    Case("torch.empty", numbers, lambda x: torch.empty(x.shape, device=x.device)),
    Case("torch.empty_like", numbers, torch.empty_like),
    Case("torch.empty_strided", numbers, lambda x: torch.empty_strided(x.shape, (1,), device=x.device)),
    Case("torch.empty_permuted", numbers, lambda x: torch.empty_permuted(x.shape, (0,), device=x.device)),
    # products
    Case("torch.mm", lambda n: (randn(16 * n, 16 * n),), lambda x: torch.mm(x, x), UNSET),
    Case("torch.mv", lambda n: (randn(16 * n, 16 * n),), lambda x: torch.mv(x, x[0]), UNSET),
    Case("torch.bmm", lambda n: (randn(2, 16 * n, 16 * n),), lambda x: torch.bmm(x, x), UNSET),
    Case(
        "torch.bmm",
        sparse,
        lambda x, y: torch.bmm(x.to_sparse(), y),
        SPARSE,
    ),
    Case("torch.sparse.mm", graph, lambda x, a: torch.sparse.mm(a.to_sparse(), x)),
    Case("torch.sparse.addmm", graph, lambda x, a: torch.sparse.addmm(x, a.to_sparse(), x)),
    Case("torch.mm", graph, lambda x, a: torch.mm(a.to_sparse(), x), SPARSE),
    Case("torch.mm", graph, lambda x, a: torch.mm(x.t(), a.to_sparse()), SECOND),
    Case("torch.mm", graph, lambda x, a: torch.mm(a.to_sparse(), a.to_sparse()).to_dense(), {**SPARSE, **SECOND}),
    Case("torch.sparse.mm", graph, lambda x, a: torch.sparse.mm(a.to_sparse(), a.to_sparse()).to_dense(), SECOND),
    Case("torch.matmul", graph, lambda x, a: torch.matmul(a.to_sparse(), x), SPARSE),
    Case("torch.matmul", graph, lambda x, a: torch.matmul(x.t(), a.to_sparse()), SECOND),
    Case(
        "torch.matmul", graph, lambda x, a: torch.matmul(a.to_sparse(), a.to_sparse()).to_dense(), {**SPARSE, **SECOND}
    ),
    Case("torch.mv", graph, lambda x, a: torch.mv(a.to_sparse(), x[:, 0]), SPARSE),
    Case(f"{N}functional.linear", graph, lambda x, a: F.linear(a.to_sparse(), x.t()), SPARSE),
    *vision(),
)
