"""Library models: classes that construct a DataLoader, what datasets and transforms draw for each sample, generators of libraries, and
module wrappers: calls that return the module they were given, or wrap it.

The tables are ``loaders.toml``, ``datasets.toml``, ``transforms.toml``, ``generators.toml`` and ``module_wrappers.toml``. Rows may hold for a range of library
versions; the newest version that the project's requirements admit decides. The generators are those of calls that draw from one of
their library's own, or let threads decide, so that seeding torch, NumPy and Python does not make them repeatable. Calling a wrapped
module runs the module's own forward, so name resolution looks through wrappers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import TypeAlias, TypeVar

from torchrepro_lint.catalogue.rows import Condition, NameIndex, Signature, Table, read_row, read_signature
from torchrepro_lint.source.files import read_table
from torchrepro_lint.source.patterns import lazy_pattern, wildcard_expression
from torchrepro_lint.syntax.binding import known_argument
from torchrepro_lint.syntax.definitions import EACH, ITEM, Keys
from torchrepro_lint.syntax.nodes import Call, Constant, Expression, Record, Ref
from torchrepro_lint.syntax.qualified_names import in_project, passes_call, simple_name, top_package, without_calls
from torchrepro_lint.syntax.visitor import last_identifier, receiver_of

# The required versions of libraries as specifiers (``>=1.2,<2``); libraries without a requirement are left out.
LibraryVersions: TypeAlias = "tuple[tuple[str, str], ...]"
_NEWEST = "999999"


@lru_cache(maxsize=1024)
def admits_release_from(specifiers: str, release: str) -> bool:
    """Whether specifiers admit a release or a later one. Empty specifiers admit the newest."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    admitted, first = SpecifierSet(specifiers), Version(release)
    versions = [Version(one.version.removesuffix(".*")) for one in admitted if one.operator != "==="]
    tried = [
        *(first, Version(_NEWEST), *versions),
        *(Version(f"{each}.1") for each in versions if not each.local and not each.is_prerelease),
    ]
    return any(each >= first and admitted.contains(each, prereleases=True) for each in tried)


class LoaderKind(Record, frozen=True):
    """A class that constructs a DataLoader, and takes its arguments besides its own ``parameters``.

    ``dataset`` is the parameter whose samples workers fetch (empty: they draw nothing). ``draws`` is a family that making a
    sample always draws from, if ``when`` holds. ``shuffles`` is false if the order is never drawn.
    """

    name: str
    parameters: tuple[str, ...]
    evidence: str
    seeds_workers: bool
    shuffles: bool
    dataset: str = "dataset"
    draws: str = ""
    when: tuple[Condition, ...] = ()


@lru_cache(maxsize=1)
def loader_kinds() -> dict[str, LoaderKind]:
    """The loader kinds by each of their names."""
    return {
        name: read_row(
            LoaderKind,
            table,
            name=name,
            seeds_workers=table.get("workers") == "seeded",
            shuffles=table.get("shuffle", True),
        )
        for table in read_table("loaders.toml")["loader"]
        for name in table["names"]
    }


@lru_cache(maxsize=1)
def loader_names() -> frozenset[str]:
    """The names of all loader kinds."""
    return frozenset(loader_kinds())


# The number of names whose rows are cached: the same few are asked for at every call.
_CACHED_NAMES = 1024
# Names of callees, which are asked for again and again.
_CACHED_WRAPPERS = 1 << 14


class TransformModel(Record, frozen=True):
    """The model of a transform: what it draws for a sample.

    ``draws`` are families, and ``own`` for a generator that no worker seeds; with ``inner`` the wrapped transforms decide.
    ``when`` must hold for the call that constructs it. The row is for versions of ``library`` from ``since`` up to, but not
    including, ``before``; empty for no such bound.
    """

    draws: frozenset[str]
    signature: Signature
    library: str
    inner: bool = False
    when: tuple[Condition, ...] = ()
    since: str = ""
    before: str = ""


class DatasetModel(Record, frozen=True):
    """The model of a dataset: what it draws for a sample.

    ``calls`` are the parameters whose values are called on each sample; with ``wraps`` the first argument decides. The row
    does not apply if the project calls a method in ``unless``, or ``when`` does not hold for the call that constructs it.
    """

    draws: frozenset[str]
    signature: Signature
    wraps: bool = False
    calls: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()


def transform_models(name: str, known: LibraryVersions = ()) -> Iterator[TransformModel]:
    """The models of a transform by public name, a class or a function; the first that holds decides.

    ``known`` are the required versions of libraries; for others the newest release counts.
    """
    return (row for row in _transforms_named(name) if admits_range(known, row.library, row.since, row.before))


@lru_cache(maxsize=_CACHED_NAMES)
def _transforms_named(name: str) -> tuple[TransformModel, ...]:
    return tuple(row for modules, names, row in _transforms() if _fits(name, modules, names))


def admits_range(known: LibraryVersions, library: str, since: str, before: str) -> bool:
    """Whether the newest release of a library that the project admits is in a range; empty: no such bound."""
    asked = dict(known).get(library, "") if since or before else ""
    return (not since or admits_release_from(asked, since)) and not (before and admits_release_from(asked, before))


@lru_cache(maxsize=_CACHED_NAMES)
def dataset_model(name: str) -> DatasetModel | None:
    """The model of a dataset by its public name."""
    return next((row for modules, names, row in _datasets() if _fits(name, modules, names)), None)


_Model = TypeVar("_Model")
# Each row with the modules and the pattern of its names.
_Models: TypeAlias = "tuple[tuple[tuple[str, ...], re.Pattern[str], _Model], ...]"


@lru_cache(maxsize=1)
def _transforms() -> _Models[TransformModel]:
    return _models(TransformModel, read_table("transforms.toml")["transform"])


@lru_cache(maxsize=1)
def _datasets() -> _Models[DatasetModel]:
    return _models(DatasetModel, read_table("datasets.toml")["dataset"])


def _models(record: Callable[..., _Model], tables: Iterable[Table]) -> _Models[_Model]:
    return tuple((tuple(table["modules"]), _pattern(table["names"]), _model(record, table)) for table in tables)


def _model(record: Callable[..., _Model], table: Table) -> _Model:
    signature = read_signature(table, table["names"][0])
    return read_row(record, table, signature=signature, draws=frozenset(table.get("draws", ())))


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern for names and their methods."""
    numbers = count()
    return lazy_pattern("(?:" + "|".join(wildcard_expression(name, ".*", numbers) for name in names) + r")(?:\..*)?")


def _fits(name: str, modules: tuple[str, ...], names: re.Pattern[str]) -> bool:
    return any(name.startswith(f"{module}.") and names.fullmatch(name[len(module) + 1 :]) for module in modules)


class LibraryGenerator(Record, frozen=True):
    """A call that is repeatable only with its ``argument``: ``cause`` says why, as a message says it of the call.

    Reported where the argument is left out or None, and none of ``others`` is given; with ``key`` where the argument, a
    dictionary, has no such key; with ``required`` where its value changes between runs. With a ``value`` only that makes the
    call repeatable: it is reported where ``when`` is known to hold, and so is a row without an argument. ``write`` is what a
    fix passes, with ``{}`` for the seed. With ``inner`` one of the transforms that the call is given must draw.
    ``family`` is the global generator that seeds the library's, if one does: then a run must seed neither.
    ``setters`` are calls that seed the library for the
    whole project, with ``*`` for any words. ``uses`` are methods of the result, of which the same file must call one.
    """

    signature: Signature
    library: str
    cause: str
    source: str
    evidence: str
    argument: str = ""
    key: str = ""
    others: tuple[str, ...] = ()
    write: str = "{}"
    value: str = ""
    required: bool = False
    when: tuple[Condition, ...] = ()
    inner: bool = False
    family: str = ""
    setters: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    since: str = ""
    before: str = ""
    run: str = ""

    @property
    def must_hold(self) -> bool:
        """Whether the conditions must be known to hold: nothing else says that the call is not repeatable."""
        return bool(self.value) or not self.argument


def library_generators(name: str, known: LibraryVersions = ()) -> tuple[LibraryGenerator, ...]:
    """The rows of a callable by its absolute name; ``known`` are the required versions of libraries."""
    if in_project(name) or top_package(name) not in _roots():
        return ()
    return tuple(
        row for row in generators().of(without_calls(name)) if admits_range(known, row.library, row.since, row.before)
    )


@lru_cache(maxsize=1)
def generators() -> NameIndex[LibraryGenerator]:
    """All rows."""
    return NameIndex((table, _generator) for table in _tables())


def _generator(table: Table, name: str) -> LibraryGenerator:
    return read_row(LibraryGenerator, table, signature=read_signature(table, name))


@lru_cache(maxsize=1)
def _roots() -> frozenset[str]:
    """The top-level packages of all names."""
    return frozenset(top_package(each) for table in _tables() for each in table.get("packages", ()) or table["names"])


def _tables() -> list[Table]:
    found: list[Table] = read_table("generators.toml")["generator"]
    return found


_TRANSFORM_NAME = lazy_pattern(
    r"(?i)(?=\w*\Z)(?:collate_fn|\w*transf\w*|(\w*_)?(trans|tfms?|tsfm|aug)(_\w*)?|\w*augment\w*)"
)


def takes_transforms(call: Call) -> bool:
    """Whether a call gets transforms or a collate function, by names: ``Rows(transform=crop)``, ``transforms.append(crop)``."""
    if any(arg.keyword and _TRANSFORM_NAME.fullmatch(arg.keyword) for arg in call.args):
        return True
    match call.func:
        case Ref(roots=roots, path=(*words, "append" | "extend" | "insert")):
            return bool(_TRANSFORM_NAME.fullmatch(simple_name((*roots, *words)[-1])))
    return False


def samplers_of(call: Call) -> list[Expression]:
    """The sampler arguments of a loader."""
    return [arg.value for arg in call.args if arg.keyword in ("sampler", "batch_sampler")]


# --- module wrappers -------------------------------------------------------------------------------------------------

# Methods that return the object they are called on, whatever its class.
FLUENT_METHODS = frozenset(
    {"to", "cuda", "cpu", "xpu", "eval", "train", "float", "half", "double", "bfloat16", "to_empty", "requires_grad_"}
    | {"share_memory", "manual_seed"}
)
# Those that other classes have, too, and that return something else there.
_OF_MODULES = frozenset(
    f"{module}().{word}"
    for module in ("torch.nn.Module", "torch.nn.modules.module.Module")
    for word in ("apply", "type")
) | {"ray.remote().options"}
# Methods of ``torch.nn.Module`` that run no forward pass.
METHODS_WITHOUT_FORWARD = frozenset(
    {"parameters", "named_parameters", "children", "modules", "named_modules", "buffers", "state_dict", "eval", "train"}
    | {"load_state_dict", "to", "cuda", "cpu", "half", "float", "bfloat16", "requires_grad_", "apply", "zero_grad"}
)


class ModuleWrapper(Record, frozen=True):
    """A call that returns a module it was given for the parameter ``module`` (empty: its first argument).

    ``result`` is what the call returns: ``module``, a ``tuple`` that begins with it, or the ``arguments`` in their order (a
    single argument not in a tuple).
    """

    signature: Signature
    module: str
    result: str
    source: str
    evidence: str


@lru_cache(maxsize=1)
def module_wrappers() -> NameIndex[ModuleWrapper]:
    """The rows of the table by qualified name."""
    return NameIndex((table, _wrapper) for table in read_table("module_wrappers.toml")["wrapper"])


def _wrapper(table: Table, name: str) -> ModuleWrapper:
    module, result = table.get("module", ""), table.get("result", "module")
    return ModuleWrapper(read_signature(table, name), module, result, table["source"], table["evidence"])


@lru_cache(maxsize=_CACHED_WRAPPERS)
def module_wrapper(name: str) -> ModuleWrapper | None:
    """The row about a name from outside; methods are named through their class: ``Accelerator().prepare``."""
    return next(iter(module_wrappers().of(without_calls(name))), None)


def is_fluent(name: str) -> bool:
    """Whether a method from outside (``torch.nn.Module().to``) returns the object that it is called on."""
    return passes_call(name) and (simple_name(name) in FLUENT_METHODS or name in _OF_MODULES)


def wrapped_module(wrapper: ModuleWrapper, call: Call) -> Expression | None:
    """The module that a call gets and returns as its whole result; None where the result is a tuple."""
    if wrapper.result == "tuple" or (wrapper.result == "arguments" and _count_returned(wrapper, call) > 1):
        return None
    return _module_argument(wrapper, call)


def element_of_result(wrapper: ModuleWrapper, call: Call, index: int) -> Expression | None:
    """The argument that is returned at an index of a call's result, if the result is unpacked."""
    if wrapper.result == "tuple":
        return _module_argument(wrapper, call) if index == 0 else None
    if wrapper.result == "module" or index < 0 or any(arg.star for arg in call.args):
        return None
    return known_argument(call, index, *wrapper.signature.parameters[index : index + 1])


# Functions that give the items of a container, as another one or one by one, and those that choose some of them or one.
_OF_ITEMS = {f"builtins.{word}" for word in ("list", "tuple", "set", "frozenset", "sorted", "reversed", "iter")}
_OF_ITEMS |= {"collections.deque", "itertools.cycle", "itertools.islice"}
_SOME = frozenset({"random.sample", "random.choices"})
_ONE = frozenset({"random.choice", "numpy.random.choice", "builtins.next"})


def containers_behind(names: tuple[str, ...], call: Call, keys: Keys) -> list[tuple[Expression, Keys]]:
    """The containers behind an element of the result of a call of ``names``, with its keys there: ``nets`` for one of ``zip(losses, nets)``."""
    args = tuple(arg.value for arg in call.args if not (arg.keyword or arg.star))
    rest, name = keys[1:], names[0] if len(names) == 1 else ""
    match name, args:
        case "builtins.enumerate", (held, *_):
            return [(held, (EACH, *rest[1:]))] if rest[:1] == (1,) else []
        case (("builtins.zip" | "itertools.product" | "itertools.zip_longest"), _) if not any(
            each.star for each in call.args
        ):
            return [(held, (EACH, *rest[1:])) for at, held in enumerate(args) if rest[:1] == (at,)]
        case ("itertools.chain", chained) | ("builtins.filter", (_, *chained)):
            return [(held, (EACH, *rest)) for held in chained]
        case "torch.nn.ModuleList" | "torch.nn.ModuleDict", (held,):
            return [(held, keys)]
        case "torch.nn.Sequential", _ if len(args) == len(call.args):
            return [(held, rest) for at, held in enumerate(args) if keys[0] in (at, at - len(args), EACH, ITEM)]
        case _, (held, *_) if name in _OF_ITEMS | _SOME | _ONE:
            return [(held, (ITEM if name in _SOME else EACH, *(keys if name in _ONE else rest)))]
    holder = receiver_of(call.func) if not any(map(in_project, names)) else None
    return [] if holder is None else [*_behind_method(holder, last_identifier(call.func), args, keys)]


def _behind_method(
    holder: Expression, word: str, args: tuple[Expression, ...], keys: Keys
) -> Iterator[tuple[Expression, Keys]]:
    """The containers behind an element of what a method of a container gives."""
    match word, args, keys:
        case "items", (), (_, 0 | 1 as place, *rest):
            yield holder, (ITEM if place else EACH, *rest)
        case "values" | "keys", (), (_, *rest):
            yield holder, (ITEM if word == "values" else EACH, *rest)
        case "copy", (), _:
            yield holder, keys
        case "get" | "pop" | "setdefault", _, _:
            given = args[0].value if args and isinstance(args[0], Constant) else None
            yield holder, (given if isinstance(given, str | int) else ITEM, *keys)
            yield from ((each, keys) for each in args[1:])


def _count_returned(wrapper: ModuleWrapper, call: Call) -> int:
    """The least number of arguments that are returned; a star may be several."""
    words = wrapper.signature.parameters
    return sum(1 + (arg.star != "") for arg in call.args if arg.keyword is None or arg.keyword in words)


def _module_argument(wrapper: ModuleWrapper, call: Call) -> Expression | None:
    """The argument for the module, by keyword or by position."""
    words = wrapper.signature.parameters
    index = words.index(wrapper.module) if wrapper.module in words else 0
    return known_argument(call, index, wrapper.module)
