"""What the classes and constants of other libraries are."""

from __future__ import annotations

from torchrepro_lint.infer.what import UNKNOWN, What, tensor

_TENSOR_CLASSES = {
    "Float": ("float32", "floating"),
    "Double": ("float64", "floating"),
    "Half": ("float16", "floating"),
    "BFloat16": ("bfloat16", "floating"),
    "Long": ("int64", "integer"),
    "Int": ("int32", "integer"),
    "Short": ("int16", "integer"),
    "Char": ("int8", "integer"),
    "Byte": ("uint8", "integer"),
    "Bool": ("bool", "bool"),
}

DTYPES = {
    **dict.fromkeys(("float32", "float"), ("float32", "floating")),
    **dict.fromkeys(("float64", "double"), ("float64", "floating")),
    **dict.fromkeys(("float16", "half"), ("float16", "floating")),
    "bfloat16": ("bfloat16", "floating"),
    **dict.fromkeys(("int64", "long", "int_", "intp", "longlong"), ("int64", "integer")),
    **dict.fromkeys(("int32", "int", "intc"), ("int32", "integer")),
    **dict.fromkeys(("int16", "short"), ("int16", "integer")),
    "int8": ("int8", "integer"),
    "uint8": ("uint8", "integer"),
    **dict.fromkeys(("uint16", "uint32", "uint64"), ("", "integer")),
    **dict.fromkeys(("bool", "bool_"), ("bool", "bool")),
    **dict.fromkeys(("complex64", "cfloat", "complex128", "cdouble", "complex32"), ("", "complex")),
}

_CLASSES: dict[str, What] = {
    **{f"builtins.{word}": What(word) for word in ("set", "frozenset", "list", "tuple", "dict", "int", "float", "bool", "bytes")},
    "builtins.str": What("str", of=What("str")),
    "builtins.range": What("iterator", of=What("int")),
    **{f"typing.{word}": What("set") for word in ("Set", "MutableSet", "AbstractSet")},
    **{f"collections.abc.{word}": What("set") for word in ("Set", "MutableSet")},
    "typing.FrozenSet": What("frozenset"),
    "typing.List": What("list"),
    "typing.Tuple": What("tuple"),
    "typing.Dict": What("dict"),
    **{f"collections.{word}": What("dict") for word in ("OrderedDict", "defaultdict", "Counter")},
    **{f"typing.{word}": What("dict") for word in ("OrderedDict", "DefaultDict", "Counter")},
    **{f"typing.{word}": What("iterator") for word in ("Iterator", "Iterable", "Generator")},
    **{f"collections.abc.{word}": What("iterator") for word in ("Iterator", "Iterable", "Generator")},
    **{f"pathlib.{word}": What("path") for word in ("Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath")},
    **{f"numpy.{word}": What("ndarray") for word in ("ndarray", "array")},
    "numpy.typing.NDArray": What("ndarray"),
    "pandas.DataFrame": What("dataframe"),
    "pandas.Series": What("series"),
    "pandas.core.frame.DataFrame": What("dataframe"),
    "pandas.core.series.Series": What("series"),
    "torch.Tensor": What("tensor"),
    "torch._tensor.Tensor": What("tensor"),
    "torch.nn.Parameter": What("parameter"),
    "torch.nn.parameter.Parameter": What("parameter"),
    "torch.Generator": What("generator", name="torch.Generator"),
    "numpy.random.Generator": What("generator", name="numpy.random.Generator"),
    "numpy.random.RandomState": What("generator", name="numpy.random.RandomState"),
    "random.Random": What("generator", name="random.Random"),
    "torch.utils.data.DataLoader": What("loader", name="torch.utils.data.DataLoader"),
    "torch.utils.data.dataloader.DataLoader": What("loader", name="torch.utils.data.DataLoader"),
    "torch.device": What("device"),
    "torch.dtype": What("dtype"),
    "torch.Size": What("tuple", of=What("int")),
}  # fmt: skip
_DATASETS = ("torch.utils.data.", "torchvision.datasets.", "torchaudio.datasets.", "torchtext.datasets.")
# What is found there is a description that many classes fit.
_ABSTRACT = (
    "typing",
    "typing_extensions",
    "collections.abc",
    "numbers",
    "os",
    "numpy.typing",
    "abc",
    "torch.jit.annotations",
)


def instance_of(name: str) -> What:
    """An instance of a class of another library, by its dotted name; unknown for what may be anything."""
    if (known := _CLASSES.get(name)) is not None:
        return known
    module, _, word = name.rpartition(".")
    if module in ("torch", "torch.cuda") and word.endswith("Tensor") and word[:-6] in _TENSOR_CLASSES:
        dtype, family = _TENSOR_CLASSES[word[:-6]]
        return tensor(family, dtype=dtype, device="cuda" if module == "torch.cuda" else "cpu")
    if name.startswith(_DATASETS) and (word.endswith("Dataset") or "datasets" in module or word == "Subset"):
        return What("dataset", name=name)
    if name.startswith("torch.nn.") and word[:1].isupper():
        return What("module", name=name)
    plain = word[:1].isupper() and module not in _ABSTRACT and name != "builtins.object"
    return What("instance", name=name) if plain else UNKNOWN


def outside_name(name: str) -> What:
    """What a dotted name of another library stands for."""
    module, _, word = name.rpartition(".")
    if module in ("torch", "numpy", "np") and word in DTYPES:
        exact = (
            {"int": "int64", "float": "float64"}.get(word, DTYPES[word][0]) if module == "numpy" else DTYPES[word][0]
        )
        return What("dtype", name=name, dtype=exact, family=DTYPES[word][1])
    if name in ("builtins.int", "builtins.float", "builtins.bool"):
        exact, family = {"int": ("int64", "integer"), "float": ("", "floating"), "bool": ("bool", "bool")}[word]
        return What("class", name=name, dtype=exact, family=family)
    if name in (
        "math.pi",
        "math.e",
        "math.inf",
        "math.nan",
        "numpy.pi",
        "numpy.e",
        "numpy.inf",
        "numpy.nan",
        "torch.pi",
    ):
        return What("float")
    if not module or (word.isupper() and not module.startswith("torch")):
        return UNKNOWN  # a module, or a constant: ``logging.INFO``
    return What("class" if word[:1].isupper() else "function", name=name)
