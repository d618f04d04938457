"""Values that change from run to run, and generators that start from entropy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Operation
from torchrepro_lint.syntax.visitor import is_none, within

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names

_SOURCES = re.compile(
    r"time\.(time|time_ns|perf_counter|perf_counter_ns|monotonic|monotonic_ns|process_time|clock)|os\.(urandom|getpid)|"
    r"uuid\.uuid[14]|secrets\.\w+|builtins\.id|random\.SystemRandom\(\)\.\w+|"
    r"datetime\.(datetime|date)\.(now|utcnow|today)|torch\.(random\.)?seed|torch\.Generator\(\)\.seed"
)

# Generators whose constructor takes entropy where it gets no seed: the position of the seed is the first.
GENERATORS = {
    "numpy.random.default_rng": "np.random.default_rng",
    "numpy.random.RandomState": "np.random.RandomState",
    "numpy.random.SeedSequence": "np.random.SeedSequence",
    "numpy.random.PCG64": "np.random.PCG64",
    "numpy.random.PCG64DXSM": "np.random.PCG64DXSM",
    "numpy.random.MT19937": "np.random.MT19937",
    "numpy.random.Philox": "np.random.Philox",
    "numpy.random.SFC64": "np.random.SFC64",
    "random.Random": "random.Random",
}
SEED_WORDS = ("seed", "entropy", "x", "a", "new_seed", "key")


def seed_argument(call: Call) -> Expression | None:
    """The seed that a call passes: its first argument, or one by a seed's name. Raises LookupError for ``*`` and ``**``."""
    for arg in call.args:
        if arg.star:
            raise LookupError
        if arg.keyword is None or arg.keyword in SEED_WORDS:
            return arg.value
    return None


def is_absent(names: Names, path: str, call: Call) -> bool:
    """Whether a call gets no seed, or None whatever the program does."""
    try:
        seed = seed_argument(call)
    except LookupError:
        return False
    if seed is None:
        return True
    return all(is_none(value) for _, value in names.values(path, seed))


def changing_source(names: Names, path: str, expression: Expression) -> str | None:
    """What makes a value change between runs, ``time.time``; None unless every value that it may have does."""
    found: list[str | None] = []
    for file, value in names.made(path, expression):
        if isinstance(value, Operation) and value.op in ("if", "or"):
            return None  # one of the alternatives may be the user's seed
        found.append(_source(names, file, value, set()))
    return found[0] if found and None not in found else None


def _source(names: Names, path: str, value: Expression, seen: set[int]) -> str | None:
    """The first source in a value; what was ``seen`` is not followed again: ``seed = int(seed)`` leads to itself."""
    seen.add(id(value))
    for each in within(value):
        if isinstance(each, Call):
            for name in names.names(path, each.func):
                if _SOURCES.fullmatch(name):
                    return name.replace("()", "")
                if name == "builtins.hash" and each.args and _hashes_text(names, path, each.args[0].value, set()):
                    return "hash of a string"
        elif each is not value and not isinstance(each, Constant):
            for file, inner in names.values(path, each):
                follow = isinstance(inner, Call) and id(inner) not in seen
                if follow and (source := _source(names, file, inner, seen)) is not None:
                    return source
    return None


def _hashes_text(names: Names, path: str, expression: Expression, seen: set[int]) -> bool:
    """A string, whose hash changes with ``PYTHONHASHSEED``: a literal, an f-string, ``str(...)`` and the like."""
    if id(expression) in seen:
        return False
    seen.add(id(expression))
    for file, value in names.values(path, expression):
        match value:
            case Constant(value=str() | bytes()) | Operation(op="f"):
                continue
            case Operation(op="+" | "%", operands=parts) if any(
                _hashes_text(names, file, each, seen) for each in parts
            ):
                continue
            case Call(func=func) if set(names.names(file, func)) & {"builtins.str", "builtins.repr"}:
                continue
        return False
    return True
