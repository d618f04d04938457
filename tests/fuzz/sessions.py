"""Sessions of an editor with the language server: edits, renames, closings, and messages that are none."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.language_client import Client

from .commands import folder, run
from .corpus import Corpus
from .failure import Failure

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$")
# Seconds after which what the server says counts as stale.
_PATIENCE = 15.0
_NAMES = ("model.py", "train.py", "extra.py", "b ä.py")
_TEXTS = (
    "import torch\n\n\ndef build():\n    return torch.nn.Linear(3, 1)\n",
    "from model import build\n\nnet = build()\nnet(net.weight).sum().backward()\n",
    "import torch\n\ntorch.manual_seed(0)\ntorch.backends.cudnn.benchmark = True\n",
    "import torch  # \U0001f600\ntorch.use_deterministic_algorithms(False)\r\nx = '\u2028'\n",
    "x = (\n",
    "",
    "import os\nimport torch\nprint(os.listdir('.')[0])\n",
)
_NONE = (
    b"{",
    b"[]",
    b"{}",
    b"null",
    b"\xff\xfe",
    b'{"jsonrpc": "2.0", "method": 1}',
    b'{"jsonrpc": "2.0", "id": 9}',
    b"1" * 5000,
)
_METHODS = (
    "textDocument/codeAction",
    "textDocument/hover",
    "textDocument/didChange",
    "textDocument/didClose",
    "textDocument/formatting",
    "textDocument/diagnostic",
    "workspace/executeCommand",
    "workspace/didChangeConfiguration",
    "workspace/didRenameFiles",
    "workspace/didChangeWatchedFiles",
    "no/such",
    "$/cancelRequest",
    "$/setTrace",
)


@cache
def available() -> bool:
    """Whether the server can be started: it needs pygls, the extra ``lsp``."""
    return find_spec("pygls") is not None


def session(chance: Random, corpus: Corpus) -> bytes:
    """What an editor does, step by step."""
    steps: list[Any] = []
    for _ in range(chance.randint(10, 40)):
        name, text = chance.choice(_NAMES), _text(chance, corpus)
        steps.append(
            chance.choice(
                (
                    ["change", name, text],
                    ["change", name, text],
                    [
                        "part",
                        name,
                        chance.randrange(20),
                        chance.randrange(30),
                        chance.choice(("", "(", "\n", "x", "é\r\n")),
                    ],
                    ["close", name],
                    ["save", name],
                    ["rename", name, chance.choice(_NAMES)],
                    ["raw", chance.choice(_NONE).hex()],
                    ["ask", chance.choice(_METHODS), _params(chance, name)],
                    ["tell", chance.choice(_METHODS), _params(chance, name)],
                    ["actions", name],
                )
            )
        )
    return json.dumps(steps).encode()


def try_session(data: bytes) -> Iterator[Failure]:
    """What is wrong with a session: the server ends, or in the end says something else of a file than the command line."""
    if not available():
        return
    with folder({"pyproject.toml": b"[tool.torchrepro-lint]\nselect = ['ALL']\n"}) as place:
        client = Client(place)
        try:
            client.start()
            editor = _Editor(client, place)
            for step in json.loads(data):
                editor.do(*step)
            yield from editor.compared()
            if (status := client.stop()) != 0:
                yield Failure("crash", f"the server ends with status {status}")
        except (AssertionError, BrokenPipeError) as error:
            yield Failure("crash", f"the server is gone: {str(error)[:100]}")
        finally:
            client.end()


class _Editor:
    """The documents that are open, as they are, and what the server has last said of each."""

    def __init__(self, client: Any, place: Path) -> None:
        self._client = client
        self._place = place
        self._open: dict[str, str] = {}
        self._version = 0
        self._said: dict[str, list[tuple[str, int]]] = {}

    def do(self, what: str, *rest: Any) -> None:
        """A step of a session."""
        getattr(self, f"_{what}")(*rest)

    def compared(self) -> Iterator[Failure]:
        """What the server says of each open document, once it has had time, beside what a run does.

        A document that does not parse counts for the others as it last did, which a run cannot know: it is emptied first.
        """
        wanted = self._wanted()
        broken = {name: found for name, found in wanted.items() if any(code == "TRL001" for code, _ in found)}
        yield from self._settled(broken)
        for name in sorted(broken):
            self._change(name, "")
        yield from self._settled(self._wanted() if broken else wanted)

    def _wanted(self) -> dict[str, list[tuple[str, int]]]:
        """What a run says of the open documents."""
        for name, text in sorted(self._open.items()):
            (self._place / name).write_bytes(text.encode())
        ran = run("--no-cache", "--output-format", "json", "--jobs", "1")
        wanted: dict[str, list[tuple[str, int]]] = {name: [] for name in self._open}
        for one in json.loads(ran.out):
            if (name := Path(one["filename"]).name) in wanted:
                wanted[name].append((one["code"], one["location"]["row"] - 1))
        return wanted

    def _settled(self, wanted: dict[str, list[tuple[str, int]]]) -> Iterator[Failure]:
        until = time.monotonic() + _PATIENCE
        while any(self._last(name) != sorted(found) for name, found in wanted.items()):
            if time.monotonic() > until:
                name = next(name for name, found in sorted(wanted.items()) if self._last(name) != sorted(found))
                told = f"the server says {self._last(name)} of {name}, and a run says {sorted(wanted[name])}"
                yield Failure("differs", told)
                return
            self._take_in()
            time.sleep(0.01)

    def _last(self, name: str) -> list[tuple[str, int]]:
        return self._said.get((self._place / name).as_uri(), [("nothing", 0)])

    def _take_in(self) -> None:
        where = {"textDocument": {"uri": (self._place / "x.py").as_uri()}, "position": {"line": 0, "character": 0}}
        self._client.request("textDocument/hover", where)
        for one in self._client.told:
            if one["method"] == "textDocument/publishDiagnostics":
                found = one["params"]["diagnostics"]
                rows = sorted((each["code"], each["range"]["start"]["line"]) for each in found)
                self._said[one["params"]["uri"]] = rows
        self._client.told.clear()

    def _change(self, name: str, text: str) -> None:
        self._version += 1
        if name in self._open:
            self._client.change(self._place / name, text, self._version)
        else:
            self._client.open(self._place / name, text, self._version)
        self._open[name] = text

    def _part(self, name: str, row: int, column: int, new: str) -> None:
        """Put something in, at a place that may lie behind the end."""
        if name not in self._open:
            return
        text = self._open[name]
        lines = [*_LINE.finditer(text)]
        offset = len(text)
        if row < len(lines):
            line = lines[row]
            offset = line.start() + min(column, len(line[0].rstrip("\r\n")))
            column = len(text[line.start() : offset].encode("utf-16-le")) // 2
        self._version += 1
        place = {"line": row, "character": column}
        change = {"range": {"start": place, "end": place}, "text": new}
        document = {"uri": (self._place / name).as_uri(), "version": self._version}
        self._client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        self._open[name] = text[:offset] + new + text[offset:]

    def _close(self, name: str) -> None:
        if self._open.pop(name, None) is not None:
            self._client.close(self._place / name)

    def _save(self, name: str) -> None:
        if name in self._open:
            (self._place / name).write_bytes(self._open[name].encode())
            document = {"textDocument": {"uri": (self._place / name).as_uri()}}
            self._client.notify("textDocument/didSave", document)
            self._watched((name, 2))

    def _rename(self, name: str, other: str) -> None:
        """On the disk, and in the editor, which closes the one and opens the other."""
        if not (self._place / name).exists() or name == other:
            return
        (self._place / name).replace(self._place / other)
        text = self._open.get(name)
        self._close(name)
        self._close(other)
        if text is not None:
            self._change(other, text)
        uris = {"oldUri": (self._place / name).as_uri(), "newUri": (self._place / other).as_uri()}
        self._client.notify("workspace/didRenameFiles", {"files": [uris]})
        self._watched((name, 3), (other, 1))

    def _watched(self, *changes: tuple[str, int]) -> None:
        told = [{"uri": (self._place / name).as_uri(), "type": kind} for name, kind in changes]
        self._client.notify("workspace/didChangeWatchedFiles", {"changes": told})

    def _raw(self, data: str) -> None:
        body = bytes.fromhex(data)
        self._client.send_raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def _ask(self, method: str, params: Any) -> None:
        self._client.request(method, params)

    def _tell(self, method: str, params: Any) -> None:
        self._client.notify(method, params)

    def _actions(self, name: str) -> None:
        span = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
        document = {"uri": (self._place / name).as_uri()}
        params = {"textDocument": document, "range": span, "context": {"diagnostics": []}}
        self._client.request("textDocument/codeAction", params)


def _text(chance: Random, corpus: Corpus) -> str:
    text = chance.choice(_TEXTS) if chance.random() < 0.7 else corpus.program(chance)[:5000]
    return text if "coding" not in text and _whole(text) else _TEXTS[0]


def _whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\ufeff" not in text


def _params(chance: Random, name: str) -> Any:
    """What a method does not expect, or of a file that nobody has opened."""
    document = {
        "uri": chance.choice(("file:///never/opened.py", "untitled:1", "", "http://x/y.py", "file://%ff/\x00")),
        "version": 1,
    }
    return chance.choice((None, [], {}, 1, "x", {"textDocument": 1}, {"textDocument": {}}, {"textDocument": document}))
