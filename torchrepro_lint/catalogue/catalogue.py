"""The catalogue, a model of torch and other libraries for one torch release: what operations do, what draws random
numbers, what seeds.

The tables that are the same for every release (``alternatives.toml``, ``third_party.toml``, consumers, seeders,
frameworks) are read once; a ``Catalogue`` adds what torch's documentation and ``effective.toml`` say of one release.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, lru_cache
from typing import Any

from torchrepro_lint.catalogue.rows import (
    Condition,
    Consumer,
    ErrorName,
    FlagSetting,
    FrameworkModel,
    NameIndex,
    OperationRow,
    Seeder,
    Signature,
    Table,
    compatible,
    read_conditions,
    read_row,
    read_signature,
)
from torchrepro_lint.source.files import documented_versions, read_table, release
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.qualified_names import top_package

# The number of callables whose seeder is cached: it is asked for at every call.
_CACHED_NAMES = 4096


@lru_cache(maxsize=1)
def signatures() -> dict[str, tuple[Signature, ...]]:
    """The signatures of each operation's public calls, by the operation's name."""
    return {
        table["name"]: tuple(
            read_row(Signature, one, defaults=tuple(one.get("defaults", {}).items())) for one in table["spelling"]
        )
        for table in read_table("operations.toml")["operation"]
    }


@lru_cache(maxsize=1)
def consumers() -> NameIndex[Consumer]:
    """The callables that draw from a random generator."""
    return NameIndex((table, _consumer) for table in read_table("consumers.toml")["consumer"])


@lru_cache(maxsize=1)
def seeders() -> NameIndex[Seeder]:
    """The callables that seed random generators."""
    return NameIndex((table, _seeder) for table in read_table("seeders.toml")["seeder"])


@lru_cache(maxsize=1)
def frameworks() -> NameIndex[FrameworkModel]:
    """The models of library calls that act on the program."""
    return NameIndex((table, _framework) for table in read_table("frameworks.toml")["framework"])


@lru_cache(maxsize=1)
def handed_parameters() -> frozenset[str]:
    """The names of the parameters that frameworks hand to methods of subclasses (see ``FrameworkModel``)."""
    return frozenset(word for table in read_table("frameworks.toml")["framework"] for word in table.get("hands", ()))


@lru_cache(maxsize=_CACHED_NAMES)
def seeder_of(name: str) -> Seeder | None:
    """The seeder row of a callable: its own, else the first in the model of a library."""
    name = canonical(name)
    found = seeders().of(name) or tuple(row.seeder for row in frameworks().of(name) if row.seeder is not None)
    return found[0] if found else None


def seeding_identifiers(named: Callable[[str, str], bool]) -> frozenset[str]:
    """The identifiers that call seeders, of those that ``named`` says occur (see ``NameIndex.identifiers``)."""
    return _identifiers_of(lambda table: "families" in table or "seeds" in table, named)


def worker_seeding_identifiers(named: Callable[[str, str], bool]) -> frozenset[str]:
    """The same for calls that make a framework seed the workers of all loaders."""
    return _identifiers_of(lambda table: any(each.flag == "worker-seeds" for each in _flag_settings(table)), named)


def _identifiers_of(wanted: Callable[[Table], bool], named: Callable[[str, str], bool]) -> frozenset[str]:
    return seeders().identifiers(wanted, named) | frameworks().identifiers(wanted, named)


def _consumer(table: Table, name: str) -> Consumer:
    named = table.get("generator", ())
    generators = (named,) if isinstance(named, str) else tuple(named)
    return read_row(Consumer, table, signature=read_signature(table, name), generators=generators)


def _seeder(table: Table, name: str) -> Seeder:
    seed, default = table.get("seed", "seed"), table.get("default", "required")
    known = {"parameters": [seed], "seed": seed, "default": default, "none": default, **table}
    return read_row(Seeder, known, signature=read_signature(known, name), settings=tuple(_flag_settings(table)))


def _flag_settings(table: Table) -> Iterator[FlagSetting]:
    for each in table.get("sets", ()):
        for flag, value in each["to"].items():
            yield FlagSetting(flag, value, read_conditions(each.get("when", ())))


def _framework(table: Table, name: str) -> FrameworkModel:
    draws = ({**table, **each} for each in table.get("draws", ()))
    seeds = (
        {**table, "parameters": table.get("parameters", ()), **table["seeds"], "sets": ()} if "seeds" in table else None
    )
    return read_row(
        FrameworkModel,
        table,
        signature=read_signature(table, name),
        settings=tuple(_flag_settings(table)),
        seeder=None if seeds is None else _seeder(seeds, name),
        draws=tuple(_consumer(each, name) for each in draws),
        accelerates=read_conditions(table["accelerates"]) if "accelerates" in table else None,
    )


@lru_cache(maxsize=1)
def error_names() -> tuple[ErrorName, ...]:
    """All run-time error names, of every release."""
    tables = read_table("error_names.toml")["error"]
    return tuple(read_row(ErrorName, table, devices=tuple(table["device"])) for table in tables)


class Alternative(Record, frozen=True):
    """A deterministic replacement: ``write`` is the advice, valid from torch ``since`` on, for the case ``when`` of the operations."""

    operations: tuple[str, ...]
    write: str
    since: str
    when: tuple[Condition, ...] = ()


def alternatives_for(row: OperationRow, version: str) -> tuple[str, ...]:
    """The deterministic alternatives to a row's operation in a torch version, best first; none are known for MPS."""
    if row.devices == ("mps",):
        return ()
    return tuple(
        one.write
        for one in alternatives()
        if row.operation in one.operations and release(one.since) <= release(version) and compatible(one.when, row.when)
    )


@lru_cache(maxsize=1)
def alternatives() -> tuple[Alternative, ...]:
    """All rows of the table."""
    return tuple(read_row(Alternative, table) for table in read_table("alternatives.toml")["alternative"])


class ThirdPartyOperation(Record, frozen=True):
    """A nondeterministic operation of another library, which torch's flag neither changes nor reports.

    ``argument`` makes it deterministic where it is true, from release ``since`` of the library (empty: not known);
    ``instead`` is what to write where no argument helps. ``source`` is the version that the row was read from.
    """

    signature: Signature
    library: str
    phase: str
    cause: str
    source: str
    evidence: str
    when: tuple[Condition, ...] = ()
    argument: str = ""
    since: str = ""
    instead: str = ""


@lru_cache(maxsize=1)
def third_party_operations() -> dict[str, tuple[ThirdPartyOperation, ...]]:
    """The third-party operations by each of their names."""
    found: dict[str, tuple[ThirdPartyOperation, ...]] = {}
    for table in read_table("third_party.toml")["operation"]:
        for name in table["names"]:
            row = read_row(ThirdPartyOperation, table, signature=read_signature(table, name))
            found[name] = (*found.get(name, ()), row)
    return found


_DEFINING_MODULE = lazy_pattern(
    r"(torch\.nn)\.modules\.(?:[a-z]\w*\.)?([A-Z]\w*(?:\.\w+)?)|"
    r"(torch\.utils\.data)\.(?:sampler|dataset|dataloader|distributed)\.((?:[A-Z]|random_split)\w*(?:\.\w+)?)"
)
# NumPy's module of the global generator, which is its ``_rand``.
_MTRAND = "numpy.random.mtrand."
_NONDETERMINISTIC = ("raises", "silent", "warns")


@lru_cache(maxsize=32)
def load(version: str, admitted: tuple[str, ...] = (), *, declared: bool = True) -> Catalogue:
    """The catalogue for a torch version, ``2.13`` or ``2.13.0+cpu``: of that release, else the nearest older one, else the
    oldest; ``admitted`` are further releases that the code may run with, ``declared`` says that a project says so.
    """
    return Catalogue(version, admitted, declared=declared)


def canonical(name: str) -> str:
    """The public name of what is named by its defining module (``torch.nn.modules.conv.Conv2d``), or of a method of
    NumPy's global generator (``numpy.random.mtrand._rand.shuffle``).
    """
    if not name.startswith(("torch.nn.modules.", "torch.utils.data.", _MTRAND)):  # the common case
        return name
    if name.startswith(_MTRAND):
        return f"numpy.random.{name.removeprefix(_MTRAND).removeprefix('_rand.')}"
    match = _DEFINING_MODULE.fullmatch(name)
    return ".".join(filter(None, match.groups())) if match else name


@cache
def _other(version: str) -> Catalogue:
    return Catalogue(version)


class Catalogue:
    """The catalogue of one torch ``version``; ``exact`` is false when that is only the release nearest to the one asked for.

    Names are absolute and dotted, methods of tensors ``torch.Tensor.cumsum``. Each table is read at first use. ``admitted``
    are all releases that the code may run with, ``version`` among them, as far as they are ``declared``; ``begins_later`` says that the release ``asked`` for
    is older than all that are documented.
    """

    def __init__(self, version: str, admitted: tuple[str, ...] = (), *, declared: bool = True) -> None:
        known = documented_versions()
        self.asked = version
        self.declared = declared
        self.version = max((one for one in known if release(one) <= release(version)), key=release, default=known[0])
        self.exact = release(self.version) == release(version)
        self.admitted = admitted or (self.version,)
        self.begins_later = release(known[0]) > release(version)

    def stops_elsewhere(self, row: OperationRow) -> str | None:
        """The newest other admitted release in which an operation raises in strict mode under the conditions of ``row``."""
        for version in reversed(self.admitted):
            if version != self.version:
                others = _other(version).operation(row.operation)
                if any((each.behaviour, each.when, each.phase) == ("raises", row.when, row.phase) for each in others):
                    return version
        return None

    def operation(self, name: str) -> tuple[OperationRow, ...]:
        """The rows of a public call, in order: the first that holds decides."""
        return self._rows.get(canonical(name), ())

    def consumer(self, name: str) -> tuple[Consumer, ...]:
        """How a callable draws from a random generator; empty if it does not."""
        name = canonical(name)
        return consumers().of(name) + tuple(draw for row in frameworks().of(name) for draw in row.draws)

    def seeder(self, name: str) -> Seeder | None:
        """The seeder row of a callable, if it seeds."""
        return seeder_of(name)

    def framework(self, name: str) -> tuple[FrameworkModel, ...]:
        """The models of a library's callable."""
        return frameworks().of(name)

    def settings(self, name: str) -> tuple[tuple[Signature, FlagSetting], ...]:
        """The flags and environment variables that a callable sets, with the signature that the conditions refer to."""
        rows: tuple[Seeder | FrameworkModel, ...] = (*seeders().of(name), *frameworks().of(name))
        return tuple((row.signature, setting) for row in rows for setting in row.settings)

    def errors(self, row: OperationRow) -> tuple[str, ...]:
        """The names in torch's error if this row raises."""
        return tuple(
            error.name
            for error in error_names()
            if row.operation in error.operations
            and row.phase == error.phase
            and _in_range(error.since, error.until, self.version)
            and _devices_overlap(row.devices, error.devices)
            and compatible(row.when, error.when)
        )

    @property
    def operations(self) -> tuple[str, ...]:
        """The public names of all operations, sorted."""
        return tuple(sorted(self._rows))

    @cached_property
    def _rows(self) -> dict[str, tuple[OperationRow, ...]]:
        signatures_of = signatures()
        operation_of = {
            one.name: operation for operation, ones in signatures_of.items() for one in ones if not one.when
        }
        documented = [
            _documented(table, operation_of) for table in read_table(f"torch-{self.version}.toml")["operation"]
        ]
        rows = _override(documented, list(_effective(self.version, documented)))
        found: dict[str, list[OperationRow]] = defaultdict(list)
        for row in rows:
            for one in signatures_of[row.operation]:
                found[one.name].append(row._replace(signature=one, when=one.when + row.when))
        return {name: tuple(rows) for name, rows in found.items()}


def _override(documented: list[OperationRow], effective: list[OperationRow]) -> list[OperationRow]:
    """Replace documented rows by the effective rows of the same operation and devices."""
    covered: dict[str, set[str]] = defaultdict(set)
    for row in effective:
        covered[row.operation].update(row.devices)
    remaining = [
        row for row in documented if not ("any" in covered[row.operation] or set(row.devices) <= covered[row.operation])
    ]
    return effective + remaining


def _documented(table: dict[str, Any], operation_of: dict[str, str]) -> OperationRow:
    operation, signature = operation_of[table["name"]], Signature(table["name"])
    devices = tuple(table["device"])
    known = {"when": (), **table}
    return read_row(OperationRow, known, operation=operation, devices=devices, listed=True, signature=signature)


def _effective(version: str, documented: list[OperationRow]) -> Iterable[OperationRow]:
    of_operation: dict[str, list[OperationRow]] = defaultdict(list)
    for row in documented:
        of_operation[row.operation].append(row)
    for since, until, rows in _effective_rows():
        if _in_range(since, until, version):
            for row in rows:
                yield row._replace(listed=any(_documents(other, row) for other in of_operation[row.operation]))


@lru_cache(maxsize=1)
def _effective_rows() -> tuple[tuple[str, str | None, tuple[OperationRow, ...]], ...]:
    """The effective rows of all releases, in order, with the first and last release that they hold for."""
    return tuple(
        (
            span["since"],
            span.get("until"),
            tuple(
                read_row(
                    OperationRow,
                    {"when": (), **table},
                    operation=operation,
                    behaviour=span["behaviour"],
                    devices=tuple(table["device"]),
                    listed=False,
                    signature=Signature(operation),
                )
                for operation in table["operations"]
            ),
        )
        for table in read_table("effective.toml")["row"]
        for span in table["versions"]
    )


def _documents(documented: OperationRow, row: OperationRow) -> bool:
    """Whether a documented row of the same operation agrees with an effective one: nondeterministic with an error, or deterministic."""
    return (
        (documented.behaviour == "raises" or row.behaviour not in _NONDETERMINISTIC)
        and _devices_overlap(documented.devices, row.devices)
        and compatible(documented.when, row.when)
    )


def _devices_overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return "any" in one or "any" in other or bool(set(one) & set(other))


def _in_range(since: str, until: str | None, version: str) -> bool:
    return release(since) <= release(version) and (until is None or release(version) <= release(until))


# The tables that name callables of packages, each with the key of its rows.
_TABLES = (
    ("consumers.toml", "consumer"),
    ("seeders.toml", "seeder"),
    ("frameworks.toml", "framework"),
    ("module_wrappers.toml", "wrapper"),
    ("third_party.toml", "operation"),
)


@lru_cache(maxsize=1)
def described_packages() -> frozenset[str]:
    """The top-level packages of which some table of the catalogue says what they do."""
    rows = (row for file, key in _TABLES for row in read_table(file)[key])
    return frozenset(top_package(name) for row in rows for name in row.get("packages", row["names"]))
