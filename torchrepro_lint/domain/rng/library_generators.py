"""Library generators: the calls whose result no seed of torch, NumPy or Python makes repeatable, by ``generators.toml``; and the
generators of NumPy and Python that take their seed when they are made.

The generator is the library's own and gets no seed, or a seed that changes between runs, or several threads decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from torchrepro_lint.catalogue.conditions import (
    ArgumentReader,
    Interval,
    Subjects,
    Truth,
    argument_reader,
    evaluate,
    is_unknown_argument,
)
from torchrepro_lint.catalogue.libraries import LibraryGenerator, library_generators
from torchrepro_lint.dataflow.environment import Closure
from torchrepro_lint.dataflow.feasibility import implies_not_none
from torchrepro_lint.domain.loaders.fetch_effects import fetch_effects
from torchrepro_lint.domain.programs import programs_reaching
from torchrepro_lint.domain.rng.seeders import nondeterministic_source
from torchrepro_lint.query.database import query
from torchrepro_lint.resolve.call_sites import call_candidates
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.resolve.program_index import CallSite
from torchrepro_lint.source.patterns import wildcard_expression
from torchrepro_lint.syntax.nodes import Call, Collection, Constant, Expression, Record
from torchrepro_lint.syntax.qualified_names import is_instance, simple_name, without_calls
from torchrepro_lint.syntax.summary import is_test
from torchrepro_lint.syntax.visitor import is_none, last_identifier, subexpressions
from torchrepro_lint.trace.traces import Traces

_PROCESSORS = frozenset({"os.cpu_count", "multiprocessing.cpu_count", "os.process_cpu_count", "joblib.cpu_count"})


# Generators whose constructor takes entropy without a seed, which is its first argument.
SEEDABLE_GENERATORS = {
    "numpy.random.default_rng": "np.random.default_rng",
    "numpy.random.RandomState": "np.random.RandomState",
    "numpy.random.mtrand.RandomState": "np.random.RandomState",
    "numpy.random.SeedSequence": "np.random.SeedSequence",
    "numpy.random.PCG64": "np.random.PCG64",
    "numpy.random.PCG64DXSM": "np.random.PCG64DXSM",
    "numpy.random.MT19937": "np.random.MT19937",
    "numpy.random.Philox": "np.random.Philox",
    "numpy.random.SFC64": "np.random.SFC64",
    "random.Random": "random.Random",
}
SEED_WORDS = ("seed", "entropy", "x", "a", "new_seed", "key")


def generator_seed(call: Call) -> Expression | None:
    """The seed of a generator's construction: its first argument, or one named like a seed. LookupError for ``*`` and
    ``**``.
    """
    for arg in call.args:
        if arg.star:
            raise LookupError
        if arg.keyword is None or arg.keyword in SEED_WORDS:
            return arg.value
    return None


def lacks_seed(names: Names, path: str, call: Call) -> bool:
    """Whether a call passes no seed, or None on every path."""
    try:
        seed = generator_seed(call)
    except LookupError:
        return False
    if seed is None:
        return True
    return all(is_none(value) for _, value in names.values(path, seed))


class UnrepeatableCall(Record, frozen=True):
    """A call that a row of the table describes, and why: ``source`` is what its seed is made from, empty where it has none.

    ``given`` is the argument that it passes; ``certain`` says that the row's conditions are known to hold.
    """

    site: CallSite
    name: str
    row: LibraryGenerator
    given: Expression | None
    source: str
    certain: bool


def unrepeatable_calls(project: Traces, path: str) -> Iterator[UnrepeatableCall]:
    """The calls of a file that no global seed makes repeatable; none of a test file."""
    if is_test(path, project.files[path].summary):
        return
    for site in project.calls(path):
        found = _unrepeatable(project, path, site)
        if found is not None and not (found.row.inner and _is_nested(project, path, found)):
            yield found


def _is_nested(project: Traces, path: str, found: UnrepeatableCall) -> bool:
    """Whether a call is an argument of another one of its kind, which gives it the generators."""
    return any(
        row.evidence == found.row.evidence
        for site in project.calls(path)
        if _contains(site.call, found.site.call)
        for name in site.names
        for row in library_generators(name, project.libraries)
    )


def _contains(outer: Call, inner: Call) -> bool:
    return outer != inner and outer.start <= inner.start and inner.end <= outer.end


def _unrepeatable(project: Traces, path: str, site: CallSite) -> UnrepeatableCall | None:
    for name in site.names:
        for row in library_generators(name, project.libraries) if not is_instance(name) else ():
            if (found := _by_row(project, path, site, name, row)) is not None:
                return found
    return None


def _by_row(project: Traces, path: str, site: CallSite, name: str, row: LibraryGenerator) -> UnrepeatableCall | None:
    argument = argument_reader(row.signature, site.call)
    truth = evaluate(row.when, row.signature, _resolved(project, path, argument), _counts(project, path, argument, row))
    if truth is Truth.FAILS or (row.must_hold and truth is not Truth.HOLDS):
        return None
    given = argument(row.argument) if row.argument else None
    source = _fault(project, path, site, row, argument)
    if source is None or (not source and is_seeded_by_project(project, row)):
        return None
    if row.uses and not any(last_identifier(each.call.func) in row.uses for each in project.calls(path)):
        return None
    if row.family and not _runs_unseeded(project, site, row.family):
        return None
    if row.inner and "own" not in fetch_effects(project).of_callable(Closure(path, site.call)):
        return None
    return UnrepeatableCall(site, name, row, given, source, truth is Truth.HOLDS)


def _runs_unseeded(project: Traces, site: CallSite, family: str) -> bool:
    """Whether a program reaches a call and seeds a family nowhere."""
    return any(
        family not in program.effects.seeds and not program.effects.unknown_seeder
        for program in programs_reaching(project, site.function)
    )


def _fault(project: Traces, path: str, site: CallSite, row: LibraryGenerator, argument: ArgumentReader) -> str | None:
    """What makes a call's seed change between runs, empty where it has none; None where it has a seed."""
    others = [value for word in row.others if (value := argument(word)) is not None]
    if not all(map(is_none, others)):
        return None
    given = argument(row.argument) if row.argument and not row.value else None
    if given is None:
        return None if row.required or any(arg.star == "**" for arg in site.call.args) else ""
    if is_unknown_argument(given) or any(implies_not_none(each, given) for each in site.guards):
        return None
    values = [value for _, value in project.values(path, given)]
    if all(map(is_none, values)) and not row.required:
        return ""
    if row.key:
        return "" if len(values) == 1 and _lacks_key(values[0], row.key) else None
    return nondeterministic_source(project.resolver, path, given)


def _lacks_key(value: Expression, key: str) -> bool:
    """Whether a value is a dictionary display, and its keys are literals of which none is ``key``."""
    if not isinstance(value, Collection) or value.kind != "dict":
        return False
    keys = [each.value if isinstance(each, Constant) else key for each in value.items[::2]]
    return key not in keys


def _resolved(project: Traces, path: str, argument: ArgumentReader) -> ArgumentReader:
    """The arguments, with the one value of a variable in its place."""

    def read(word: str) -> Expression | None:
        value = argument(word)
        if value is None or is_unknown_argument(value):
            return value
        found = project.values(path, value)
        return found[0][1] if len(found) == 1 else value

    return read


def _counts(project: Traces, path: str, argument: ArgumentReader, row: LibraryGenerator) -> Subjects:
    """The arguments of the conditions that are made from the number of processors: more than one."""
    found: dict[str, Interval] = {}
    for condition in row.when if row.value else ():
        value = argument(condition.of)
        for file, each in project.values(path, value) if value is not None and not is_unknown_argument(value) else ():
            if any(_counts_processors(project, file, part) for part in subexpressions(each)):
                found[condition.of] = Interval(2, None)
    return found


def _counts_processors(project: Traces, path: str, value: Expression) -> bool:
    return isinstance(value, Call) and not _PROCESSORS.isdisjoint(project.names(path, value.func))


def is_seeded_by_project(project: Traces, row: LibraryGenerator) -> bool:
    """Whether the project calls one of a row's setters with a seed, outside its tests."""
    return bool(row.setters) and calls_setter(project, row.setters)


@query()
def calls_setter(project: Traces, setters: tuple[str, ...]) -> bool:
    """Whether the project calls one of some setters with a seed, outside its tests."""
    candidates = call_candidates(project.resolver, [simple_name(each) for each in setters])
    numbers = count()
    pattern = re.compile("|".join(wildcard_expression(each, r"[\w.]+", numbers) for each in setters))
    methods = {simple_name(each) for each in setters if each.startswith("*.")}
    return any(
        any(not is_none(arg.value) for arg in site.call.args)
        and (
            any(pattern.fullmatch(without_calls(name)) for name in site.names)
            or (not site.names and last_identifier(site.call.func) in methods)
        )
        for path in candidates.paths
        if not is_test(path, project.files[path].summary)
        for site in project.calls_by(path, candidates.words)
    )
