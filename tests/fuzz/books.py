"""Notebooks: whole ones, such whose JSON is damaged, and such whose values are of other types."""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any

from .corpus import Corpus

_ODD = (
    None,
    True,
    0,
    -1.5,
    "",
    "x",
    [],
    {},
    [1],
    ["import torch\n", None],
    {"a": []},
    "\ud800",
    "\x00",
    10**30,
    [[["a"]]],
)
_MAGICS = (
    "%matplotlib inline",
    "!pip install torch",
    "%%bash\nls",
    "?torch",
    "x = !ls",
    "%%time\ntorch.rand(1)",
    "",
    "  x = 1",
    "'''",
    "(",
    "f'{",
    "\\",
)


def notebooks(chance: Random, corpus: Corpus) -> bytes:
    """A notebook, mostly with something wrong."""
    book = _book(chance, corpus)
    for _ in range(chance.choice((0, 1, 1, 2))):
        _spoil(chance, book)
    indent = chance.choice((None, 1, 4))
    data = json.dumps(book, indent=indent, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    if chance.random() < 0.35:
        at, more = chance.randint(0, len(data)), chance.randint(0, 20)
        data = (
            data[:at]
            + chance.choice((b"", b'"', b"{", b"]", b"\x00", b"\xff", b"\\u12", b",", b"NaN"))
            + data[at + more :]
        )
    if chance.random() < 0.02:
        data = b'{"cells": ' + b"[" * chance.choice((100, 5000, 100_000)) + data
    return chance.choice((b"", b"", b"", b"\xef\xbb\xbf", b" \n")) + data.replace(
        b"\n", chance.choice((b"\n", b"\n", b"\r\n"))
    )


def _book(chance: Random, corpus: Corpus) -> dict[str, Any]:
    cells = []
    texts = [corpus.program(chance) for _ in range(chance.randint(0, 3))] + [chance.choice(_MAGICS)] * chance.choice(
        (0, 1, 2)
    )
    for text in chance.sample(texts, len(texts)):
        source = chance.choice((text, text.splitlines(keepends=True)))
        cells.append(
            {
                "cell_type": chance.choice(("code", "code", "code", "markdown", "raw")),
                "metadata": {},
                "source": source,
                "outputs": [],
            }
        )
    metadata = chance.choice(({}, {"kernelspec": {"language": "python"}}, {"language_info": {"name": "python"}}))
    if chance.random() < 0.1:
        return {"worksheets": [{"cells": [{**each, "input": each["source"]} for each in cells]}], "metadata": metadata}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _spoil(chance: Random, book: dict[str, Any]) -> None:
    """Put something else in the place of a value, or take a key away."""
    places: list[tuple[Any, Any]] = []
    waiting: list[Any] = [book]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        places += [(node, key) for key in keys]
        waiting += [node[key] for key in keys if isinstance(node[key], (dict, list))]
    if places:
        node, key = chance.choice(places)
        if chance.random() < 0.2:
            del node[key]
        else:
            node[key] = deepcopy(chance.choice(_ODD))
