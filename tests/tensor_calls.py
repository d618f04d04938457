"""Calls of the operations in the table of tensor operations, for ``test_tensor_operations``, and random tensors for them.

``CALLS`` has the arguments of the calls of a row, separated by semicolons, by the row's first name; ``{d}`` and ``{e}`` are
dimensions, ``{n}`` is the number for which the name stands, and ``n`` is a variable of which nothing is known.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import torch

FLOATS = (torch.float32, torch.float64)
DTYPES = (*FLOATS, torch.float16, torch.complex64, torch.int64, torch.int32, torch.uint8, torch.bool)


class Drawn(NamedTuple):
    """A random tensor, and how a program makes one with its shape, dtype, gradient and strides."""

    value: torch.Tensor
    exact: str
    ranked: str


def drawn(chance: random.Random, sizes: tuple[int, ...], dtypes: tuple[torch.dtype, ...], *, simple: bool) -> Drawn:
    """A tensor of these sizes, of one of these dtypes; the simple one is contiguous and needs no gradient."""
    dtype = dtypes[0] if simple else chance.choice(dtypes)
    needs = not simple and (dtype.is_floating_point or dtype.is_complex) and chance.random() < 0.5
    swapped = not simple and len(sizes) > 1 and chance.random() < 0.3
    numbers = torch.rand(sizes[::-1] if swapped else sizes) * (1 if dtype.is_floating_point or dtype.is_complex else 3)
    made = numbers.to(dtype)
    value = (made.permute(*range(len(sizes))[::-1]) if swapped else made).requires_grad_(needs)
    words = f"dtype={dtype}, requires_grad={needs}"

    def text(one: tuple[object, ...]) -> str:
        order = ", ".join(map(str, range(len(sizes))[::-1]))
        shape = f"({', '.join(map(str, one[::-1] if swapped else one))}{',' * (len(one) == 1)})"
        return f"torch.empty({shape}, {words})" + (f".permute({order}).requires_grad_({needs})" if swapped else "")

    return Drawn(
        value, text(sizes), text(tuple("n" for _ in sizes)).replace(f"requires_grad={needs}", "requires_grad=n")
    )


def tensors(chance: random.Random, words: set[str], *, simple: bool, whole: bool = False) -> dict[str, Drawn]:
    """The tensors of these names that calls may contain; the simple ones hold floating-point or, if ``whole``, integers."""
    rank = 3 if simple else chance.randrange(5)
    sizes = tuple((2, 3, 4)[:rank]) if simple else tuple(chance.choice((1, 2, 3)) for _ in range(rank))
    less = sizes if simple else tuple(chance.choice((1, size)) for size in sizes)[chance.randrange(rank + 1) :]
    masked = sizes if simple or chance.random() < 0.5 else (2, *(1,) * rank)
    batch = 0 if simple else chance.randrange(2)
    every = (torch.int64,) if whole else DTYPES
    fixed: dict[str, tuple[tuple[int, ...], tuple[torch.dtype, ...]]] = {
        "x": (sizes, every),
        "y": (less, every),
        "z": (sizes, every),
        "m": (masked, (torch.bool,)),
        "v": ((4,), every),
        "u": ((4,), every),
        "a": ((3, 4), every),
        "b": ((4, 5), every),
        "c": ((2, 3, 4), FLOATS),
        "e": ((2, 4, 5), FLOATS),
        "o": ((2, 3, 5), FLOATS),
        "s": ((3, 5), FLOATS),
        "k": ((3, 4), FLOATS),
        "q": ((6, 4), FLOATS),
        "w": ((4,), FLOATS),
        "grid": ((2, 5, 5, 2), FLOATS[:1]),
        **{f"filters{n}": ((8, 4, *(3,) * n), FLOATS[:1]) for n in (1, 2, 3)},
        **{f"back{n}": ((4, 8, *(3,) * n), FLOATS[:1]) for n in (1, 2, 3)},
        **{f"p{n}": ((2, 4, *(6,) * n)[batch:], FLOATS[:1]) for n in (1, 2, 3)},
    }
    indices = {"i": sizes, "j": (2,), "t": (3,), "r": (4,), "ids": (2, 3)[: 2 if simple else chance.randrange(3)]}
    found = {word: drawn(chance, *fixed[word], simple=simple) for word in sorted(words & fixed.keys())}
    return {**found, **{word: _zeros(indices[word]) for word in sorted(words & indices.keys())}}


def _zeros(sizes: tuple[int, ...]) -> Drawn:
    ranked = f"({', '.join('n' for _ in sizes)}{',' * (len(sizes) == 1)})"
    texts = (f"torch.zeros({shape}, dtype=torch.int64)" for shape in (sizes, ranked))
    return Drawn(torch.zeros(sizes, dtype=torch.int64), *texts)


_UNARY = "x"
_BINARY = "x, y; x, 2; x, 2.5; x, True; y, x; x, other=y"
_REDUCTION = "x; x, {d}; x, dim={d}; x, {d}, True; x, {d}, keepdim=True; x, axis={d}; x, dim=({d}, {e}); x, dim=[{d}]; x, None; x, dim=(); x, keepdim=n; x, *[{d}]"
_POOLED = "p{n}, 2; p{n}, 2, 2; p{n}, 2, 2, 2"
_MAX_POOLED = "p{n}, 2; p{n}, 2, return_indices=True; p{n}, 2, 2, 0, 1, False, True"
_LOSS = "s, s; s, o[0]; s, s, reduction='none'; s, s, reduction='sum'; s, s, reduction=n; s, target=s"
_UNIQUE = "x; x, return_inverse=True; x, return_counts=True; x, dim={d}; x, return_inverse=True, return_counts=True; x, True, True; x, True; x, return_counts=n; x, dim={d}, return_counts=True"
_CTC = "o.log_softmax(2), torch.ones(3, 1, dtype=torch.int64), (2, 2, 2), (1, 1, 1)"

# By the first name of a row. A function is called with the arguments, a method on the first of them; a layer is constructed
# and called.
CALLS = {
    "neg": "x; x, 0.5, True; x, 0.1, 20; x, 1, 0, 5; a.to_sparse()",
    "abs": _UNARY,
    "square": _UNARY,
    "exp": _UNARY,
    "isnan": _UNARY,
    "zero_": _UNARY,
    "flip": "x, ({d},); x; x, 1; x, 1, {d}; x, dims=[{d}]; x, {d}",
    "softmax": "x, {d}; x, dim={d}; x, {d}, dtype=torch.float64; x, {d}, torch.float32",
    "cumsum": "x, {d}; x, dim={d}; x, {d}, dtype=torch.float32",
    "detach": _UNARY,
    "contiguous": "x; x, memory_format=torch.channels_last",
    "to": "x, torch.float64; x, torch.int32; x, 'cpu'; x, torch.device('cpu'); x, y; x, 'cpu', torch.bool; x, dtype=torch.float16; x, device='cpu'; x, other=y; x, y.device; x, y.dtype; x, n; x, 'cpu', copy=True",
    "type": "x, torch.float64; x; x, dtype=torch.int64; x, torch.bool",
    "type_as": "x, y",
    "requires_grad_": "x, False; x; x, True; x, requires_grad=n",
    "add": _BINARY,
    "pow": "x, y; x, 2; x, 0.5; x, exponent=y",
    "div": f"{_BINARY}; x, y, rounding_mode='floor'; x, 2, rounding_mode='trunc'; x, y, rounding_mode=n",
    "eq": _BINARY,
    "clamp": "x, 0, 1; x, 0.5; x, min=0.5; x, max=y; x, y, z; x, None, 2; x, min=n",
    "clamp_min": "x, 0; x, 0.5; x, y; x, min=0.5",
    "clamp_max": "x, 0; x, 0.5; x, y; x, max=0.5",
    "lerp": "x, z, 0.5; x, y, z; y, x, 0.5; x, end=y, weight=0.5",
    "addcmul": "x, z, z; x, y, z; y, x, z; x, z, z, value=2; x, tensor1=y, tensor2=z",
    "masked_fill": "x, m, 0.0; x, m, 1; x, m, z.sum(); x, mask=m, value=2; x, z > 0, -1",
    "masked_scatter": "x, m, z; x, m, source=z",
    "where": "m, x, z; m, x, y; m, x, 0.0; m, 1, x; m; x; m, 1.0, 2.0",
    "prelu": "p2, w; p2, weight=w",
    "index_fill": "x, {d}, j, 1.0; x, {d}, j, z.sum(); x, {d}, j, value=2",
    "copy_": "x, z; x, y",
    "fill_": "x, 1.0; x, z.sum()",
    "masked_fill_": "x, m, 0.0; x, m, z.sum()",
    "masked_scatter_": "x, m, z",
    "scatter": "x, {d}, i, z; x, {d}, i, 1.0; x, dim={d}, index=i, src=z; x, {d}, i, value=2; x, {d}, i, z, 'sum'; x, {d}, i, z, reduce='amax'; x, {d}, j[:1], z; x, {d}, j, source=z; a, 0, j, s[:2, :4]; a, 0, j, k[:2]; a, 0, j, source=k[:2]; a, 0, j, k[:2], 'mean'; a, 0, j, source=k[:2], reduce='amax'",
    "index_put": "x, (i,), z.sum(); v, (j,), u[:2]; v, indices=(j,), values=u[:2], accumulate=True",
    "put": "x, i, z; x, i, source=z",
    "batch_norm": "p2, None, None, w, w, True; p2, w.detach(), w.detach() + 1; p2, None, None, weight=w, use_input_stats=True",
    "layer_norm": "c, (4,), w, w; c, 1, r.float(); p2, 2; p2, 4, w, w; c, (4,); c, [4], weight=w; p2, 2, weight=w",
    "sum": f"{_REDUCTION}; x, dtype=torch.float64; x, {{d}}, dtype=torch.int32; x, dtype=y.dtype; x, *[{{d}}], dtype=torch.int64",
    "mean": f"{_REDUCTION}; x, dtype=torch.float64; x, {{d}}, dtype=torch.float64",
    "logsumexp": "x, {d}; x, dim={d}, keepdim=True; x, ({d}, {e})",
    "norm": "x; x, 2; x, 2, {d}; x, 1, {d}, True; x, dim={d}; x, dim=({d}, {e}); x, 2, {d}, dtype=torch.float64",
    "any": _REDUCTION,
    "argmax": "x; x, {d}; x, dim={d}; x, {d}, True; x, dim={d}, keepdim=True; x, None",
    "max": "x; x, {d}; x, dim={d}; x, {d}, True; x, z; x, y; x, other=y; x, dim={d}, keepdim=n",
    "kthvalue": "x, 1, {d}; x, 1; x, 1, {d}, True; x, k=1, dim={d}; x, 1, keepdim=True",
    "cummax": "x, {d}; x, dim={d}; x, {d}, True; x, dim={d}, descending=True; x",
    "topk": "x, 1; x, 1, {d}; x, k=1, dim={d}, largest=False",
    "argsort": "x; x, {d}; x, {d}, True; x, stable=True, dim={d}",
    "torch.bucketize": "x, v; x, v, out_int32=True; x, v, right=True; 3, v",
    "torch.searchsorted": "v, x; v, x, out_int32=True; v, 3; v, input=x",
    "bincount": "r; r, w; r, weights=r; r, minlength=3; r, None, 5",
    "histc": "c; c, 5; x, bins=3, min=0, max=1",
    "cross_entropy": "s, t; s, t, reduction='none'; s, s; s, t, reduction=n; s, t, None, None; s, target=t, reduction='sum'; o.log_softmax(2), torch.ones(3, 1, dtype=torch.int64), (2, 2, 2), (1, 1, 1)",
    "mse_loss": f"{_LOSS}; x, z",
    "margin_ranking_loss": "s, s, s; s, s, s, reduction='none'; s, s, target=s, margin=1.0",
    "CrossEntropyLoss": "()(s, t); ()(s, s); (reduction='none')(s, t); (reduction='sum')(s, s); (reduction=n)(s, t); ()(o.log_softmax(2), torch.ones(3, 1, dtype=torch.int64), (2, 2, 2), (1, 1, 1)); ()(w, w, w); ()(s, s, s); ()(s, s, torch.ones(3)); ()(s, torch.zeros(3, 5, dtype=torch.int64))",
    "view": "x, -1; x, {count}; x, ({count},); x, 1, -1; x, (1, -1); x, [-1, 1]; x, z.shape; x, *z.shape; x, z.size(); x, -1, x.size(-1); x, torch.int32; x, n; x, (); x, shape=(-1,); x, dtype=torch.float32",
    "view_as": "x, z; y, x; x, other=z",
    "expand": "x, (5, 2, 3, 4); x, 2, *x.shape; x, x.shape; y, x.shape; y, *x.shape; x, 5, -1, -1, -1; x, (2, 2, 3, 4); a, -1, -1; x, n",
    "repeat": "x, 2, 1, 1; x, 2; x, (1, 2, 1, 1); x, 1, 2, 1, 1, 1; x, [2]; x, repeats=(1, 1, 1, 2); x, dims=(2,)",
    "flatten": "x; x, 1; x, {d}; x, 0, {d}; x, start_dim={d}; x, end_dim=-2; x, -2; x, n",
    "Flatten": "()(x); (0)(x); (start_dim=2)(x); (1, -2)(x); (n)(x)",
    "unflatten": "x, 0, (2, 1); a, 1, (2, 2); a, -1, (2, -1); a, dim=0, sizes=(3, 1); a, 1, (2, n)",
    "squeeze": "x; x, {d}; x, dim={d}; x, ({d}, {e}); x, n",
    "unsqueeze": "x, {d}; x, dim=0; x, -1; x, n",
    "permute": "c, 2, 0, 1; c, (0, 2, 1); c, (2, -2, 0); x, *range(x.dim()); c, dims=(2, 1, 0); c, n",
    "transpose": "x, {d}, {e}; x, 0, 1; x, -1, -2; x, dim0={d}, dim1={e}; x, axis0={d}, axis1={e}; x, 0, n",
    "t": "a; v; x",
    "rot90": "x, 1, 1, 1; x; x, 1, 0, 1; x, 1, (0, 1); x, {d}, {e}; x, {d}, j[:1]; x, {d}",
    "chunk": "x, 2; x, 2, {d}; x, 1, dim={d}; x, (1, 1), {d}; a, [1, 3], 1; v, (3, 1)",
    "unbind": "x; x, {d}; x, dim={d}",
    "select": "x; x, {d}, 0; x, 0, {d}, {e}; x, dim={d}, index=0; x, offset=0, dim1={d}, dim2={e}",
    "diag_embed": "x; x, {d}, 1, 1; x, 0, -2, -1",
    "diag": "a; v; a, 1",
    "gather": "x, {d}, i; x, dim={d}, index=i; a, 0, ids",
    "take": "x, i; x, j; x, index=ids",
    "masked_select": "x, m; x, z > 0; x, mask=m",
    "repeat_interleave": "x, 2; x, 2, {d}; x, repeats=2, dim={d}; r; v, r; a, r[:3], 0; r, output_size=0",
    "nonzero": "x; x, as_tuple=True; x, as_tuple=False; x, as_tuple=n",
    "unique": _UNIQUE,
    "unique_consecutive": _UNIQUE,
    "cat": "[x, z]; (x, z), {d}; [x, z], dim={d}; [x, x, z]; x; x, {d}; tensors=[x, z]; [v, u.float()]; [*x]; x, axis=0",
    "stack": "[x, z]; (x, z), {d}; [x, z], dim=-1; x; [v, v, v]; tuple(x for _ in range(3)); [a, a]",
    "hstack": "[x, z]; (x, x); [v, u]; [x.sum(), x.sum()]; x",
    "vstack": "[x, z]; (x, x); [v, u]; [x.sum(), x.sum()]; x",
    "torch.nn.utils.rnn.pad_sequence": "[x, z]; [v, u]; [v, v[:2]], batch_first=True; (a, a)",
    "meshgrid": "v, u; v, u, indexing='ij'; [v, v, v]; *[v, u]; v",
    "torch.cartesian_prod": "v, v; v; *[v, v]; v, u",
    "torch.combinations": "v; v, 3; v, r=2, with_replacement=True",
    "matmul": "a, b; c, e; v, b; a, v; v, u; x, z; c, b; a, other=b",
    "mm": "a, b; a, mat2=b",
    "bmm": "c, e; c, mat2=e",
    "mv": "a, v; a, vec=v",
    "dot": "v, u; v, v; v, tensor=v; v, other=v",
    "outer": "v, u; v, v; v, vec2=u",
    "addmm": "s, a, b; s[0], k, b; s, k, mat2=b; s, a, b, beta=0.5",
    "baddbmm": "o, c, e; o, c, batch2=e, alpha=2",
    "einsum": "'ij,jk->ik', a, b; 'ij->', a; 'ij,jk', a, b; '...i->...', x; 'ij , jk -> k', [a, b]; 'i,i->i', v, u",
    "linear": "c, q; a, q; c, weight=q; c, q, q[:, 0]; v, q, bias=q[:, 0]",
    "Linear": "(4, 5)(c); (4, out_features=5)(k); (4, n or 5)(c); (4, 5, bias=False)(w)",
    "LazyLinear": "(5)(c); (out_features=5)(k)",
    "conv{n}d": "p{n}, {filters}; p{n}, {filters}, w.repeat(2) if n else None; p{n}, weight={filters}, padding=1",
    "Conv{n}d": "(4, 8, 3)(p{n}); (4, 8, kernel_size=2, stride=2)(p{n}); (8, 3)(p{n})",
    "avg_pool{n}d": _POOLED,
    "AvgPool{n}d": "(2)(p{n}); (2, 2)(p{n}); (1, 0.5)(p{n}); (2)(p{n}, torch.zeros(p{n}.shape, dtype=torch.int64))",
    "InstanceNorm{n}d": "(4)(p{n}); (4, affine=True)(p{n})",
    "max_pool{n}d": _MAX_POOLED,
    "MaxPool{n}d": "(2)(p{n}); (2, return_indices=True)(p{n}); (2, 2, 0, 1, True)(p{n}); (2, 2, 0, 1, False, True)(p{n})",
    "adaptive_max_pool{n}d": "p{n}, 2; p{n}, 2, True; p{n}, 2, return_indices=True; p{n}, output_size=1",
    "AdaptiveMaxPool{n}d": "(2)(p{n}); (2, True)(p{n}); (1, return_indices=True)(p{n})",
    "FractionalMaxPool{n}d": "(2, output_size=2)(p{n}); (2, output_size=2, return_indices=True)(p{n})",
    "interpolate": "p2, 8; p2, 8, mode='bilinear'; p1, scale_factor=2, mode='linear'; p3, 8, None, 'trilinear'; p2, size=8, mode=n or 'bicubic'",
    "Upsample": "(8)(p2); (8, mode='bilinear')(p2); (None, 2, 'linear')(p1); (scale_factor=2)(p3)",
    "upsample_bilinear": "p2, 8",
    "UpsamplingBilinear2d": "(8)(p2)",
    "upsample_nearest": "p2, 8; p1, 8",
    "UpsamplingNearest2d": "(8)(p2); (2)(p2)",
    "pad": "p2, (1, 1); p2, 2; x, (1, 1); p2, (1, 1, 2, 2), mode='reflect'; p2, torch.zeros(p2.shape, dtype=torch.int64), 2",
    "grid_sample": "p2, grid, align_corners=False; p2, grid=grid, align_corners=True",
    "scaled_dot_product_attention": "c, c, c; c, c, value=c",
    "embedding": "ids, q; ids, weight=q; j, q, padding_idx=0",
    "Embedding": "(5, 3)(ids); (5, 3)(j)",
    "EmbeddingBag": "(5, 3)(ids)",
    "Bilinear": "(4, 4, 2)(k, k); (6, 2)(p1); (2)(p2); (2, 2)(p2); ()(k, k); (1)(k, k); (4, 2)(torch.ones(2, 16, 9))",
    "unfold": "p2, 2; p2, (2, 2); p2, kernel_size=2",
    "one_hot": "ids; ids, 4; ids, num_classes=3",
    "LSTM": "(4, 3)(c); (4, 3, batch_first=True)(k)",
    "MultiheadAttention": "(4, 2)(c, c, c); (4, 2)(k, k, k)",
    "torch.zeros": "2, 3; (2, 3); [2]; size=(2, 3); 2, dtype=torch.int64; 2, requires_grad=True; n, 2; x.shape; *z.shape; (); 0",
    "torch.full": "(2, 3), 1.0; (2,), 3; (2,), True; [2], fill_value=2; (2,), 1, dtype=torch.float64; (2,), x.sum(); (), n",
    "torch.randint": "0, 5, (2, 3); 5, (2,); 5, size=(2, 3); low=0, high=5, size=(2,); 0, 5, [2]; 5, (2,), dtype=torch.float32",
    "torch.randperm": "4; 4, dtype=torch.float32; 3, device='cpu'",
    "torch.arange": "4; 0, 4; 0, 4, 2; 4.0; 0, 1.0, 0.5; end=4; 0, end=4; 0, end=1.5; start=0, end=4; 4, dtype=torch.float32; 0, 4, step=2; 4, requires_grad=False",
    "torch.linspace": "0, 1, 5; 0, 1, steps=5; start=0, end=1, steps=3; 0, 1, 5, dtype=torch.float64",
    "torch.eye": "3; 3, 4; 3, m=2; 3, dtype=torch.int64",
    "torch.tril_indices": "3, 3; 3, 4, 1; row=2, col=2; 2, 2, dtype=torch.int32",
    "zeros_like": "x; x, dtype=torch.int32; x, requires_grad=True; x, device='cpu'; x, memory_format=torch.contiguous_format; x, 1; x, 3, dtype=torch.float32; x, 0, 5",
    "new_zeros": "x, 2, 3; x, (2, 3); x, (); x, size=(2,); x, (2,), dtype=torch.int32; x, z.shape; x, 2; x, (2,), 1; x, (2, 3), 1.5; x, (2,), fill_value=n or 3; x, [2], 1.5, dtype=torch.float64; x, *z.shape",
    "new_tensor": "x, [1.0, 2.0]; x, [1, 2]; x, [[True]]; x, 3; x, z; x, data=[1]; x, [1.5], dtype=torch.int64",
    "torch.tensor": "[1.0, 2.0]; [[1, 2], [3, 4]]; 3; True; x; x, dtype=torch.float64; [1], requires_grad=False; [1.0], requires_grad=True; [1, 2.0]; (1, 2), dtype=torch.bool; [], device='cpu'; [x.sum().item()]",
    "torch.as_tensor": "[1.0, 2.0]; x; 3; x, dtype=torch.float64; [[1]], device='cpu'",
    "torch.from_numpy": "k.detach().numpy(); r.numpy(); x.detach().numpy()",
    "torch.nn.Parameter": "c; x; c, False; c, requires_grad=n",
    "torch.device": "'cpu'; 'cuda:1'; type='cpu'; 'cpu', 0",
    "torch.sparse_coo_tensor": "[[0, 1]], v[:2]; ids[:0] if n else [[0]], v[:1], (4,); [[0]], v[:1], dtype=torch.float64; [[0]], values=v[:1]",
    "torch.sparse_csr_tensor": "[0, 1], [0], v[:1]; [0, 1], [0], values=v[:1], size=(1, 2)",
    "torch.sparse.FloatTensor": "torch.tensor([[0, 1]]), torch.ones(2); torch.tensor([[0]]), torch.ones(1), torch.Size([4])",
    "torch.cuda.sparse.FloatTensor": "",
    "to_sparse": "a; x",
    "to_dense": "a.to_sparse(); a",
    "indices": "a.to_sparse().coalesce()",
    "values": "a.to_sparse().coalesce()",
    "torch.quantize_per_tensor": "k, 0.1, 0, torch.quint8; k, torch.ones(3), torch.zeros(3), 0, torch.quint8",
    "torch.nested.nested_tensor": "[v, u[:2]]; [k]",
    "numel": _UNARY,
    "dim": _UNARY,
    "is_contiguous": "x; x, z",
    "stride": _UNARY,
    "size": "x; x, {d}; x, dim={d}",
    "numpy": "x; k",
    "item": "x.sum(); r[0]; x",
    "tolist": "x; v; r; x.sum()",
    "ReLU": "()(x); (2)(x); (0.1, 0.2)(x); ({d})(x); (dim={d})(x); (2)(p2)",
    "BatchNorm{n}d": "(4)(p{n}); (4, affine=False)(p{n}); (4)(c); (2, 4)(p2); ()(c); (4, 2)(c); (4, 2)(c, c); (nn.TransformerEncoderLayer(4, 2), 1)(c); (nn.TransformerDecoderLayer(4, 2), 1)(c, c)",
    "cuda": "",
    "torch.load": "",
    "ctc_loss": "o.log_softmax(2), torch.ones(3, 1, dtype=torch.int64), (2, 2, 2), (1, 1, 1); o.log_softmax(2), torch.ones(3, 1, dtype=torch.int64), (2, 2, 2), (1, 1, 1), reduction='none'; o.log_softmax(2), torch.ones(3, 1, dtype=torch.int64), (2, 2, 2), (1, 1, 1), 0, 'sum'",
    "Sigmoid": "()(x)",
    "local_response_norm": "c, 2; x, 1",
    "LocalResponseNorm": "(2)(c); (1)(x)",
    "count_nonzero": "x; x, {d}; x, dim={d}; x, ({d}, {e})",
    "median": "x; x, {d}; x, dim={d}; x, {d}, True; x, dim={d}, keepdim=n; x, y",
    "float": _UNARY,
    "double": _UNARY,
    "half": _UNARY,
    "bfloat16": _UNARY,
    "long": _UNARY,
    "int": _UNARY,
    "short": _UNARY,
    "char": _UNARY,
    "byte": _UNARY,
    "bool": _UNARY,
    "cpu": _UNARY,
}
