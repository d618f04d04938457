"""The catalogue's consumers of torch's generator are those of the installed torch: by tags, and by observed state changes."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

import pytest

import installed
from torchrepro_lint.catalogue.catalogue import consumers, load

torch = installed.torch()
numpy = pytest.importorskip("numpy")
prune = pytest.importorskip("torch.nn.utils.prune")
nn, F = torch.nn, torch.nn.functional
CATALOGUE = load("2.13")

# Tagged, in a public namespace, but not called by users: a device's RNN kernel.
_INTERNAL = {"torch.miopen_rnn"}
# A module that is called like the operator behind Tensor.random_.
_MODULES = {"torch.random"}


def tagged() -> set[str]:
    """The public names of the operators that torch tags as drawing from a generator."""
    names: set[str] = set()
    for schema in torch._C._jit_get_all_schemas():
        space, _, short = schema.name.partition("::")
        if space != "aten" or short.startswith("_") or not hasattr(torch.ops.aten, short):
            continue
        operator = getattr(getattr(torch.ops.aten, short), schema.overload_name or "default", None)
        if operator is not None and torch.Tag.nondeterministic_seeded in operator.tags:
            homes = (("torch", torch), ("torch.Tensor", torch.Tensor), ("torch.nn.functional", F))
            names |= {f"{home}.{short}" for home, place in homes if hasattr(place, short)}
    return names - _INTERNAL - _MODULES


def test_every_tagged_operator_is_a_consumer() -> None:
    found = tagged()
    assert len(found) > 40
    assert {name for name in found if not CATALOGUE.consumer(name)} == set()


SMALL: dict[str, Any] = {
    "num_embeddings": 3, "embedding_dim": 4, "embed_dim": 4, "num_heads": 2, "nhead": 2, "d_model": 4,
    "in_features": 8, "out_features": 4, "in_channels": 2, "out_channels": 2, "kernel_size": 2, "input_size": 3,
    "hidden_size": 3, "in1_features": 2, "in2_features": 2, "num_features": 2, "num_groups": 1, "num_channels": 2,
    "normalized_shape": 2, "output_size": 1, "n_classes": 8, "num_classes": 4, "cutoffs": [2, 4], "num_layers": 1,
    "mode": "LSTM", "padding": 1, "upscale_factor": 2, "downscale_factor": 2, "size": 2, "norm_type": 2,
    "threshold": 0.1, "value": 0.1, "groups": 1, "unflattened_size": (2, 2), "dim": 1, "bias": True, "num_chunks": 1,
    "lambd": 0.5, "module": nn.Identity(),
}  # fmt: skip
# Wrappers: what they do is what the module that they are given does.
_WRAPPERS = {"TransformerDecoder", "TransformerEncoder"}
MODULES = sorted(
    name
    for name, value in vars(nn).items()
    if inspect.isclass(value) and issubclass(value, nn.Module) and name not in _WRAPPERS
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_a_module_draws_at_construction_if_the_catalogue_says_so(name: str) -> None:
    kind = getattr(nn, name)
    phases = {row.phase for row in CATALOGUE.consumer(f"torch.nn.{name}")}
    assert moves(lambda: kind(**needed(kind))) == ("construct" in phases)


def needed(kind: Any) -> dict[str, Any]:
    if issubclass(kind, nn.RNNBase) and kind is not nn.RNNBase:
        return {"input_size": 3, "hidden_size": 3}
    required = [
        one.name
        for one in inspect.signature(kind.__init__).parameters.values()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD and one.name != "self"
    ]
    more = {"output_size": 1} if "Fractional" in kind.__name__ else {}
    return {**{name: SMALL[name] for name in required}, **more}


def moves(call: Callable[[], object]) -> bool:
    """Whether a call moves torch's default generator."""
    torch.manual_seed(0)
    before = torch.default_generator.get_state()
    call()
    return not torch.equal(before, torch.default_generator.get_state())


X = torch.linspace(-1, 1, 16).reshape(4, 4)
UNTAGGED: dict[str, Callable[[], object]] = {
    "torch.nn.functional.gumbel_softmax": lambda: F.gumbel_softmax(X),
    "torch.svd_lowrank": lambda: torch.svd_lowrank(X),
    "torch.pca_lowrank": lambda: torch.pca_lowrank(X),
    "torch.lobpcg": lambda: torch.lobpcg(torch.eye(9), k=1),
    "torch.nn.utils.parametrizations.spectral_norm": lambda: nn.utils.parametrizations.spectral_norm(Still()),
    "torch.nn.utils.spectral_norm": lambda: nn.utils.spectral_norm(Still()),
    "torch.nn.utils.prune.random_unstructured": lambda: prune.random_unstructured(Still(), "weight", 0.5),
    "torch.nn.utils.prune.random_structured": lambda: prune.random_structured(Still(), "weight", 0.5, 0),
    "torch.nn.functional.fractional_max_pool2d": lambda: F.fractional_max_pool2d(X[None, None], 2, output_size=2),
    "torch.nn.functional.dropout1d": lambda: F.dropout1d(X),
    "torch.distributions.Normal.sample": lambda: torch.distributions.Normal(0.0, 1.0).sample(),
    "torch.quasirandom.SobolEngine": lambda: torch.quasirandom.SobolEngine(2, scramble=True),
    "torch.utils.data.random_split": lambda: torch.utils.data.random_split([1, 2, 3], [1, 2]),
    "torch.utils.data.RandomSampler": lambda: list(torch.utils.data.RandomSampler([1, 2])),
    "torch.utils.data.WeightedRandomSampler": lambda: list(torch.utils.data.WeightedRandomSampler([0.1, 0.2], 2)),
    "torch.utils.data.SubsetRandomSampler": lambda: list(torch.utils.data.SubsetRandomSampler([1, 2])),
    "torch.utils.data.DataLoader": lambda: list(torch.utils.data.DataLoader([1, 2], shuffle=True)),
    "torch.testing.make_tensor": lambda: torch.testing.make_tensor((2,), device="cpu", dtype=torch.float32),
    "torch.nn.LazyLinear": lambda: nn.LazyLinear(2)(X),
}  # fmt: skip


class Still(nn.Linear):
    """A layer that exists without a draw, so that only the wrapper's draw is seen."""

    def __init__(self) -> None:
        super().__init__(3, 3)

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.weight.copy_(torch.eye(3))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(UNTAGGED))
def test_a_drawer_without_a_tag(name: str) -> None:
    assert moves(UNTAGGED[name])
    assert CATALOGUE.consumer(name)


STILL: dict[str, Callable[[], object]] = {
    "torch.nn.utils.parametrizations.orthogonal": lambda: nn.utils.parametrizations.orthogonal(Still()),
    "torch.linalg.svd": lambda: torch.linalg.svd(X),
    "torch.Generator": torch.Generator,
    "torch.nn.functional.softmax": lambda: F.softmax(X, 0),
    "torch.nn.init.zeros_": lambda: nn.init.zeros_(torch.empty(2)),
}


@pytest.mark.parametrize("name", sorted(STILL))
def test_what_draws_nothing_is_no_consumer(name: str) -> None:
    assert not moves(STILL[name])
    assert not CATALOGUE.consumer(name)


@pytest.mark.filterwarnings("ignore")
def test_initialisers() -> None:
    arguments = {"sparse_": {"sparsity": 0.5}, "constant_": {"val": 1.0}, "dirac_": {}}
    for name, function in vars(nn.init).items():
        if name.endswith("_") and not name.startswith("_"):
            shape = (2, 2, 2) if name == "dirac_" else (2, 2)
            drawn = moves(lambda f=function, s=shape, n=name: f(torch.empty(s), **arguments.get(n, {})))
            assert drawn == bool(CATALOGUE.consumer(f"torch.nn.init.{name}")), name


def test_numpy_and_python_families() -> None:
    legacy = {f"numpy.random.{name}" for name in numpy.random.__all__ if callable(getattr(numpy.random, name))}
    legacy = {name for name in legacy if not name.rpartition(".")[2][0].isupper()}
    other = {"default_rng", "seed", "get_state", "set_state", "get_bit_generator", "set_bit_generator"}
    draws = {name for name in legacy if name.rpartition(".")[2] not in other}
    assert {name for name in draws if not CATALOGUE.consumer(name)} == set()
    python = {f"random.{name}" for name in random.__all__ if name[0].islower()}
    missing = {name for name in python if not CATALOGUE.consumer(name)}
    assert missing == {"random.seed", "random.getstate", "random.setstate"}


def test_every_torch_name_exists() -> None:
    gone = {name for name in consumers().names if name.startswith("torch.") and not exists(name)}
    # The old names of the initialisers are gone from newer releases.
    assert {name for name in gone if not name.startswith("torch.nn.init.")} == set()


def exists(name: str) -> bool:
    value: Any = torch
    for word in name.split(".")[1:]:
        value = getattr(value, word, None)
    return value is not None


def test_patterns() -> None:
    assert CATALOGUE.consumer("torchvision.models.detection.fasterrcnn_resnet50_fpn")
    assert CATALOGUE.consumer("torch.distributions.categorical.Categorical.sample")
    assert CATALOGUE.consumer("transformers.AutoModel.from_config")
    assert CATALOGUE.consumer("sklearn.datasets.make_blobs")
    assert not CATALOGUE.consumer("torchvision.models.ResNet18_Weights")
    assert not CATALOGUE.consumer("torchvision.models.list_models")
    assert not CATALOGUE.consumer("transformers.AutoModel.from_pretrained")
