"""Language features: diagnostics, code actions and hover of a document, as LSP types.

The text of a hover says what a rule is about, why there is a finding and why it has no fix, with a link to the rule's page. They run
in the one thread that owns the workspace. ``PublishedDiagnostics`` remembers what was sent to the editor, so that it
is withdrawn when it no longer holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from lsprotocol import types

from torchrepro_lint.checks import RULES
from torchrepro_lint.checks.pages import find, url
from torchrepro_lint.checks.rule import Finding, Rule, why_unfixed
from torchrepro_lint.engine.incremental_project import FileReport, LinkedProject
from torchrepro_lint.engine.parsed_file import ParsedFile
from torchrepro_lint.interfaces.lsp import messages
from torchrepro_lint.interfaces.lsp.messages import TextChange, fix_all_changes, quick_fixes
from torchrepro_lint.interfaces.lsp.text_documents import PositionMapper
from torchrepro_lint.interfaces.lsp.workspace import Document, Workspace, offset
from torchrepro_lint.interfaces.report.markdown_elements import escaped
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.source.text import Span

MOST = 1500
# A rule that would get fewer characters is only counted.
_FEWEST = 220
_SENTENCE_END = lazy_pattern(r"[.!?](?=\s|$)|;(?=\s)")
_RULES = {rule.code: rule for rule in RULES}


class _Writer(NamedTuple):
    """The mark-up of a client: Markdown or plain text."""

    markdown: bool

    def literal(self, text: str) -> str:
        """A text as it is."""
        return escaped(text) if self.markdown else text

    def prose(self, text: str) -> str:
        """A text of our own pages, which is in Markdown."""
        return text if self.markdown else text.replace("`", "")

    def heading(self, rule: Rule) -> str:
        name = f"{rule.code} {rule.name}"
        return f"**{name}**" if self.markdown else name

    def link(self, rule: Rule) -> str:
        place = url(rule.code, rule.name)
        return f"[More about {rule.code}]({place})" if self.markdown else f"More about {rule.code}: {place}"

    def items(self, lines: Sequence[str]) -> str:
        return "\n".join(f"- {self.literal(line)}" for line in lines)

    @property
    def rule_off(self) -> str:
        return "\n\n---\n\n" if self.markdown else "\n\n"


def hover_text(findings: Iterable[Finding], codes: Iterable[str], markdown: bool) -> str:
    """The hover for the findings of a place and for codes that are written there; empty where there are none."""
    write = _Writer(markdown)
    by_code: dict[str, list[Finding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    for code in codes:
        by_code.setdefault(code, [])
    known = [(_RULES[code], own) for code, own in by_code.items() if code in _RULES]
    shown = known[: MOST // _FEWEST]
    rest = f"{write.rule_off}{len(known) - len(shown)} more rules report this place." if shown != known else ""
    left, parts = MOST - len(rest), list[str]()
    for number, (rule, own) in enumerate(shown):
        room = left // (len(shown) - number) - len(write.rule_off)
        parts.append(_about(rule, own, room, write))
        left -= len(parts[-1]) + len(write.rule_off)
    return write.rule_off.join(parts) + rest if parts else ""


def _about(rule: Rule, findings: Sequence[Finding], room: int, write: _Writer) -> str:
    """All about the findings of one rule, in so many characters: the most important paragraphs are chosen first."""
    link = write.link(rule)
    chosen = [(0, write.heading(rule))]
    left = room - len(chosen[0][1]) - len(link) - 2
    for place, text in _paragraphs(rule, findings, left, write):
        if text and len(text) + 2 <= left:
            chosen.append((place, text))
            left -= len(text) + 2
    return "\n\n".join([*(text for _, text in sorted(chosen)), link])


def _paragraphs(rule: Rule, findings: Sequence[Finding], most: int, write: _Writer) -> Iterator[tuple[int, str]]:
    """The paragraphs about a rule's findings by importance, each with its place in the text."""
    page = find(rule.code)
    messages = list(dict.fromkeys(one.message for one in findings))
    share = max(most - 200, most // 2) // max(len(messages), 1)
    for number, message in enumerate(messages):
        yield 10 + number, _cut(message, share, write)
    yield 1, write.prose(page.summary) if page else ""
    for number, one in enumerate(findings):
        if reason := why_unfixed(one, rule):
            yield 50, _cut(f"There is no fix here: {reason}.", share, write)
        if one.steps:
            lines = [f"{step.path}:{step.place.line}: {step.text}" for step in one.steps]
            yield 30 + number, "How the run gets there:\n\n" + write.items(lines)


def _cut(text: str, most: int, write: _Writer) -> str:
    """As much of a text as fits, in whole sentences; in whole words where not even one sentence fits."""
    if len(write.literal(text)) <= most:
        return write.literal(text)
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    starts = [match.start() for match in re.finditer(r"\s", text)]
    for at in [*ends[::-1], *starts[::-1]]:
        if at > most:  # writing it makes it no shorter
            continue
        found = f"{write.literal(text[:at].rstrip(';'))} …"
        if len(found) <= most:
            return found
    return ""


_CODE = lazy_pattern(r"TRL\d{3}")
_FIX_ALL_TITLE = "Apply all safe fixes of torchrepro-lint in this file"
# Where the settings ask for unsafe fixes.
_FIX_ALL_UNSAFE_TITLE = "Apply all fixes of torchrepro-lint in this file (unsafe)"


class FileDiagnostics(NamedTuple):
    """The diagnostics of a file, each with the URI of its document, and internal errors of the tool."""

    diagnostics: tuple[tuple[str, types.Diagnostic], ...] = ()
    errors: tuple[str, ...] = ()


class _RequestTarget(NamedTuple):
    document: Document
    linked: LinkedProject
    name: str
    report: FileReport


class LanguageFeatures(NamedTuple):
    """Answers requests about one document at a time.

    ``versioned`` says whether the editor takes edits with versions, ``resolves`` whether it asks for the edit of a code
    action when the user chooses one, ``markdown`` whether it shows Markdown.
    """

    workspace: Workspace
    positions: PositionMapper
    versioned: bool
    resolves: bool
    markdown: bool = True

    def diagnostics(self, path: str) -> FileDiagnostics:
        """The diagnostics of an open file."""
        project = self.workspace.project_of(path)
        report = self.workspace.reports([path]).get(path)
        if project is None or report is None:
            return FileDiagnostics()
        return FileDiagnostics(tuple(messages.diagnostics(*project, report, self.positions)), report.checked.errors)

    def actions(self, uri: str, where: types.Range, context: types.CodeActionContext) -> list[types.CodeAction]:
        """The code actions for a range of a document and its diagnostics, of the kinds that the client asks for."""
        target = self._target(uri)
        if target is None:
            return []
        wanted = _kind_filter(context.only)
        spans = self._spans(target, uri, where, context)
        found = list(self._quick(target, spans)) if wanted(types.CodeActionKind.QuickFix.value) else []
        unsafe = target.linked.tree.root.settings.unsafe_fixes
        fixes = [one.fix for one in target.report.checked.findings if one.fix and (one.fix.safe or unsafe)]
        if fixes and wanted(messages.FIX_ALL):
            title = _FIX_ALL_TITLE if all(each.safe for each in fixes) else _FIX_ALL_UNSAFE_TITLE
            found += self._all(target, uri, title)
        return found

    def resolve(self, action: types.CodeAction) -> types.CodeAction:
        """A code action completed by its edit (``codeAction/resolve``)."""
        target = self._target(action.data) if isinstance(action.data, str) else None
        changes = fix_all_changes(target.linked, target.name, self.positions) if target else ()
        action.edit = self._edit(changes)
        return action

    def hover(self, uri: str, where: types.Position) -> types.Hover | None:
        """What there is to say of the findings at a position, and of codes that are written there."""
        target = self._target(uri)
        if target is None:
            return None
        at = self._offset(target, uri, where)
        touched = [one for one in target.report.checked.findings if one.span.start <= at <= one.span.end]
        text = hover_text(touched, _codes_in_line(target.report.reading, at), self.markdown)
        kind = types.MarkupKind.Markdown if self.markdown else types.MarkupKind.PlainText
        return types.Hover(types.MarkupContent(kind, text)) if text else None

    def _spans(
        self, target: _RequestTarget, uri: str, where: types.Range, context: types.CodeActionContext
    ) -> tuple[Span, ...]:
        """The spans of a request. Some editors send the position of the cursor, and the diagnostics of its line."""
        own = [each.range for each in context.diagnostics if each.source == messages.SOURCE]
        return tuple(Span(*(self._offset(target, uri, each) for each in (one.start, one.end))) for one in (where, *own))

    def _quick(self, target: _RequestTarget, spans: Sequence[Span]) -> Iterator[types.CodeAction]:
        path = target.document.path
        for action in quick_fixes(target.linked, target.name, target.report, self.positions, spans):
            start, end = self.positions.span(path, target.report.reading, action.finding.span)
            settled = messages.diagnostic(target.linked, action.finding, start, end, self.positions)
            preferred = True if action.kind == "fix" and action.safe else None
            yield types.CodeAction(
                action.title,
                types.CodeActionKind.QuickFix,
                diagnostics=[settled],
                is_preferred=preferred,
                edit=self._edit(action.changes),
            )

    def _all(self, target: _RequestTarget, uri: str, title: str) -> Iterator[types.CodeAction]:
        """All fixes of a file take several analyses, so they are computed only when chosen, where the client allows it."""
        if self.resolves:
            yield types.CodeAction(title=title, kind=messages.FIX_ALL, data=uri)
        elif changes := fix_all_changes(target.linked, target.name, self.positions):
            yield types.CodeAction(title=title, kind=messages.FIX_ALL, edit=self._edit(changes))

    def _edit(self, changes: Sequence[TextChange]) -> types.WorkspaceEdit:
        versions = {each.uri: each.version for each in self.workspace.documents.values() if each.cells is None}
        return messages.workspace_edit(changes, versions.get, self.versioned)

    def _target(self, uri: str) -> _RequestTarget | None:
        document = next(
            (one for one in self.workspace.documents.values() if uri in (one.uri, *(one.cells or ()))), None
        )
        project = self.workspace.project_of(document.path) if document else None
        report = self.workspace.reports([document.path])[document.path] if document and project else None
        return _RequestTarget(document, *project, report) if document and project and report else None

    def _offset(self, target: _RequestTarget, uri: str, where: types.Position) -> int:
        """The offset of a position of a document, or the nearest one that exists."""
        lines, first = target.report.reading.lines, 1
        for cell in lines.cells if target.document.cells else ():
            if target.document.cells and target.document.cells[cell.number - 1] == uri:
                first = lines.position(cell.start).row
        return offset(lines, first - 1 + where.line, where.character, self.positions.encoding)


def _codes_in_line(reading: ParsedFile, at: int) -> Iterator[str]:
    lines = reading.lines
    row, column, _ = lines.position(at)
    for match in _CODE.finditer(lines.line(row)):
        if match.start() <= column - 1 <= match.end():
            yield match[0]


def _kind_filter(only: Sequence[types.CodeActionKind | str] | None) -> Callable[[str], bool]:
    """Whether a kind is one of those asked for, or a sub-kind of one."""
    kinds = [each.value if isinstance(each, types.CodeActionKind) else each for each in only or ()]
    return lambda kind: only is None or any(not each or f"{kind}.".startswith(f"{each}.") for each in kinds)


class PublishedDiagnostics:
    """The URIs that diagnostics were published for, by path; for a notebook those of its cells."""

    def __init__(self, send: Callable[[types.PublishDiagnosticsParams], None]) -> None:
        self._send = send
        self._uris: dict[str, set[str]] = {}

    def publish(self, document: Document, found: Iterable[tuple[str, types.Diagnostic]]) -> None:
        """Publish all diagnostics of a document, each with its URI; URIs without any are cleared."""
        uris = document.cells or (document.uri,)
        gone = self._uris.get(document.path, set()).difference(uris)
        by_uri: dict[str, list[types.Diagnostic]] = {uri: [] for uri in (*uris, *sorted(gone))}
        for uri, each in found:
            by_uri.setdefault(uri, []).append(each)
        for uri, diagnostics in by_uri.items():
            version = document.version if uri == document.uri else None
            self._send(types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=version))
        self._uris[document.path] = set(by_uri) - gone

    def clear(self, path: str) -> None:
        """Withdraw the diagnostics of a closed document."""
        for uri in sorted(self._uris.pop(path, set())):
            self._send(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))
