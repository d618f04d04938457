"""Loaders, their workers and splits: TRL301 to TRL307."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from benchmarks.plants import Edit, Operator, Plant, Source, body

# What decides the order of a loader, or of what nothing is known (``**options``).
_ORDERED = {"generator", "sampler", "batch_sampler", None}
_COLLATE = "\n\ndef planted_collate(samples):\n    return planted_numpy.random.permutation(len(samples))\n"
_DATASETS = ("dataset", "ds", "train_dataset", "train_set", "trainset", "data_set")


def shuffled(source: Source) -> Iterator[Plant]:
    """TRL302: a loader that did not shuffle does."""
    for call in source.calls("DataLoader"):
        given = _given(call)
        value = given.get("shuffle")
        if isinstance(value, ast.Constant) and value.value is False and not set(given) & _ORDERED:
            yield Plant((Edit(*source.span(value), "True"),), source.span(call))


def without_generator(*names: str) -> Callable[[Source], Iterator[Plant]]:
    """TRL302, TRL303: what had a generator has none."""

    def find(source: Source) -> Iterator[Plant]:
        for call in source.calls(*names):
            given = [keyword for keyword in call.keywords if keyword.arg == "generator"]
            if given and not (isinstance(given[0].value, ast.Constant) or _is_parameter(source, given[0].value)):
                yield Plant((Edit(*source.span(given[0].value), "None"),), source.span(call))

    return find


def sampled(source: Source) -> Iterator[Plant]:
    """TRL303: a sampler in sequence becomes a random one."""
    for call in source.calls("SequentialSampler"):
        edit = Edit(*source.span(call.func), "torch.utils.data.RandomSampler")
        yield Plant((edit, source.importing("torch")), source.span(call))


def inserted(*lines: str, end: str = "") -> Callable[[Source], Iterator[Plant]]:
    """Lines in a function that is given a dataset, and code behind everything else."""

    def find(source: Source) -> Iterator[Plant]:
        for statement, name in source.places(*_DATASETS):
            written = [line.format(name) for line in lines]
            imported = source.importing("torch", "torch.utils.data", "numpy as planted_numpy")
            yield Plant((source.before(statement, written), imported, source.at_the_end(end)))

    return find


def drawing(source: Source) -> Iterator[Plant]:
    """TRL301: a dataset that draws where a sample is made, and a loader with workers over it."""
    for made, drawn, imported in _drawn(source):
        yield Plant((made, drawn, imported))


def repeated(source: Source) -> Iterator[Plant]:
    """TRL304: the same, in a torch whose workers share numpy's state; reported at the draw."""
    for made, drawn, imported in _drawn(source):
        yield Plant((drawn, made, imported), None, ("--torch-version", "1.8"))


def _drawn(source: Source) -> Iterator[tuple[Edit, Edit, Edit]]:
    """A loader, a draw in its dataset, and what they import."""
    for owner, statement in _fetching(source):
        loader = f"torch.utils.data.DataLoader({owner}(*arguments), num_workers=2)"
        made = source.at_the_end(f"\n\ndef planted(*arguments):\n    return {loader}\n")
        drawn = source.before(statement, ["planted_noise = planted_numpy.random.rand()"])
        yield made, drawn, source.importing("torch.utils.data", "numpy as planted_numpy")


def with_argument(argument: str, *modules: str) -> Callable[[Source], Iterator[Plant]]:
    """A loader with workers gets an argument more."""

    def find(source: Source) -> Iterator[Plant]:
        word = argument.partition("=")[0]
        for call in source.calls("DataLoader"):
            given = _given(call)
            if _has_workers(given) and word not in given:
                yield Plant((_argument(source, call, argument), source.importing(*modules)), source.span(call))

    return find


def counted(source: Source) -> Iterator[Plant]:
    """TRL306: as many workers as the machine has cores, and they draw."""
    for call in source.calls("DataLoader"):
        given = _given(call)
        if _has_workers(given) and "collate_fn" not in given:
            number = Edit(*source.span(given["num_workers"]), "planted_os.cpu_count()")
            drawing = _argument(source, call, "collate_fn=planted_collate")
            modules = source.importing("os as planted_os", "numpy as planted_numpy")
            yield Plant((number, drawing, source.at_the_end(_COLLATE), modules), source.span(call))


def seeding(statement: str) -> Callable[[Source], Iterator[Plant]]:
    """TRL307: a worker function that seeds alike, or from entropy; reported where it seeds."""

    def find(source: Source) -> Iterator[Plant]:
        for call in source.calls("DataLoader"):
            given = _given(call)
            if _has_workers(given) and "worker_init_fn" not in given:
                function = source.at_the_end(f"\n\ndef planted_worker(worker):\n    {statement}\n")
                modules = source.importing("numpy as planted_numpy", "torch as planted_torch")
                yield Plant((function, _argument(source, call, "worker_init_fn=planted_worker"), modules))

    return find


def _fetching(source: Source) -> Iterator[tuple[str, ast.stmt]]:
    """The datasets of a file, each with the first statement of its ``__getitem__``."""
    for owner in source.tree.body:
        if isinstance(owner, ast.ClassDef) and any(_is_dataset(base) for base in owner.bases):
            for method in owner.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__getitem__" and body(method):
                    yield owner.name, body(method)[0]


def _is_dataset(base: ast.expr) -> bool:
    return ast.unparse(base) in ("Dataset", "data.Dataset", "torch.utils.data.Dataset")


def _given(call: ast.Call) -> dict[str | None, ast.expr]:
    return {keyword.arg: keyword.value for keyword in call.keywords}


def _has_workers(given: dict[str | None, ast.expr]) -> bool:
    """Whether a loader is given workers, and there may be several of them."""
    value = given.get("num_workers")
    return value is not None and not (isinstance(value, ast.Constant) and value.value in (None, 0, 1))


def _is_parameter(source: Source, value: ast.expr) -> bool:
    """Whether a generator is what the caller may leave out."""
    function = source.function(value)
    return isinstance(value, ast.Name) and function is not None and value.id in [one.arg for one in function.args.args]


def _argument(source: Source, call: ast.Call, text: str) -> Edit:
    """One more keyword, in front of the keywords that are there."""
    keywords = [keyword for keyword in call.keywords if keyword.arg]
    if keywords:
        start = source.span(keywords[0])[0]
        return Edit(start, start, f"{text}, ")
    end = source.span([*call.args, *call.keywords][-1])[1]
    return Edit(end, end, f", {text}")


_GIVEN = "|".join(_DATASETS)

OPERATORS = (
    Operator("shuffle=False becomes True", "TRL302", ("DataLoader",), shuffled),
    Operator(
        "a shuffled loader is added", "TRL302", (_GIVEN,), inserted("torch.utils.data.DataLoader({}, shuffle=True)")
    ),
    Operator("a loader's generator is taken away", "TRL302", (r"generator=",), without_generator("DataLoader")),
    Operator(
        "a loader whose workers draw is added",
        "TRL301",
        (_GIVEN,),
        inserted("torch.utils.data.DataLoader({}, num_workers=2, collate_fn=planted_collate)", end=_COLLATE),
    ),
    Operator("a dataset draws, a loader has workers", "TRL301", ("__getitem__",), drawing),
    Operator("a split's generator is taken away", "TRL303", (r"generator=",), without_generator("random_split")),
    Operator("a split is added", "TRL303", (_GIVEN,), inserted("torch.utils.data.random_split({}, [0.9, 0.1])")),
    Operator("SequentialSampler becomes RandomSampler", "TRL303", ("SequentialSampler",), sampled),
    Operator("a dataset draws from numpy, in torch 1.8", "TRL304", ("__getitem__",), repeated),
    Operator("in_order=False", "TRL305", ("DataLoader",), with_argument("in_order=False")),
    Operator("num_workers=os.cpu_count()", "TRL306", ("DataLoader",), counted),
    Operator(
        "worker_init_fn is a lambda that seeds alike",
        "TRL307",
        ("DataLoader",),
        with_argument("worker_init_fn=lambda worker: planted_numpy.random.seed(0)", "numpy as planted_numpy"),
    ),
    Operator("worker_init_fn seeds from entropy", "TRL307", ("DataLoader",), seeding("planted_numpy.random.seed()")),
    Operator("worker_init_fn seeds torch alike", "TRL307", ("DataLoader",), seeding("planted_torch.manual_seed(3)")),
)
