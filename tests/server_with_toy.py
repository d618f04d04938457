"""The language server with one additional rule, whose fix changes two files."""

from __future__ import annotations

from collections.abc import Iterator

from torchrepro_lint import checks
from torchrepro_lint.checks.rule import Finding, Rule
from torchrepro_lint.source.text import Edit, Fix, Span
from torchrepro_lint.trace.traces import Context


def _check(context: Context) -> Iterator[Finding]:
    at = context.lines.text.find("BAD")
    if at >= 0:
        span = Span(at, at + 3)
        far = (("seeding.py", (Edit(Span(0, 0), "READY = 1\n"),)),)
        yield Finding("TRL998", span, "BAD is not GOOD", Fix("write both", (Edit(span, "GOOD"),), True, far))


checks.RULES = (*checks.RULES, Rule("TRL998", "two-files", "warning", True, _check))

if __name__ == "__main__":
    from torchrepro_lint.interfaces.lsp.handlers import serve

    raise SystemExit(serve())
