"""The format ``junit``: JUnit XML with a test suite for each file and a failed test case for each diagnostic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from xml.sax.saxutils import quoteattr

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.summary import unfollowed
from torchrepro_lint.interfaces.report.view import View
from torchrepro_lint.source.errors import CONTROL_CHARACTERS
from torchrepro_lint.source.patterns import lazy_pattern

# Characters that XML 1.0 cannot represent, and control characters of terminals and of text direction.
_FORBIDDEN = lazy_pattern(f"(?![\t\n\r])[{CONTROL_CHARACTERS}\ud800-\udfff\ufffe\uffff]")
_CLEAN = '  <testsuite name="torchrepro-lint" tests="1" failures="0" errors="0">\n    <testcase name="no findings"/>\n'


def render(diagnostics: Sequence[Diagnostic], view: View) -> str:
    """One document; without diagnostics it has one passing case, because some readers require one, and says what is not known."""
    count = len(diagnostics)
    suites = "".join(_suite(path, list(found)) for path, found in groupby(diagnostics, key=lambda one: one.display))
    told = unfollowed(view.programs, len(view.unfollowed))
    known = f"    <system-out>{told}</system-out>\n" if told else ""
    clean = "" if count else f"{_CLEAN}{known}  </testsuite>\n"
    head = f'<testsuites name="torchrepro-lint" tests="{count or 1}" failures="{count}" errors="0">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{suites}{clean}</testsuites>\n'


def _suite(path: str, found: Sequence[Diagnostic]) -> str:
    cases = "".join(_case(path, one) for one in found)
    count = f'tests="{len(found)}" failures="{len(found)}" errors="0"'
    return f"  <testsuite name={_quoted(path)} {count}>\n{cases}  </testsuite>\n"


def _case(path: str, one: Diagnostic) -> str:
    row = one.lines.file_row(one.span.start)
    name = _quoted(f"{one.code} {one.name} {one.start}")
    message = _quoted(f"{path}:{one.start}: {one.code} {one.message}")
    return (
        f"    <testcase name={name} classname={_quoted(path)} file={_quoted(path)} line={_quoted(str(row))}>\n"
        f"      <failure type={_quoted(one.severity)} message={message}/>\n"
        "    </testcase>\n"
    )


def _quoted(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("\ufffd", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;", "##[": "#&#35;["})
