"""Fingerprints: identifiers of diagnostics that stay the same when code above them changes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from torchrepro_lint.engine.diagnostic import Diagnostic
from torchrepro_lint.interfaces.report.view import relative


def fingerprints(diagnostics: Iterable[Diagnostic], base: str) -> list[str]:
    """For each diagnostic 32 hexadecimal digits, hashed from its rule, file and line of code.

    Equal ones are numbered, so that all are distinct.
    """
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for one in diagnostics:
        line = one.lines.line(one.lines.position(one.span.start).row)
        key = (one.code, relative(one.filename, base), " ".join(line.split()))
        seen[key] += 1
        data = "\0".join((*key, str(seen[key])))
        found.append(hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:32])
    return found
