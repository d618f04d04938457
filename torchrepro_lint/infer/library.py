"""What functions and methods of Python's library, numpy and pandas give."""

from __future__ import annotations

from torchrepro_lint.infer.what import UNKNOWN, What

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
