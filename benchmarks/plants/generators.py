"""Generators of libraries without their seed, and data that the operating system draws: TRL106."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from benchmarks.plants import Edit, Operator, Plant, Source

_DATASETS = (
    "dataset",
    "ds",
    "train_dataset",
    "train_set",
    "trainset",
    "data_set",
    "data",
    "samples",
    "x",
    "args",
    "model",
)
_GIVEN = "|".join(_DATASETS)
# Calls that take a seed by keyword, by their last word, and what a file that makes them imports.
_SEEDED = (
    "TPESampler",
    "RandomSampler",
    "Compose",
    "UMAP",
    "Sobol",
    "LatinHypercube",
    "find_partition",
    "BayesianOptimization",
)
_LIBRARIES = r"optuna|albumentations|umap|scipy|leidenalg|bayes_opt|polars"


def added(line: str, *modules: str) -> Callable[[Source], Iterator[Plant]]:
    """A call in a function, with what it imports; ``{}`` is one of the function's parameters."""

    def find(source: Source) -> Iterator[Plant]:
        for statement, name in source.places(*_DATASETS):
            yield Plant((source.before(statement, [line.format(name)]), source.importing("torch", *modules)))

    return find


def unseeded(source: Source) -> Iterator[Plant]:
    """What had a seed by keyword has none."""
    for call in source.calls(*_SEEDED):
        for keyword in call.keywords:
            if keyword.arg in ("seed", "random_state", "rng") and not _is_none(keyword.value):
                yield Plant((Edit(*source.span(keyword.value), "None"),), source.span(call))


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _adding(library: str, line: str, *modules: str) -> Operator:
    return Operator(f"{library} without a seed is added", "TRL106", (_GIVEN,), added(line, *modules))


OPERATORS = (
    Operator("a library's seed is taken away", "TRL106", (_LIBRARIES, r"(seed|random_state|rng)="), unseeded),
    _adding("optuna", "planted = planted_optuna.samplers.TPESampler()", "optuna as planted_optuna"),
    _adding(
        "albumentations",
        "planted = planted_album.Compose([planted_album.RandomCrop(8, 8)])",
        "albumentations as planted_album",
    ),
    _adding("gensim", "planted = planted_models.Word2Vec({}, vector_size=8)", "gensim.models as planted_models"),
    _adding("hnswlib", "planted_hnswlib.Index('l2', 8).add_items({})", "hnswlib as planted_hnswlib"),
    _adding("umap", "planted = planted_umap.UMAP().fit_transform({})", "umap as planted_umap"),
    _adding("polars", "planted = planted_polars.DataFrame({}).sample(fraction=0.5)", "polars as planted_polars"),
    _adding("hyperopt", "planted = planted_hyperopt.fmin(print, {}, max_evals=3)", "hyperopt as planted_hyperopt"),
    _adding("webdataset", "planted = planted_web.WebDataset({}).shuffle(1000)", "webdataset as planted_web"),
    _adding("tf.data", "planted = planted_tf.data.Dataset.from_tensors({}).shuffle(9)", "tensorflow as planted_tf"),
    Operator(
        "an index of secrets is added",
        "TRL106",
        (_GIVEN,),
        added("planted = {0}[planted_secrets.randbelow(len({0}))]", "secrets as planted_secrets"),
    ),
    Operator(
        "noise of os.urandom is added",
        "TRL106",
        (_GIVEN,),
        added("planted = torch.tensor(list(planted_os.urandom(8)))", "os as planted_os"),
    ),
)
