"""Functions of torch that are written in Python, each called on small inputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812  as everybody does
from torch import nn
from torch.nn.utils import rnn


def losses() -> None:
    x, target = torch.randn(4, 3, requires_grad=True), torch.tensor([0, 2, 1, 1])
    for loss in (F.cross_entropy, F.nll_loss):
        loss(x, target)
    F.gaussian_nll_loss(x, torch.randn(4, 3), torch.ones(4, 3)).backward()
    F.triplet_margin_with_distance_loss(x, x + 1, x - 1)
    F.cosine_embedding_loss(x, x, torch.ones(4))
    F.smooth_l1_loss(x, torch.zeros(4, 3), reduction="none")
    F.kl_div(x.log_softmax(1), torch.softmax(x, 1), reduction="batchmean")
    F.binary_cross_entropy_with_logits(x, torch.ones(4, 3))
    F.mse_loss(x, torch.zeros(4, 3))
    F.multi_margin_loss(x, target)


def functions() -> None:
    x = torch.randn(2, 3, 8, 8)
    F.interpolate(x, scale_factor=2.0, mode="bilinear")
    F.interpolate(x, size=(4, 4), mode="nearest")
    F.grid_sample(x, torch.zeros(2, 4, 4, 2), align_corners=False)
    F.affine_grid(torch.zeros(2, 2, 3), [2, 3, 4, 4], align_corners=False)
    F.gumbel_softmax(x, hard=True)
    F.embedding(torch.tensor([0, 1]), torch.randn(3, 4, requires_grad=True), padding_idx=-1)
    F.embedding_bag(torch.tensor([[0, 1], [1, 2]]), torch.randn(3, 4))
    F.fractional_max_pool2d(x, 2, output_size=(3, 3), return_indices=True)
    F.max_pool2d(x, 2, return_indices=True)
    F.lp_pool2d(x, 2.0, 2)
    F.group_norm(x, 3)
    F.instance_norm(x)
    F.local_response_norm(x, 2)
    F.normalize(x)
    F.pad(x, (1, 1, 0, 0), mode="circular")
    F.multi_head_attention_forward(
        *(torch.randn(5, 2, 4) for _ in range(3)), 4, 2, torch.randn(12, 4), torch.zeros(12), None, None, False, 0.0,
        torch.randn(4, 4), torch.zeros(4), average_attn_weights=True,
    )  # fmt: skip


def tensors() -> None:
    x = torch.randn(3, 4)
    torch.einsum("ij,jk->ik", x, x.t())
    torch.tensordot(x, x, dims=([1], [1]))
    torch.cdist(x, x)
    torch.stft(torch.randn(64), 16, window=torch.ones(16), return_complex=True)
    torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    torch.unique(torch.tensor([1, 1, 2]), return_counts=True)
    torch.norm(x, dim=1)
    torch.split(x, 2)
    torch.broadcast_tensors(x, x[:1])
    torch.block_diag(x, x)
    x.norm(2, 1)
    x.split(2)
    x.unflatten(1, (2, 2))


def layers() -> None:
    x = torch.randn(2, 3, 8, 8)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding="same"), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
    )
    nn.init.kaiming_normal_(net[0].weight)
    net(x).sum().backward()
    nn.LSTM(4, 5, batch_first=True)(torch.randn(2, 3, 4))
    nn.GRU(4, 5)(rnn.pack_sequence([torch.randn(3, 4), torch.randn(2, 4)]))
    nn.TransformerEncoderLayer(4, 2, 8)(torch.randn(5, 2, 4))
    nn.MultiheadAttention(4, 2)(*(torch.randn(5, 2, 4) for _ in range(3)))
    nn.AdaptiveLogSoftmaxWithLoss(64, 10, [3, 6])(torch.randn(6, 64), torch.arange(6))
    nn.CosineSimilarity()(torch.randn(2, 3), torch.randn(2, 3))
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    nn.utils.parameters_to_vector(net.parameters())
    nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))(torch.randn(1, 2))
    nn.utils.parametrizations.spectral_norm(nn.Linear(2, 3))(torch.randn(1, 2))
    rnn.pad_packed_sequence(rnn.pack_padded_sequence(torch.randn(3, 2, 4), [3, 2]))


def training() -> None:
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop"):
        layer = nn.Linear(2, 2)
        optimizer = getattr(torch.optim, name)(layer.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
        for _ in range(2):
            layer(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            scheduler.step()


def distributions() -> None:
    mean, deviation = torch.zeros(3, requires_grad=True), torch.ones(3)
    for one in (
        torch.distributions.Normal(mean, deviation),
        torch.distributions.Laplace(mean, deviation),
        torch.distributions.Gamma(deviation, deviation),
        torch.distributions.Beta(deviation, deviation),
        torch.distributions.Categorical(logits=mean),
        torch.distributions.Bernoulli(logits=mean),
        torch.distributions.Dirichlet(deviation),
        torch.distributions.MultivariateNormal(mean, torch.eye(3)),
        torch.distributions.Multinomial(4, probs=torch.ones(3)),
    ):
        one.log_prob(one.sample())
        one.entropy() if not isinstance(one, torch.distributions.Multinomial) else one.mean


def data() -> None:
    from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler, random_split

    dataset = TensorDataset(torch.randn(8, 2), torch.arange(8))
    parts = random_split(dataset, [0.5, 0.5])
    for _ in DataLoader(parts[0], batch_size=2, shuffle=True):
        pass
    for _ in DataLoader(dataset, batch_size=2, sampler=WeightedRandomSampler([1.0] * 8, 8)):
        pass


class Net(nn.Module):
    """A network whose variables are of many kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))
        self.words = nn.Embedding(9, 4)
        self.register_buffer("mean", torch.zeros(1, 3, 1, 1))

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        b, c, h, w = x.shape
        x = x - self.mean
        features = self.conv(x)
        flat = features.flatten(2).transpose(1, 2)
        mask = flat.sum(-1) > 0
        counts = mask.long().cumsum(1)
        words = self.words(index)
        scores = flat @ words.transpose(1, 2)
        values, places = scores.max(dim=-1)
        with torch.no_grad():
            weights = scores.softmax(-1)
        picked = torch.gather(scores, 2, places.unsqueeze(-1)).squeeze(-1)
        sizes = [h, w, b * c]
        total = (picked * mask).sum() + values.mean() + weights.sum() + counts.sum() / len(sizes)
        return self.head(features) + total


def network() -> None:
    net = Net()
    x, index = torch.randn(2, 3, 4, 4), torch.tensor([[1, 2, 3], [0, 0, 8]])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = net(x, index).sum()
    loss.backward()
    optimizer.step()
    state = {key: value.clone() for key, value in net.state_dict().items()}
    grid = torch.stack(torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij"), dim=-1).reshape(-1, 2)
    order = grid[:, 0].argsort(stable=True)
    chosen = grid[order][1:]
    parts = chosen.float().split(2)
    rows = torch.cat(parts)
    found, kinds = rows.unique(return_counts=True)
    names = [f"{name}.{kinds.numel()}" for name in state]
    ends = dict(zip(names, found.tolist(), strict=False))
    assert ends


def _files(folder: str, *words: str) -> tuple[str, ...]:
    return tuple(f"torch/{folder}{word}.py" for word in words)


# What runs, and the files of torch that are watched while it does, below the directory that torch is installed in.
RUNS: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
    "network": (network, ()),
    "losses": (losses, _files("nn/", "functional")),
    "functions": (functions, _files("", "nn/functional", "_jit_internal")),
    "tensors": (tensors, _files("", "functional", "_tensor")),
    "layers": (
        layers,
        _files("nn/modules/", "conv", "batchnorm", "rnn", "activation", "transformer", "adaptive")
        + _files("nn/", "init", "utils/rnn", "utils/clip_grad", "utils/parametrizations"),
    ),
    "training": (
        training,
        _files("optim/", "sgd", "adam", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "radam", "rprop")
        + _files("optim/", "optimizer", "lr_scheduler"),
    ),
    "distributions": (
        distributions,
        _files("distributions/", "normal", "laplace", "gamma", "beta", "categorical", "bernoulli", "dirichlet")
        + _files("distributions/", "multinomial", "utils", "multivariate_normal", "distribution"),
    ),
    "data": (data, _files("utils/data/", "dataset", "sampler", "_utils/collate")),
}
