"""The records of the catalogue: rows, conditions and signatures, how TOML tables become records, and an index of rows
by name.

Also the three families of random generators as messages name them, and the cuBLAS workspace sizes that torch 1.7 to
2.15 accepts as deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import count
from typing import Any, Generic, TypeAlias, TypeVar

from torchrepro_lint.source.patterns import wildcard_expression
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.qualified_names import last_word, top_package


class Family(Record, frozen=True):
    """An RNG family: its key in the catalogue, its generator, what messages call it, and the call that seeds it."""

    key: str
    owner: str
    what: str
    seeder: str


TORCH = Family("torch", "torch's generator", "torch", "torch.manual_seed(...)")
NUMPY = Family("numpy", "numpy's global generator", "it", "np.random.seed(...)")
PYTHON = Family("python", "Python's global generator", "it", "random.seed(...)")
FAMILIES = (TORCH, NUMPY, PYTHON)


CUBLAS_VARIABLE = "CUBLAS_WORKSPACE_CONFIG"
CUBLAS_VALUES = (":4096:8", ":16:8")
# From this release on torch does not require it.
CUBLAS_NOT_NEEDED_SINCE = (2, 10)


Scalar: TypeAlias = str | int | float | bool
Table: TypeAlias = dict[str, Any]
_Entry = TypeVar("_Entry")


class Condition(Record, frozen=True):
    """One condition on a call; all conditions of a row must hold.

    ``of`` is the subject: a parameter, or what only inference knows: ``input.*`` of the tensor (``ndim``, ``dtype``,
    ``layout``, …), ``program.*`` of the program around the call, ``module.*`` of the module's state, ``class.*`` the class of
    an argument, ``spatial`` the number of resized dimensions. ``test`` says how ``values`` are meant:
    ``one_of``, ``none_of``, ``all`` and ``not_all`` (elements of a size equal the value), ``length`` (of a literal),
    ``above``, ``at_least``, ``at_most`` (numbers), ``given`` (the parameter is passed and not None), ``constant``.
    """

    of: str
    test: str
    values: tuple[Scalar, ...]


class Signature(Record, frozen=True):
    """The signature of a public call: ``parameters`` by position (a method's without the tensor), ``keywords`` by name only,
    and ``defaults`` of parameters that a call leaves out or the signature lacks.
    """

    name: str
    parameters: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    defaults: tuple[tuple[str, Scalar], ...] = ()
    when: tuple[Condition, ...] = ()


class OperationRow(Record, frozen=True):
    """A row: the behaviour of an operation with deterministic algorithms on, in one torch release.

    ``devices`` are of cuda, cpu, mps, or ``("any",)``; ``phase`` is forward or backward. ``listed`` says whether torch's
    documentation says the same. ``kind`` and ``evidence`` are from ``effective.toml``, empty in a documented row.
    """

    operation: str
    behaviour: str
    devices: tuple[str, ...]
    phase: str
    when: tuple[Condition, ...]
    listed: bool
    signature: Signature
    kind: str = ""
    evidence: str = ""


class Consumer(Record, frozen=True):
    """A callable that draws from a global generator of ``family`` (torch, numpy, python).

    ``phase`` says when: ``construct``, ``call`` (of the instance, for a class), ``iterate``, ``later`` (in methods of the
    instance), ``called`` (when a function's result is called). With an argument for one of ``generators`` it draws from that
    instead. ``source`` is the library and version that the row was read from: ``torch 2.13``.
    """

    signature: Signature
    family: str
    phase: str
    generators: tuple[str, ...]
    source: str
    evidence: str
    when: tuple[Condition, ...] = ()


class FlagSetting(Record, frozen=True):
    """A flag, or an environment variable in capitals, that a call sets to ``value`` where ``when`` holds.

    ``deterministic-algorithms`` takes True, False and ``warn``.
    """

    flag: str
    value: Scalar
    when: tuple[Condition, ...]


class Seeder(Record, frozen=True):
    """A callable that seeds ``families`` (torch: CPU and devices, torch-cuda: devices only, numpy, python) or sets flags.

    ``seed`` is the parameter of the seed, empty if there is none. ``default`` says what leaving it out means, ``none`` what
    None means: ``entropy``, ``constant``, ``nothing`` or ``required``. ``when`` is the condition for seeding. With ``holds`` it
    only stores the seed for its later user; with ``within`` it is a context manager that seeds its block.
    """

    signature: Signature
    settings: tuple[FlagSetting, ...]
    seed: str
    default: str
    none: str
    source: str
    evidence: str
    families: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()
    holds: bool = False
    within: bool = False


class FrameworkModel(Record, frozen=True):
    """The model of a library call that takes control of the program: its effects, in this order.

    It sets flags (``settings``), seeds (``seeder``), runs the functions passed for the parameters ``runs``, calls methods of
    objects that were passed to it or to its receiver (``calls``: method names, ``*`` for any letters, in order), and draws
    itself (``draws``). ``accelerates`` is the condition for using an accelerator if there is one (None: it does not).
    ``matters``: the call trains or measures; ``restores``: it restores generators or loaders with a checkpoint; ``keeps``: its
    arguments, or what it decorates, are called ``later``, or by its ``receiver`` when that is used. ``makes`` is ``environment`` if the
    result is an environment of reinforcement learning, which ``wraps`` the environment passed for that parameter. An
    environment has a generator of its own: its seeders have ``environment`` among their families. ``gives`` is the class of
    the result, in the same package. A constructor hands what it gets for the parameters ``hands`` to methods of subclasses that
    have a parameter of the same name.
    """

    signature: Signature
    settings: tuple[FlagSetting, ...]
    seeder: Seeder | None
    draws: tuple[Consumer, ...]
    accelerates: tuple[Condition, ...] | None
    source: str
    evidence: str
    runs: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    matters: bool = False
    restores: bool = False
    keeps: str = ""
    makes: str = ""
    wraps: str = ""
    gives: str = ""
    hands: tuple[str, ...] = ()


class ErrorName(Record, frozen=True):
    """A name in torch's run-time errors, ``index_add_cuda_``; it exists from ``since`` to ``until`` (None: still there)."""

    name: str
    since: str
    operations: tuple[str, ...]
    calls: tuple[str, ...]
    devices: tuple[str, ...]
    phase: str
    evidence: str
    until: str | None = None
    when: tuple[Condition, ...] = ()


def read_conditions(tests: Iterable[Table]) -> tuple[Condition, ...]:
    """Read ``when`` of a table. Raises ``ValueError`` for a condition with more than one key besides ``of``."""
    found: list[Condition] = []
    for test in tests:
        (name, value), *more = ((key, value) for key, value in test.items() if key != "of")
        if more:
            raise ValueError(f"more than one test in {test}")
        found.append(Condition(test["of"], name, tuple(value) if isinstance(value, list) else (value,)))
    return tuple(found)


def read_signature(table: Table, name: str) -> Signature:
    """Read the signature that a table describes; its conditions are those of the row."""
    return read_row(Signature, table, name=name, defaults=tuple(table.get("defaults", {}).items()), when=())


def read_row(record: Callable[..., _Entry], table: Table, **given: Any) -> _Entry:
    """The record of a row: its fields by their names, and those that are ``given``.

    A list becomes a tuple, and ``when`` conditions; a field that the row lacks has its default.
    """
    known: tuple[str, ...] = record.__struct_fields__  # type: ignore[attr-defined]
    found = ((name, table[name]) for name in known if name in table and name not in given)
    values = {name: tuple(value) if type(value) is list else value for name, value in found}
    if "when" in values:
        values["when"] = read_conditions(values["when"])
    return record(**values, **given)


def compatible(one: Iterable[Condition], other: Iterable[Condition]) -> bool:
    """Whether two conjunctions may hold at once: no subject is required to have values from two disjoint lists."""
    return not any(
        a.of == b.of and a.test == b.test == "one_of" and not set(a.values) & set(b.values) for a in one for b in other
    )


class NameIndex(Generic[_Entry]):
    """An index of rows by qualified name; a row is made for each name that is asked for.

    ``names`` of a table are absolute, with ``*`` for one or more words, but for those in ``except``. If the table has
    ``packages``, any module of those packages may offer the names, since libraries re-export what they define:
    ``Trainer.fit`` of ``lightning`` is ``lightning.Trainer.fit`` and ``lightning.pytorch.trainer.Trainer.fit``.
    """

    def __init__(self, tables: Iterable[tuple[Table, Callable[[Table, str], _Entry]]]) -> None:
        self._known: dict[str, tuple[_Entry, ...]] = {}
        self._named: dict[str, list[_RowFactory[_Entry]]] = {}
        self._by_package: dict[str, list[_RowFactory[_Entry]]] = {}
        self._patterns: list[_RowFactory[_Entry]] = []
        self._tables: list[Table] = []
        for table, make in tables:
            self._tables.append(table)
            maker = _RowFactory(table, make)
            for name in table["names"]:
                if "packages" in table:
                    self._by_package.setdefault(name, []).append(maker)
                elif "*" not in name:
                    self._named.setdefault(name, []).append(maker)
            if maker.prefixes:
                self._patterns.append(maker)
        self._prefixes = tuple({prefix for each in self._patterns for prefix in each.prefixes})

    @property
    def names(self) -> tuple[str, ...]:
        """The names without wildcards, sorted."""
        return tuple(sorted(self._named))

    def identifiers(self, wanted: Callable[[Table], bool], named: Callable[[str, str], bool]) -> frozenset[str]:
        """The last identifiers of the names in ``wanted`` tables, if ``named`` says that a top-level package and an
        identifier of the name (the class of a method) occur.
        """
        return frozenset(
            last_word(name)
            for table in self._tables
            if wanted(table)
            for name in table["names"]
            if any(named(*each) for each in _packages_and_words(table, name))
        )

    def of(self, name: str) -> tuple[_Entry, ...]:
        """The rows of a dotted name, in the order of the tables: those that name it, else those whose pattern matches."""
        if name not in self._known:
            found = self._named.get(name) or self._package_rows(name) or self._pattern_rows(name)
            self._known[name] = tuple(each.make(each.table, name) for each in found)
        return self._known[name]

    def _package_rows(self, name: str) -> list[_RowFactory[_Entry]]:
        words = name.split(".")
        modules = next((at for at, word in enumerate(words) if word[:1].isupper()), len(words) - 1)
        return [
            maker
            for at in range(1, modules + 1)
            for maker in self._by_package.get(".".join(words[at:]), ())
            if f"{'.'.join(words[:at])}.".startswith(maker.packages)
        ]

    def _pattern_rows(self, name: str) -> list[_RowFactory[_Entry]]:
        if not name.startswith(self._prefixes):
            return []
        return [each for each in self._patterns if name.startswith(each.prefixes) and each.fits(name)]


def _packages_and_words(table: Table, name: str) -> Iterator[tuple[str, str]]:
    """The packages of a name, each with the identifier that any file that uses the name must mention."""
    words = name.split(".")
    word = next((each for each in words if each[:1].isupper()), words[-1])
    yield from ((top_package(each), word) for each in table.get("packages", (name,)))


class _RowFactory(Generic[_Entry]):
    """Makes rows from one table, and knows the name patterns of that table, and what stands before their first wildcards."""

    def __init__(self, table: Table, make: Callable[[Table, str], _Entry]) -> None:
        self.table = table
        self.make = make
        self.packages = tuple(f"{package}." for package in table.get("packages", ()))
        names = [] if self.packages else [name for name in table["names"] if "*" in name]
        self.prefixes = tuple(name.partition("*")[0] for name in names)
        self._names = names

    def fits(self, name: str) -> bool:
        """Whether a name fits one of the patterns, and is not excepted."""
        return bool(self._pattern.fullmatch(name)) and not self._excluded.fullmatch(name)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(_any_of(self._names))

    @cached_property
    def _excluded(self) -> re.Pattern[str]:
        return re.compile(_any_of(self.table.get("except", ())) or r"(?!)")


def _any_of(names: Iterable[str]) -> str:
    numbers = count()
    return "|".join(wildcard_expression(name, r"[\w.]+", numbers) for name in names)
