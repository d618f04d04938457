"""Types of library calls: functions, classes and methods of Python's library, numpy and pandas, and random generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.libraries import module_wrapper, wrapped_module
from torchrepro_lint.dataflow.types import containers
from torchrepro_lint.dataflow.types.annotations import instance_of
from torchrepro_lint.dataflow.types.context import device_at
from torchrepro_lint.dataflow.types.lattice import BOTTOM, TEXT, UNKNOWN, AbstractValue, join_all
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.nodes import Call, Constant
from torchrepro_lint.syntax.qualified_names import is_progress_bar, last_word, split_last
from torchrepro_lint.syntax.visitor import is_none

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.bindings import ProgramPoint
    from torchrepro_lint.dataflow.types.context import TypeInference


_INT, _FLOAT, _BOOL = AbstractValue("int"), AbstractValue("float"), AbstractValue("bool")
_TEXTS = AbstractValue("list", contents=TEXT)
_FILE = AbstractValue("file", contents=TEXT)


def method_value(receiver: AbstractValue, word: str) -> AbstractValue:
    """The result of a method of an array, a data frame or bytes."""
    match receiver.kind:
        case "ndarray":
            if word == "tolist":
                return AbstractValue("list")
            return AbstractValue("ndarray") if word in _ARRAYS else UNKNOWN
        case "series" | "dataframe":
            if word == "to_numpy":
                return AbstractValue("ndarray")
            if word in ("tolist", "to_list"):
                return AbstractValue("list")
            return receiver if word in _FRAMES else UNKNOWN
        case "bytes":
            return TEXT if word in ("decode", "hex") else UNKNOWN
    return UNKNOWN


_FRAMES = frozenset({"copy", "dropna", "fillna", "reset_index", "astype", "sort_values", "head", "tail"})
_ARRAYS = frozenset(
    {"astype", "copy", "reshape", "ravel", "flatten", "transpose", "swapaxes", "squeeze", "repeat", "clip"}
    | {"round", "view"}
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
RESULTS: dict[str, AbstractValue] = {
    **dict.fromkeys(("os.listdir", "glob.glob"), _TEXTS),
    "glob.iglob": AbstractValue("iterator", contents=TEXT),
    **{f"os.path.{word}": TEXT for word in ("join", "basename", "dirname", "abspath", "expanduser", "realpath")},
    **dict.fromkeys(("os.path.normpath", "os.path.relpath", "os.getcwd", "os.fspath", "json.dumps"), TEXT),
    **dict.fromkeys(("os.path.splitext", "os.path.split"), AbstractValue("tuple", contents=TEXT, items=(TEXT, TEXT))),
    **dict.fromkeys(("os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.islink"), _BOOL),
    "os.walk": AbstractValue("iterator", contents=AbstractValue("tuple", items=(TEXT, _TEXTS, _TEXTS))),
    **{f"pathlib.{word}": AbstractValue("path") for word in ("Path", "PurePath", "PosixPath", "Path.cwd", "Path.home")},
    **dict.fromkeys(("time.time", "time.perf_counter", "time.monotonic", "random.random", "random.uniform"), _FLOAT),
    **dict.fromkeys(("random.randint", "random.randrange", "os.cpu_count", "os.path.getsize"), _INT),
    **{f"os.{word}": _INT for word in ("getpid", "getppid", "getuid", "geteuid", "getgid", "getegid")},
}


# Methods of modules that return the module.
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
# Functions that return their argument, or a copy.
_PASSING = frozenset({"copy.copy", "copy.deepcopy"})
_COLLECTING = {
    **{word: word for word in ("set", "frozenset", "list", "tuple")},
    "sorted": "list",
    "reversed": "iterator",
    "iter": "iterator",
}
_BUILTINS = {
    "range": AbstractValue("iterator", contents=_INT),
    **dict.fromkeys(("isinstance", "callable", "hasattr", "any", "all", "issubclass", "bool"), _BOOL),
    **dict.fromkeys(("hash", "id", "ord", "int"), _INT),
    "float": _FLOAT,
    **dict.fromkeys(("str", "repr", "chr", "input", "format", "ascii", "hex", "bin"), TEXT),
    **dict.fromkeys(("bytes", "bytearray"), AbstractValue("bytes")),
}


def is_segmentation_model(name: str) -> bool:
    """Whether a name is a factory of torchvision's (from 0.3) whose networks return a dictionary of scores for each class and pixel."""
    module, word = split_last(name)
    return module.startswith("torchvision.models.segmentation") and word[:1].islower()


def _segmentation_model(name: str) -> AbstractValue | None:
    return AbstractValue("module", name=name) if is_segmentation_model(name) else None


def function_value(inference: TypeInference, name: str, call: Call, point: ProgramPoint) -> AbstractValue:
    """The result of a library function, by dotted name."""
    module, word = split_last(name)
    if module == "builtins":
        return _builtin(inference, word, call, point)
    if (known := RESULTS.get(name) or _segmentation_model(name)) is not None:
        return known
    if (wrapped := _wrapped(inference, name, call, point)) is not None:
        return wrapped
    if module in ("builtins.set", "builtins.frozenset"):
        return _of_sets(inference, word, call, point, last_word(module))
    if call.args and (name in _PASSING or is_progress_bar(name)):
        return inference.infer(call.args[0].value, point)
    if name in ("itertools.cycle", "itertools.islice"):
        return _builtin(inference, "iter", call, point)
    if name == "numpy.random.default_rng":
        return _generator(name, call)
    if module == "math":
        return _INT if word in ("floor", "ceil", "gcd", "comb", "factorial", "isqrt", "trunc") else _FLOAT
    if module == "numpy":
        return AbstractValue("ndarray") if word in _ARRAY_FUNCTIONS else UNKNOWN
    if module in ("numpy.linalg", "numpy.fft"):
        return UNKNOWN
    if module == "pandas":
        return AbstractValue("dataframe") if word.startswith("read_") else UNKNOWN
    made = instance_of(name)
    return (
        made._replace(constructor_call=(point.path, call))
        if made.kind in ("module", "dataset", "loader", "instance")
        else UNKNOWN
    )


def constructor_value(inference: TypeInference, name: str, call: Call, point: ProgramPoint) -> AbstractValue | None:
    """The result of a library constructor that is more than an instance; None for others."""
    module, word = split_last(name)
    if module == "builtins":
        return _builtin(inference, word, call, point)
    if name in ("torch.Generator", "numpy.random.RandomState", "random.Random", "numpy.random.default_rng"):
        return _generator(name, call)
    if name == "torch.Tensor":
        return AbstractValue("tensor", family="floating", device=device_at(inference, point), grad=False)
    if name in ("weakref.WeakSet", "_weakrefset.WeakSet"):
        return _builtin(inference, "set", call, point)
    if name == "collections.OrderedDict":
        return _dictionary(inference, call, point)
    if name in ("collections.defaultdict", "collections.Counter"):
        return AbstractValue("dict")
    return _wrapped(inference, name, call, point)


def _wrapped(inference: TypeInference, name: str, call: Call, point: ProgramPoint) -> AbstractValue | None:
    """The module that a wrapper wraps; None for another function, or if it is unknown."""
    wrapper = module_wrapper(name)
    given = wrapped_module(wrapper, call) if wrapper is not None else None
    inner = inference.infer(given, point) if given is not None else UNKNOWN
    return inner if inner.kind == "module" else None


def _of_sets(inference: TypeInference, word: str, call: Call, point: ProgramPoint, kind: str) -> AbstractValue:
    """The result of a set method called on the class: ``set.union(*groups)``."""
    if word not in ("union", "intersection", "difference", "symmetric_difference") or not call.args:
        return UNKNOWN
    element = containers.element
    groups = [(arg.star, inference.infer(arg.value, point)) for arg in call.args]
    return AbstractValue(kind, contents=join_all(*(element(element(each) if star else each) for star, each in groups)))


def _builtin(inference: TypeInference, word: str, call: Call, point: ProgramPoint) -> AbstractValue:
    args = [inference.infer(arg.value, point) for arg in call.args if not arg.star and arg.keyword is None]
    if word in _COLLECTING:
        if not args:
            return AbstractValue(_COLLECTING[word], contents=None if call.args else BOTTOM)
        source = args[0]
        of = containers.element(source)
        items = source.items if word in ("list", "tuple") else None
        return AbstractValue(_COLLECTING[word], contents=of if of.kind or of.grad is False else None, items=items)
    match word:
        case "enumerate":
            pair = (_INT, containers.element(args[0]) if args else UNKNOWN)
            return AbstractValue("iterator", contents=AbstractValue("tuple", items=pair))
        case "zip" if any(arg.star for arg in call.args):
            return AbstractValue("iterator", contents=AbstractValue("tuple"))
        case "zip":
            return AbstractValue(
                "iterator", contents=AbstractValue("tuple", items=tuple(containers.element(each) for each in args))
            )
        case "dict":
            return _dictionary(inference, call, point)
        case "max" | "min" if len(args) > 1:
            return join_all(*args)._replace(value=None)
        case "max" | "min" | "next" if len(args) == 1:
            return containers.element(args[0])
        case "abs" | "round" | "sum" | "pow" if args:
            return _computed(word, args)
        case "filter" if len(args) == 2:
            return AbstractValue("iterator", contents=containers.element(args[1]))
        case "len":
            return _length(args)
    return _opened(call) if word == "open" else _BUILTINS.get(word, UNKNOWN)


def _opened(call: Call) -> AbstractValue:
    """``open(path)``, unless it is opened for bytes."""
    mode = known_argument(call, 1, "mode")
    return _FILE if mode is None or (isinstance(mode, Constant) and "b" not in str(mode.value)) else UNKNOWN


def _dictionary(inference: TypeInference, call: Call, point: ProgramPoint) -> AbstractValue:
    """``dict(pairs, name=value)``."""
    if any(arg.star == "*" for arg in call.args):
        return AbstractValue("dict")
    found = [(arg, inference.infer(arg.value, point)) for arg in call.args]
    parts = (what for arg, what in found if arg.keyword is None)
    return containers.mapping(parts, (what for arg, what in found if arg.keyword is not None))


def _computed(word: str, args: list[AbstractValue]) -> AbstractValue:
    first = args[0]
    if word == "abs":
        return first._replace(value=None) if first.kind in ("int", "float", "tensor", "ndarray") else UNKNOWN
    if word == "round":
        if len(args) == 1 and first.kind in ("int", "float"):
            return _INT
        return _FLOAT if first.kind == "float" else UNKNOWN
    if word == "sum" and len(args) == 1 and first.element.kind in ("int", "float"):
        return AbstractValue(first.element.kind) if first.element.kind == "int" else UNKNOWN
    return UNKNOWN


def _length(args: list[AbstractValue]) -> AbstractValue:
    known = args[0].items if args else None
    return AbstractValue("int", value=len(known)) if known is not None else _INT


def _generator(name: str, call: Call) -> AbstractValue:
    first = call.args[0].value if call.args else None
    seeded = False if first is None or is_none(first) else None
    if seeded is None and name != "torch.Generator":
        seeded = True if isinstance(first, Constant) else None
    return AbstractValue("generator", name=name, seeded=seeded if name != "torch.Generator" else False)


def of_generator(receiver: AbstractValue, word: str, call: Call) -> AbstractValue:
    """The result of a random generator's method; seeding returns the generator, seeded."""
    if word == "manual_seed":
        return receiver._replace(seeded=True)
    if receiver.name.startswith("numpy.random"):
        sized = any(arg.keyword == "size" for arg in call.args)
        return (
            AbstractValue("ndarray") if sized or (word in ("permutation", "randn", "rand") and call.args) else UNKNOWN
        )
    return _FLOAT if word in ("random", "uniform", "gauss") and receiver.name == "random.Random" else UNKNOWN
