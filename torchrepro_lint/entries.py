"""The records of the catalogue, and how its TOML tables become records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Scalar: TypeAlias = str | int | float | bool

# What third-party calls set besides environment variables.
FLAGS = (
    *("deterministic-algorithms", "cudnn-deterministic", "cudnn-benchmark", "cudnn-enabled", "allow-tf32"),
    *("fill-uninitialized-memory", "worker-seeds"),
)
# What is seeded and drawn from: of torch, of its devices alone, of NumPy, of Python; an environment's and an object's own.
GENERATORS = ("torch", "torch-cuda", "numpy", "python", "environment", "own")

# What a row says happens with the flag on.
BEHAVIOURS = ("raises", "deterministic", "silent", "warns", "ties", "fills", "none")


class Condition(NamedTuple):
    """One test of a call; all tests of a row must pass.

    ``of`` is a parameter, or what only inference knows: ``input.*`` of the tensor (``ndim``, ``dtype``, ``layout``, …),
    ``program.*`` of what surrounds the call, ``module.*`` of the module's state, ``class.*`` the class of what is passed
    for a parameter, ``spatial`` the number of dimensions that are resized, where it is known. ``test`` says how ``values`` are meant:
    ``one_of``, ``none_of``, ``all`` and ``not_all`` (elements of a size equal the value), ``length`` (of a literal),
    ``above``, ``at_least``, ``at_most`` (numbers), ``given`` (the parameter is passed and not None), ``constant``.
    """

    of: str
    test: str
    values: tuple[Scalar, ...]


class Spelling(NamedTuple):
    """A public name of an operation: ``parameters`` by position (a method's without the tensor), ``keywords`` by name
    only, and ``defaults`` of what the call leaves out or the spelling has no parameter for.
    """

    name: str
    parameters: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    defaults: tuple[tuple[str, Scalar], ...] = ()
    when: tuple[Condition, ...] = ()


class Row(NamedTuple):
    """What one operation does with deterministic algorithms on, in the torch version of the catalogue.

    ``devices`` are of cuda, cpu, mps, or ``("any",)``; ``phase`` is forward or backward. ``listed`` says whether torch's
    documentation tells the same. ``kind`` and ``evidence`` are of ``effective.toml``, empty in a documented row.
    """

    operation: str
    behaviour: str
    devices: tuple[str, ...]
    phase: str
    when: tuple[Condition, ...]
    listed: bool
    spelling: Spelling
    kind: str = ""
    evidence: str = ""


class Consumer(NamedTuple):
    """A callable that draws from a global generator of ``family`` (torch, numpy, python).

    ``phase`` says when: ``construct``, ``call`` (of what is constructed, for a class), ``iterate``, ``later`` (by methods of
    what is constructed), ``called`` (of what a function returns).
    Passing one of the parameters ``generators`` makes it draw from that instead.
    ``source`` is what the row was read from, the library and its version: ``torch 2.13``.
    """

    spelling: Spelling
    family: str
    phase: str
    generators: tuple[str, ...]
    when: tuple[Condition, ...]
    source: str
    evidence: str


class Setting(NamedTuple):
    """A flag, or an environment variable in capitals, that a call sets to ``value`` where ``when`` holds.

    The flags are those of ``FLAGS``; ``deterministic-algorithms`` takes True, False and ``warn``.
    """

    flag: str
    value: Scalar
    when: tuple[Condition, ...]


class Seeder(NamedTuple):
    """A callable that seeds ``families`` (torch: CPU and devices, torch-cuda: devices only, numpy, python) or sets flags.

    ``seed`` is the parameter of the seed, empty where no argument is one. ``default`` says what leaving it out means,
    ``none`` what None means: ``entropy``, ``constant``, ``nothing`` or ``required``. ``when`` is the condition for seeding.
    Where ``holds`` it only keeps the seed for what it is given to, and ``within`` seeds a block that it is entered for.
    """

    spelling: Spelling
    families: tuple[str, ...]
    seed: str
    default: str
    none: str
    when: tuple[Condition, ...]
    holds: bool
    within: bool
    settings: tuple[Setting, ...]
    source: str
    evidence: str


class Framework(NamedTuple):
    """What a call of a library does with the program that hands itself over, in this order.

    It sets flags (``settings``), seeds (``seeder``), runs the functions passed for the parameters ``runs``, calls methods
    of the objects that it, or what it is a method of, was given (``calls``: words, ``*`` for any letters, as they come),
    draws itself (``draws``). ``accelerates`` is the condition for putting work on an accelerator where there is one
    (None: it does not). ``matters``: the call trains or measures; ``keeps``: what it is handed is called later. ``makes`` is ``environment`` where the result is one of
    reinforcement learning, which ``wraps`` the environment passed for that parameter. An environment has a generator of
    its own: what seeds it has ``environment`` among its families. ``gives`` is the class, of the same package, of the result.
    """

    spelling: Spelling
    settings: tuple[Setting, ...]
    seeder: Seeder | None
    draws: tuple[Consumer, ...]
    runs: tuple[str, ...]
    calls: tuple[str, ...]
    accelerates: tuple[Condition, ...] | None
    matters: bool
    keeps: bool
    makes: str
    wraps: str
    gives: str
    source: str
    evidence: str


class ErrorName(NamedTuple):
    """The name in a run-time error, ``index_add_cuda_``; it exists from ``since`` to ``until`` (None: still there)."""

    name: str
    since: str
    until: str | None
    operations: tuple[str, ...]
    calls: tuple[str, ...]
    devices: tuple[str, ...]
    phase: str
    when: tuple[Condition, ...]
    evidence: str


def conditions(tests: Iterable[dict[str, Any]]) -> tuple[Condition, ...]:
    """``when`` of a table. Raises ``ValueError`` for a test that is not one key beside ``of``."""
    found: list[Condition] = []
    for test in tests:
        (name, value), *more = ((key, value) for key, value in test.items() if key != "of")
        if more:
            raise ValueError(f"more than one test in {test}")
        found.append(Condition(test["of"], name, tuple(value) if isinstance(value, list) else (value,)))
    return tuple(found)


def spelling(table: dict[str, Any], name: str = "") -> Spelling:
    """The spelling that a table describes."""
    return Spelling(
        name or table["name"],
        tuple(table.get("parameters", ())),
        tuple(table.get("keywords", ())),
        tuple(table.get("defaults", {}).items()),
        conditions(table.get("when", ())),
    )


def compatible(one: Iterable[Condition], other: Iterable[Condition]) -> bool:
    """Whether both may hold at once: no subject has two lists of values without a common one."""
    return not any(
        a.of == b.of and a.test == b.test == "one_of" and not set(a.values) & set(b.values) for a in one for b in other
    )
