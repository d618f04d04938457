"""A client of the language server: JSON-RPC over the pipes of a process, as an editor speaks it."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Seconds to wait for what must come: many times what it takes.
PATIENCE = 120


class Client:
    """An editor with one server, in a ``process`` of its own. What the server asks is answered: with ``settings``, else with nothing."""

    def __init__(self, root: Path, settings: Any = None, process: Any = None) -> None:
        command = [sys.executable, "-m", "torchrepro_lint", "server", "--stdio"]
        self.process = process or subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.root = root
        self.settings = settings
        self.asked: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []
        self.capabilities: dict[str, Any] = {}
        self._came: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._answers: dict[int, dict[str, Any]] = {}
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self, capabilities: Any = None, folders: list[Path] | None = None, options: Any = None) -> dict[str, Any]:
        """Initialize; returns the server's capabilities."""
        folders = [self.root] if folders is None else folders
        params = {
            "processId": None,
            "rootUri": None,
            "capabilities": capabilities or {},
            "initializationOptions": options,
            "workspaceFolders": [{"uri": each.as_uri(), "name": each.name} for each in folders],
        }
        answer: dict[str, Any] = self.request("initialize", params)["result"]["capabilities"]
        self.notify("initialized", {})
        return answer

    def stop(self) -> int:
        """End the server as the protocol has it; its exit status."""
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(PATIENCE)

    def end(self) -> None:
        """Leave nothing of the server."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def request(self, method: str, params: Any) -> dict[str, Any]:
        """The answer to a request: an object with ``result`` or ``error``."""
        return self.answer(self.send_request(method, params))

    def send_request(self, method: str, params: Any) -> int:
        """Ask without waiting; the number of the request."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def answer(self, number: int) -> dict[str, Any]:
        """Wait for the answer to a request."""
        while number not in self._answers:
            self._take()
        return self._answers.pop(number)

    def notify(self, method: str, params: Any) -> None:
        """Tell something."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def wait(self, method: str, wanted: Callable[[Any], bool] = lambda _: True) -> Any:
        """The parameters of the next notification of a kind that is wanted."""
        while True:
            while self.told:
                one = self.told.pop(0)
                if one["method"] == method and wanted(one["params"]):
                    return one["params"]
            self._take()

    def send_raw(self, data: bytes) -> None:
        """Bytes that need not be a message."""
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def open(self, path: Path, text: str, version: int = 1) -> None:
        """A document is opened with this text."""
        document = {"uri": path.as_uri(), "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, path: Path, text: str, version: int) -> None:
        """The whole text of a document is another."""
        document = {"uri": path.as_uri(), "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def close(self, path: Path) -> None:
        """A document is closed."""
        self.notify("textDocument/didClose", {"textDocument": {"uri": path.as_uri()}})

    def diagnostics(self, path: Path, version: int | None = None) -> list[dict[str, Any]]:
        """The next diagnostics of a document, in a version of it."""

        def wanted(params: Any) -> bool:
            return params["uri"] == path.as_uri() and (version is None or params.get("version") == version)

        found: list[dict[str, Any]] = self.wait("textDocument/publishDiagnostics", wanted)["diagnostics"]
        return found

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        self.send_raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def _take(self) -> None:
        message = self._came.get(timeout=PATIENCE)
        assert message is not None, f"the server ended with status {self.process.wait(PATIENCE)}"
        if "method" not in message:
            self._answers[message["id"]] = message
        elif "id" in message:
            self.asked.append(message)
            settings = self.settings
            items = message["params"].get("items", ())
            result = [settings for _ in items] if message["method"] == "workspace/configuration" else None
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        else:
            self.told.append(message)

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream
        while True:
            length = 0
            while line := stream.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            if not length:
                self._came.put(None)
                return
            self._came.put(json.loads(stream.read(length)))
