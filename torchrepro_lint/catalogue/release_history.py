"""The release history of each operation: the catalogue transposed, with lookup by the names that users type and rows
put into words.

Neighbouring releases in which an operation behaves alike form one period.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from torchrepro_lint.catalogue.catalogue import alternatives_for, canonical, error_names, load, signatures
from torchrepro_lint.catalogue.rows import Condition, OperationRow, Scalar, Signature
from torchrepro_lint.source.errors import UsageError
from torchrepro_lint.source.files import documented_versions
from torchrepro_lint.syntax.nodes import Record
from torchrepro_lint.syntax.qualified_names import last_word

_SHORT = (
    ("F.", "torch.nn.functional."),
    ("nn.", "torch.nn."),
    ("Tensor.", "torch.Tensor."),
    ("functional.", "torch.nn.functional."),
)


def find_operations(wanted: str) -> tuple[str, ...]:
    """The operations that a name stands for, sorted: ``F.interpolate``, ``nn.Upsample``, ``index_select``.

    A name that is not public as it stands matches every public name that ends in it. Raises ``UsageError`` with near names.
    """
    name = canonical(_full_name(wanted.strip().removesuffix("()")))
    known = _operations()
    found = known.get(name) or _operations_ending_in(name, known)
    if not found:
        near = near_names(wanted, known)
        raise UsageError(f"no operation {wanted!r} in the catalogue" + (f"; did you mean {near}?" if near else ""))
    return tuple(sorted(found))


def near_names(wanted: str, names: Iterable[str]) -> str:
    """Up to three names whose last words are similar; empty if none is."""
    last = {}
    for name in sorted(names, reverse=True):
        last[last_word(name).lower()] = name
    close = difflib.get_close_matches(last_word(wanted).lower(), last, 3, cutoff=0.6)
    return " or ".join(last[word] for word in close)


def _full_name(name: str) -> str:
    return next((long + name[len(short) :] for short, long in _SHORT if name.startswith(short)), name)


def _operations_ending_in(name: str, known: dict[str, set[str]]) -> set[str]:
    """The operations with a name that ends in these words; a match in the same case is preferred."""
    for same in (str, str.lower):
        end = same(f".{name}")
        found = set().union(*(known[each] for each in known if same(each).endswith(end)))
        if found:
            return found
    return set()


@lru_cache(maxsize=1)
def _operations() -> dict[str, set[str]]:
    """The operations of all public names: those of signatures, and calls that raise an operation's error."""
    found: dict[str, set[str]] = defaultdict(set)
    for operation, ones in signatures().items():
        for one in ones:
            found[one.name].add(operation)
    for error in error_names():
        for call in error.calls:
            if call not in found:
                found[call].update(error.operations)
    return dict(found)


class Status(Record, frozen=True):
    """A behaviour in words: a label, a mark and one sentence."""

    label: str
    mark: str
    meaning: str


# Worst first.
STATUSES: Mapping[str, Status] = {
    "raises": Status("raises", "✕", "Raises an error when the flag is on."),
    "silent": Status("silently nondeterministic", "≁", "Results differ from run to run, and nothing says so."),
    "warns": Status("warns only", "!", "Stays nondeterministic and warns."),
    "ties": Status("order of ties open", "≈", "Equal elements may come in any order."),
    "deterministic": Status("needs the flag", "⚑", "Deterministic when the flag is on, and only then."),
    "fills": Status("filled with the flag", "▦", "Fresh memory is filled with a known value when the flag is on."),
    "none": Status("deterministic", "✓", "Deterministic, with and without the flag."),
}

_SUBJECTS: Mapping[tuple[str, str], str] = {
    ("input.dtype", "floating"): "floating-point input",
    ("input.dtype", "complex"): "complex input",
    ("input.dtype", "integer"): "integer input",
    ("input.divisible", "False"): "output size does not divide the input size",
    ("input.index", "tensors"): "indexed by tensors",
    ("input.layout", "sparse"): "sparse input",
    ("input.need_weights", "False"): "need_weights=False",
    ("input.quantized", "True"): "quantised input",
    ("input.quantized", "False"): "input not quantised",
    ("input.some_cases", "True"): "some cases (torch does not say which)",
    ("input.target", "class indices"): "target of class indices",
    ("other.layout", "sparse"): "second factor sparse",
    ("program.cudnn_ctc", "True"): "cuDNN's implementation is used",
    ("program.warn_only", "True"): "under warn_only=True",
    ("src", "tensor"): "src is a tensor",
}
_COMPARED: Mapping[str, str] = {"one_of": "", "at_least": " or more", "at_most": " or fewer", "above": " exceeded"}


def conditions_text(conditions: Iterable[Condition]) -> str:
    """All conditions of a row in words, ``mode="bilinear", antialias=False``; empty if there are none.

    Conditions on spatial dimensions are omitted: torch itself requires them for a mode.
    """
    return ", ".join(dict.fromkeys(condition_text(one) for one in conditions if one.of != "spatial"))


def condition_text(one: Condition) -> str:
    """One condition in words."""
    values = _values_text(one.values)
    if one.of == "input.ndim":
        return _dimensions_text(one)
    if one.of.startswith("program.") and one.test == "none_of":
        return f"{one.of.partition('.')[2]} is neither {' nor '.join(map(str, one.values))}"
    if (one.of, str(one.values[0])) in _SUBJECTS and one.test == "one_of":
        subjects = [_SUBJECTS[one.of, str(value)] for value in one.values]
        return " or ".join((*(each.removesuffix(" input") for each in subjects[:-1]), subjects[-1]))
    return _argument_text(one, values)


def _argument_text(one: Condition, values: str) -> str:
    match one.test:
        case "one_of":
            return f"{one.of}={values}"
        case "none_of":
            return f"{one.of} is not {values}"
        case "all":
            return f"{one.of}={values}"
        case "not_all":
            return f"{one.of} is not {values}"
        case "given":
            return f"{one.of} given" if one.values[0] else f"without {one.of}"
        case "constant":
            return f"{one.of} is a constant"
        case "length":
            return f"{one.of} of {values} numbers"
    return f"{one.of} {one.test.replace('_', ' ')} {values}"


def _dimensions_text(one: Condition) -> str:
    value = one.values[0]
    if isinstance(value, str):
        return f"dimensions: {value}"
    return f"input of {value}{_COMPARED.get(one.test, '')} dimension{'s' * (value != 1 or one.test != 'one_of')}"


def _values_text(values: tuple[Scalar, ...]) -> str:
    return " or ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in values)


def devices_and_phase(devices: Iterable[str], phase: str) -> str:
    """Devices and phase in words: ``CUDA backward``, ``every device, forward``."""
    return f"{devices_text(devices)} {phase}"


def devices_text(devices: Iterable[str]) -> str:
    """Devices in words."""
    return " and ".join("every device," if device == "any" else device.upper() for device in devices)


_SEVERITY = tuple(STATUSES)
_DETERMINISTIC_BEHAVIOURS = ("deterministic", "fills", "none")
_DASH = "\u2013"


class HistoryCase(Record, frozen=True):
    """One case of an operation in the ``releases`` of a period that have it.

    ``errors`` are the names in torch's error, with the releases that have them, ``documented`` the releases whose
    documentation says the same, ``instead`` the alternatives as of the last release.
    """

    behaviour: str
    devices: tuple[str, ...]
    phase: str
    when: tuple[Condition, ...]
    releases: tuple[str, ...]
    documented: tuple[str, ...]
    errors: tuple[tuple[str, tuple[str, ...]], ...]
    evidence: tuple[str, ...]
    instead: tuple[str, ...]


class Period(Record, frozen=True):
    """Neighbouring releases in which an operation behaves alike; without cases if the catalogue has no rows.

    ``shown`` are the behaviours with their devices, worst first.
    """

    releases: tuple[str, ...]
    shown: tuple[tuple[str, tuple[str, ...]], ...]
    cases: tuple[HistoryCase, ...]


class History(Record, frozen=True):
    """The history of an operation, from the oldest release to the newest."""

    operation: str
    spellings: tuple[Signature, ...]
    periods: tuple[Period, ...]

    def at(self, release: str) -> Period:
        """The period of a release."""
        return next(period for period in self.periods if release in period.releases)


@lru_cache(maxsize=1)
def histories() -> tuple[History, ...]:
    """The history of every operation of the catalogue, by name without regard to case."""
    return tuple(history(operation) for operation in sorted(signatures(), key=lambda name: (name.lower(), name)))


@lru_cache(maxsize=128)
def history(operation: str) -> History:
    """The history of one operation; ``operation`` is the name of its entry in the catalogue."""
    rows = {version: load(version).operation(operation) for version in documented_versions()}
    runs = groupby(rows, key=lambda version: _behaviours(rows[version]))
    periods = [(shown, tuple(versions)) for shown, versions in runs]
    return History(
        operation,
        signatures()[operation],
        tuple(Period(versions, shown, _cases({each: rows[each] for each in versions})) for shown, versions in periods),
    )


def _behaviours(rows: Sequence[OperationRow]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    devices: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        devices[row.behaviour].update(row.devices)
    return tuple((behaviour, tuple(sorted(devices[behaviour]))) for behaviour in _SEVERITY if behaviour in devices)


def _cases(rows: dict[str, tuple[OperationRow, ...]]) -> tuple[HistoryCase, ...]:
    """The cases of a period, worst first, else in the order in which they are tried."""
    found: dict[tuple[str, tuple[str, ...], str, tuple[Condition, ...]], list[tuple[str, OperationRow]]] = defaultdict(
        list
    )
    for version in reversed(rows):
        for row in rows[version]:
            found[row.behaviour, row.devices, row.phase, row.when].append((version, row))
    cases = [
        HistoryCase(
            *key,
            _ordered(rows, (version for version, _ in each)),
            _ordered(rows, (version for version, row in each if row.listed)),
            _errors(rows, each),
            tuple(dict.fromkeys(row.evidence for _, row in each if row.evidence)),
            alternatives_for(each[0][1], each[0][0]) if key[0] not in _DETERMINISTIC_BEHAVIOURS else (),
        )
        for key, each in found.items()
    ]
    return tuple(sorted(cases, key=lambda case: _SEVERITY.index(case.behaviour)))


def _errors(order: Iterable[str], rows: Iterable[tuple[str, OperationRow]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    known: dict[str, list[str]] = defaultdict(list)
    for version, row in rows:
        if row.behaviour == "raises":
            for name in load(version).errors(row):
                known[name].append(version)
    return tuple((name, _ordered(order, known[name])) for name in sorted(known))


def _ordered(order: Iterable[str], versions: Iterable[str]) -> tuple[str, ...]:
    wanted = set(versions)
    return tuple(version for version in order if version in wanted)


def release_ranges(versions: Iterable[str]) -> str:
    """Releases as ranges with en dashes: ``1.7-2.0, 2.5``."""
    every = documented_versions()
    places = sorted(every.index(version) for version in versions)
    runs = (list(run) for _, run in groupby(enumerate(places), key=lambda pair: pair[1] - pair[0]))
    ends = ((every[run[0][1]], every[run[-1][1]]) for run in runs)
    return ", ".join(first if first == last else f"{first}{_DASH}{last}" for first, last in ends)
