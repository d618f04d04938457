"""``python -m tests.fuzz.guided FOLDER -max_total_time=300``: inputs for the collector that atheris grows by what they reach.

It needs atheris (``pip install atheris``, for Linux and Python up to 3.13). Inputs are kept in the folder, which begins with our
examples; an input on which the two parsers differ, or one that breaks the collector, is written to ``crash-*``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-not-found,unused-ignore]

with atheris.instrument_imports(include=["torchrepro_lint"]):
    from torchrepro_lint.source.decoding import SourceProblem, decode
    from torchrepro_lint.syntax.parse import ParseError, parse_module

from .corpus import read_corpus
from .trying import comes_back, compared

# What the mutations may put in: words that lead the collector somewhere.
_WORDS = [
    "async",
    "await",
    "class",
    "def",
    "lambda",
    "yield",
    "from",
    "import",
    "as",
    "with",
    "for",
    "in",
    "if",
    "elif",
    "else",
    "while",
    "try",
    "except",
    "finally",
    "return",
    "raise",
    "global",
    "nonlocal",
    "del",
    "assert",
    "match",
    "case",
    "type",
    "not",
    "and",
    "or",
    "is",
    "None",
    "True",
    "self",
    "super()",
    "__init__",
    ":=",
    "->",
    "**",
    "//",
    "<<",
    ">=",
    "!=",
    "@",
    "...",
    'f\\"',
    "rb'",
    '\\"\\"\\"',
    "{!r:>{",
    "torch.rand(",
    "[*a,",
    "**k]",
    "(yield)",
    "#",
    "\\\\\\x0a",
    "\\x0c",
    "\\x0d\\x0a",
    "\\xef\\xbb\\xbf",
    "\\xc2\\xa0",
    "\\xef\\xac\\x81",
]


def main() -> None:
    """Run until a failure, or as long as the options say."""
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder, "words")
        words.write_text("".join(f'"{each}"\n' for each in _WORDS), encoding="ascii")
        options = [each for each in sys.argv[1:] if each.startswith("-")]
        for given in (Path(each) for each in sys.argv[1:] if not each.startswith("-")):
            _seed(given)
            options.append(str(given))
        atheris.Setup([sys.argv[0], f"-dict={words}", "-max_len=2000", "-timeout=30", *options], attempt)
        atheris.Fuzz()


def attempt(data: bytes) -> None:
    """Read one input; raises where the collector breaks off, or the parsers differ."""
    source = decode(data)
    if isinstance(source, SourceProblem):
        return
    try:
        facts = parse_module(source.program)
    except ParseError:
        return
    failures = list(compared(source.program))
    assert not failures, failures
    assert comes_back(facts)


def _seed(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        for number, text in enumerate(read_corpus(()).programs):
            (folder / f"example-{number}").write_text(text[:2000], encoding="utf-8")


if __name__ == "__main__":
    main()
