"""``python -m benchmarks.spans FOLDER...``: the text of each span parses back to its node, and each file round-trips."""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.fitting import fits, parsed, statement_fits
from torchrepro_lint.source.decoding import SourceProblem, decode, encode
from torchrepro_lint.syntax.nodes import Constant, Expression, Operation, Statement, SyntaxTree
from torchrepro_lint.syntax.parse import ParseError, parse_module
from torchrepro_lint.syntax.visitor import bodies, expressions, statements, subexpressions

_MARKS = ("<!-- figures of benchmarks.spans -->", "<!-- end of those figures -->")
_COLUMNS = ("files", "lines", "expressions", "statements", "that do not come back", "not read", "bytes changed")


class Wrong(NamedTuple):
    """A span whose text is not what the facts say."""

    path: Path
    start: int
    piece: str
    kind: str


def main() -> None:
    """Print a row for each folder, and what does not come back."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spans", description=__doc__)
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--lines", type=int, default=10**9, help="stop after so many lines of a folder")
    parser.add_argument("--table", type=Path, metavar="PAGE", help="put the table into a page: docs/reliability.md")
    options = parser.parse_args()
    rows = {}
    for folder in options.folder:
        rows[_name(folder)], wrong = _of_folder(folder, options.lines)
        for each in wrong[:20]:
            print(f"{each.path}:{each.start}: {each.kind}: {each.piece[:100]!r}")
    text = _table(rows)
    print(text)
    if options.table is not None:
        page = options.table.read_text(encoding="utf-8")
        before, after = page.partition(_MARKS[0])[0], page.partition(_MARKS[1])[2]
        options.table.write_text(f"{before}{_MARKS[0]}\n{text}{_MARKS[1]}{after}", encoding="utf-8")


def _name(folder: Path) -> str:
    return "Python's library" if folder.name.startswith("python3.") else folder.name


def _of_folder(folder: Path, most: int) -> tuple[Counter[str], list[Wrong]]:
    counts: Counter[str] = Counter()
    wrong: list[Wrong] = []
    for path in sorted(folder.rglob("*.py")):
        if path.is_file() and "site-packages" not in path.relative_to(folder).parts and counts["lines"] < most:
            wrong += _of_file(path, counts)
    counts["that do not come back"] = len(wrong)
    return counts, wrong


def _of_file(path: Path, counts: Counter[str]) -> list[Wrong]:
    data = path.read_bytes()
    source = decode(data)
    try:
        if isinstance(source, SourceProblem):
            counts["not read"] += 1
            return []
        counts["bytes changed"] += encode(source, data) != data
        facts = parse_module(source.program)
    except ParseError:
        counts["not read"] += 1
        return []
    if parsed(source.program) is None:  # syntax of a later Python, which nothing here can be compared with
        counts["not read"] += 1
        return []
    counts["files"] += 1
    counts["lines"] += source.program.count("\n")
    return [each._replace(path=path) for each in _wrong(facts, source.program, counts)]


def _wrong(facts: SyntaxTree, text: str, counts: Counter[str]) -> Iterator[Wrong]:
    known: dict[tuple[str, str], bool] = {}
    short = {id(each) for function in facts.functions if "<lambda>" in function.name for each in function.body}
    for statement in (each for body in bodies(facts) for each in statements(body)):
        piece, kind = text[statement.start : statement.end], type(statement).__name__
        indent = text[text.rfind("\n", 0, statement.start) + 1 : statement.start]
        # What shares a line with others is read with the first of them; a lambda's body is an expression.
        if not indent.strip() and id(statement) not in short:
            counts["statements"] += 1
            if not statement_fits(piece, indent, kind):
                yield Wrong(Path(), statement.start, piece, kind)
        for each in _parts(statement):
            counts["expressions"] += 1
            piece = text[each.start : each.end]
            key = (piece, repr(each._replace(start=0, end=0)) if isinstance(each, Constant) else type(each).__name__)
            if key not in known:
                known[key] = fits(piece, each)
                if not known[key]:
                    yield Wrong(Path(), each.start, piece, type(each).__name__)


def _parts(statement: Statement) -> Iterator[Expression]:
    """The expressions of a statement; what is left out (the end of a slice) has no text, and the texts
    of an f-string and the links of a chain have none of their own.
    """
    made: set[int] = set()
    for outer in expressions(statement):
        for each in subexpressions(outer):
            if isinstance(each, Operation) and each.op in ("f", "and"):
                made.update(id(inner) for inner in each.operands if isinstance(inner, (Constant, Operation)))
    for outer in expressions(statement):
        yield from (each for each in subexpressions(outer) if id(each) not in made and each.start < each.end)


def _table(rows: dict[str, Counter[str]]) -> str:
    total = sum(rows.values(), Counter[str]())
    lines = [f"| folder | {' | '.join(_COLUMNS)} |", "|---|" + "---:|" * len(_COLUMNS)]
    for name, counts in (*sorted(rows.items()), ("**all**", total)):
        lines.append(f"| {name} | {' | '.join(f'{counts[each]:,}' for each in _COLUMNS)} |")
    return "\n".join([*lines, "", f"With Python {platform.python_version()}.", ""])


if __name__ == "__main__":
    main()
