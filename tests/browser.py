"""A headless Chromium, driven over the WebDriver protocol with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TAB, ENTER = "\ue004", "\ue007"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing() -> str | None:
    """What is not installed that ``start`` needs."""
    if not any(map(shutil.which, _CHROMIUM)):
        return "no Chromium on this machine (apt-get install chromium chromium-driver)"
    return None if shutil.which("chromedriver") else "no chromedriver on this machine (apt-get install chromium-driver)"


class Browser:
    """One window."""

    def __init__(self, server: str, session: str) -> None:
        self._session = f"{server}/session/{session}"

    def open(self, page: Path) -> None:
        self.visit(page.as_uri())

    def visit(self, address: str) -> None:
        _ask("POST", f"{self._session}/url", {"url": address})

    def run(self, script: str, *arguments: object) -> Any:
        """The value that a function body returns; a promise is awaited."""
        return _ask("POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def _find(self, selector: str) -> str:
        found = _ask("POST", f"{self._session}/element", {"using": "css selector", "value": selector})
        return f"{self._session}/element/{found[_ELEMENT]}"

    def click(self, selector: str) -> None:
        _ask("POST", f"{self._find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        _ask("POST", f"{self._find(selector)}/value", {"text": text})

    def press(self, key: str) -> None:
        """Press a key by its WebDriver code, where the focus is."""
        keys = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        _ask("POST", f"{self._session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": keys}]})

    def tab_through(self, most: int = 400) -> list[str]:
        """The id, address or element name of everything that the tabulator reaches, each of which must show that it has the focus."""
        seen: list[str] = []
        for _ in range(most):
            self.press(TAB)
            at, ring = self.run(
                "const e = document.activeElement; return [e.id || e.getAttribute('href') || e.localName,"
                "getComputedStyle(e).outlineStyle]"
            )
            if at == "body":
                break
            assert ring != "none", at
            seen.append(at)
        return seen

    def violations(self, axe: str) -> list[object]:
        """The complaints of the script axe about the page, each with some of the elements."""
        self.run(f"{axe}; window.axe = axe")
        check = "found.violations.map(v => [v.id, v.nodes.map(n => n.html).slice(0, 3)])"
        found: list[object] = self.run(f"return axe.run().then(found => {check})")
        return found

    def emulate(self, width: int, height: int, scheme: str) -> None:
        """A screen of this size, and ``light`` or ``dark``."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._devtools("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._devtools("Emulation.setEmulatedMedia", {"features": features})

    def media(self, name: str) -> None:
        """Show the page as on ``print``; empty: as on the screen."""
        self._devtools("Emulation.setEmulatedMedia", {"media": name})

    def _devtools(self, command: str, parameters: dict[str, object]) -> None:
        _ask("POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def complaints(self) -> list[str]:
        """What the console has shown since it was last asked."""
        return [entry["message"] for entry in _ask("POST", f"{self._session}/se/log", {"type": "browser"})]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(_ask("GET", f"{self._session}/screenshot")))


@contextmanager
def start(profile: Path) -> Iterator[Browser]:
    """A browser with a fresh profile."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = f"http://127.0.0.1:{port}"
    quiet = subprocess.DEVNULL
    with subprocess.Popen(["chromedriver", f"--port={port}"], stdout=quiet, stderr=quiet) as driver:
        try:
            _wait(f"{server}/status")
            session = _ask("POST", f"{server}/session", {"capabilities": {"alwaysMatch": _wishes(profile)}})[
                "sessionId"
            ]
            try:
                yield Browser(server, session)
            finally:
                _ask("DELETE", f"{server}/session/{session}")
        finally:
            driver.terminate()


def _wishes(profile: Path) -> dict[str, object]:
    flags = ["headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", f"user-data-dir={profile}"]
    binary = next(found for name in _CHROMIUM if (found := shutil.which(name)))
    return {
        "browserName": "chrome",
        "goog:chromeOptions": {"args": [f"--{flag}" for flag in flags], "binary": binary},
        "goog:loggingPrefs": {"browser": "ALL"},
    }


def _wait(url: str) -> None:
    for _ in range(150):
        try:
            if _ask("GET", url)["ready"]:
                return
        except (urllib.error.URLError, ConnectionError):  # noqa: PERF203  it takes a moment to start
            time.sleep(0.1)
    raise TimeoutError("chromedriver does not answer")


def _ask(method: str, url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(error.read().decode()) from None
