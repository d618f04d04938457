"""Renew what the documentation takes from the program: ``python -m tools.docs --write``.

That is the output of the console examples in ``README.md`` and ``docs/``, the tables of rules and options, and the picture of a
terminal. Without ``--write`` nothing is changed; the exit status is 1 where something is not as the program prints it.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from tools.docs import console, picture, tables

PAGES = ("README.md", "examples/README.md", "docs/*.md", "docs/editors/*.md")


def main() -> None:
    """Compare the pages, or write them."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write what is not as the program prints it")
    parser.add_argument("--no-examples", action="store_true", help="run no console examples: tables and picture only")
    parser.add_argument("pages", nargs="*", type=Path, help="all pages and the picture by default")
    options = parser.parse_args()
    stale = [each for each in options.pages or pages() if _renew(each, options.write, not options.no_examples)]
    if not options.pages:
        stale += picture.renew(options.write)
    if not options.write:
        sys.exit(bool(stale))


def pages() -> list[Path]:
    """The pages that may hold examples or tables."""
    return [path for pattern in PAGES for path in sorted(console.TOP.glob(pattern))]


def _renew(page: Path, write: bool, examples: bool) -> bool:
    before = page.read_text(encoding="utf-8")
    after = tables.written(before)
    try:
        after = console.rewritten(after) if examples else after
    except ValueError as error:
        sys.exit(f"{page}: {error}")
    if after == before:
        return False
    named = str(page)
    print("".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), named, named, n=0)))  # noqa: T201
    if write:
        page.write_text(after, encoding="utf-8")
    return True


if __name__ == "__main__":
    main()
