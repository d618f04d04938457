"""The picture of the layers in ``docs/architecture.md``, drawn from the imports: ``python -m tools.architecture``.

It writes the part of the page between its two marks: a Mermaid graph of the packages, and a table with the first sentence of
each package. ``--check`` writes nothing and exits with status 1 where the page differs from the code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import grimp

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
_PACKAGE = PAGE.parents[1] / "torchrepro_lint"
BEGIN, END = "<!-- drawn by python -m tools.architecture -->\n", "<!-- end of what is drawn -->\n"
_ROOT = "torchrepro_lint"
# Highest first, as in the contract of pyproject.toml.
LAYERS = (
    *("interfaces", "engine", "checks", "domain", "trace", "dataflow"),
    *("resolve", "config", "catalogue", "syntax", "query", "source", "call_stack", "limits"),
)


def main() -> None:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(prog="python -m tools.architecture", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; status 1 where the page is not of the code"
    )
    options = parser.parse_args()
    before = PAGE.read_text(encoding="utf-8")
    after = drawn(before)
    if options.check:
        sys.exit(before != after)
    PAGE.write_text(after, encoding="utf-8")


def drawn(page: str) -> str:
    """The page with its part between the marks drawn anew."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    imports = package_imports()
    return f"{head}{BEGIN}\n{_graph(imports)}\n{_table(imports)}\n{END}{tail}"


def package_imports() -> Mapping[str, frozenset[str]]:
    """Which packages each package imports, at run time, for types or inside functions."""
    graph = grimp.build_graph(_ROOT, cache_dir=None)
    found: dict[str, set[str]] = {each: set() for each in LAYERS}
    for module in graph.modules:
        here = _package(module)
        if here in found:
            for other in graph.find_modules_directly_imported_by(module):
                found[here].add(_package(other))
    return {each: frozenset(found[each] & set(LAYERS) - {each}) for each in LAYERS}


def _package(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _graph(imports: Mapping[str, frozenset[str]]) -> str:
    """The arrows that no longer way through other packages stands for; the table has all."""
    reached: dict[str, frozenset[str]] = {}
    for each in reversed(LAYERS):
        reached[each] = imports[each].union(*(reached[other] for other in imports[each]))
    lines = ["```mermaid", "flowchart TD"]
    for each in LAYERS:
        inner = sorted(path.parent.name for path in (_PACKAGE / each).glob("*/__init__.py"))
        lines += [f'    {each}["{each}<br><small>{", ".join(inner)}</small>"]'] if inner else []
    for upper in LAYERS:
        behind = frozenset[str]().union(*(reached[other] for other in imports[upper]))
        lines += [f"    {upper} --> {lower}" for lower in LAYERS if lower in imports[upper] - behind]
    return "\n".join([*lines, "```", ""])


def _table(imports: Mapping[str, frozenset[str]]) -> str:
    lines = ["| package | what it is | imports |", "|---|---|---|"]
    for each in LAYERS:
        sentence = (import_module(f"{_ROOT}.{each}").__doc__ or "").strip().partition("\n\n")[0].replace("\n", " ")
        below = ", ".join(f"`{other}`" for other in LAYERS if other in imports[each])
        lines.append(f"| `{each}` | {sentence} | {below or 'nothing'} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
