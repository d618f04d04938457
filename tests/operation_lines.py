"""A table of calls with the rules that report each, by release of torch and device.

``402 1.7-2.0, 403 2.1-`` is TRL402 from 1.7 to 2.0 and TRL403 from 2.1 to the newest; in all others the call is silent.
"""

from __future__ import annotations

from typing import NamedTuple

from torchrepro_lint.source.files import documented_versions, release


class Line(NamedTuple):
    """A call with what is expected of it; ``before`` is a program's first line, where a program decides."""

    call: str
    cuda: str = ""
    cpu: str = ""
    mps: str = ""
    before: str = ""

    def expected(self, device: str) -> dict[str, str]:
        """The code for each release in which there is a finding."""
        found: dict[str, str] = {}
        for part in filter(None, getattr(self, device).split(", ")):
            code, span = part.split()
            first, _, last = span.partition("-")
            last = last if "-" in span else first
            for version in documented_versions():
                if release(first) <= release(version) <= release(last or "9.9"):
                    found[version] = f"TRL{code}"
        return found


LINES = (
    # convolutions
    Line("nn.Conv1d(1, 1, 1)", "403 1.7-"),
    Line("nn.Conv2d(1, 1, 1)", "403 1.7-"),
    Line("nn.Conv3d(1, 1, 1)", "403 1.7-"),
    Line("nn.ConvTranspose1d(1, 1, 1)", "403 1.7-"),
    Line("nn.ConvTranspose2d(1, 1, 1)", "403 1.7-"),
    Line("nn.ConvTranspose3d(1, 1, 1)", "403 1.7-"),
    Line("F.conv2d(x, s)", "403 1.7-"),
    Line("nn.Conv1d(1, 1, 3, padding=1, padding_mode='reflect')", "404 1.7-"),
    Line("nn.Conv2d(1, 1, 3, padding=1, padding_mode='reflect')", "404 1.7-2.6, 403 2.7-"),
    Line("nn.Conv3d(1, 1, 3, padding=1, padding_mode='reflect')", "403 1.7-1.9, 404 1.10-"),
    Line("nn.Conv1d(1, 1, 3, padding=1, padding_mode='replicate')", "404 1.7-2.2, 403 2.3-"),
    Line("nn.Conv2d(1, 1, 3, padding=1, padding_mode='replicate')", "404 1.7-2.1, 403 2.2-"),
    Line("nn.Conv3d(1, 1, 3, padding=1, padding_mode='replicate')", "404 1.7-2.2, 403 2.3-"),
    # pooling
    Line("nn.AvgPool3d(2)", "402 1.7-", mps="402 2.15"),
    Line("nn.LPPool3d(2, 2)", "404 2.3-"),
    Line("nn.AdaptiveAvgPool1d(3)", "404 1.7-"),
    Line("nn.AdaptiveAvgPool1d(1)"),
    Line("nn.AdaptiveAvgPool2d(7)", "402 1.7-"),
    Line("nn.AdaptiveAvgPool2d(1)"),
    Line("nn.AdaptiveAvgPool3d(7)", "402 1.7-"),
    Line("nn.AdaptiveAvgPool3d((1, 1, 1))"),
    Line("nn.AdaptiveMaxPool1d(3)", "404 1.7-"),
    Line("nn.AdaptiveMaxPool2d(3)", "402 1.7-"),
    Line("nn.AdaptiveMaxPool3d(3)", "404 1.7-"),
    Line("nn.MaxPool2d(2)", mps="402 2.15"),
    Line("nn.MaxPool3d(2)", "402 1.7-2.12, 404 2.13-", mps="402 2.15"),
    Line("nn.MaxPool3d(2, return_indices=True)", "402 1.7-2.12, 403 2.13-", mps="402 2.15"),
    Line("nn.FractionalMaxPool2d(2, output_size=3)", "402 1.7-"),
    Line("nn.FractionalMaxPool3d(2, output_size=3)", "402 1.7-"),
    Line("nn.MaxUnpool1d(2)", "402 1.13-", "402 1.13-", "402 1.13-"),
    Line("nn.MaxUnpool2d(2)", "402 1.13-", "402 1.13-", "402 1.13-"),
    Line("nn.MaxUnpool3d(2)", "402 1.13-", "402 1.13-", "402 1.13-"),
    # interpolation
    Line("F.interpolate(x, 2)", mps="402 2.15"),
    Line("F.interpolate(x, 2, mode='linear')", "402 1.7-", mps="402 2.15"),
    Line("F.interpolate(x, 2, mode='bilinear')", "402 1.7-2.0, 403 2.1-", mps="402 2.15"),
    Line("F.interpolate(x, 2, mode='trilinear')", "402 1.7-2.8, 403 2.9-", mps="402 2.15"),
    Line("F.interpolate(x, 2, mode='bicubic')", "402 1.7-2.14, 403 2.15", mps="402 2.15"),
    Line("F.interpolate(x, 2, mode='bicubic', antialias=True)", "402 1.11-", mps="402 2.15"),
    Line("F.interpolate(x, 2, mode='area')", "404 1.7-", mps="402 2.15"),
    Line("F.grid_sample(x, i)", "404 1.7-1.8, 402 1.9-", mps="402 2.15"),
    # padding
    Line("nn.ReflectionPad1d(1)", "402 1.7-"),
    Line("nn.ReflectionPad2d(1)", "402 1.7-2.6, 403 2.7-"),
    Line("nn.ReflectionPad3d(1)", "402 1.10-"),
    Line("nn.ReplicationPad1d(1)", "402 1.7-2.2, 403 2.3-"),
    Line("nn.ReplicationPad2d(1)", "402 1.7-2.1, 403 2.2-"),
    Line("nn.ReplicationPad3d(1)", "402 1.7-2.2, 403 2.3-"),
    Line("F.pad(x, (1, 1), 'reflect')", "402 1.7-"),
    Line("F.pad(x, (1, 1, 1, 1), 'replicate')", "402 1.7-2.1, 403 2.2-"),
    Line("torch.stft(x, 64)", "404 1.7-"),
    Line("torch.stft(x, 64, center=False)"),
    # losses, embeddings, attention
    Line("nn.CTCLoss()", "402 1.7-"),
    Line("nn.EmbeddingBag(3, 3)", "402 1.7-1.8", mps="402 2.15"),
    Line("nn.EmbeddingBag(3, 3, mode='max')", "402 1.7-", mps="402 2.15"),
    Line("nn.Embedding(3, 3)", "403 2.11-", mps="402 2.15"),
    Line("F.scaled_dot_product_attention(x, x, x)", "403 2.0-"),
    Line("nn.TransformerEncoderLayer(4, 2)", "403 2.0-"),
    Line("nn.TransformerDecoderLayer(4, 2)", "403 2.0-"),
    Line("nn.Transformer(4, 2)", "403 2.0-"),
    Line("nn.MultiheadAttention(4, 2)"),
    Line("nn.MultiheadAttention(4, 2)(x, x, x)"),
    Line("nn.MultiheadAttention(4, 2)(x, x, x, need_weights=False)", "403 2.0-"),
    Line(
        "(F.scaled_dot_product_attention(x, x, x))",
        "404 2.1-",
        before="torch.use_deterministic_algorithms(True, warn_only=True); torch.median(torch.ones(3, device='cuda'), 0)",
    ),
    # scattering and indexing
    Line("x.scatter_add_(0, i, s)", "402 1.7-1.9, 403 1.13-"),
    Line("torch.gather(x, 0, i)", "403 1.13-"),
    Line("x.index_add_(0, i, s)", "402 1.7-1.8, 403 1.9-"),
    Line("x.index_copy_(0, i, s)", "402 1.8, 403 1.9-", "402 1.8, 403 1.9-", "402 1.8"),
    Line("x.index_put_((i,), s)", "403 1.9-", "403 1.9-", "403 1.9-"),
    Line("x.index_put_((i,), s, accumulate=True)", "", "403 1.8-", "404 2.13-2.14, 402 2.15"),
    Line("x.index_reduce_(0, i, s, 'prod')", "404 1.12-", mps="404 2.13-2.14, 402 2.15"),
    Line("x.index_reduce(0, i, s, 'amax')", "404 1.12-"),
    Line("x.index_select(0, i)", "401 1.7-"),
    Line("x.put_(i, s)", "404 1.7-1.8, 402 1.9-", "404 1.7-1.8, 402 1.9-", "404 1.7-1.8, 402 1.9-"),
    Line("x.put_(i, s, accumulate=True)", "402 1.9-", "403 1.9-"),
    Line("x.scatter(0, i, s)", "403 2.1-"),
    Line("x.scatter(0, i, s, reduce='multiply')", "404 1.7-"),
    Line("x.scatter_reduce(0, i, s, 'amax')", "404 1.12-2.0", mps="404 2.13-2.14, 402 2.15"),
    Line("x.scatter_reduce(0, i, s, 'sum')", "404 1.12-2.0, 403 2.1-", mps="404 2.13-2.14, 402 2.15"),
    Line("x.scatter_reduce(0, i, s, 'prod')", "404 1.12-2.0, 402 2.1-", mps="404 2.13-2.14, 402 2.15"),
    Line("torch.repeat_interleave(x, i)", "402 1.7-1.8, 403 1.9-"),
    Line("torch.repeat_interleave(x, 3)", "402 1.7-1.8, 403 1.9-2.12"),
    Line("torch.take(x, i)", "404 1.9-"),
    # reductions, order, memory
    Line("torch.histc(x)", "402 1.7-"),
    Line("torch.histc(x.long())", "402 1.7-2.7"),
    Line("torch.bincount(x)", "402 1.7-2.0"),
    Line("torch.bincount(x, s)", "402 1.7-"),
    Line("torch.cummax(x, 0)", "403 1.13-"),
    Line("x.cummin(0)", "403 1.13-"),
    Line("torch.cumsum(x, 0)", "404 1.7-1.12, 402 1.13-2.5, 403 2.6-"),
    Line("torch.cumsum(x.long(), 0)"),
    Line("torch.kthvalue(x, 2)", "402 1.8-2.9", mps="404 2.9-2.14, 402 2.15"),
    Line("torch.median(x)"),
    Line("torch.median(x, 0)", "402 1.8-"),
    Line("torch.nanmedian(x, 0)", "404 1.8-"),
    Line("torch.topk(x, 2)", "406 1.7-"),
    Line("torch.sort(x)", "406 1.9-"),
    Line("torch.sort(x, stable=True)"),
    Line("torch.empty(3)"),
    Line("torch.empty_like(x)"),
    Line("torch.empty_strided((3,), (1,))"),
    Line("torch.empty_permuted((3,), (0,))"),
    # where the input decides
    Line("F.nll_loss(x.view(1, 3, 4, 4), i)", "402 1.7-"),
    Line("F.nll_loss(x.view(4, 3), i)"),
    Line("nn.NLLLoss()(x.view(1, 3, 4, 4), i)", "402 1.7-"),
    Line("F.cross_entropy(x.view(1, 3, 4, 4), i)", "404 1.7-"),
    Line("F.cross_entropy(nn.ZeroPad2d(1)(x), i)", "404 1.7-"),
    Line("F.cross_entropy(x, torch.empty(1, 4, 4).long())", "404 1.7-"),
    Line("F.cross_entropy(x.view(1, 3, 4, 4), x)", "404 1.7-"),
    Line("F.cross_entropy(x.view(1, 3, 4, 4), x.float())"),
    Line("F.cross_entropy(x, i)"),
    Line("nn.LocalResponseNorm(3)(x.view(1, 3, 4, 4))", "404 1.7-"),
    Line("nn.LocalResponseNorm(3)(x.view(1, 3, 4))"),
    Line("F.grid_sample(x.view(1, 1, 4, 4), i, align_corners=True)", "404 1.7-2.12, 402 2.13-", mps="402 2.15"),
    Line("x.view(4, 4).scatter_add(0, i, s)", "402 1.7-1.12, 403 1.13-"),
    Line("x.flatten().scatter_add(0, i, s)", "402 1.7-1.9, 403 1.10-"),
    Line("x.view(4, 4).gather(0, i)", "402 1.9-1.12, 403 1.13-"),
    Line("x.flatten().gather(0, i)", "403 1.9-"),
    Line("torch.bmm(x.to_sparse(), s)", "403 1.7-"),
    Line("torch.mm(x.to_sparse(), s)", "404 1.7-"),
    Line("torch.mm(x, s, )"),
    Line("torch.mm(s, x.to_sparse())", "404 1.7-"),
    Line("torch.mm(x.to_sparse(), s.to_sparse())"),
    Line("torch.matmul(x.to_sparse(), s)", "404 1.7-"),
    Line("torch.linalg.matmul(x.to_sparse(), s)", "404 1.7-"),
    Line("x.to_sparse().matmul(s)", "404 1.7-"),
    Line("s.matmul(x.to_sparse())", "404 1.7-"),
    Line("torch.matmul(x.to_sparse(), s.to_sparse())"),
    Line("torch.mv(x.to_sparse(), s)", "404 1.7-"),
    Line("torch.nn.functional.linear(x.to_sparse(), s)", "404 1.7-"),
    Line("torch.nn.functional.linear(x, s)"),
    Line("torch.matmul(x, s)"),
    Line("torch.sparse.mm(x, s.to_sparse())"),
    Line("torch.spmm(x, s)", "404 1.7-"),
    Line("torch.sparse.mm(x, s)", "404 1.7-"),
    Line("torch.sparse.addmm(s, x, s)", "404 1.7-"),
    Line("torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).resize_(3)", "402 2.1-", "402 2.1-", "402 2.1-"),
    Line("x.contiguous().resize_(3)"),
    # torchvision
    Line("ops.roi_pool(x, i, 7)", "404 2.5-", mps="404 2.5-"),
    Line("ops.ps_roi_pool(x, i, 7)", "404 2.5-", mps="404 2.5-"),
    Line("ops.ps_roi_align(x, i, 7)", "404 2.5-", mps="404 2.5-"),
    Line("ops.roi_align(x, i, 7)", "403 2.5-"),
    Line("ops.deform_conv2d(x, i, s)", "404 2.5-", mps="404 2.5-"),
)


class Waiting(NamedTuple):
    """A call that becomes a case where ``subject`` is ``value``, which nothing finds out so far."""

    call: str
    subject: str
    value: str | int | bool
    cuda: str
    cpu: str = ""


# What no call tells by itself: an element of a tensor is no call (TRL203 counts it), and whether a program sets the variable is
# TRL205's business, which speaks of it once. That CTC certainly goes to cuDNN takes lengths that are hardly ever written out.
WAITING = (
    Waiting("x.__getitem__(i)", "input.index", "tensors", "", "403 1.8-"),
    # The switches of a program: TRL205's.
    Waiting("torch.mm(x, s)", "program.CUBLAS_WORKSPACE_CONFIG", "", "402 1.7-2.9"),
    Waiting("torch.mv(x, s)", "program.CUBLAS_WORKSPACE_CONFIG", "", "402 1.7-2.9"),
    Waiting("torch.bmm(x, s, )", "program.CUBLAS_WORKSPACE_CONFIG", "", "402 1.7-2.9"),
    Waiting("nn.CTCLoss()", "program.cudnn_ctc", True, ""),
)
