"""The content of a report's page, stated once for HTML and for Markdown.

Sentences are plain text. Sections, and the lines of a timeline, are written with a ``Writer``, which has the elements of a format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from torchrepro_lint.catalogue.release_history import STATUSES, release_ranges
from torchrepro_lint.domain.timeline import TimelineEvent
from torchrepro_lint.interfaces.overview.controls import CONTROLS, STATES, TITLES
from torchrepro_lint.interfaces.overview.gaps import GAP_KINDS
from torchrepro_lint.interfaces.overview.records import (
    Cell,
    Comparison,
    EntryRecord,
    Location,
    OperationUse,
    Overview,
    ReleaseShift,
)
from torchrepro_lint.interfaces.report.html_document import and_more, counted


class Writer(NamedTuple):
    """The elements of a page in one format. They take plain text, and rows and cells that are written already."""

    text: Callable[[str], str]
    code: Callable[[str], str]
    # Less important than what is beside it; a condition; something wrong.
    aside: Callable[[str], str]
    condition: Callable[[str], str]
    wrong: Callable[[str], str]
    # The name of an entry point, and the text about a finding by its id, linked where the format has links within a page.
    entry: Callable[[EntryRecord], str]
    finding: Callable[[str, str], str]
    # A state in words, with the id of the element that says more, which may be empty.
    state: Callable[[str, str, str], str]
    # A status; statuses with their releases, and whether that is what holds in the target torch.
    status: Callable[[str], str]
    statuses: Callable[[Iterable[tuple[str, str, bool]]], str]
    # A location, and how the run gets there.
    place: Callable[[str, str], str]
    # The number of places, and those that are named.
    places: Callable[[int, str], str]
    # Blocks: a paragraph of a kind; a list below its sign, title and kind; one that may be folded; a table of a kind.
    paragraph: Callable[[str, str], str]
    group: Callable[[str, str, str, Sequence[str]], str]
    folded: Callable[[str, Sequence[str]], str]
    table: Callable[[str, str, Sequence[str], Iterable[Sequence[str]]], str]


MATRIX = "Entry points and controls"
CHANGES = "What changed since the older report"
FINDINGS = "Findings"
OPERATIONS = "Operations by release of torch"
GAPS = "What was not analysed, and why"
_MOST_PLACES = 4


def title(overview: Overview) -> str:
    """The title of the page."""
    return f"Reproducibility of {overview.title}" if overview.title else "Reproducibility report"


def facts(overview: Overview) -> Iterator[str]:
    """The target torch of each project, and the numbers of files, findings and fixes."""
    for aim in overview.aims:
        yield f"torch {aim.torch} ({aim.decided_by})" + (f" in {aim.root}" if aim.root else "")
    yield counted(overview.files, "file")
    if overview.findings:
        counts = ", ".join(counted(number, name) for name, number in severities(overview))
        fixes = sum(item.fix is not None for item in overview.findings)
        yield f"{counted(len(overview.findings), 'finding')} ({counts})"
        yield f"{counted(fixes, 'fix', 'fixes')} available"


def about(entry: EntryRecord) -> str:
    """What an entry point runs with, and whether rules about whole runs check it."""
    matters = "" if entry.matters else " It saves and measures nothing, so rules about whole runs do not check it."
    return f"A run for torch {entry.torch} on {entry.device.upper()}.{matters}"


def changes(overview: Overview, found: Comparison, write: Writer) -> str:
    """What got better or worse since the older report."""
    entries = {entry.id: entry for entry in overview.entries}
    new = frozenset(found.new_findings)
    cells = {"better": list[str](), "worse": list[str]()}
    for change in found.cells:
        entry = entries[change.entry]
        cell = next(each for each in entry.cells if each.control == change.control)
        before = write.state(change.before, change.said or STATES[change.before].word, "")
        now = write.state(cell.state, cell.says, f"{entry.id}-{cell.control}")
        cells[change.verdict].append(f"{write.entry(entry)}, {TITLES[change.control]}: {before} → {now}")
    fresh = (one for one in overview.findings if one.id in new)
    groups: tuple[tuple[str, str, str, Iterable[str]], ...] = (
        ("▼", "Worse", "worse", cells["worse"]),
        ("▲", "Better", "better", cells["better"]),
        (
            "▼",
            "New findings",
            "worse",
            (f"{write.finding(one.id, f'{one.code} {one.place}')} {write.text(one.message)}" for one in fresh),
        ),
        (
            "▲",
            "Findings that are gone",
            "better",
            (f"{write.text(rule)} {write.code(path)} {write.code(line)}" for rule, path, line in found.gone_findings),
        ),
        ("+", "New entry points", "", (write.entry(entries[each]) for each in found.new_entries)),
        ("−", "Entry points that are gone", "", map(write.code, found.gone_entries)),  # noqa: RUF001
    )
    told = (
        f"{counted(len(cells['better']), 'control')} better, {len(cells['worse'])} worse; "
        f"{counted(len(found.gone_findings), 'finding')} gone, {len(found.new_findings)} new."
    )
    lists = [(sign, name, kind, listed) for sign, name, kind, rows in groups if (listed := list(rows))]
    return (
        write.paragraph("facts", told)
        + "".join(write.paragraph("", note) for note in found.notes)
        + ("".join(write.group(*each) for each in lists) or write.paragraph("", _NO_CHANGE))
    )


_NO_CHANGE = "Nothing changed in entry points, controls or findings."


def moment_text(moment: TimelineEvent, write: Writer) -> str:
    """An event of a timeline with its conditions, its place and what is wrong about it."""
    verb = {"draw": " draws", "entropy": " seeds anew in each run"}.get(moment.kind, "")
    more = f", and {moment.times - 1} more" if moment.times > 1 else ""
    only = f" {write.condition(', '.join(dict.fromkeys(moment.conditions)))}" if moment.conditions else ""
    wrong = f" {write.wrong(f'{moment.trouble.text} ({moment.trouble.code})')}" if moment.trouble else ""
    steps = " → ".join(step.text.partition(" ")[2] for step in moment.way)
    at = write.place(str(Location(moment.path, *moment.place)), f", by {steps}" if steps else "")
    return f"{write.code(moment.text)}{verb}{more}{only} {at}{wrong}"


def operations(overview: Overview, write: Writer) -> str:
    """The behaviour of operations in the target torch, and what another release would change."""
    if not overview.uses:
        return write.paragraph("empty", "No call was found that any release of torch treats as nondeterministic.")
    uses = write.table(
        "uses",
        "Calls that some release of torch cannot repeat, or only on request",
        ("Operation", "In the target torch", "Calls", "From release to release"),
        (_use(each, write) for each in overview.uses),
    )
    if not overview.shifts:
        return uses + write.paragraph("about", "In no other release of torch would these calls behave otherwise.")
    targets = ", ".join(dict.fromkeys(each.torch for each in overview.shifts))
    return uses + write.table(
        "shifts",
        f"What another release would change, beside torch {targets}",
        ("With", "These calls would behave otherwise"),
        ((write.text(f"torch {each.releases}"), write.text(_shift(each))) for each in overview.shifts),
    )


def _use(use: OperationUse, write: Writer) -> Sequence[str]:
    named = ", ".join(write.code(str(at)) for at in use.places[:_MOST_PLACES])
    return (
        write.code(use.operation),
        f"{write.status(use.status)} {write.aside(f'in torch {use.torch}')}",
        write.places(len(use.places), named + and_more(len(use.places), _MOST_PLACES)),
        write.statuses(_spans(use)),
    )


def _spans(use: OperationUse) -> Iterator[tuple[str, str, bool]]:
    """The behaviour of calls by release: each status with its releases, and whether the target is one of these."""
    for status, run in groupby(use.releases, key=lambda each: each[1]):
        versions = [version for version, _ in run]
        yield status, release_ranges(versions), use.torch in versions


def status_label(status: str) -> tuple[str, str]:
    """The mark and the label of a status; for none, that nothing is known."""
    return (STATUSES[status].mark, STATUSES[status].label) if status else ("·", "not known to vary")


def _shift(shift: ReleaseShift) -> str:
    """``2 calls would raise instead of obeying the flag``."""
    parts = (
        f"{counted(number, 'call')} would {_VERBS[after][0]} instead of {_VERBS[before][1]}"
        for before, after, number in shift.changes
    )
    return "; ".join(parts)


_VERBS = {
    "raises": ("raise", "raising"),
    "silent": ("vary silently", "varying silently"),
    "warns": ("only warn", "only warning"),
    "ties": ("leave the order of ties open", "leaving the order of ties open"),
    "deterministic": ("obey the flag", "obeying the flag"),
    "fills": ("be filled with the flag", "being filled with the flag"),
    "none": ("be deterministic", "being deterministic"),
    "": ("not be known to vary", "not being known to vary"),
}


def gaps(overview: Overview, write: Writer) -> str:
    """What was not analysed, by kind."""
    told = f"{counted(overview.files, 'file was', 'files were')} analysed. {_LIMITS}"
    return write.paragraph("", told) + "".join(
        write.folded(GAP_KINDS[kind], [f"{write.code(gap.what)}: {write.aside(gap.why)}" for gap in found])
        for kind, found in groupby(overview.gaps, key=lambda gap: gap.kind)
    )


_LIMITS = (
    "A name that the program makes at run time is unknown, and an unknown name makes no finding. What a call runs that is not "
    "followed is not known to be clean: the cells of its entry point say so. "
    "Shapes and dtypes are known only where the source states them. No finding is no proof."
)
_MOST_CAUSES = 5


class Cause(NamedTuple):
    """A cause of irreproducibility: its control, a sentence, and the entry points that have it."""

    control: str
    says: str
    entries: tuple[EntryRecord, ...]

    @property
    def title(self) -> str:
        """The title of the control."""
        return TITLES[self.control]


def causes(overview: Overview) -> tuple[Cause, ...]:
    """The most frequent causes in entry points that matter; ties in the order of the controls."""
    found: dict[tuple[str, str], list[EntryRecord]] = {}
    for entry in overview.entries:
        for cell in entry.cells:
            if cell.state == "bad" and entry.matters and not _repeats_torch_cell(entry, cell):
                found.setdefault((cell.control, cell.says), []).append(entry)
    order = [control.key for control in CONTROLS]
    ranked = sorted(found.items(), key=lambda each: (-len(each[1]), order.index(each[0][0]), each[0][1]))
    return tuple(Cause(control, says, tuple(entries)) for (control, says), entries in ranked[:_MOST_CAUSES])


def _repeats_torch_cell(entry: EntryRecord, cell: Cell) -> bool:
    """Whether CUDA's cell says the same as torch's own."""
    return cell.control == "cuda" and any(each.control == "torch" and each.says == cell.says for each in entry.cells)


def verdict(overview: Overview) -> str:
    """How many entry points have something to fix, of those that matter, how many more there are, and how many have gaps."""
    return f"{_to_fix(overview)}{_not_followed(overview)}"


def _not_followed(overview: Overview) -> str:
    """The sentence on entry points that lead into code that is not followed; empty without one."""
    count, every = unfollowed_entries(overview), len(overview.entries)
    if not count:
        return ""
    which = "It leads" if every == 1 else f"{count} of {every} entry points {'leads' if count == 1 else 'lead'}"
    return f" {which} into code that could not be followed."


def unfollowed_entries(overview: Overview) -> int:
    """The number of entry points that lead into code that is not followed."""
    return sum(bool(entry.timeline.gaps) for entry in overview.entries)


def _to_fix(overview: Overview) -> str:
    mattering = [entry for entry in overview.entries if entry.matters]
    bad = sum(any(cell.state == "bad" for cell in entry.cells) for entry in mattering)
    if not mattering:
        return "No entry point was found whose run saves or measures anything."
    which = " whose run saves or measures something" if others_told(overview) else ""
    more = f"; {told}" if (told := others_told(overview, "more ")) else ""
    if len(mattering) == 1:
        return f"The one entry point{which} has {'something' if bad else 'nothing'} to fix{more}."
    if not bad:
        return f"None of the {len(mattering)} entry points{which} has anything to fix{more}."
    return f"{bad} of {len(mattering)} entry points{which} {'has' if bad == 1 else 'have'} something to fix{more}."


def others_told(overview: Overview, more: str = "") -> str:
    """``1 saves and measures nothing``: how many entry points do not matter; empty where all do."""
    number = sum(not entry.matters for entry in overview.entries)
    return f"{number} {more}{'saves and measures' if number == 1 else 'save and measure'} nothing" if number else ""


def why_no_entry_points(overview: Overview) -> str:
    """The sentence that stands for a matrix without entry points."""
    idle = sum(gap.kind == "idle" for gap in overview.gaps)
    if not idle:
        return "No entry point was found: nothing in these files starts a run."
    found, it = ("1 entry point was found", "it runs") if idle == 1 else (f"{idle} entry points were found", "they run")
    return f"{found}, and nothing in what {it} that decides whether a run can be repeated."


def fix_commands(overview: Overview) -> str:
    """The sentence on how many findings which command fixes; empty where none can be fixed."""
    safe = sum(item.fix is not None and item.fix.safe for item in overview.findings)
    unsafe = sum(item.fix is not None and not item.fix.safe for item in overview.findings)
    if not safe + unsafe:
        return ""
    first = f"torchrepro-lint --fix fixes {safe} of them" if safe else ""
    more = f"torchrepro-lint --fix --unsafe-fixes fixes {unsafe}{' more' if safe else ' of them'}"
    return f"{first}{', ' if safe and unsafe else ''}{more if unsafe else ''}."


def severities(overview: Overview) -> tuple[tuple[str, int], ...]:
    """The count of findings of each severity, the worst first."""
    counts = Counter(item.severity for item in overview.findings)
    return tuple((name, counts[name]) for name in ("error", "warning", "note") if counts[name])
