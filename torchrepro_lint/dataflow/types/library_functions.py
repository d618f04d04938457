"""What functions and methods of Python's library, numpy and pandas give.

What functions and classes of Python, numpy, pandas and the like give, and generators of random numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types import containers
from torchrepro_lint.dataflow.types.annotations import instance_of
from torchrepro_lint.dataflow.types.context import device_around
from torchrepro_lint.dataflow.types.lattice import NOTHING, UNKNOWN, What, joined
from torchrepro_lint.resolve.names import MODULE_WRAPPERS
from torchrepro_lint.syntax.nodes import Call, Constant

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference
    from torchrepro_lint.dataflow.types.targets import Spot


_TEXT = What("str", of=What("str"))
_INT, _FLOAT, _BOOL = What("int"), What("float"), What("bool")
_TEXTS = What("list", of=_TEXT)


def method(receiver: What, word: str) -> What:
    """What a method of an array, a frame or a number gives."""
    match receiver.kind:
        case "ndarray":
            if word == "tolist":
                return What("list")
            return What("ndarray") if word in _ARRAYS else UNKNOWN
        case "series" | "dataframe":
            if word == "to_numpy":
                return What("ndarray")
            if word in ("tolist", "to_list"):
                return What("list")
            return (
                receiver
                if word in ("copy", "dropna", "fillna", "reset_index", "astype", "sort_values", "head", "tail")
                else UNKNOWN
            )
        case "bytes":
            return _TEXT if word in ("decode", "hex") else UNKNOWN
    return UNKNOWN


def of_numpy(word: str) -> What:
    """What a function of numpy gives."""
    return What("ndarray") if word in _ARRAY_FUNCTIONS else UNKNOWN


_ARRAYS = frozenset(
    {
        "astype",
        "copy",
        "reshape",
        "ravel",
        "flatten",
        "transpose",
        "swapaxes",
        "squeeze",
        "repeat",
        "clip",
        "round",
        "view",
    }
)
_ARRAY_FUNCTIONS = frozenset(
    {"array", "asarray", "ascontiguousarray", "zeros", "ones", "empty", "full", "arange", "linspace", "eye", "identity"}
    | {
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "concatenate",
        "stack",
        "vstack",
        "hstack",
        "tile",
        "repeat",
    }
    | {"fromfile", "frombuffer", "loadtxt", "genfromtxt", "expand_dims", "transpose", "reshape", "ravel", "logspace"}
    | {"column_stack", "argwhere", "bincount", "diff", "flip", "fliplr", "flipud", "roll", "rot90", "pad", "meshgrid_"}
)
RESULTS: dict[str, What] = {
    **dict.fromkeys(("os.listdir",), _TEXTS),
    **dict.fromkeys(("glob.glob",), _TEXTS),
    "glob.iglob": What("iterator", of=_TEXT),
    **dict.fromkeys(
        (
            "os.path.join",
            "os.path.basename",
            "os.path.dirname",
            "os.path.abspath",
            "os.path.expanduser",
            "os.getcwd",
            "os.path.realpath",
            "os.path.normpath",
            "os.path.relpath",
            "os.fspath",
            "json.dumps",
        ),
        _TEXT,
    ),
    **dict.fromkeys(("os.path.splitext", "os.path.split"), What("tuple", of=_TEXT, items=(_TEXT, _TEXT))),
    **dict.fromkeys(("os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.islink"), _BOOL),
    "os.walk": What("iterator", of=What("tuple", items=(_TEXT, _TEXTS, _TEXTS))),
    "pathlib.Path.cwd": What("path"),
    "pathlib.Path.home": What("path"),
    **dict.fromkeys(("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"), What("path")),
    **dict.fromkeys(("time.time", "time.perf_counter", "time.monotonic", "random.random", "random.uniform"), _FLOAT),
    **dict.fromkeys(("random.randint", "random.randrange", "os.getpid", "os.cpu_count"), _INT),
    **dict.fromkeys(("os.path.getsize",), _INT),
}


# Methods of modules that give the module.
FLUENT = frozenset(
    {
        "to",
        "cuda",
        "cpu",
        "eval",
        "train",
        "float",
        "half",
        "double",
        "bfloat16",
        "requires_grad_",
        "share_memory",
        "apply",
    }
)
_COLLECTING = {
    "set": "set",
    "frozenset": "frozenset",
    "list": "list",
    "tuple": "tuple",
    "sorted": "list",
    "reversed": "iterator",
    "iter": "iterator",
}
_BUILTINS = {
    "range": What("iterator", of=_INT),
    **dict.fromkeys(("isinstance", "callable", "hasattr", "any", "all", "issubclass", "bool"), _BOOL),
    **dict.fromkeys(("hash", "id", "ord", "int"), _INT),
    "float": _FLOAT,
    **dict.fromkeys(("str", "repr", "chr", "input", "format", "ascii", "hex", "bin"), _TEXT),
    **dict.fromkeys(("bytes", "bytearray"), What("bytes")),
}


def result(kinds: TypeInference, name: str, call: Call, spot: Spot) -> What:
    """What a function of a library gives, by its dotted name."""
    module, _, word = name.rpartition(".")
    if module == "builtins":
        return _builtin(kinds, word, call, spot)
    if (known := RESULTS.get(name)) is not None:
        return known
    if (wrapped := _wrapped(kinds, name, call, spot)) is not None:
        return wrapped
    if module in ("builtins.set", "builtins.frozenset"):
        return _of_sets(kinds, word, call, spot, module.rpartition(".")[2])
    if (
        name in ("copy.copy", "copy.deepcopy", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.std.tqdm")
        and call.args
    ):
        return kinds.what(call.args[0].value, spot)
    if name == "numpy.random.default_rng":
        return _generator(name, call)
    if module == "math":
        return _INT if word in ("floor", "ceil", "gcd", "comb", "factorial", "isqrt", "trunc") else _FLOAT
    if module == "numpy":
        return of_numpy(word)
    if module in ("numpy.linalg", "numpy.fft"):
        return UNKNOWN
    if module == "pandas":
        return What("dataframe") if word.startswith("read_") else UNKNOWN
    made = instance_of(name)
    return (
        made._replace(made=(spot.path, call)) if made.kind in ("module", "dataset", "loader", "instance") else UNKNOWN
    )


def constructed(kinds: TypeInference, name: str, call: Call, spot: Spot) -> What | None:
    """What a class gives that is more than an object of it."""
    module, _, word = name.rpartition(".")
    if module == "builtins":
        return _builtin(kinds, word, call, spot)
    if name in ("torch.Generator", "numpy.random.RandomState", "random.Random", "numpy.random.default_rng"):
        return _generator(name, call)
    if name == "torch.Tensor":
        return What("tensor", family="floating", device=device_around(kinds, spot), grad=False)
    if name in ("collections.OrderedDict", "collections.defaultdict", "collections.Counter"):
        return What("dict")
    return _wrapped(kinds, name, call, spot)


def _wrapped(kinds: TypeInference, name: str, call: Call, spot: Spot) -> What | None:
    """The module that a wrapper is given; None for another function, or where it is not known."""
    if name not in MODULE_WRAPPERS:
        return None
    given = next((arg.value for arg in call.args if not arg.star and arg.keyword in (None, "module")), None)
    inner = kinds.what(given, spot) if given is not None else UNKNOWN
    return inner if inner.kind == "module" else None


def _of_sets(kinds: TypeInference, word: str, call: Call, spot: Spot, kind: str) -> What:
    """``set.union(*groups)``: what a method gives that is called by its class."""
    if word not in ("union", "intersection", "difference", "symmetric_difference") or not call.args:
        return UNKNOWN
    element = containers.element
    groups = [(arg.star, kinds.what(arg.value, spot)) for arg in call.args]
    return What(kind, of=joined(*(element(element(each) if star else each) for star, each in groups)))


def _builtin(kinds: TypeInference, word: str, call: Call, spot: Spot) -> What:
    args = [kinds.what(arg.value, spot) for arg in call.args if not arg.star and arg.keyword is None]
    if word in _COLLECTING:
        if not args:
            return What(_COLLECTING[word], of=None if call.args else NOTHING)
        source = args[0]
        of = containers.element(source)
        items = source.items if word in ("list", "tuple") else None
        return What(_COLLECTING[word], of=of if of.kind else None, items=items)
    match word:
        case "enumerate":
            pair = (_INT, containers.element(args[0]) if args else UNKNOWN)
            return What("iterator", of=What("tuple", items=pair))
        case "zip" if any(arg.star for arg in call.args):
            return What("iterator", of=What("tuple"))
        case "zip":
            return What("iterator", of=What("tuple", items=tuple(containers.element(each) for each in args)))
        case "dict":
            values = [kinds.what(arg.value, spot) for arg in call.args if arg.keyword is not None]
            return What("dict", of=joined(*values) if values and not args and len(values) == len(call.args) else None)
        case "max" | "min" if len(args) > 1:
            return joined(*args)._replace(value=None)
        case "max" | "min" | "next" if len(args) == 1:
            return containers.element(args[0])
        case "abs" | "round" | "sum" | "pow" if args:
            return _computed(word, args)
        case "filter" if len(args) == 2:
            return What("iterator", of=containers.element(args[1]))
        case "len":
            return _length(args)
    return _BUILTINS.get(word, UNKNOWN)


def _computed(word: str, args: list[What]) -> What:
    first = args[0]
    if word == "abs":
        return first._replace(value=None) if first.kind in ("int", "float", "tensor", "ndarray") else UNKNOWN
    if word == "round":
        return (
            _INT
            if len(args) == 1 and first.kind in ("int", "float")
            else first._replace(value=None)
            if first.kind == "float"
            else UNKNOWN
        )
    if word == "sum" and len(args) == 1 and first.element.kind in ("int", "float"):
        return What(first.element.kind) if first.element.kind == "int" else UNKNOWN
    return UNKNOWN


def _length(args: list[What]) -> What:
    known = args[0].items if args else None
    return What("int", value=len(known)) if known is not None else _INT


def _generator(name: str, call: Call) -> What:
    first = call.args[0].value if call.args else None
    seeded = False if first is None or (isinstance(first, Constant) and first.value is None) else None
    if seeded is None and name != "torch.Generator":
        seeded = True if isinstance(first, Constant) else None
    return What("generator", name=name, seeded=seeded if name != "torch.Generator" else False)


def of_generator(receiver: What, word: str, call: Call) -> What:
    """What a method of a generator of random numbers gives; seeding it gives it back, seeded."""
    if word == "manual_seed":
        return receiver._replace(seeded=True)
    if receiver.name.startswith("numpy.random"):
        sized = any(arg.keyword == "size" for arg in call.args)
        return What("ndarray") if sized or (word in ("permutation", "randn", "rand") and call.args) else UNKNOWN
    return _FLOAT if word in ("random", "uniform", "gauss") and receiver.name == "random.Random" else UNKNOWN
