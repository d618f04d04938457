"""Settings and baselines that are damaged, or say what nobody means: each is used, or refused in one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from torchrepro_lint.config.settings import READERS

from .commands import folder, run
from .corpus import Corpus
from .failure import Failure, controls_in

_PROGRAM = (
    b"import os\nimport torch\n\ntorch.backends.cudnn.benchmark = True\nfor x in set(os.listdir('.')):\n    print(x)\n"
)
_WORDS = (
    "TRL",
    "TRL101",
    "TRL2",
    "ALL",
    "unseeded-torch",
    "TRL999",
    "",
    "*",
    "**/*.py",
    "x.py",
    "[",
    "a" * 300,
    "!x.py",
)
_ODD = (
    "1",
    "true",
    "[]",
    "{}",
    "''",
    "'\\u0000'",
    '"\\ud800"',
    "1979-05-27",
    "inf",
    "nan",
    "0x",
    "[[1]]",
    "'2.1'",
    "'minimum'",
)
_GLOBS = (
    "**" * 20 + "x",
    "*" * 60,
    "[a-z" * 9,
    "{a,b}" * 9,
    "\\\\",
    "/",
    "../..",
    "~",
    "./x.py",
    " ",
    "#",
    "[!]",
    "[]-a]",
    "(a+)+$",
)
_TABLES = (
    "tool.torchrepro-lint",
    "tool.torchrepro-lint.per-file-ignores",
    "tool.torchrepro-lint.seeders",
    "project",
    "tool",
)
_VALUES = (0, -1, 1e400, None, "", "x", [], {}, True, 10**40, 1.5, "1", "\ud800", "../../x.py", [[]])


def settings(chance: Random, corpus: Corpus) -> bytes:
    """A ``pyproject.toml``, mostly with something wrong."""
    lines = [f"[{_TABLES[0] if chance.random() < 0.9 else chance.choice(_TABLES)}]"]
    keys = chance.sample(sorted(READERS), chance.randint(0, 5))
    lines += [f"{_spoilt(chance, key)} = {_value(chance)}" for key in keys]
    for _ in range(chance.choice((0, 0, 1, 2))):
        lines += [f"[{chance.choice(_TABLES)}]", f"{_string(chance)} = {_value(chance)}"]
    return _damaged(chance, "\n".join(lines).encode("utf-8", "replace"))


def baseline(chance: Random, corpus: Corpus) -> bytes:
    """A baseline, mostly with something wrong."""
    rows = [
        {"path": "x.py", "code": "TRL201", "line": "torch.backends.cudnn.benchmark = True", "count": 1},
        {"path": "x.py", "code": "TRL502", "line": "for x in set(os.listdir('.')):", "count": 1},
    ]
    book = {"version": 1, "findings": chance.sample(rows, chance.randint(0, 2)) * chance.choice((1, 1, 3))}
    for _ in range(chance.choice((0, 1, 1, 2))):
        where = chance.choice((book, *rows))
        where[chance.choice(sorted(where))] = chance.choice(_VALUES)  # type: ignore[index]
    data = json.dumps(book, indent=chance.choice((None, 2))).encode("utf-8", "surrogatepass")
    if chance.random() < 0.02:
        data = b"[" * 100_000 + data
    return _damaged(chance, data)


def try_settings(data: bytes) -> Iterator[Failure]:
    """What is wrong with a run that has these settings."""
    with folder({"pyproject.toml": data, "x.py": _PROGRAM}):
        for arguments in (("--no-cache",), ("--show-settings",), ("--diff", "--no-cache")):
            yield from _said(*arguments)


def try_baseline(data: bytes) -> Iterator[Failure]:
    """What is wrong with a run that has this baseline: it may take findings away only by saying so row by row."""
    with folder({"known.json": data, "x.py": _PROGRAM}):
        yield from _said("--baseline", "known.json", "--no-cache")
        yield from _said("--baseline", "known.json", "--no-cache", "--unsafe-fixes", "--diff")


def _said(*arguments: str) -> Iterator[Failure]:
    ran = run(*arguments)
    if ran.status not in (0, 1, 2) or "Traceback" in ran.err:
        yield Failure("crash", f"status {ran.status}: {ran.err[-200:]}")
    if ran.status == 2 and not ran.err.strip():
        yield Failure("crash", "status 2, and not a word")
    yield from controls_in("the command", ran.out + ran.err)


def _spoilt(chance: Random, key: str) -> str:
    return (
        key
        if chance.random() < 0.9
        else chance.choice((key.upper(), key[:-1], f'"{key}"', key.replace("-", "_"), "x.y"))
    )


def _value(chance: Random) -> str:
    if chance.random() < 0.3:
        return chance.choice(_ODD)
    if chance.random() < 0.3:
        return _string(chance)
    return f"[{', '.join(_string(chance) for _ in range(chance.randint(0, 3)))}]"


def _string(chance: Random) -> str:
    text = chance.choice(
        (chance.choice(_WORDS), chance.choice(_GLOBS), chance.choice(("cuda", "json", "torch", "error")))
    )
    return json.dumps(text)


def _damaged(chance: Random, data: bytes) -> bytes:
    for _ in range(chance.choice((0, 0, 0, 1, 3))):
        at = chance.randint(0, len(data))
        data = (
            data[:at]
            + chance.choice((b"", b"\x00", b"\xff", b"\n", b'"', b"]", b"=", b"\r"))
            + data[at + chance.randint(0, 4) :]
        )
    return data
