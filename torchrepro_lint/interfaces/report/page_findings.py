"""HTML page, section "Findings": each finding with its source, the call path to it, and its fix as a diff."""

from __future__ import annotations

from collections.abc import Mapping

from torchrepro_lint.interfaces.overview.controls import TITLES
from torchrepro_lint.interfaces.overview.records import EntryRecord, FindingRecord, FixRecord, Overview
from torchrepro_lint.interfaces.report.html_document import and_more, counted, html_text, options
from torchrepro_lint.interfaces.report.html_elements import entry_link, html_location
from torchrepro_lint.interfaces.report.page_content import fix_commands

# With more findings than this, their source is folded.
_MOST_OPEN = 12
_MOST_LINKS = 4
_SIGNS = {"error": "✗", "warning": "!", "note": "i"}


def findings(overview: Overview) -> str:
    """The filter, which the script shows, and all findings by location."""
    if not overview.findings:
        return '<p class="empty">✓ No findings. This is no proof: see what was not analysed.</p>\n'
    entries = {entry.id: entry for entry in overview.entries}
    opened = " open" if len(overview.findings) <= _MOST_OPEN else ""
    new = frozenset(overview.comparison.new_findings if overview.comparison else ())
    articles = "".join(_article(item, entries, opened, item.id in new) for item in overview.findings)
    told = f'<p class="about">{html_text(fix_commands(overview))}</p>\n' if fix_commands(overview) else ""
    return f"{told}{_filter(overview, entries)}{articles}"


def _filter(overview: Overview, entries: Mapping[str, EntryRecord]) -> str:
    found = overview.findings
    rules = sorted({(item.code, item.name) for item in found})
    files = sorted({item.place.path for item in found})
    used = {each for item in found for each in item.entries}
    count = len(found)
    return f"""<form id="filter" role="search" aria-label="Findings" hidden>
<label>Text <input id="text" type="search" autocomplete="off" spellcheck="false" placeholder="shuffle, train.py, TRL302"></label>
<label>Rule <select id="rule">{options("any rule", ((one, f"{one} {name}") for one, name in rules))}</select></label>
<label>Severity <select id="severity">{options("any severity", ((each, each) for each in _SIGNS))}</select></label>
<label>File <select id="file">{options("any file", ((each, each) for each in files))}</select></label>
<label{"" if used else " hidden"}>Entry point <select id="entry">{options("any entry point", ((each, entries[each].name) for each in entries if each in used))}</select></label>
<button type="reset">Reset</button>
<p id="count" role="status" aria-live="polite">{count} of {counted(count, "finding")}</p>
</form>
<p id="none" hidden>No finding matches. Reset the filter to see all.</p>
"""


def _article(item: FindingRecord, entries: Mapping[str, EntryRecord], opened: str, new: bool) -> str:
    about = f'<span class="of">{TITLES[item.control]}</span>' if item.control else ""
    badge = ' <span class="ch worse">▼ new</span>' if new else ""
    return f"""<article class="f {item.severity}" id="{item.id}" tabindex="-1" data-rule="{item.code}" data-severity="{item.severity}" data-file="{html_text(item.place.path)}" data-entries="{" ".join(item.entries)}">
<h3><span class="sev"><span class="m" aria-hidden="true">{_SIGNS[item.severity]}</span> {item.severity}</span> {html_location(item.place)} <span class="rule"><a href="{html_text(item.url)}">{item.code}</a> {html_text(item.name)}</span>{badge} {about}</h3>
<p class="msg">{html_text(item.message)}</p>
{_reached(item, entries)}<details{opened}><summary>{_summary(item)}</summary>
{_source(item)}{_call_path(item)}{_fix(item.fix) if item.fix else ""}</details>
</article>
"""


def _summary(item: FindingRecord) -> str:
    """The title of the details: source, and call path and fix where there are any."""
    parts = ["Source", *(["call path"] if item.way else []), *(["fix"] if item.fix else [])]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _reached(item: FindingRecord, entries: Mapping[str, EntryRecord]) -> str:
    known = sorted(
        (entries[each] for each in item.entries if each in entries), key=lambda entry: (entry.path, entry.function)
    )
    links = ", ".join(map(entry_link, known[:_MOST_LINKS]))
    if not entries:
        return ""
    if links:
        return f'<p class="reach">In the run of {links}{and_more(len(known), _MOST_LINKS)}</p>\n'
    return '<p class="reach">No analysed entry point reaches it</p>\n'


def _source(item: FindingRecord) -> str:
    width = max((len(str(row.number)) for row in item.source), default=1)
    lines = []
    for row in item.source:
        here = ' class="here"' if row.under else ""
        lines.append(f"<span{here}><i>{row.number or '':>{width}}</i> {html_text(row.text)}</span>")
        if row.under:
            lines.append(f'<span class="under" aria-hidden="true"><i>{"":{width}}</i> {html_text(row.under)}</span>')
    return f'<pre class="source" tabindex="0" role="group" aria-label="Source">{chr(10).join(lines)}</pre>\n'


def _call_path(item: FindingRecord) -> str:
    steps = "".join(f"<li>{html_location(step.place)} {html_text(step.text)}</li>" for step in item.way)
    return f'<p class="head">Call path</p><ol class="way">{steps}</ol>\n' if steps else ""


def _fix(fix: FixRecord) -> str:
    safe = "safe: the program means the same" if fix.safe else "unsafe: it may change speed or numbers"
    lines = []
    where = ""
    width = max((len(str(line.number)) for line in fix.changes), default=1)
    for line in fix.changes:
        if line.path != where:
            where = line.path
            lines.append(f'<span class="where">{html_text(where)}</span>')
        kind = "del" if line.sign == "-" else "ins"
        lines.append(f"<{kind}><i>{line.number:>{width}}</i> {line.sign} {html_text(line.text)}</{kind}>")
    head = f'<p class="head">Fix: {html_text(fix.title)} <small>({safe})</small></p>\n'
    return f'{head}<pre class="diff" tabindex="0" role="group" aria-label="Fix as a diff">{chr(10).join(lines)}</pre>\n'
